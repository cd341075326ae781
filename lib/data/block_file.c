/*
 * Index and footer of map outputs.
 *
 * Nothing that is read here is believed before its checksum was right, and nothing
 * after it without a look at its lengths: a file may be of another version of us.
 */
#include "data/block_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/bytes.h"
#include "os/held.h"

enum { ENTRY = 24, FOOTER_CHECKED = TRP_BLOCK_FOOTER - 8 };

void trp_block_file_name(const struct trp_output_id *id, char ret[TRP_BLOCK_NAME])
{
    snprintf(ret, TRP_BLOCK_NAME, "%u-%u-%llu", id->shuffle, id->map,
             (unsigned long long)id->attempt);
}

static uint32_t groups_of(uint32_t partitions)
{
    return (partitions + TRP_INDEX_GROUP - 1) / TRP_INDEX_GROUP;
}

/* ---- writing --------------------------------------------------------------------- */

/* Adds the group of partitions `from` to `to`; the bytes of its blocks. */
static uint64_t put_group(struct trp_buf *index, const uint64_t *sizes, uint32_t from,
                          uint32_t to)
{
    uint64_t bytes = 0;
    uint32_t empty = 0;
    for (uint32_t i = from; i < to; i++) {
        uint8_t pair[20];
        if (sizes[i] == 0) {
            empty++;
            continue;
        }
        size_t n = trp_varint_put(pair, empty);
        n += trp_varint_put(pair + n, sizes[i]);
        trp_put_raw(index, pair, n);
        bytes += sizes[i];
        empty = 0;
    }
    return bytes;
}

/* Index and entries; ret_blocks: the bytes of all blocks. */
static void put_index(const uint64_t *sizes, uint32_t partitions, struct trp_buf *index,
                      struct trp_buf *entries, uint64_t *ret_blocks)
{
    uint64_t begin = 0;
    for (uint32_t from = 0; from < partitions; from += TRP_INDEX_GROUP) {
        uint32_t to =
            partitions - from < TRP_INDEX_GROUP ? partitions : from + TRP_INDEX_GROUP;
        size_t at = index->size;
        uint64_t bytes = put_group(index, sizes, from, to);
        trp_put_u64(entries, begin);
        trp_put_u32(entries, (uint32_t)(index->size - at));
        trp_put_u32(entries, (uint32_t)at);
        trp_put_u64(entries, XXH3_64bits(index->data + at, index->size - at));
        begin += bytes;
    }
    *ret_blocks = begin;
}

static uint64_t checksum(const struct trp_buf *entries, const uint8_t *footer)
{
    uint64_t seed = XXH3_64bits(entries->data, entries->size);
    return XXH3_64bits_withSeed(footer, FOOTER_CHECKED, seed);
}

static void put_footer(struct trp_buf *to, const struct trp_output_id *id,
                       uint32_t partitions, uint64_t blocks, uint64_t index)
{
    trp_put_raw(to, TRP_BLOCK_FILE_MARK, 8);
    trp_put_u32(to, id->shuffle);
    trp_put_u32(to, id->map);
    trp_put_u64(to, id->attempt);
    trp_put_u32(to, partitions);
    trp_put_u32(to, 0);
    trp_put_u64(to, blocks);
    trp_put_u64(to, index);
}

int trp_block_file_finish(struct trp_parts_writer *p, const struct trp_output_id *id,
                          const uint64_t *sizes, uint32_t partitions, trp_error *err)
{
    struct trp_buf index = {0}, entries = {0}, footer = {0};
    uint64_t blocks = 0;
    int rc = trp_parts_flush(p, err);
    trp_buf_grow(&index, 1); /* an empty one, too, has an address */
    put_index(sizes, partitions, &index, &entries, &blocks);
    put_footer(&footer, id, partitions, blocks, index.size);
    if (rc == 0 && (index.failed || entries.failed || footer.failed))
        rc = trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (rc == 0) {
        trp_put_u64(&footer, checksum(&entries, footer.data));
        rc = footer.failed ? trp_error_set(err, TRP_ENOMEM, "out of memory") : 0;
    }
    if (rc == 0 && index.size > 0)
        rc = trp_parts_put_raw(p, index.data, index.size, err);
    if (rc == 0)
        rc = trp_parts_put_raw(p, entries.data, entries.size, err);
    if (rc == 0)
        rc = trp_parts_put_raw(p, footer.data, footer.size, err);
    if (rc == 0)
        rc = trp_parts_flush(p, err);
    trp_buf_free(&index);
    trp_buf_free(&entries);
    trp_buf_free(&footer);
    return rc;
}

/* ---- reading --------------------------------------------------------------------- */

static int damaged(trp_error *err, const char *what)
{
    return trp_error_set(err, TRP_EPROTO, "%s", what);
}

static int read_at(int fd, void *to, size_t n, uint64_t at, trp_error *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (uint8_t *)to + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return trp_error_set(err, TRP_EPROTO, "it cannot be read: %m");
        if (got == 0)
            return damaged(err, "it is cut off");
        done += (size_t)got;
    }
    return 0;
}

/* The footer's own fields. `size`: of the file. */
static int get_footer(const uint8_t *bytes, const struct trp_output_id *id,
                      uint64_t size, struct trp_block_file *f, uint64_t *ret_checksum,
                      trp_error *err)
{
    struct trp_view v = trp_view_of(bytes, TRP_BLOCK_FOOTER);
    const uint8_t *mark = trp_get_raw(&v, 8);
    if (memcmp(mark, TRP_BLOCK_FILE_MARK, 8) != 0)
        return damaged(err, "it is cut off, or no map output");
    bool same = trp_get_u32(&v) == id->shuffle;
    same = trp_get_u32(&v) == id->map && same;
    same = trp_get_u64(&v) == id->attempt && same;
    f->partitions = trp_get_u32(&v);
    trp_get_u32(&v);
    f->blocks = trp_get_u64(&v);
    f->index = trp_get_u64(&v);
    *ret_checksum = trp_get_u64(&v);
    if (!same)
        return damaged(err, "it is another map output");
    if (f->partitions < 1 || f->partitions > TRP_SHUFFLE_PARTITIONS_MAX)
        return damaged(err, "its footer is damaged");
    f->ngroups = groups_of(f->partitions);
    uint64_t rest = (uint64_t)f->ngroups * ENTRY + TRP_BLOCK_FOOTER;
    if (size < rest || f->blocks > size - rest || f->index != size - rest - f->blocks)
        return damaged(err, "its length is wrong");
    return 0;
}

static int get_groups(struct trp_block_file *f, const uint8_t *footer,
                      uint64_t want_checksum, trp_error *err)
{
    struct trp_buf entries = {0};
    size_t n = (size_t)f->ngroups * ENTRY;
    uint8_t *bytes = trp_buf_reserve(&entries, n);
    f->groups = (struct trp_index_group *)calloc(f->ngroups, sizeof *f->groups);
    int rc = bytes && f->groups ? read_at(f->fd, bytes, n, f->blocks + f->index, err)
                                : trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (rc == 0 && checksum(&entries, footer) != want_checksum)
        rc = damaged(err, "the checksum of its index is wrong");
    struct trp_view v = trp_view_of(bytes, rc == 0 ? n : 0);
    for (uint32_t i = 0; rc == 0 && i < f->ngroups; i++) {
        struct trp_index_group *g = &f->groups[i];
        g->begin = trp_get_u64(&v);
        g->size = trp_get_u32(&v);
        g->at = trp_get_u32(&v);
        g->checksum = trp_get_u64(&v);
        if (g->begin > f->blocks || g->at > f->index || g->size > f->index - g->at)
            rc = damaged(err, "its index is wrong");
    }
    trp_buf_free(&entries);
    return rc;
}

static int cannot_open(trp_error *err)
{
    bool ours = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (errno == ENOENT)
        return trp_error_set(err, TRP_ENOENT, "it is not there");
    return trp_error_set(err, ours ? TRP_ESYSTEM : TRP_EPROTO,
                         "it cannot be opened: %m");
}

static int order(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void trp_block_files_remove(const char *folder, const uint32_t *shuffles, uint32_t n)
{
    int fd = trp_held_open(folder, O_RDONLY | O_DIRECTORY, 0);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        close(fd);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char *end;
        const unsigned long number = strtoul(e->d_name, &end, 10);
        const uint32_t shuffle = (uint32_t)number;
        if (end != e->d_name && *end == '-' && number == shuffle &&
            bsearch(&shuffle, shuffles, n, sizeof *shuffles, order))
            unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}

int trp_block_folder_open(const char *folder, trp_error *err)
{
    int fd = trp_held_open(folder, O_RDONLY | O_DIRECTORY, 0);
    return fd >= 0 ? fd : cannot_open(err);
}

int trp_block_file_reopen(int folder, const struct trp_output_id *id, trp_error *err)
{
    char name[TRP_BLOCK_NAME];
    trp_block_file_name(id, name);
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 ? fd : cannot_open(err);
}

int trp_block_file_open(int folder, const struct trp_output_id *id,
                        struct trp_block_file *ret, trp_error *err)
{
    uint8_t footer[TRP_BLOCK_FOOTER];
    uint64_t want_checksum = 0;
    struct stat st;
    *ret = (struct trp_block_file){.fd = trp_block_file_reopen(folder, id, err)};
    if (ret->fd < 0)
        return ret->fd;
    int rc = 0;
    if (fstat(ret->fd, &st) < 0 || !S_ISREG(st.st_mode))
        rc = damaged(err, "it is no file");
    else if (id->shuffle == TRP_WHOLE_FILE)
        *ret = (struct trp_block_file){
            .fd = ret->fd, .partitions = 1, .blocks = (uint64_t)st.st_size};
    else if (st.st_size < TRP_BLOCK_FOOTER)
        rc = damaged(err, "it is cut off");
    else
        rc = read_at(ret->fd, footer, sizeof footer,
                     (uint64_t)st.st_size - TRP_BLOCK_FOOTER, err);
    if (rc == 0 && id->shuffle == TRP_WHOLE_FILE)
        return 0;
    if (rc == 0)
        rc = get_footer(footer, id, (uint64_t)st.st_size, ret, &want_checksum, err);
    if (rc == 0)
        rc = get_groups(ret, footer, want_checksum, err);
    if (rc < 0)
        trp_block_file_close(ret);
    return rc;
}

void trp_block_file_close(struct trp_block_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->groups);
    *f = (struct trp_block_file){.fd = -1};
}

/* Looks for block `wanted` of a group. */
static int search(const struct trp_block_file *f, const struct trp_index_group *g,
                  const uint8_t *at, uint32_t wanted, struct trp_block_place *ret,
                  trp_error *err)
{
    const uint8_t *end = at + g->size;
    uint64_t begin = g->begin, i = 0;
    *ret = (struct trp_block_place){0};
    while (at < end) {
        uint64_t empty, size;
        at = trp_varint_get(at, end, &empty);
        at = at ? trp_varint_get(at, end, &size) : NULL;
        if (!at || empty >= TRP_INDEX_GROUP - i || size > f->blocks - begin)
            return damaged(err, "its index is wrong");
        i += empty;
        if (i >= wanted) {
            if (i == wanted)
                *ret = (struct trp_block_place){begin, size};
            return 0;
        }
        begin += size;
        i++;
    }
    return 0;
}

int trp_block_file_find(const struct trp_block_file *f, uint32_t partition,
                        struct trp_block_place *ret, trp_error *err)
{
    if (partition >= f->partitions)
        return trp_error_set(err, TRP_EINVAL, "it has %u partitions and no number %u",
                             f->partitions, partition);
    if (!f->groups) {
        *ret = (struct trp_block_place){0, f->blocks};
        return 0;
    }
    const struct trp_index_group *g = &f->groups[partition / TRP_INDEX_GROUP];
    uint8_t *bytes = (uint8_t *)malloc((size_t)g->size + 1);
    int rc = bytes ? read_at(f->fd, bytes, g->size, f->blocks + g->at, err)
                   : trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (rc == 0 && XXH3_64bits(bytes, g->size) != g->checksum)
        rc = damaged(err, "the checksum of its index is wrong");
    if (rc == 0)
        rc = search(f, g, bytes, partition % TRP_INDEX_GROUP, ret, err);
    free(bytes);
    return rc;
}
