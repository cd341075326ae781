/*
 * Which files a text source has, and who reads which part of them.
 *
 * Patterns are those of a pipeline's `foreach: {files: …}` (os/glob.h). All files
 * are laid end to end, a compressed one with COMPRESSED_WEIGHT times its size, and the
 * line is cut into equal pieces. A piece of a plain file becomes a byte range; its
 * reader takes the lines that begin in it (text_reader.c). A compressed file is read by
 * the partition in which it begins. One pass over files and partitions, O(files +
 * partitions). The result is in the form in which it goes with each launch: path,
 * begin, end for each part.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/chain.h"
#include "os/glob.h"

enum { COMPRESSED_WEIGHT = 4 }; /* text packs to a quarter or so */

struct text_files {
    char **paths;
    size_t n;    /* what matched; the first `used` of them are files */
    size_t used; /* sorted, with their sizes */
    uint64_t *sizes;
    uint32_t width; /* 0: they have lines */
};

/* ---- files ---- */

static void files_free(struct text_files *l)
{
    trp_glob_free(l->paths, l->n);
    free(l->sizes);
}

/* The regular files of a pattern; an error when there are none. */
static int files_find(const char *pattern, struct text_files *l, trp_error *err)
{
    size_t found = 0;
    int rc = trp_glob(NULL, pattern, &l->paths, &found, err);
    if (rc < 0)
        return rc;
    l->n = found;
    l->sizes = calloc(found + 1, sizeof(*l->sizes));
    if (!l->sizes)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a file list");
    size_t kept = 0;
    for (size_t i = 0; i < found; i++) {
        struct stat st;
        if (stat(l->paths[i], &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        char *swap = l->paths[kept]; /* the others stay, behind, to be freed */
        l->paths[kept] = l->paths[i];
        l->paths[i] = swap;
        l->sizes[kept++] = (uint64_t)st.st_size;
        if (l->width && (uint64_t)st.st_size % l->width)
            return trp_error_set(err, TRP_EINVAL,
                                 "trp_binary_files: %s has %llu bytes, which is no "
                                 "multiple of %u",
                                 l->paths[kept - 1], (unsigned long long)st.st_size,
                                 l->width);
    }
    l->used = kept;
    if (kept > 0)
        return 0;
    return trp_error_set(err, TRP_ENOENT, "no file matches %s%s", pattern,
                         found ? " (what matches is no regular file)" : "");
}

/* ---- parts ---- */

static bool is_compressed(const struct text_files *l, size_t i)
{
    return !l->width && trp_text_compressed(l->paths[i]);
}

static uint64_t extent(const struct text_files *l, size_t i)
{
    return is_compressed(l, i) ? l->sizes[i] * COMPRESSED_WEIGHT : l->sizes[i];
}

static void put_part(struct trp_buf *b, const char *path, uint64_t begin, uint64_t end)
{
    trp_put_text(b, path);
    trp_put_u64(b, begin);
    trp_put_u64(b, end);
}

/* The parts that lie in [lo, hi) of all files laid end to end. *at is the first file
 * that may reach into it, beginning at *start. */
static void put_partition(struct trp_buf *b, const struct text_files *l, size_t *at,
                          uint64_t *start, uint64_t lo, uint64_t hi)
{
    while (lo < hi && *at < l->used) {
        const char *path = l->paths[*at];
        uint64_t size = l->sizes[*at], end = *start + extent(l, *at);
        if (*start >= hi)
            return;
        if (is_compressed(l, *at)) {
            if (*start >= lo && size > 0)
                put_part(b, path, 0, size);
        } else if (end > lo && size > 0) {
            put_part(b, path, lo > *start ? lo - *start : 0,
                     hi < end ? hi - *start : size);
        }
        if (end > hi)
            return; /* the next partition goes on in it */
        *start = end;
        ++*at;
    }
}

static int plan_parts(const struct text_files *l, uint32_t partitions,
                      struct trp_inputs *ret)
{
    uint64_t all = 0, start = 0;
    for (size_t i = 0; i < l->used; i++)
        all += extent(l, i);
    size_t at = 0;
    struct trp_buf b = {0};
    for (uint32_t i = 0; i < partitions; i++) {
        ret->offsets[i] = b.size;
        put_partition(&b, l, &at, &start,
                      (uint64_t)((unsigned __int128)all * i / partitions),
                      (uint64_t)((unsigned __int128)all * (i + 1u) / partitions));
    }
    ret->offsets[partitions] = b.size;
    ret->data = b.data;
    if (!b.failed)
        return 0;
    trp_buf_free(&b);
    ret->data = NULL;
    return TRP_ENOMEM;
}

int trp_text_plan(const char *pattern, uint32_t width, uint32_t partitions,
                  struct trp_inputs *ret, trp_error *err)
{
    if (!pattern || !*pattern)
        return trp_error_set(err, TRP_EINVAL, "%s: no pattern given",
                             width ? "trp_binary_files" : "trp_text_files");
    struct text_files l = {.width = width};
    int rc = files_find(pattern, &l, err);
    if (rc == 0) {
        ret->offsets = malloc(((size_t)partitions + 1) * sizeof(*ret->offsets));
        ret->base = getcwd(NULL, 0);
        rc = ret->offsets && ret->base ? plan_parts(&l, partitions, ret) : TRP_ENOMEM;
        if (rc < 0)
            trp_error_set(err, rc, "out of memory for a file list");
    }
    files_free(&l);
    if (rc == 0)
        return 0;
    free(ret->offsets);
    free(ret->base);
    *ret = (struct trp_inputs){0};
    return rc;
}
