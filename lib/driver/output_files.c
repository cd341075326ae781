/*
 * Files: recorded and compared.
 *
 * Of a folder that matches what is in it is recorded, of itself that it is there and no more:
 * its time changes with each file that others put into it.
 *
 * Contents are hashed by XXH3, 128 bits: faster than any disk, and no proof against
 * somebody who wants two files to look the same. Memory maps were rejected: a file that is
 * cut short meanwhile would end the driver.
 */
#include "driver/output_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/base/array.h"
#include "os/glob.h"
#include "os/strings.h"

enum { BLOCK = 1 << 20 };

struct trp_print trp_print_of(const void *data, size_t n)
{
    XXH128_hash_t h = XXH3_128bits(data, n);
    return (struct trp_print){h.high64, h.low64};
}

/* ---- contents ---- */

static bool hash_file(int fd, const atomic_bool *stop, struct trp_print *ret)
{
    XXH3_state_t *state = XXH3_createState();
    unsigned char *block = malloc(BLOCK);
    ssize_t n = -1;
    if (state && block && XXH3_128bits_reset(state) == XXH_OK)
        do {
            n = read(fd, block, BLOCK);
            if (n > 0)
                XXH3_128bits_update(state, block, (size_t)n);
            if (stop && atomic_load(stop))
                n = -1;
        } while (n > 0 || (n < 0 && errno == EINTR && !(stop && atomic_load(stop))));
    if (n == 0) {
        XXH128_hash_t h = XXH3_128bits_digest(state);
        *ret = (struct trp_print){h.high64, h.low64};
    }
    XXH3_freeState(state);
    free(block);
    return n == 0;
}

static bool is_as(const struct trp_output *o, const char *base)
{
    struct trp_output now;
    return trp_output_measure(base, o->path, true, &now) && now.size == o->size &&
           now.mtime_ns == o->mtime_ns;
}

bool trp_output_sum(struct trp_output *o, const char *base, bool as_recorded,
                    const atomic_bool *stop)
{
    struct stat st;
    struct trp_print sum = {0, 0};
    o->sum = sum;
    if (as_recorded && !is_as(o, base))
        return false;
    char *full = trp_path_join(base, o->path);
    int fd = full ? open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    free(full);
    if (fd < 0)
        return false;
    bool good =
        fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || hash_file(fd, stop, &sum));
    close(fd);
    /* Written meanwhile: it is not known which bytes were there at that time. */
    if (!good || (as_recorded && !is_as(o, base)))
        return false;
    o->sum = sum;
    return true;
}

static bool has_changed(const struct trp_output *was, const char *base, bool contents)
{
    struct trp_output now = {.path = was->path};
    if (was->stale)
        return false;
    if (!trp_output_measure(base, was->path, true, &now))
        return !was->temp;
    if (now.size != was->size)
        return true;
    if (!contents || !(was->sum.high || was->sum.low))
        return now.mtime_ns != was->mtime_ns;
    return !trp_output_sum(&now, base, false, NULL) || now.sum.high != was->sum.high ||
           now.sum.low != was->sum.low;
}

bool trp_output_is_there(const char *path, const char *base)
{
    struct trp_output now = {0};
    return trp_output_measure(base, path, true, &now);
}

uint32_t trp_outputs_gone(const struct trp_outputs *o, const char *base,
                          const char **ret_first)
{
    uint32_t n = 0;
    *ret_first = NULL;
    for (size_t i = 0; i < o->n; i++) {
        const struct trp_output *one = &o->v[i];
        if (!one->temp || one->size < 0 ||
            (!one->stale && trp_output_is_there(one->path, base)))
            continue;
        if (n++ == 0)
            *ret_first = one->path;
    }
    return n;
}

const char *trp_outputs_changed(const struct trp_outputs *o, const char *base,
                                bool contents)
{
    for (size_t i = 0; i < o->n; i++)
        if (has_changed(&o->v[i], base, contents))
            return o->v[i].path;
    return NULL;
}
