/* Files that are read and written whole. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "driver_files.h"
#include "os/whole_file.h"
#include "unit.h"

enum { LARGE = 200000 };

static char *read_some(const char *path, size_t most, size_t *ret_size)
{
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(trp_file_read(fd, most, &text, ret_size), ==, 0);
    close(fd);
    return text;
}

TEST("a file is read to its end")
{
    char *dir = files_new(), *path = g_build_filename(dir, "f", NULL);
    const size_t sizes[] = {0, 1, 65535, 65536, 65537, LARGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        g_autofree char *bytes = g_strnfill(sizes[i], 'x');
        size_t n;
        files_put_bytes(dir, "f", bytes, sizes[i]);
        char *got = read_some(path, LARGE, &n);
        g_assert_cmpmem(got, n, bytes, sizes[i]);
        g_assert_cmpint(got[n], ==, '\0');
        free(got);
    }
    g_free(path);
    files_free(dir);
}

TEST("of more than is wanted there is one byte too many")
{
    char *dir = files_new(), *path = g_build_filename(dir, "f", NULL);
    g_autofree char *bytes = g_strnfill(LARGE, 'x');
    const size_t limits[] = {0, 1, 65535, 65536, LARGE - 1, LARGE};
    files_put_bytes(dir, "f", bytes, LARGE);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t n, wanted = limits[i] < LARGE ? limits[i] + 1 : LARGE;
        free(read_some(path, limits[i], &n));
        g_assert_cmpuint(n, ==, wanted);
    }
    g_free(path);
    files_free(dir);
}

TEST("a pipe is read, a folder is not")
{
    int ends[2];
    char *text;
    size_t n;
    g_assert_cmpint(pipe(ends), ==, 0);
    g_assert_cmpint(trp_file_write(ends[1], "some", 4), ==, 0);
    close(ends[1]);
    g_assert_cmpint(trp_file_read(ends[0], 100, &text, &n), ==, 0);
    g_assert_cmpmem(text, n, "some", 4);
    free(text);
    close(ends[0]);
    int folder = open("/", O_RDONLY | O_CLOEXEC);
    g_assert_cmpint(trp_file_read(folder, 100, &text, &n), ==, EISDIR);
    close(folder);
}

TEST("what cannot be written stays as it was")
{
    char *dir = files_new(), *path = g_build_filename(dir, "f", NULL);
    g_autofree char *fresh = g_build_filename(dir, "f.new", NULL);
    size_t n;
    g_assert_cmpint(trp_held_write(path, "first", 5, true), ==, 0);
    g_assert_cmpint(trp_held_write(path, "second", 6, false), ==, 0);
    g_assert_cmpint(access(fresh, F_OK), ==, -1);
    g_assert_cmpint(mkdir(fresh, 0700), ==, 0);
    g_assert_cmpint(trp_held_write(path, "third", 5, false), ==, -1);
    g_assert_cmpint(errno, ==, EISDIR);
    char *text = read_some(path, 100, &n);
    g_assert_cmpstr(text, ==, "second");
    free(text);
    g_free(path);
    files_free(dir);
}
