/* Text files: which lines each partition reads, however the files are cut. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "fake_driver.h"

/* A folder of its own for each test, removed at its end. */
struct folder {
    char *path;
};

static void folder_make(struct folder *f, gconstpointer unused)
{
    (void)unused;
    f->path = g_dir_make_tmp("troupe-text-XXXXXX", NULL);
    g_assert_nonnull(f->path);
}

static void remove_below(const char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *child = g_build_filename(path, name, NULL);
        if (g_file_test(child, G_FILE_TEST_IS_DIR) &&
            !g_file_test(child, G_FILE_TEST_IS_SYMLINK))
            remove_below(child);
        else
            unlink(child);
    }
    if (dir)
        g_dir_close(dir);
    rmdir(path);
}

static void folder_remove(struct folder *f, gconstpointer unused)
{
    (void)unused;
    remove_below(f->path);
    g_free(f->path);
}

static void put_file(const struct folder *f, const char *name, const void *data,
                     size_t size)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    g_autofree char *dir = g_path_get_dirname(path);
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, data, (gssize)size, NULL));
}

static void put_gz(const struct folder *f, const char *name, const char *text,
                   const char *mode)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    gzFile gz = gzopen(path, mode);
    g_assert_nonnull(gz);
    g_assert_cmpint(gzwrite(gz, text, (unsigned)strlen(text)), ==, strlen(text));
    g_assert_cmpint(gzclose(gz), ==, Z_OK);
}

static void put_zst(const struct folder *f, const char *name, const char *text)
{
    size_t bound = ZSTD_compressBound(strlen(text));
    g_autofree void *packed = g_malloc(bound);
    size_t n = ZSTD_compress(packed, bound, text, strlen(text), 3);
    g_assert_false(ZSTD_isError(n));
    put_file(f, name, packed, n);
}

/* Keys and values of all records, in order, one "key:value\n" each; NULL: an error. */
static char *read_all(trp_context *ctx, const struct folder *f, const char *pattern,
                      uint32_t partitions)
{
    g_autofree char *whole = g_build_filename(f->path, pattern, NULL);
    trp_dataset *d = trp_text_files(ctx, whole, partitions);
    trp_rows *rows;
    if (!d || trp_collect(d, &rows) < 0)
        return NULL;
    g_assert_cmpuint(trp_partition_count(d), ==, partitions);
    const trp_batch *b = trp_rows_batch(rows);
    GString *all = g_string_new("");
    for (size_t i = 0; i < b->count; i++) {
        size_t nk, n;
        const char *key = trp_key(b, i, &nk), *value = trp_value(b, i, &n);
        g_string_append_len(all, key + strlen(f->path) + 1,
                            (gssize)(nk - strlen(f->path) - 1));
        g_string_append_c(all, ':');
        g_string_append_len(all, value, (gssize)n);
        g_string_append_c(all, '\n');
    }
    trp_rows_free(rows);
    return g_string_free(all, FALSE);
}

/* What read_all must give for one file of this text. */
static char *expected(const char *name, const char *text)
{
    GString *all = g_string_new("");
    while (*text) {
        size_t n = strcspn(text, "\n");
        g_string_append_printf(all, "%s:%.*s\n", name, (int)n, text);
        text += n + (text[n] == '\n');
    }
    return g_string_free(all, FALSE);
}

static void each_line_once(struct folder *f, gconstpointer unused)
{
    (void)unused;
    static const char *const texts[] = {
        "",
        "\n",
        "a",
        "a\n",
        "\n\n\n",
        "one\ntwo\nthree\n",
        "one\ntwo\n\n\nlast has no end",
        "dos\r\nlines\r\n\r\nend\r\n",
        "a line that is much longer than the others of this file\nx\ny\n",
        "\nx\n\nyy\n\n",
    };
    trp_context *ctx = fake_init();
    for (size_t t = 0; t < G_N_ELEMENTS(texts); t++) {
        put_file(f, "t.txt", texts[t], strlen(texts[t]));
        g_autofree char *want = expected("t.txt", texts[t]);
        for (uint32_t parts = 1; parts <= strlen(texts[t]) + 3; parts++) {
            g_autofree char *got = read_all(ctx, f, "t.txt", parts);
            g_test_message("text %zu in %u parts", t, parts);
            g_assert_cmpstr(got, ==, want);
        }
    }
    g_assert_cmpint(trp_finalize(ctx), ==, 0);
}

static void several_files(struct folder *f, gconstpointer unused)
{
    (void)unused;
    const char *plain = "p1\np2\np3\np4\n", *packed = "z1\nz2\n", *last = "e1\ne2";
    trp_context *ctx = fake_init();
    put_file(f, "a.txt", plain, strlen(plain));
    put_file(f, "b.txt", "", 0);
    put_gz(f, "c.gz", packed, "wb");
    put_zst(f, "d.zst", packed);
    put_file(f, "e.txt", last, strlen(last));
    const char *want = "a.txt:p1\na.txt:p2\na.txt:p3\na.txt:p4\nc.gz:z1\nc.gz:z2\n"
                       "d.zst:z1\nd.zst:z2\ne.txt:e1\ne.txt:e2\n";
    for (uint32_t parts = 1; parts < 200; parts++) {
        g_autofree char *got = read_all(ctx, f, "*", parts);
        g_assert_cmpstr(got, ==, want);
    }
    trp_finalize(ctx);
}

static void huge_line(struct folder *f, gconstpointer unused)
{
    (void)unused;
    size_t n = 3 << 20;
    g_autofree char *text = g_malloc(n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    text[5] = '\n';
    text[n - 4] = '\n';
    put_file(f, "huge", text, n);
    put_zst(f, "huge.zst", text);
    g_autofree char *want = expected("huge", text);
    g_autofree char *want_zst = expected("huge.zst", text);
    trp_context *ctx = fake_init();
    for (uint32_t parts = 1; parts < 8; parts++) {
        g_autofree char *got = read_all(ctx, f, "huge", parts);
        g_assert_true(g_str_equal(got, want));
        g_autofree char *got_zst = read_all(ctx, f, "huge.zst", parts);
        g_assert_true(g_str_equal(got_zst, want_zst));
    }
    trp_finalize(ctx);
}

static void members(struct folder *f, gconstpointer unused)
{
    (void)unused;
    put_gz(f, "two.gz", "a\nb", "wb");
    put_gz(f, "two.gz", "c\nd\n", "ab");
    trp_context *ctx = fake_init();
    g_autofree char *got = read_all(ctx, f, "two.gz", 3);
    g_assert_cmpstr(got, ==, "two.gz:a\ntwo.gz:bc\ntwo.gz:d\n");
    trp_finalize(ctx);
}

/* Cuts the last bytes of a file off. */
static void shorten(const struct folder *f, const char *name, size_t by)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    struct stat st;
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(truncate(path, st.st_size - (off_t)by), ==, 0);
}

static void broken_archives(struct folder *f, gconstpointer unused)
{
    (void)unused;
    GString *text = g_string_new("");
    for (int i = 0; i < 5000; i++)
        g_string_append_printf(text, "line %d\n", i * 7919);
    trp_context *ctx = fake_init();
    put_gz(f, "t.gz", text->str, "wb");
    put_zst(f, "t.zst", text->str);
    for (size_t by = 1; by < 3000; by += 733) {
        shorten(f, "t.gz", by);
        g_assert_null(read_all(ctx, f, "t.gz", 2));
        g_assert_nonnull(strstr(trp_error_text(ctx), "ends in the middle"));
        shorten(f, "t.zst", by);
        g_assert_null(read_all(ctx, f, "t.zst", 2));
        g_assert_nonnull(strstr(trp_error_text(ctx), "ends in the middle"));
    }
    put_file(f, "bad.zst", "this is no archive at all", 25);
    g_assert_null(read_all(ctx, f, "bad.zst", 1));
    g_assert_nonnull(strstr(trp_error_text(ctx), "bad.zst"));
    g_assert_cmpint(trp_finalize(ctx), ==, 1);
    g_string_free(text, TRUE);
}

static void which_files(struct folder *f, gconstpointer unused)
{
    (void)unused;
    static const char *const names[] = {"b.txt", "a.txt",        ".hidden.txt",
                                        "c.dat", "deep/x/y.txt", "deep/.git/z.txt"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        put_file(f, names[i], "1\n", 2);
    trp_context *ctx = fake_init();
    g_autofree char *flat = read_all(ctx, f, "*.txt", 2);
    g_assert_cmpstr(flat, ==, "a.txt:1\nb.txt:1\n");
    g_autofree char *deep = read_all(ctx, f, "**/*.txt", 2);
    g_assert_cmpstr(deep, ==, "a.txt:1\nb.txt:1\ndeep/x/y.txt:1\n");
    g_assert_null(read_all(ctx, f, "*.none", 2));
    g_assert_nonnull(strstr(trp_error_text(ctx), "no file matches"));
    g_assert_null(read_all(ctx, f, "dee?", 2));
    g_assert_nonnull(strstr(trp_error_text(ctx), "no regular file"));
    trp_finalize(ctx);
}

static void vanished_file(struct folder *f, gconstpointer unused)
{
    (void)unused;
    put_file(f, "t.txt", "1\n2\n", 4);
    trp_context *ctx = fake_init();
    g_autofree char *path = g_build_filename(f->path, "t.txt", NULL);
    trp_dataset *d = trp_text_files(ctx, path, 2);
    g_assert_nonnull(d);
    unlink(path);
    uint64_t n;
    g_assert_cmpint(trp_count(d, &n), ==, TRP_EFAILED);
    g_assert_nonnull(strstr(trp_error_text(ctx), "t.txt: No such file"));
    trp_finalize(ctx);
}

static void work_is_dealt_evenly(struct folder *f, gconstpointer unused)
{
    (void)unused;
    for (int i = 0; i < 40; i++) {
        g_autofree char *name = g_strdup_printf("f%02d", i);
        put_file(f, name, "0123456789\n0123456789\n", 22);
    }
    trp_context *ctx = fake_init();
    g_autofree char *whole = g_build_filename(f->path, "f*", NULL);
    trp_dataset *d = trp_text_files(ctx, whole, 8);
    for (uint32_t i = 0; i < 8; i++) {
        const uint8_t *data;
        uint32_t size;
        trp_chain_input(d, i, &data, &size);
        struct trp_view v = trp_view_of(data, size);
        uint64_t bytes = 0;
        while (v.at < v.end) {
            size_t n;
            trp_get_bytes(&v, &n);
            uint64_t begin = trp_get_u64(&v);
            bytes += trp_get_u64(&v) - begin;
        }
        g_assert_cmpuint(bytes, ==, 40 * 22 / 8);
    }
    trp_finalize(ctx);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name, fn)                                                                  \
    g_test_add("/text_input/" name, struct folder, NULL, folder_make, fn, folder_remove)
    ADD("each line is read once however a file is cut", each_line_once);
    ADD("files, empty and compressed ones too, come in order", several_files);
    ADD("a line longer than every buffer is one record", huge_line);
    ADD("members of one archive are read as one text", members);
    ADD("an archive that ends in the middle is an error", broken_archives);
    ADD("patterns find what the contract says and no hidden files", which_files);
    ADD("a file that is gone fails the task with its path", vanished_file);
    ADD("every partition gets as many bytes", work_is_dealt_evenly);
    return g_test_run();
}
