/*
 * A folder of its own for a test, with files in it. For the tests of lib/driver.
 *
 *     char *dir = files_new();
 *     files_put(dir, "a/b.txt", "text");
 *     files_free(dir);                       // removes all of it
 */
#ifndef TESTS_UNIT_DRIVER_FILES_H
#define TESTS_UNIT_DRIVER_FILES_H

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/pipeline.h"

static inline char *files_new(void)
{
    GError *error = NULL;
    char *dir = g_dir_make_tmp("troupe-test-XXXXXX", &error);
    g_assert_no_error(error);
    return dir;
}

/* Makes the folders above it too. */
static inline void files_put_bytes(const char *dir, const char *path, const void *bytes,
                                   size_t n)
{
    GError *error = NULL;
    char *full = g_build_filename(dir, path, NULL), *above = g_path_get_dirname(full);
    g_assert_cmpint(g_mkdir_with_parents(above, 0700), ==, 0);
    g_file_set_contents(full, bytes, (gssize)n, &error);
    g_assert_no_error(error);
    g_free(above);
    g_free(full);
}

static inline void files_put(const char *dir, const char *path, const char *text)
{
    files_put_bytes(dir, path, text, strlen(text));
}

static inline bool files_there(const char *dir, const char *path)
{
    char *full = g_build_filename(dir, path, NULL);
    bool there = g_file_test(full, G_FILE_TEST_EXISTS);
    g_free(full);
    return there;
}

static inline void files_remove(const char *path)
{
    GDir *dir =
        g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        char *below = g_build_filename(path, name, NULL);
        files_remove(below);
        g_free(below);
    }
    if (dir)
        g_dir_close(dir);
    g_remove(path);
}

static inline void files_free(char *dir)
{
    files_remove(dir);
    g_free(dir);
}

/* A pipeline from text; what is wrong with it ends the test. */
static inline trp_pipeline *pipeline_of(const char *text)
{
    trp_pipeline *p = NULL;
    trp_error err = {0};
    if (trp_pipeline_parse("p.yaml", text, strlen(text), &p, &err) < 0)
        g_error("%s", err.text);
    return p;
}

#endif
