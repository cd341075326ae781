/*
 * Files of running tasks.
 *
 * Which files came while an attempt ran is told by two looks at what its patterns match, one
 * before it and one when it has ended, and not by the clock: clocks of hosts and of file
 * servers differ, and anybody may set a file's time. The second look is at the end and not
 * before the retry, since whatever comes in between is not the attempt's.
 *
 * Two attempts of a task at a time (a copy of a slow one) hide from each other what is whose:
 * while one runs nothing is removed.
 *
 * Who has made a file is kept as the hash of its path, 16 bytes a file, in a table that is
 * searched from the hash on. Paths with the same hash would keep a file that could go.
 */
#include "driver/task_files.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "core/base/array.h"
#include "core/base/ids.h"
#include "driver/output_files.h"
#include "os/glob.h"

/* More comparisons than that are not made: then nothing is removed. */
enum { COMPARE_MAX = 1 << 20, REASON_SIZE = 160 };

struct key {
    uint32_t stage, task;
};

/* Of a task while attempts of it run, or may run again. */
struct entry {
    struct key key;
    UT_hash_handle hh;
    uint32_t live;
    bool done;                   /* one of its attempts has succeeded */
    struct trp_strings patterns; /* as they are to be matched … */
    struct trp_strings plain;    /* … and in full, for a comparison with paths */
    struct trp_outputs before, left;
};

/* Who has made a file. */
struct maker {
    uint64_t path; /* its hash; 0: a free place */
    uint32_t stage, task;
};

struct name { /* of a stage */
    const char *name;
    uint32_t index;
    UT_hash_handle hh;
};

struct trp_task_files {
    const trp_pipeline *p;
    const char *base, *run_dir;
    struct name *names, *by_name;
    struct entry *entries;
    struct maker *makers; /* a power of two of places */
    uint64_t nmakers, places;
    bool failed; /* out of memory */
};

/* ---- paths ---- */

static uint64_t hash_of(const char *base, const char *path)
{
    char *plain = trp_path_plain(base, path);
    uint64_t hash = plain ? trp_print_of(plain, strlen(plain)).low : 0;
    free(plain);
    return hash ? hash : 1;
}

/* Whether the path matches, or lies in a folder that does. More may match than would be found:
 * a wildcard goes over slashes here. */
static bool may_match(const char *pattern, const char *path)
{
    char *below = NULL, *deep = strstr(pattern, "**/"), *flat = NULL;
    bool is = fnmatch(pattern, path, 0) == 0;
    if (!is && asprintf(&below, "%s/*", pattern) >= 0) {
        is = fnmatch(below, path, 0) == 0;
        free(below);
    }
    if (!is && deep &&
        asprintf(&flat, "%.*s%s", (int)(deep - pattern), pattern, deep + 3) >= 0) {
        is = may_match(flat, path);
        free(flat);
    }
    return is;
}

/* ---- who has made what ---- */

static struct maker *place_of(const trp_task_files *f, uint64_t path)
{
    uint64_t at = path & (f->places - 1);
    while (f->makers[at].path && f->makers[at].path != path)
        at = (at + 1) & (f->places - 1);
    return &f->makers[at];
}

static bool make_room(trp_task_files *f)
{
    if (f->nmakers * 2 < f->places)
        return true;
    struct maker *old = f->makers;
    uint64_t n = f->places;
    f->places = n ? 2 * n : 64;
    f->makers = calloc(f->places, sizeof *f->makers);
    if (!f->makers) {
        f->makers = old;
        f->places = n;
        f->failed = true;
        return false;
    }
    for (uint64_t i = 0; i < n; i++)
        if (old[i].path)
            *place_of(f, old[i].path) = old[i];
    free(old);
    return true;
}

void trp_task_files_record(void *context, const char *stage, uint32_t task,
                           const struct trp_outputs *files)
{
    trp_task_files *f = context;
    struct name *name;
    if (!files->n)
        return;
    HASH_FIND_STR(f->by_name, stage, name);
    for (uint32_t i = 0; i < files->n && make_room(f); i++) {
        uint64_t path = hash_of(f->base, files->v[i].path);
        struct maker *m = place_of(f, path);
        f->nmakers += !m->path;
        *m = (struct maker){path, name ? name->index : TRP_NONE, task};
    }
}

/* Who has made it; NULL: nobody. */
static const struct maker *maker_of(const trp_task_files *f, const char *path)
{
    const struct maker *m = f->places ? place_of(f, hash_of(f->base, path)) : NULL;
    return m && m->path ? m : NULL;
}

static bool is_by(const struct maker *m, struct key key)
{
    return m->stage == key.stage && m->task == key.task;
}

/* ---- what there is ---- */

static bool look(trp_task_files *f, const char *pattern, struct trp_outputs *ret)
{
    trp_error err;
    if (trp_outputs_match(ret, f->base, pattern, false, &err) == TRP_ENOMEM)
        f->failed = true;
    return ret->large == NULL;
}

static void look_at_all(trp_task_files *f, const struct entry *e,
                        struct trp_outputs *ret)
{
    for (uint32_t i = 0; i < e->patterns.n; i++)
        look(f, e->patterns.v[i], ret);
}

/* Whether another task, or stage, that runs may have made it. */
static bool may_be_of_others(const trp_task_files *f, const struct entry *e,
                             const char *path, uint32_t *compared)
{
    bool may = false;
    char *plain = trp_path_plain(f->base, path);
    for (const struct entry *o = f->entries; plain && o && !may; o = o->hh.next)
        for (uint32_t i = 0; o != e && i < o->plain.n && !may; i++)
            may = ++*compared > COMPARE_MAX ||
                  ((o->key.stage != e->key.stage || o->key.task != TRP_NONE) &&
                   may_match(o->plain.v[i], plain));
    may = may || !plain;
    free(plain);
    return may;
}

bool trp_task_files_is_of(const trp_task_files *f, uint32_t stage, uint32_t task,
                          const char *path)
{
    const struct entry e = {
        .key = {stage, task}
    };
    const struct maker *m = maker_of(f, path);
    uint32_t compared = 0;
    return m && m->stage == stage && (m->task == task || m->task == TRP_NONE) &&
           !may_be_of_others(f, &e, path, &compared);
}

/* Puts what the attempt has left of a pattern into e->left. */
static void find_left(trp_task_files *f, struct entry *e, const char *pattern)
{
    struct trp_outputs now = {0};
    uint32_t compared = 0;
    bool whole = look(f, pattern, &now);
    char *literal = trp_glob_literal(pattern);
    bool alone = literal && now.n == 1 && now.v[0].size >= 0;
    free(literal);
    for (uint32_t i = 0; whole && i < now.n && !f->failed; i++) {
        struct trp_output *o = &now.v[i];
        const struct maker *m = maker_of(f, o->path);
        if (trp_outputs_find(&e->before, o->path) || (m && !is_by(m, e->key)) ||
            (!alone && may_be_of_others(f, e, o->path, &compared)))
            continue;
        f->failed |= trp_outputs_append(&e->left, o) < 0;
        o->path = NULL; /* it is in there now */
    }
    trp_outputs_free(&now);
}

/* ---- attempts ---- */

static struct entry *find_entry(const trp_task_files *f, uint32_t stage, uint32_t task)
{
    struct entry *e;
    struct key key;
    memset(&key, 0, sizeof key); /* its bytes are looked up */
    key = (struct key){stage, task};
    HASH_FIND(hh, f->entries, &key, sizeof key, e);
    return e;
}

static struct entry *make_entry(trp_task_files *f, uint32_t stage, uint32_t task,
                                struct trp_strings *take_patterns)
{
    struct entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->key = (struct key){stage, task};
    e->patterns = *take_patterns;
    *take_patterns = (struct trp_strings){0};
    for (uint32_t i = 0; i < e->patterns.n; i++)
        if (trp_strings_take(&e->plain, trp_path_plain(f->base, e->patterns.v[i])) < 0)
            f->failed = true;
    HASH_ADD(hh, f->entries, key, sizeof e->key, e);
    return e;
}

static void free_entry(trp_task_files *f, struct entry *e)
{
    HASH_DEL(f->entries, e);
    trp_strings_free(&e->patterns);
    trp_strings_free(&e->plain);
    trp_outputs_free(&e->before);
    trp_outputs_free(&e->left);
    free(e);
}

/* Why a file that is there before an attempt has to stay. */
static void why_it_stays(const trp_task_files *f, const struct entry *e, bool first,
                         const char *path, char *why)
{
    const struct maker *m = maker_of(f, path);
    if (m && m->stage != TRP_NONE && !is_by(m, e->key) && m->task == TRP_NONE)
        snprintf(why, REASON_SIZE, "stage %.64s has made it",
                 f->p->stages[m->stage].name);
    else if (m && m->stage != TRP_NONE && !is_by(m, e->key))
        snprintf(why, REASON_SIZE, "task %u of stage %.64s has made it", m->task,
                 f->p->stages[m->stage].name);
    else if (m && m->stage == TRP_NONE)
        snprintf(why, REASON_SIZE, "an earlier start has made it");
    else if (first)
        snprintf(why, REASON_SIZE, "it may have come between two starts");
    else if (trp_outputs_find(&e->before, path))
        snprintf(why, REASON_SIZE, "it was there before");
    else
        snprintf(why, REASON_SIZE, "the task may not have made it");
}

/* Whether `path` is in the folder. */
static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* What stays, but for what was told when it was to go, and what is in a folder that stays. */
static void tell_rest(const trp_task_files *f, const struct entry *e,
                      const struct trp_outputs *now, const struct trp_outputs *left,
                      bool first, struct trp_leftovers *ret)
{
    const char *folder = NULL;
    char why[REASON_SIZE];
    for (uint32_t i = 0; i < now->n; i++) {
        const char *path = now->v[i].path;
        const struct maker *m = maker_of(f, path);
        if ((folder && is_below(path, folder)) || trp_outputs_find(left, path) ||
            (first && m && is_by(m, e->key))) /* it is what it had made */
            continue;
        folder = now->v[i].size < 0 ? path : folder;
        why_it_stays(f, e, first, path, why);
        trp_leftovers_stays(ret, path, why);
    }
}

/* Adds what is there to what was there before. */
static void remember(trp_task_files *f, struct entry *e, struct trp_outputs *take_now)
{
    struct trp_outputs more = {0};
    for (uint32_t i = 0; i < take_now->n; i++) {
        struct trp_output *o = &take_now->v[i];
        if (trp_outputs_find(&e->before, o->path))
            continue;
        f->failed |= trp_outputs_append(&more, o) < 0;
        o->path = NULL;
    }
    for (uint32_t i = 0; i < more.n; i++)
        f->failed |= trp_outputs_append(&e->before, &more.v[i]) < 0;
    more.n = 0;
    trp_outputs_free(&more);
    trp_outputs_free(take_now);
    trp_outputs_sort(&e->before);
}

void trp_task_files_begin(trp_task_files *f, uint32_t stage, uint32_t task,
                          struct trp_strings *take_patterns,
                          const struct trp_outputs *left, bool again,
                          struct trp_leftovers *ret)
{
    static const struct trp_outputs none;
    struct trp_outputs now = {0};
    struct entry *e = find_entry(f, stage, task);
    bool first = !e;
    if (!e)
        e = make_entry(f, stage, task, take_patterns);
    trp_strings_free(take_patterns);
    *take_patterns = (struct trp_strings){0};
    if (!e || e->live++ || f->failed || task == TRP_NONE) {
        f->failed |= !e;
        return;
    }
    ret->base = f->base;
    ret->run_dir = f->run_dir;
    left = first ? left : &e->left;
    left = left ? left : &none;
    trp_leftovers_remove(ret, left);
    look_at_all(f, e, &now);
    if (again)
        tell_rest(f, e, &now, left, first, ret);
    remember(f, e, &now);
    trp_outputs_free(&e->left);
}

const struct trp_outputs *trp_task_files_end(trp_task_files *f, uint32_t stage,
                                             uint32_t task, enum trp_attempt_fate fate)
{
    struct entry *e = find_entry(f, stage, task);
    if (!e || !e->live)
        return NULL;
    e->done |= fate == TRP_ATTEMPT_SUCCEEDED;
    if (--e->live)
        return NULL;
    if (e->done) {
        free_entry(f, e);
        return NULL;
    }
    if (fate != TRP_ATTEMPT_FAILED)
        return NULL;
    for (uint32_t i = 0; i < e->patterns.n && !f->failed; i++)
        find_left(f, e, e->patterns.v[i]);
    trp_outputs_sort(&e->left);
    return e->left.n ? &e->left : NULL;
}

void trp_task_files_close(trp_task_files *f, uint32_t stage, uint32_t task)
{
    struct entry *e = find_entry(f, stage, task);
    if (e)
        free_entry(f, e);
}

/* ---- all of it ---- */

trp_task_files *trp_task_files_new(const trp_pipeline *p, const char *base,
                                   const char *run_dir)
{
    trp_task_files *f = calloc(1, sizeof *f);
    struct name *names = calloc((size_t)p->nstages + 1, sizeof *names);
    if (!f || !names) {
        free(f);
        free(names);
        return NULL;
    }
    *f = (trp_task_files){.p = p, .base = base, .run_dir = run_dir, .names = names};
    for (uint32_t i = 0; i < p->nstages; i++) {
        struct name *n = &names[i];
        n->name = p->stages[i].name;
        n->index = i;
        HASH_ADD_KEYPTR(hh, f->by_name, n->name, strlen(n->name), n);
    }
    return f;
}

void trp_task_files_free(trp_task_files *f)
{
    if (!f)
        return;
    while (f->entries)
        free_entry(f, f->entries);
    HASH_CLEAR(hh, f->by_name);
    free(f->names);
    free(f->makers);
    free(f);
}
