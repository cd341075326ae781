/*
 * Names of outputs.
 *
 * A name is known by the 64-bit hash of its path in full, 16 bytes each in a table that is
 * searched from the hash on, so that a million tasks cost 32 MB and a second. Two names with
 * one hash are as unlikely as a broken disk. Beyond NAMES_MAX names nothing more is looked at.
 *
 * The path is that of the folder without links, when the folder is there, with the last name as
 * it is: a task may well make a link to what another has made. The folder may come later, or be
 * replaced by a link, so it is asked again when the file has been made. Before anything runs the
 * folder asked last is remembered: the tasks of a stage mostly have one.
 */
#include "driver/output_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/yaml.h"
#include "core/base/ids.h"
#include "driver/output_files.h"
#include "os/glob.h"
#include "os/strings.h"

enum { NAMES_MAX = 1 << 22, WHO_SIZE = 96 + TRP_TASK_WORD, NAMES_SIZE = 640 };

struct owner {
    uint32_t stage : 31;
    uint32_t made : 1;
    uint32_t task;
};

struct name {
    uint64_t path;   /* its hash; 0: a free place */
    struct owner by; /* who named it first; `made`: who made it first */
};

struct trp_output_names {
    const trp_pipeline *p;
    char *base;
    bool *added; /* stages whose tasks are known */
    bool strict; /* nothing has begun */
    struct name *names;
    uint64_t n, places;            /* a power of two */
    char *folder;                  /* the one that was asked last; NULL: none */
    char *real;                    /* the same without links; NULL: it is not there */
    const struct trp_items *items; /* … of `stage`, whose tasks are added now */
    uint32_t stage;
};

static int out_of_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory for the names of outputs");
}

/* The path in full of a pattern without a wildcard, for a task; NULL: it has one, or names
 * nothing of this task. */
static char *path_of(const trp_output_names *n, const char *pattern,
                     const struct trp_task_values *v)
{
    bool none;
    char *of_task = trp_output_expand(pattern, v, &none);
    char *literal = of_task ? trp_glob_literal(of_task) : NULL;
    char *plain = literal ? trp_path_plain(n->base, literal) : NULL;
    free(of_task);
    free(literal);
    return plain;
}

/* A path in full with its folder without links; NULL: no memory for it. */
static char *real_of(trp_output_names *n, const char *path)
{
    const char *last = strrchr(path, '/');
    size_t size = last ? (size_t)(last - path) : 0;
    char *real;
    if (!n->strict || !n->folder || strlen(n->folder) != size ||
        memcmp(n->folder, path, size) != 0) {
        free(n->folder);
        free(n->real);
        n->folder = strndup(path, size);
        n->real = n->folder && size ? realpath(n->folder, NULL) : NULL;
    }
    if (!n->real)
        return strdup(path);
    return asprintf(&real, "%s%s", strcmp(n->real, "/") == 0 ? "" : n->real, last) < 0
               ? NULL
               : real;
}

static uint64_t hash_of(const char *path)
{
    uint64_t hash = trp_print_of(path, strlen(path)).low;
    return hash ? hash : 1;
}

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool may_be_folder(const char *pattern, const char *path)
{
    struct stat st;
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode);
    return ends_in(pattern, "/") || ends_in(pattern, "${dir}") || !*last ||
           !strchr(last + 1, '.');
}

/* ---- the table ---- */

static struct name *place_of(const trp_output_names *n, uint64_t path)
{
    uint64_t at = path & (n->places - 1);
    while (n->names[at].path && n->names[at].path != path)
        at = (at + 1) & (n->places - 1);
    return &n->names[at];
}

static bool make_room(trp_output_names *n)
{
    if (n->n * 2 < n->places)
        return true;
    uint64_t had = n->places;
    struct name *old = n->names, *more = calloc(had ? 2 * had : 64, sizeof *more);
    if (!more)
        return false;
    n->names = more;
    n->places = had ? 2 * had : 64;
    for (uint64_t i = 0; i < had; i++)
        if (old[i].path)
            *place_of(n, old[i].path) = old[i];
    free(old);
    return true;
}

/* As a message names it: below the working folder without that. */
static const char *shown(const trp_output_names *n, const char *path)
{
    size_t size = strlen(n->base);
    return strncmp(path, n->base, size) == 0 && path[size] == '/' ? path + size + 1
                                                                  : path;
}

/* What a stage has as a whole and what one of its tasks has are the same one's. */
static bool is_same(struct owner a, struct owner b)
{
    return a.stage == b.stage &&
           (a.task == b.task || a.task == TRP_NONE || b.task == TRP_NONE);
}

/* A stage whose tasks are not looked at now has numbers. */
static const char *word_of(const trp_output_names *n, struct owner o,
                           char buf[TRP_TASK_WORD])
{
    return n->items && n->stage == o.stage ? trp_items_word(n->items, o.task, buf)
                                           : trp_task_word(o.task, NULL, buf);
}

static const char *who(const trp_output_names *n, struct owner o, char *buf)
{
    const char *stage = n->p->stages[o.stage].name;
    char word[TRP_TASK_WORD];
    if (o.task == TRP_NONE)
        snprintf(buf, WHO_SIZE, "stage %.64s", stage);
    else
        snprintf(buf, WHO_SIZE, "task %s of stage %.64s", word_of(n, o, word), stage);
    return buf;
}

/* "link/x", or "link/x (real/x)" when that is where it leads to. */
static const char *both_names(const trp_output_names *n, const char *path,
                              const char *real, char *buf)
{
    bool led = strcmp(path, real) != 0;
    snprintf(buf, NAMES_SIZE, "%.300s%s%.300s%s", shown(n, path), led ? " (" : "",
             led ? shown(n, real) : "", led ? ")" : "");
    return buf;
}

static int add_name(trp_output_names *n, struct owner by, const char *pattern,
                    const char *path, const char *real, trp_error *err)
{
    const struct trp_pipeline_stage *s = &n->p->stages[by.stage];
    char a[WHO_SIZE], b[WHO_SIZE], both[2 * WHO_SIZE + 8], names[NAMES_SIZE];
    char first[TRP_TASK_WORD], second[TRP_TASK_WORD];
    uint64_t hash = hash_of(real);
    if (n->n >= NAMES_MAX)
        return 0;
    if (!make_room(n))
        return out_of_memory(err);
    struct name *place = place_of(n, hash);
    if (!place->path) {
        *place = (struct name){hash, by};
        n->n++;
        return 0;
    }
    if (is_same(place->by, by) || !n->strict || may_be_folder(pattern, path))
        return 0;
    if (place->by.stage == by.stage)
        snprintf(both, sizeof both, "tasks %s and %s", word_of(n, place->by, first),
                 word_of(n, by, second));
    else
        snprintf(both, sizeof both, "%s and %s", who(n, place->by, a), who(n, by, b));
    return trp_error_at(err, TRP_EINVAL, n->p->file, s->mark,
                        "stage %s: %s both name the output %s; give each its own, "
                        "or write a slash behind it when it is a folder",
                        s->name, both, both_names(n, path, real, names));
}

/* ---- a stage ---- */

/* Frees `path`. */
static bool leads_to(trp_output_names *n, char *path, const char *real)
{
    char *its = path ? real_of(n, path) : NULL;
    bool does = its && strcmp(its, real) == 0;
    free(its);
    free(path);
    return does;
}

/* Whether the task reads the file by a pattern without a wildcard, or as its item. */
static bool is_input(trp_output_names *n, const struct trp_pipeline_stage *s,
                     const struct trp_task_values *v, const char *real)
{
    bool is = false;
    for (uint32_t i = 0; i < s->ninputs && !is; i++)
        is = leads_to(n, path_of(n, s->inputs[i], v), real);
    if (!s->ninputs && s->foreach == TRP_FOREACH_FILES && v->item)
        is = leads_to(n, trp_path_plain(n->base, v->item), real);
    return is;
}

static int add_of(trp_output_names *n, uint32_t stage, uint32_t task,
                  const struct trp_task_values *v, trp_error *err)
{
    const struct trp_pipeline_stage *s = &n->p->stages[stage];
    const struct owner by = {.stage = stage, .task = task};
    char names[NAMES_SIZE], word[TRP_TASK_WORD];
    int r = 0;
    for (uint32_t i = 0; i < s->noutputs && r == 0; i++) {
        bool own = trp_output_of_task(s->outputs[i]);
        char *path = own == (task != TRP_NONE) ? path_of(n, s->outputs[i], v) : NULL;
        char *real = path ? real_of(n, path) : NULL;
        if (path && !real)
            r = out_of_memory(err);
        else if (path && own && is_input(n, s, v, real))
            r = trp_error_at(err, TRP_EINVAL, n->p->file, s->mark,
                             "stage %s: the output %s of task %s is its input; name "
                             "another file, or leave it out of outputs",
                             s->name, both_names(n, path, real, names),
                             word_of(n, by, word));
        else if (path)
            r = add_name(n, by, s->outputs[i], path, real, err);
        free(path);
        free(real);
    }
    return r;
}

static bool has_own(const struct trp_pipeline_stage *s)
{
    for (uint32_t i = 0; i < s->noutputs; i++)
        if (trp_output_of_task(s->outputs[i]))
            return true;
    return false;
}

int trp_output_names_add(trp_output_names *n, uint32_t stage,
                         const struct trp_items *items, trp_error *err)
{
    struct trp_task_values v;
    struct trp_buf columns = {0};
    int r = 0;
    if (n->added[stage] || !has_own(&n->p->stages[stage]))
        return 0;
    n->added[stage] = true;
    n->items = items;
    n->stage = stage;
    for (uint32_t t = 0; t < items->ntasks && r == 0; t++)
        if (trp_items_values(items, t, &columns, &v))
            r = add_of(n, stage, t, &v, err);
    n->items = NULL;
    trp_buf_free(&columns);
    return r;
}

/* False: another has made the file. A folder may be made by several, and what is optional
 * by nobody. */
static bool note_made(trp_output_names *n, struct owner by, const char *real,
                      struct owner *ret_other)
{
    struct stat st;
    bool is_file = stat(real, &st) == 0 && !S_ISDIR(st.st_mode);
    if (!is_file || n->n >= NAMES_MAX || !make_room(n))
        return true;
    struct name *place = place_of(n, hash_of(real));
    n->n += !place->path;
    if (!place->by.made || !place->path)
        *place = (struct name){hash_of(real), by};
    *ret_other = place->by;
    return is_same(place->by, by);
}

bool trp_output_names_stand(trp_output_names *n, uint32_t stage, uint32_t task,
                            const struct trp_task_values *v, char *why, size_t size)
{
    const struct trp_pipeline_stage *s = &n->p->stages[stage];
    struct owner by = {.stage = stage, .made = 1, .task = task}, other;
    char name[WHO_SIZE], names[NAMES_SIZE];
    bool stands = true;
    for (uint32_t i = 0; i < s->noutputs && stands; i++) {
        char *path = trp_output_of_task(s->outputs[i]) == (task != TRP_NONE)
                         ? path_of(n, s->outputs[i], v)
                         : NULL;
        char *real = path ? real_of(n, path) : NULL;
        stands = !real || note_made(n, by, real, &other);
        if (!stands)
            snprintf(why, size, "output %s is that of %s too; give each its own",
                     both_names(n, path, real, names), who(n, other, name));
        free(path);
        free(real);
    }
    return stands;
}

/* ---- all ---- */

int trp_output_names_new(const trp_pipeline *p, const char *base,
                         trp_output_names **ret, trp_error *err)
{
    trp_output_names *n = calloc(1, sizeof *n);
    bool *added = calloc((size_t)p->nstages + 1, sizeof *added);
    char *in = base ? strdup(base) : getcwd(NULL, 0);
    int r = n && added && in ? 0 : out_of_memory(err);
    if (r < 0) {
        free(n);
        free(added);
        free(in);
        return r;
    }
    *n = (trp_output_names){.p = p, .base = in, .added = added, .strict = true};
    for (uint32_t i = 0; i < p->nstages && r == 0; i++) {
        struct trp_items items;
        r = add_of(n, i, TRP_NONE, &(struct trp_task_values){0}, err);
        if (r < 0 || !has_own(&p->stages[i]) ||
            !trp_foreach_look(p, &p->stages[i], base, &items))
            continue;
        r = trp_output_names_add(n, i, &items, err);
        trp_items_free(&items);
    }
    n->strict = false;
    if (r < 0) {
        trp_output_names_free(n);
        return r;
    }
    *ret = n;
    return 0;
}

void trp_output_names_free(trp_output_names *n)
{
    if (!n)
        return;
    free(n->names);
    free(n->folder);
    free(n->real);
    free(n->added);
    free(n->base);
    free(n);
}

/* ---- large folders ---- */

/* Looks at what a pattern is for a task; true: there is a large folder, as `ret` says. */
static bool is_large(const char *base, const char *pattern,
                     const struct trp_task_values *v, char *ret, size_t size)
{
    struct trp_outputs o = {0};
    bool none;
    char *of_task = trp_output_expand(pattern, v, &none);
    if (of_task)
        trp_outputs_match(&o, base, of_task, true, NULL);
    bool large = o.large != NULL;
    if (large)
        snprintf(ret, size, "%s", o.large);
    trp_outputs_free(&o);
    free(of_task);
    return large;
}

static bool has_large(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const char *base, char *ret, size_t size)
{
    enum { TASKS = 100 }; /* others are like these */
    struct trp_items items = {0};
    struct trp_buf columns = {0};
    struct trp_task_values v;
    bool large = false, known = trp_foreach_look(p, s, base, &items);
    uint32_t tasks = known && items.ntasks < TASKS ? items.ntasks : TASKS;
    for (uint32_t t = 0; t < (known ? tasks : 1) && !large; t++) {
        bool has = known && trp_items_values(&items, t, &columns, &v);
        v = has ? v : (struct trp_task_values){0};
        for (uint32_t i = 0; i < s->ninputs + s->noutputs && !large; i++) {
            const char *pattern =
                i < s->ninputs ? s->inputs[i] : s->outputs[i - s->ninputs];
            large = (has || !trp_output_of_task(pattern)) &&
                    is_large(base, pattern, &v, ret, size);
        }
        if (has && !s->ninputs && s->foreach == TRP_FOREACH_FILES && !large) {
            char *item = trp_glob_escape(v.item);
            char *text = item ? trp_template_escape(item) : NULL;
            large = text && is_large(base, text, &v, ret, size);
            free(text);
            free(item);
        }
    }
    trp_buf_free(&columns);
    trp_items_free(&items);
    return large;
}

void trp_output_names_warn(const trp_pipeline *p, const char *base,
                           void (*say)(void *context, const char *line), void *context)
{
    char folder[512], line[1600];
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct trp_pipeline_stage *s = &p->stages[i];
        if (!has_large(p, s, base, folder, sizeof folder))
            continue;
        snprintf(
            line, sizeof line,
            "%s:%u:%u: warning: stage %s: the folder %s has more than %d entries, so "
            "--resume does not see what changes in it; write a pattern (%s/*)",
            trp_mark_file(p->file, s->mark), s->mark.line, s->mark.column, s->name,
            folder, TRP_FOLDER_ENTRIES, folder);
        say(context, line);
    }
}
