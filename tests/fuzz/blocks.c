/*
 * What peers and files tell of blocks: requests, heads of answers, map outputs and
 * their parts, with any bytes in them.
 *
 * Checksums are made right here, as another version of us, or a peer that knows the
 * secret, could: what is behind them must be looked at all the same. Checked: what is
 * taken fits the limits, lies where bytes are, and is what encoding makes of it.
 *
 * Input: a byte, whose low two bits say what is tried; then its bytes.
 *   0  a request
 *   1  the head of an answer, behind 36 bytes of the piece that was wanted
 *   2  a map output: u16 partitions, u16 bytes of blocks, u8 groups that are said (each
 * 16 bytes: begin, size, place in the index), then the index 3  a block: pieces of u8
 * flags, u16 length and so many bytes, each a part with a right checksum (bit 0:
 * compressed, bit 1: of another partition, bit 2: more bytes of records are said than
 * there are, bit 3: the head is wrong)
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "data/block_wire.h"
#include "data/stream.h"
#include "fuzz.h"

static const struct trp_output_id id = {1, 2, 3};

/* ---- messages -------------------------------------------------------------------- */

static void request(const uint8_t *p, size_t n)
{
    struct trp_view v = trp_view_of(p, n);
    int count = trp_wanted_count(&v);
    if (count < 0)
        return;
    FUZZ_CHECK(count <= TRP_WANTED_FRAME && n == 4 + (size_t)count * TRP_WANTED_SIZE,
               "%d pieces in %zu bytes", count, n);
    for (int i = 0; i < count; i++) {
        const uint8_t *at = v.at;
        struct trp_wanted w;
        struct trp_buf b = {0};
        if (trp_wanted_get(&v, &w) < 0)
            return;
        FUZZ_CHECK(w.partition < w.partitions && w.size <= TRP_WANTED_BYTES,
                   "a piece beyond its limits");
        trp_wanted_put(&b, &w);
        FUZZ_CHECK(b.size == TRP_WANTED_SIZE && memcmp(b.data, at, b.size) == 0,
                   "a piece is encoded otherwise");
        trp_buf_free(&b);
    }
    FUZZ_CHECK(trp_view_end(&v), "a request has more than its pieces");
}

static void head(const uint8_t *p, size_t n)
{
    struct trp_view v = trp_view_of(p, n);
    struct trp_wanted w;
    struct trp_block_head h;
    struct trp_buf b = {0};
    if (trp_wanted_get(&v, &w) < 0)
        return;
    const uint8_t *at = v.at;
    size_t size = (size_t)(v.end - v.at);
    uint32_t number = w.id.map; /* any */
    if (trp_block_head_get(&v, &w, number, &h) < 0)
        return;
    FUZZ_CHECK(h.bytes <= w.size && h.number == number, "more than was asked for");
    FUZZ_CHECK(h.bytes == 0 || w.offset + h.bytes <= h.size, "more than there is");
    FUZZ_CHECK(h.bytes == 0 || h.status == TRP_BLOCK_HERE, "bytes of no block");
    trp_block_head_put(&b, &h);
    FUZZ_CHECK(b.size != size || memcmp(b.data, at, size) == 0,
               "a head is encoded otherwise");
    trp_buf_free(&b);
}

/* ---- files ----------------------------------------------------------------------- */

/* A folder for the one file that there is at a time. */
static char folder_path[] = "/tmp/troupe-fuzz-XXXXXX";

static void remove_folder(void)
{
    rmdir(folder_path);
}

static int folder(void)
{
    static int fd = -1;
    if (fd >= 0)
        return fd;
    FUZZ_CHECK(mkdtemp(folder_path), "no folder");
    atexit(remove_folder);
    fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd;
}

static void put_index(struct fuzz_bytes *b, struct trp_buf *file, uint32_t partitions,
                      uint32_t blocks)
{
    struct trp_buf entries = {0};
    uint32_t said = fuzz_byte(b), ngroups = (partitions + 255) / 256;
    const uint8_t *groups = b->at;
    b->at +=
        said * 16 < (size_t)(b->end - b->at) ? said * 16 : (size_t)(b->end - b->at);
    size_t have = (size_t)(b->at - groups), index = (size_t)(b->end - b->at);
    for (uint32_t i = 0; i < ngroups; i++) {
        uint64_t begin = 0;
        uint32_t size = (uint32_t)index, at = 0;
        if (have >= ((size_t)i + 1) * 16) {
            memcpy(&begin, groups + (size_t)i * 16, 8);
            memcpy(&size, groups + (size_t)i * 16 + 8, 4);
            memcpy(&at, groups + (size_t)i * 16 + 12, 4);
        }
        bool inside = at <= index && size <= index - at;
        trp_put_u64(&entries, begin);
        trp_put_u32(&entries, size);
        trp_put_u32(&entries, at);
        trp_put_u64(&entries, inside ? XXH3_64bits(b->at + at, size) : 0);
    }
    for (uint32_t i = 0; i < blocks; i++)
        trp_put_u8(file, (uint8_t)i);
    if (index > 0)
        trp_put_raw(file, b->at, index);
    if (entries.size > 0)
        trp_put_raw(file, entries.data, entries.size);
    size_t footer = file->size;
    trp_put_raw(file, TRP_BLOCK_FILE_MARK, 8);
    trp_put_u32(file, id.shuffle);
    trp_put_u32(file, id.map);
    trp_put_u64(file, id.attempt);
    trp_put_u32(file, partitions);
    trp_put_u32(file, 0);
    trp_put_u64(file, blocks);
    trp_put_u64(file, index);
    trp_put_u64(file, XXH3_64bits_withSeed(file->data + footer, 48,
                                           XXH3_64bits(entries.data, entries.size)));
    trp_buf_free(&entries);
}

static void map_output(struct fuzz_bytes *b)
{
    struct trp_buf bytes = {0};
    struct trp_block_file f;
    char name[TRP_BLOCK_NAME];
    uint32_t partitions = (fuzz_byte(b) | (uint32_t)fuzz_byte(b) << 8) % 1024;
    uint32_t blocks = (fuzz_byte(b) | (uint32_t)fuzz_byte(b) << 8) % 8192;
    put_index(b, &bytes, partitions, blocks);
    trp_block_file_name(&id, name);
    int fd = openat(folder(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, bytes.data, bytes.size) == (ssize_t)bytes.size,
               "the file cannot be written");
    close(fd);
    trp_buf_free(&bytes);
    int rc = trp_block_file_open(folder(), &id, &f, NULL);
    unlinkat(folder(), name, 0);
    if (rc < 0)
        return;
    FUZZ_CHECK(f.partitions == partitions && f.blocks == blocks, "another file");
    for (uint32_t p = 0; p <= partitions; p++) {
        struct trp_block_place place;
        if (trp_block_file_find(&f, p, &place, NULL) < 0)
            continue;
        FUZZ_CHECK(p < partitions, "partition %u of %u", p, partitions);
        FUZZ_CHECK(place.size <= blocks && place.begin <= blocks - place.size,
                   "a block that is not in the file");
    }
    trp_block_file_close(&f);
}

/* ---- blocks ---------------------------------------------------------------------- */

struct memory_source {
    struct trp_bytes_source source;
    struct trp_buf bytes;
    size_t at;
};

static int read_memory(struct trp_bytes_source *source, uint8_t *to, size_t n,
                       trp_error *err)
{
    struct memory_source *m = (struct memory_source *)source;
    (void)err;
    FUZZ_CHECK(n <= m->bytes.size - m->at, "more is read than there is");
    if (n > 0)
        memcpy(to, m->bytes.data + m->at, n);
    m->at += n;
    return 0;
}

static void free_memory(struct trp_bytes_source *source)
{
    (void)source;
}

static void put_part(struct trp_buf *to, struct fuzz_bytes *b, uint64_t seed)
{
    uint8_t flags = fuzz_byte(b);
    size_t n = fuzz_byte(b) | (size_t)fuzz_byte(b) << 8;
    n = n < (size_t)(b->end - b->at) ? n : (size_t)(b->end - b->at);
    size_t at = to->size;
    trp_put_u64(to, XXH3_64bits_withSeed(b->at, n, seed));
    trp_put_u32(to, (uint32_t)n);
    trp_put_u32(to, (uint32_t)n + (flags & 4 ? 100 : 0));
    trp_put_u32(to, (flags & 2 ? 6u : 5u) | (flags & 1 ? UINT32_C(1) << 31 : 0));
    uint32_t check = (uint32_t)XXH3_64bits_withSeed(to->data + at, 20, seed);
    trp_put_u32(to, check ^ (flags & 8 ? 1 : 0));
    trp_put_raw(to, b->at, n);
    b->at += n;
}

static void block(struct fuzz_bytes *b)
{
    struct memory_source m = {
        .source = {read_memory, free_memory}
    };
    struct trp_unpacker unpacker = {0};
    uint64_t seed = trp_parts_seed(id.shuffle, id.map, id.attempt);
    volatile uint64_t sum = 0;
    while (b->at < b->end)
        put_part(&m.bytes, b, seed);
    struct trp_stream *s =
        trp_stream_of_parts(&m.source, m.bytes.size, seed, 5, &unpacker);
    FUZZ_CHECK(s, "no memory");
    while (trp_stream_next(s, NULL) > 0) {
        FUZZ_CHECK(s->partition == 5, "a record of partition %u", s->partition);
        for (size_t i = 0; i < (size_t)s->record.nk + s->record.nv; i++)
            sum = sum + s->record.key[i]; /* all of it can be read */
    }
    s->free(s);
    ZSTD_freeDCtx(unpacker.zstd);
    trp_buf_free(&m.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes b = {data, data + size};
    switch (fuzz_byte(&b) & 3) {
    case 0:
        request(b.at, (size_t)(b.end - b.at));
        break;
    case 1:
        head(b.at, (size_t)(b.end - b.at));
        break;
    case 2:
        map_output(&b);
        break;
    default:
        block(&b);
        break;
    }
    return 0;
}
