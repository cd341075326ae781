/*
 * A table of the hashes of paths, 8 bytes each, that is searched from the hash on. What there is
 * no memory for is not in it: then a task runs once more.
 */
#include "driver/temp_set.h"

#include <stdlib.h>
#include <string.h>

#include "os/strings.h"

struct trp_temp_set {
    char *base;
    uint64_t *v;        /* 0: a free place */
    uint64_t n, places; /* a power of two */
};

static uint64_t hash_of(const trp_temp_set *s, const char *path)
{
    char *plain = trp_path_plain(s->base, path);
    uint64_t hash = plain ? trp_print_of(plain, strlen(plain)).low : 0;
    free(plain);
    return hash ? hash : 1;
}

static uint64_t *place_of(const trp_temp_set *s, uint64_t path)
{
    uint64_t at = path & (s->places - 1);
    while (s->v[at] && s->v[at] != path)
        at = (at + 1) & (s->places - 1);
    return &s->v[at];
}

static bool has(const trp_temp_set *s, const char *path)
{
    return s && s->places && *place_of(s, hash_of(s, path));
}

static bool make_room(trp_temp_set *s)
{
    if (s->n * 2 < s->places)
        return true;
    uint64_t had = s->places, *old = s->v;
    uint64_t *more = calloc(had ? 2 * had : 64, sizeof *more);
    if (!more)
        return false;
    s->v = more;
    s->places = had ? 2 * had : 64;
    for (uint64_t i = 0; i < had; i++)
        if (old[i])
            *place_of(s, old[i]) = old[i];
    free(old);
    return true;
}

void trp_temp_set_add(void *set, const char *stage, uint32_t task,
                      const struct trp_outputs *files)
{
    trp_temp_set *s = set;
    (void)stage;
    (void)task;
    for (uint32_t i = 0; i < files->n; i++) {
        if (!files->v[i].temp || files->v[i].size < 0 || !make_room(s))
            continue;
        uint64_t hash = hash_of(s, files->v[i].path), *place = place_of(s, hash);
        s->n += !*place;
        *place = hash;
    }
}

void trp_temp_set_drop(const trp_temp_set *s, struct trp_outputs *files)
{
    uint32_t n = 0;
    if (!s || !s->n)
        return;
    for (uint32_t i = 0; i < files->n; i++) {
        char *path = files->v[i].path;
        if (!has(s, path)) {
            files->v[n++] = files->v[i];
            continue;
        }
        if (files->large == path)
            files->large = NULL;
        free(path);
    }
    files->n = n;
}

bool trp_temp_set_gone(const void *set, const char *path)
{
    const trp_temp_set *s = set;
    return has(s, path) && !trp_output_is_there(path, s->base);
}

int trp_temp_set_new(const char *base, const trp_done_log *log, trp_temp_set **ret,
                     trp_error *err)
{
    trp_temp_set *s = calloc(1, sizeof *s);
    if (s && !(s->base = strdup(base ? base : ""))) {
        free(s);
        s = NULL;
    }
    if (s && log)
        trp_done_log_each(log, trp_temp_set_add, s);
    *ret = s;
    return s ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory for what is done");
}

void trp_temp_set_free(trp_temp_set *s)
{
    if (!s)
        return;
    free(s->base);
    free(s->v);
    free(s);
}
