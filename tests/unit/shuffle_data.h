/*
 * What tests of lib/data share: a folder of their own, made-up records, and a shuffle
 * as a plain sort of all of them.
 */
#ifndef TESTS_UNIT_SHUFFLE_DATA_H
#define TESTS_UNIT_SHUFFLE_DATA_H

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/shuffle.h"

struct made_record {
    GBytes *key, *value;
    uint32_t partition, map;
    guint order; /* among those of its map */
};

static inline void made_record_free(void *p)
{
    struct made_record *r = p;
    g_bytes_unref(r->key);
    g_bytes_unref(r->value);
    g_free(r);
}

static inline char *shuffle_folder_make(void)
{
    char *path = g_dir_make_tmp("troupe-shuffle-XXXXXX", NULL);
    g_assert_nonnull(path);
    return path;
}

/* Nothing but map outputs may be left in it: neither spills nor hidden files. */
static inline void shuffle_folder_remove(char *path)
{
    GDir *dir = g_dir_open(path, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        g_assert_cmpint(name[0], !=, '.');
        g_unlink(file);
    }
    g_dir_close(dir);
    g_assert_cmpint(g_rmdir(path), ==, 0);
    g_free(path);
}

/* Other bytes into a file. (g_file_set_contents waits for the disk.) */
static inline void put_bytes(const char *path, const void *bytes, gsize n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, bytes, n), ==, (gssize)n);
    close(fd);
}

static inline guint files_in(const char *path)
{
    guint n = 0;
    GDir *dir = g_dir_open(path, 0, NULL);
    while (g_dir_read_name(dir))
        n++;
    g_dir_close(dir);
    return n;
}

/* The order of a shuffle: by partition, key, map, order. */
static inline gint by_key(gconstpointer a, gconstpointer b)
{
    const struct made_record *x = *(struct made_record *const *)a;
    const struct made_record *y = *(struct made_record *const *)b;
    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    int c = g_bytes_compare(x->key, y->key);
    if (c != 0)
        return c;
    if (x->map != y->map)
        return x->map < y->map ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static inline struct made_record *made_record_add(GPtrArray *to, uint32_t partition,
                                                  uint32_t map, const void *key,
                                                  size_t nk, const void *value,
                                                  size_t nv)
{
    struct made_record *r = g_new(struct made_record, 1);
    *r = (struct made_record){g_bytes_new(key, nk), g_bytes_new(value, nv), partition,
                              map, to->len};
    g_ptr_array_add(to, r);
    return r;
}

#define assert_bytes(p, n, bytes)                                                      \
    g_assert_cmpmem(p, n, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes))

#endif
