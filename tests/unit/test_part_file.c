/* Partitions in files of their own: what is read is what was written, or an error. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/part_file.h"
#include "unit.h"

enum { CHUNKS = 3, SIZE = 1000 };

static void write_part(const char *folder, uint32_t partition, uint64_t attempt,
                       uint8_t fill, bool whole)
{
    trp_part_writer *w;
    trp_error err = {0};
    uint8_t chunk[SIZE];
    g_assert_cmpint(trp_part_file_create(folder, partition, attempt, &w, &err), ==, 0);
    for (int i = 0; i < CHUNKS; i++) {
        memset(chunk, fill + i, sizeof chunk);
        g_assert_cmpint(trp_part_file_put(w, chunk, sizeof chunk - (size_t)i, &err), ==,
                        0);
    }
    if (whole)
        g_assert_cmpint(trp_part_file_end(w, &err), ==, 0);
    g_assert_cmpint(trp_part_file_close(w, whole, &err), ==, 0);
}

/* The first byte that it is filled with; a negative code with the text in `err`. */
static int read_part(const char *folder, uint32_t partition, trp_error *err)
{
    trp_part_reader *r;
    const uint8_t *data;
    size_t size;
    int fill = 0, n = 0, rc = trp_part_file_open(folder, partition, &r, err);
    if (rc < 0)
        return rc;
    for (; (rc = trp_part_file_next(r, &data, &size, err)) > 0; n++) {
        fill = n ? fill : data[0];
        g_assert_cmpuint(size, ==, (size_t)(SIZE - n));
        for (size_t i = 0; i < size; i++)
            g_assert_cmpuint(data[i], ==, fill + n);
    }
    trp_part_file_free(r);
    g_assert_cmpint(rc < 0 ? CHUNKS : n, ==, CHUNKS);
    return rc < 0 ? rc : fill;
}

static char *folder_make(void)
{
    return g_dir_make_tmp("troupe-part-XXXXXX", NULL);
}

static char *part_path(const char *folder)
{
    return g_build_filename(folder, "part-00007", NULL);
}

/* With nothing in it but the partition. */
static void folder_remove(char *folder, bool has_part)
{
    g_autofree char *path = part_path(folder);
    g_assert_cmpint(g_unlink(path), ==, has_part ? 0 : -1);
    g_assert_cmpint(g_rmdir(folder), ==, 0);
    g_free(folder);
}

TEST("it comes back as it was written")
{
    char *folder = folder_make();
    trp_error err = {0};
    write_part(folder, 7, 1, 40, true);
    g_assert_cmpint(read_part(folder, 7, &err), ==, 40);
    folder_remove(folder, true);
}

TEST("half of it is nothing")
{
    char *folder = folder_make();
    trp_error err = {0};
    write_part(folder, 7, 1, 40, false);
    g_assert_cmpint(read_part(folder, 7, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "part-00007: No such file"));
    folder_remove(folder, false);
}

TEST("a later one takes the place of an earlier one")
{
    char *folder = folder_make();
    trp_error err = {0};
    write_part(folder, 7, 1, 40, true);
    write_part(folder, 7, 2, 90, true);
    g_assert_cmpint(read_part(folder, 7, &err), ==, 90);
    folder_remove(folder, true);
}

/* An attempt that was stopped before it could give its part its name, and goes on. */
TEST("whose name was taken gives it to nothing")
{
    char *folder = folder_make();
    trp_part_writer *stopped, *allowed, *other;
    trp_error err = {0};
    g_assert_cmpint(trp_part_file_create(folder, 7, 1, &stopped, &err), ==, 0);
    g_assert_cmpint(trp_part_file_create(folder, 7, 2, &allowed, &err), ==, 0);
    g_assert_cmpint(trp_part_file_create(folder, 70, 3, &other, &err), ==, 0);
    g_assert_cmpint(trp_part_file_end(stopped, &err), ==, 0);
    g_assert_cmpint(trp_part_file_end(allowed, &err), ==, 0);
    trp_part_take_names(folder, 7, trp_part_file_hidden(allowed));
    g_assert_cmpint(trp_part_file_close(allowed, true, &err), ==, 0);
    g_autofree char *path = part_path(folder);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(trp_part_file_close(stopped, true, &err), ==, TRP_ESYSTEM);
    g_assert_cmpint(g_access(trp_part_file_hidden(other), F_OK), ==, 0);
    g_assert_cmpint(trp_part_file_close(other, false, &err), ==, 0);
    folder_remove(folder, false);
}

TEST("every changed byte and every cut is found")
{
    char *folder = folder_make();
    g_autofree char *path = part_path(folder);
    trp_error err = {0};
    struct stat st;
    uint8_t byte;
    write_part(folder, 7, 1, 40, true);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(fstat(fd, &st), ==, 0);
    for (off_t i = 0; i < st.st_size; i++) {
        g_assert_cmpint(pread(fd, &byte, 1, i), ==, 1);
        byte ^= (uint8_t)(1 << i % 8);
        g_assert_cmpint(pwrite(fd, &byte, 1, i), ==, 1);
        g_assert_cmpint(read_part(folder, 7, &err), ==, TRP_ESYSTEM);
        g_assert_nonnull(strstr(err.text, "part-00007 is damaged"));
        byte ^= (uint8_t)(1 << i % 8);
        g_assert_cmpint(pwrite(fd, &byte, 1, i), ==, 1);
    }
    g_assert_cmpint(read_part(folder, 7, &err), ==, 40);
    for (off_t n = st.st_size; n-- > 0;) {
        g_assert_cmpint(ftruncate(fd, n), ==, 0);
        g_assert_cmpint(read_part(folder, 7, &err), ==, TRP_ESYSTEM);
    }
    close(fd);
    folder_remove(folder, true);
}

TEST("another partition under its name is found")
{
    char *folder = folder_make();
    g_autofree char *path = part_path(folder);
    g_autofree char *other = g_build_filename(folder, "part-00008", NULL);
    trp_error err = {0};
    write_part(folder, 8, 1, 40, true);
    g_assert_cmpint(g_rename(other, path), ==, 0);
    g_assert_cmpint(read_part(folder, 7, &err), ==, TRP_ESYSTEM);
    folder_remove(folder, true);
}

TEST("a full disk is told and leaves nothing")
{
    char *folder = folder_make();
    struct rlimit before, small;
    trp_part_writer *w;
    trp_error err = {0};
    uint8_t chunk[SIZE] = {0};
    int rc = 0;
    g_assert_cmpint(getrlimit(RLIMIT_FSIZE, &before), ==, 0);
    small = before;
    small.rlim_cur = 5000;
    signal(SIGXFSZ, SIG_IGN);
    g_assert_cmpint(trp_part_file_create(folder, 7, 1, &w, &err), ==, 0);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &small), ==, 0);
    for (int i = 0; rc == 0 && i < 10; i++)
        rc = trp_part_file_put(w, chunk, sizeof chunk, &err);
    g_assert_cmpint(setrlimit(RLIMIT_FSIZE, &before), ==, 0);
    g_assert_cmpint(rc, ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "part-00007: File too large"));
    g_assert_cmpint(trp_part_file_close(w, false, &err), ==, 0);
    folder_remove(folder, false);
}

TEST("a folder that is not there is told")
{
    trp_part_writer *w;
    trp_error err = {0};
    g_assert_cmpint(trp_part_file_create("/nowhere/at/all", 7, 1, &w, &err), ==,
                    TRP_ESYSTEM);
    g_assert_cmpstr(err.text, ==,
                    "cannot write /nowhere/at/all/part-00007: No such file or "
                    "directory");
    g_autofree char *deep = g_strnfill(5000, 'x');
    g_assert_cmpint(trp_part_file_create(deep, 7, 1, &w, &err), ==, TRP_ELIMIT);
}

TEST("a pipe in its place is not waited for")
{
    trp_part_reader *r;
    trp_error err = {0};
    g_autofree char *folder = g_dir_make_tmp("troupe-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "part-00007", NULL);
    g_assert_cmpint(mkfifo(file, 0600), ==, 0);
    g_assert_cmpint(trp_part_file_open(folder, 7, &r, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "Operation not supported"));
    g_unlink(file);
    g_rmdir(folder);
}

/* Others may write in the folder that the program gave. */
TEST("a link in its way is not followed")
{
    char *folder = folder_make(), *precious = folder_make();
    g_autofree char *hidden = g_build_filename(folder, ".part-00007.1.tmp", NULL);
    g_autofree char *target = part_path(precious);
    g_autofree char *there = NULL;
    trp_part_writer *w;
    trp_error err = {0};
    g_assert_true(g_file_set_contents(target, "mine", -1, NULL));
    g_assert_cmpint(symlink(target, hidden), ==, 0);
    g_assert_cmpint(trp_part_file_create(folder, 7, 1, &w, &err), ==, TRP_ESYSTEM);
    g_assert_true(g_file_get_contents(target, &there, NULL, NULL));
    g_assert_cmpstr(there, ==, "mine");
    g_assert_cmpint(unlink(hidden), ==, 0);
    folder_remove(folder, false);
    folder_remove(precious, true);
}
