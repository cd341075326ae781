/*
 *     u64 "troupe1\n"    u32 partition    u32 check of the 12 bytes before it
 *     for each chunk:    u64 checksum     u32 size    u32 check of the 12 bytes
 *                        the chunk
 *     the end:           u64 chunks       u32 0       u32 check
 *
 * Checks and checksums begin with the partition's number and the chunk's: a chunk of
 * another place is none.
 */
#include "data/part_file.h"
#include "os/whole_file.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { HEAD = 16, CHECKED = 12, NAME = 4096 };

static const char magic[9] = "troupe1\n";

struct trp_part_writer {
    int fd;
    uint32_t partition;
    uint64_t chunks;
    char hidden[NAME], name[NAME];
};

struct trp_part_reader {
    int fd;
    uint32_t partition;
    uint64_t chunks;
    uint8_t *data;
    size_t capacity;
    char name[NAME];
};

static uint64_t seed_of(uint32_t partition, uint64_t chunk)
{
    return (uint64_t)partition << 32 ^ chunk;
}

static bool put_name(char *to, const char *folder, const char *before,
                     uint32_t partition, const char *behind)
{
    int n = snprintf(to, NAME, "%s/%spart-%05u%s", folder, before, partition, behind);
    return n > 0 && n < NAME;
}

static int too_long(const char *folder, trp_error *err)
{
    return trp_error_set(err, TRP_ELIMIT, "the folder's path %.100s… is too long",
                         folder);
}

void trp_part_take_names(const char *folder, uint32_t partition, const char *but)
{
    char begin[32];
    const char *own = strrchr(but, '/');
    const struct dirent *e;
    int n = snprintf(begin, sizeof begin, ".part-%05u.", partition);
    DIR *d = opendir(folder);
    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, begin, (size_t)n) == 0 &&
            strcmp(e->d_name, own ? own + 1 : but) != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

/* ---- writing --------------------------------------------------------------------- */

static int write_failed(const trp_part_writer *w, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot write %s: %s", w->name,
                         strerror(errno));
}

static int write_all(trp_part_writer *w, const void *bytes, size_t size, trp_error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(w->fd, (const char *)bytes + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : ENOSPC;
            return write_failed(w, err);
        }
        done += (size_t)n;
    }
    return 0;
}

static void put_head(uint8_t *to, uint64_t first, uint32_t second, uint64_t seed)
{
    first = htole64(first);
    second = htole32(second);
    memcpy(to, &first, sizeof first);
    memcpy(to + sizeof first, &second, sizeof second);
    uint32_t check = htole32((uint32_t)XXH3_64bits_withSeed(to, CHECKED, seed));
    memcpy(to + CHECKED, &check, sizeof check);
}

static uint64_t magic_word(void)
{
    uint64_t word = 0;
    memcpy(&word, magic, sizeof word);
    return le64toh(word);
}

int trp_part_file_create(const char *folder, uint32_t partition, uint64_t attempt,
                         trp_part_writer **ret, trp_error *err)
{
    char behind[32];
    uint8_t head[HEAD];
    trp_part_writer *w = calloc(1, sizeof *w);
    if (!w)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    snprintf(behind, sizeof behind, ".%llx.tmp", (unsigned long long)attempt);
    w->fd = -1;
    w->partition = partition;
    int rc = put_name(w->name, folder, "", partition, "") &&
                     put_name(w->hidden, folder, ".", partition, behind)
                 ? 0
                 : too_long(folder, err);
    if (rc == 0)
        w->fd = open(w->hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (rc == 0 && w->fd < 0)
        rc = write_failed(w, err);
    put_head(head, magic_word(), partition, 0);
    if (rc == 0 && (rc = write_all(w, head, sizeof head, err)) < 0) {
        close(w->fd);
        unlink(w->hidden);
    }
    if (rc < 0)
        free(w);
    else
        *ret = w;
    return rc;
}

int trp_part_file_put(trp_part_writer *w, const void *chunk, size_t size,
                      trp_error *err)
{
    uint8_t head[HEAD];
    uint64_t seed = seed_of(w->partition, w->chunks++);
    put_head(head, XXH3_64bits_withSeed(chunk, size, seed), (uint32_t)size, seed);
    int rc = write_all(w, head, sizeof head, err);
    return rc < 0 ? rc : write_all(w, chunk, size, err);
}

int trp_part_file_end(trp_part_writer *w, trp_error *err)
{
    uint8_t head[HEAD];
    put_head(head, w->chunks, 0, seed_of(w->partition, w->chunks));
    int rc = write_all(w, head, sizeof head, err);
    if (close(w->fd) < 0 && rc == 0) /* some say only now that they are full */
        rc = write_failed(w, err);
    w->fd = -1;
    return rc;
}

const char *trp_part_file_hidden(const trp_part_writer *w)
{
    return w->hidden;
}

int trp_part_file_close(trp_part_writer *w, bool keep, trp_error *err)
{
    int rc = 0;
    if (w->fd >= 0)
        close(w->fd);
    if (keep && rename(w->hidden, w->name) < 0)
        rc = write_failed(w, err);
    if (!keep || rc < 0)
        unlink(w->hidden);
    free(w);
    return rc;
}

/* ---- reading --------------------------------------------------------------------- */

static int damaged(const trp_part_reader *r, trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "%s is damaged", r->name);
}

/* TRP_ESYSTEM: there are not so many. */
static int read_all(trp_part_reader *r, void *bytes, size_t size, trp_error *err)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(r->fd, (char *)bytes + done, size - done);
        if (n == 0)
            return damaged(r, err);
        if (n < 0 && errno != EINTR)
            return trp_error_set(err, TRP_ESYSTEM, "cannot read %s: %s", r->name,
                                 strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int read_head(trp_part_reader *r, uint64_t seed, uint64_t *ret_first,
                     uint32_t *ret_second, trp_error *err)
{
    uint8_t head[HEAD];
    uint32_t check;
    int rc = read_all(r, head, sizeof head, err);
    if (rc < 0)
        return rc;
    memcpy(ret_first, head, sizeof *ret_first);
    memcpy(ret_second, head + sizeof *ret_first, sizeof *ret_second);
    memcpy(&check, head + CHECKED, sizeof check);
    *ret_first = le64toh(*ret_first);
    *ret_second = le32toh(*ret_second);
    return le32toh(check) == (uint32_t)XXH3_64bits_withSeed(head, CHECKED, seed)
               ? 0
               : damaged(r, err);
}

int trp_part_file_open(const char *folder, uint32_t partition, trp_part_reader **ret,
                       trp_error *err)
{
    uint64_t word = 0;
    uint32_t number = 0;
    trp_part_reader *r = calloc(1, sizeof *r);
    if (!r)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    r->partition = partition;
    if (!put_name(r->name, folder, "", partition, "")) {
        free(r);
        return too_long(folder, err);
    }
    r->fd = trp_file_open_regular(r->name);
    int rc = r->fd >= 0 ? read_head(r, 0, &word, &number, err)
                        : trp_error_set(err, TRP_ESYSTEM, "cannot read %s: %s", r->name,
                                        strerror(errno));
    if (rc == 0 && (word != magic_word() || number != partition))
        rc = damaged(r, err);
    if (rc < 0)
        trp_part_file_free(r);
    else
        *ret = r;
    return rc;
}

static int take_chunk(trp_part_reader *r, size_t size, uint64_t checksum, uint64_t seed,
                      trp_error *err)
{
    if (size > TRP_PART_CHUNK_MAX)
        return damaged(r, err);
    if (size > r->capacity) {
        free(r->data);
        r->data = malloc(size);
        r->capacity = r->data ? size : 0;
        if (!r->data)
            return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    int rc = read_all(r, r->data, size, err);
    if (rc == 0 && XXH3_64bits_withSeed(r->data, size, seed) != checksum)
        rc = damaged(r, err);
    return rc;
}

int trp_part_file_next(trp_part_reader *r, const uint8_t **ret_data, size_t *ret_size,
                       trp_error *err)
{
    uint64_t first, seed = seed_of(r->partition, r->chunks);
    uint32_t size;
    int rc = read_head(r, seed, &first, &size, err);
    if (rc < 0)
        return rc;
    if (size == 0)
        return first == r->chunks ? 0 : damaged(r, err);
    rc = take_chunk(r, size, first, seed, err);
    r->chunks++;
    *ret_data = r->data;
    *ret_size = size;
    return rc < 0 ? rc : 1;
}

void trp_part_file_free(trp_part_reader *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    free(r->data);
    free(r);
}
