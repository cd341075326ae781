/*
 * The log of what is done.
 *
 * Reading: all lines in order into one array of records, then sorted by (id, line) so
 * that a look-up is a binary search: 100,000 records take 100 bytes each and no hash
 * table. A drop of a task is kept as an entry of the same array; when the array is
 * sorted, it cancels the oldest record of its id before it. So are the sums of a task's
 * files: they go to the last record of their id and task before them. A drop of a stage
 * cancels every record of an earlier line. Stages are a sorted table of names. Of a file that
 * several records have, in a folder that several tasks name or by patterns that overlap, the
 * last one says what it is: an earlier one would say for ever that it has changed.
 *
 * Paths are any bytes and JSON is not: what is no printable ASCII, and '%', is written
 * as %XX. A line is one write; when a write was short (disk full), the next begins with
 * a line feed, so at most the torn line is lost. While a disk is full what has no room is kept
 * and comes first as soon as there is some, for as long as the owner says. Data is forced to disk every few
 * seconds and at a stage's end: losing the last few records costs running these tasks
 * again, no more.
 */
#include "driver/done_log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/array.h"
#include "core/base/bytes.h"
#include "core/base/escape.h"
#include "core/base/ids.h"
#include "os/clock.h"
#include "os/held.h"

#define SYNC_NS INT64_C(5000000000)
enum { ATTEMPTS_MAX = 1 << 20 };
/* Entries that are no records: for `stage`. */
enum { IS_DROP = UINT32_MAX, IS_SUMS = UINT32_MAX - 1, IS_AGAIN = UINT32_MAX - 2 };

/* What a failed attempt left. */
struct left {
    struct trp_print id;
    uint64_t line;
    struct trp_outputs files;
};

struct stage {
    char *name;
    uint32_t index;     /* as records name it */
    uint64_t dropped;   /* records of earlier lines do not count */
    uint64_t last_done; /* line of its last record; 0: none */
    struct trp_outputs outputs;
    uint64_t outputs_line;
    bool has_outputs;
    struct trp_print_parts parts;
    bool has_parts;
};

static const char *const part_names[TRP_PARTS] = {"command", "environment", "params"};

struct trp_done_log {
    int fd;
    bool torn;  /* the last line is not whole */
    int failed; /* errno of the first write that failed; 0: none */
    int64_t synced_ns;
    struct trp_buf line;      /* scratch … */
    struct trp_buf late;      /* … what had no room yet … */
    pthread_mutex_t write;    /* … of who holds this */
    int64_t wait_ns, full_ns; /* for room, and since when there is none; 0: there is */
    char *path;
    uint32_t attempts; /* one more than the highest of a stage that was read */

    struct stage **stages; /* sorted by name */
    uint32_t nstages, stages_capacity;
    uint32_t *open; /* by stage: records that count and were not given out */
    struct trp_done_record *records;
    uint32_t nrecords, records_capacity;
    struct left *left; /* sorted by id; stays when the rest is forgotten */
    uint32_t nleft, left_capacity;
};

/* ---- reading ---- */

static char *unescape(const char *text)
{
    char *s = text ? malloc(strlen(text) + 1) : NULL;
    long n = s ? trp_unescape(text, strlen(text), s) : -1;
    if (n < 0) {
        free(s);
        return NULL;
    }
    s[n] = '\0';
    return s;
}

static bool print_get(const json_t *j, struct trp_print *ret)
{
    const char *s = json_string_value(j);
    unsigned long long high, low;
    if (!s || strlen(s) != 32 || sscanf(s, "%16llx%16llx", &high, &low) != 2)
        return false;
    *ret = (struct trp_print){high, low};
    return true;
}

/* Behind a file that is temp. */
static const char temp_word[] = "temp";

static bool is_temp(const json_t *one)
{
    size_t n = json_array_size(one);
    const char *last = n ? json_string_value(json_array_get(one, n - 1)) : NULL;
    return n > 3 && last && strcmp(last, temp_word) == 0;
}

static bool outputs_get(const json_t *list, struct trp_outputs *ret)
{
    bool good = json_is_array(list);
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        struct trp_output o = {
            .path = unescape(json_string_value(json_array_get(one, 0))),
            .size = json_integer_value(json_array_get(one, 1)),
            .mtime_ns = json_integer_value(json_array_get(one, 2)),
            .temp = is_temp(one),
        };
        const json_t *ino = json_array_get(one, 3);
        print_get(ino, &o.sum);
        if (json_is_integer(ino))
            o.ino = (uint64_t)json_integer_value(ino);
        o.ctime_ns = json_integer_value(json_array_get(one, 4));
        good = o.path && trp_outputs_append(ret, &o) == 0;
    }
    if (!good)
        trp_outputs_free(ret);
    return good;
}

/* Where `name` is, or belongs. */
static size_t stage_place(const trp_done_log *l, const char *name, bool *ret_there)
{
    size_t low = 0, high = l->nstages;
    *ret_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(l->stages[middle]->name, name);
        if (order == 0) {
            *ret_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct stage *stage_find(const trp_done_log *l, const char *name)
{
    bool there;
    size_t at = stage_place(l, name, &there);
    return there ? l->stages[at] : NULL;
}

/* The entry of a stage, made when it is new; NULL: out of memory. */
static struct stage *stage_make(trp_done_log *l, const char *name)
{
    bool there;
    size_t at = stage_place(l, name, &there);
    if (there)
        return l->stages[at];
    struct stage *s = calloc(1, sizeof *s);
    char *copy = strdup(name);
    if (!s || !copy || !TRP_ARRAY_GROW(l->stages, l->nstages, l->stages_capacity)) {
        free(s);
        free(copy);
        return NULL;
    }
    s->name = copy;
    s->index = l->nstages;
    memmove(&l->stages[at + 1], &l->stages[at], (l->nstages - at) * sizeof(void *));
    l->nstages++;
    return l->stages[at] = s;
}

static int drop_stage_read(trp_done_log *l, const char *name, uint64_t line)
{
    struct stage *s = stage_make(l, name);
    if (!s)
        return TRP_ENOMEM;
    trp_outputs_free(&s->outputs);
    s->has_outputs = false;
    s->dropped = line;
    return 0;
}

static int record_add(trp_done_log *l, const struct trp_done_record *r)
{
    if (!TRP_ARRAY_GROW(l->records, l->nrecords, l->records_capacity))
        return TRP_ENOMEM;
    l->records[l->nrecords++] = *r;
    return 0;
}

/* What counts no more by a success. */
static int read_drops(trp_done_log *l, const json_t *j, uint64_t line)
{
    const json_t *ids = json_object_get(j, "drops");
    const json_t *stages = json_object_get(j, "drop_stages");
    for (size_t i = 0; i < json_array_size(ids); i++) {
        struct trp_done_record drop = {.line = line, .dropped = true, .stage = IS_DROP};
        if (print_get(json_array_get(ids, i), &drop.id) && record_add(l, &drop) < 0)
            return TRP_ENOMEM;
    }
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const char *name = json_string_value(json_array_get(stages, i));
        if (name && drop_stage_read(l, name, line) < 0)
            return TRP_ENOMEM;
    }
    return 0;
}

static int read_done(trp_done_log *l, const json_t *j, uint64_t line)
{
    const char *name = json_string_value(json_object_get(j, "stage"));
    struct trp_done_record r = {.line = line};
    if (!name || !print_get(json_object_get(j, "done"), &r.id) ||
        !print_get(json_object_get(j, "is"), &r.print) ||
        !outputs_get(json_object_get(j, "outputs"), &r.outputs))
        return 0;
    print_get(json_object_get(j, "inputs"), &r.inputs);
    r.task = (uint32_t)json_integer_value(json_object_get(j, "task"));
    struct stage *s = stage_make(l, name);
    if (s) {
        s->last_done = line;
        r.stage = s->index;
    }
    if (s && record_add(l, &r) == 0)
        return read_drops(l, j, line);
    trp_outputs_free(&r.outputs);
    return TRP_ENOMEM;
}

static int read_sums(trp_done_log *l, const json_t *j, uint64_t line)
{
    struct trp_done_record r = {.line = line, .dropped = true, .stage = IS_SUMS};
    if (!print_get(json_object_get(j, "sums"), &r.id) ||
        !outputs_get(json_object_get(j, "outputs"), &r.outputs))
        return 0;
    print_get(json_object_get(j, "inputs"), &r.inputs_sums);
    r.task = (uint32_t)json_integer_value(json_object_get(j, "task"));
    if (record_add(l, &r) == 0)
        return 0;
    trp_outputs_free(&r.outputs);
    return TRP_ENOMEM;
}

static int read_left(trp_done_log *l, const json_t *j, uint64_t line)
{
    struct left one = {.line = line};
    if (!print_get(json_object_get(j, "left"), &one.id) ||
        !outputs_get(json_object_get(j, "outputs"), &one.files))
        return 0;
    if (!TRP_ARRAY_GROW(l->left, l->nleft, l->left_capacity)) {
        trp_outputs_free(&one.files);
        return TRP_ENOMEM;
    }
    l->left[l->nleft++] = one;
    return 0;
}

static int read_stage(trp_done_log *l, const json_t *j, const char *name, uint64_t line)
{
    struct stage *s = stage_make(l, name);
    if (!s)
        return TRP_ENOMEM;
    trp_outputs_free(&s->outputs);
    const json_t *outputs = json_object_get(j, "outputs");
    s->has_outputs = outputs && outputs_get(outputs, &s->outputs);
    s->outputs_line = line;
    if (!outputs) /* a drop */
        s->dropped = line;
    return 0;
}

static int read_parts(trp_done_log *l, const json_t *j, const char *name)
{
    struct stage *s = stage_make(l, name);
    if (!s)
        return TRP_ENOMEM;
    s->has_parts = true;
    for (int i = 0; i < TRP_PARTS; i++)
        s->has_parts = s->has_parts &&
                       print_get(json_object_get(j, part_names[i]), &s->parts.v[i]);
    return 0;
}

static void note_attempt(trp_done_log *l, json_int_t attempt)
{
    if (attempt >= (json_int_t)l->attempts && attempt < ATTEMPTS_MAX)
        l->attempts = (uint32_t)attempt + 1;
}

/* What of these is temp may have been half made since. */
static void make_stale(struct trp_outputs *o)
{
    for (uint32_t i = 0; i < o->n; i++)
        o->v[i].stale = o->v[i].temp;
}

static int read_again(trp_done_log *l, const json_t *j,
                      const struct trp_done_record *entry)
{
    const char *name = json_string_value(json_object_get(j, "stage"));
    struct stage *s = name ? stage_find(l, name) : NULL;
    if (s)
        make_stale(&s->outputs);
    return record_add(l, entry);
}

static int read_line(trp_done_log *l, const char *text, size_t n, uint64_t line)
{
    json_t *j = json_loadb(text, n, 0, NULL);
    const char *ended = json_string_value(json_object_get(j, "stage_outputs"));
    const char *dropped = json_string_value(json_object_get(j, "drop_stage"));
    const char *is = json_string_value(json_object_get(j, "stage_is"));
    struct trp_done_record drop = {.line = line, .dropped = true, .stage = IS_DROP},
                           again = {.line = line, .dropped = true, .stage = IS_AGAIN};
    int r = 0;
    if (json_object_get(j, "done"))
        r = read_done(l, j, line);
    else if (json_object_get(j, "sums"))
        r = read_sums(l, j, line);
    else if (json_object_get(j, "left"))
        r = read_left(l, j, line);
    else if (print_get(json_object_get(j, "drop"), &drop.id))
        r = record_add(l, &drop);
    else if (print_get(json_object_get(j, "again"), &again.id))
        r = read_again(l, j, &again);
    else if (is)
        r = read_parts(l, j, is);
    else if (ended || dropped)
        r = read_stage(l, j, ended ? ended : dropped, line);
    else if (json_is_integer(json_object_get(j, "stage_attempt")))
        note_attempt(l, json_integer_value(json_object_get(j, "stage_attempt")));
    json_decref(j);
    return r;
}

static int by_id(const struct trp_print *a, const struct trp_print *b)
{
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return a->low == b->low ? 0 : a->low < b->low ? -1 : 1;
}

static int compare(const void *a, const void *b)
{
    const struct trp_done_record *x = a, *y = b;
    int order = by_id(&x->id, &y->id);
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static int compare_left(const void *a, const void *b)
{
    const struct left *x = a, *y = b;
    int order = by_id(&x->id, &y->id);
    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

/* Whether they are the same files as they were at the same time. */
static bool are_same(const struct trp_outputs *a, const struct trp_outputs *b)
{
    bool same = a->n == b->n;
    for (uint32_t i = 0; same && i < a->n; i++)
        same = a->v[i].size == b->v[i].size && a->v[i].mtime_ns == b->v[i].mtime_ns &&
               strcmp(a->v[i].path, b->v[i].path) == 0;
    return same;
}

/* Gives the sums of entry `at` to the record that they are of, which is between `from`
 * and it. When the task has ended anew since, they are of none. */
static void hand_sums(trp_done_log *l, size_t from, size_t at)
{
    struct trp_done_record *sums = &l->records[at];
    for (size_t i = at; i-- > from;) {
        struct trp_done_record *r = &l->records[i];
        if (r->stage >= IS_AGAIN || r->task != sums->task)
            continue;
        if (!are_same(&r->outputs, &sums->outputs))
            return;
        trp_outputs_free(&r->outputs);
        r->outputs = sums->outputs;
        r->inputs_sums = sums->inputs_sums;
        sums->outputs = (struct trp_outputs){0};
        return;
    }
}

/* What a task left that has succeeded since is what it has made. */
static void forget_made(trp_done_log *l)
{
    uint32_t i = 0;
    for (uint32_t k = 0; k < l->nleft; k++) {
        struct left *left = &l->left[k];
        while (i < l->nrecords && by_id(&l->records[i].id, &left->id) < 0)
            i++;
        for (uint32_t r = i; r < l->nrecords; r++) {
            const struct trp_done_record *d = &l->records[r];
            if (by_id(&d->id, &left->id) != 0)
                break;
            if (d->stage < IS_AGAIN && d->line > left->line)
                trp_outputs_free(&left->files);
        }
    }
}

/* A file of a record. */
struct claim {
    uint64_t path, line; /* path: its hash */
    struct trp_outputs *list;
    uint32_t at, stage;
    bool of_stage;
};

struct claims {
    struct claim *v;
    uint32_t n, capacity;
};

static int by_path_then_line(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->path != y->path)
        return x->path < y->path ? -1 : 1;
    return x->line > y->line ? -1 : x->line < y->line;
}

static int add_claims(struct claims *c, struct claim one)
{
    for (uint32_t i = 0; i < one.list->n; i++) {
        const char *path = one.list->v[i].path;
        if (!TRP_ARRAY_GROW(c->v, c->n, c->capacity))
            return TRP_ENOMEM;
        one.path = trp_print_of(path, strlen(path)).low;
        one.at = i;
        c->v[c->n++] = one;
    }
    return 0;
}

/* Leaves out the entries that have no path. */
static void close_up(struct trp_outputs *o)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < o->n; i++)
        if (o->v[i].path)
            o->v[n++] = o->v[i];
    o->n = n;
}

/* Leaves out of each record the files that a later one has as they were then. What a stage
 * has as a whole and what its tasks have are not two records. */
static int settle_claims(trp_done_log *l)
{
    struct claims c = {0};
    int r = 0;
    for (uint32_t i = 0; i < l->nrecords && r == 0; i++) {
        struct trp_done_record *d = &l->records[i];
        r = add_claims(
            &c,
            (struct claim){.line = d->line, .list = &d->outputs, .stage = d->stage});
    }
    for (uint32_t i = 0; i < l->nstages && r == 0; i++) {
        struct stage *s = l->stages[i];
        r = add_claims(&c, (struct claim){.line = s->outputs_line,
                                          .list = &s->outputs,
                                          .stage = s->index,
                                          .of_stage = true});
    }
    if (c.n)
        qsort(c.v, c.n, sizeof *c.v, by_path_then_line);
    for (uint32_t i = 0, last = 0; i < c.n && r == 0; i++) {
        const struct claim *one = &c.v[i], *first = &c.v[last];
        if (one->path != first->path)
            first = &c.v[last = i];
        const struct trp_output *is = &one->list->v[one->at],
                                *last_is = &first->list->v[first->at];
        if ((is->size == last_is->size && is->mtime_ns == last_is->mtime_ns) ||
            (one->stage == first->stage && one->of_stage != first->of_stage))
            continue;
        free(one->list->v[one->at].path);
        one->list->v[one->at].path = NULL;
    }
    for (uint32_t i = 0; i < l->nrecords; i++)
        close_up(&l->records[i].outputs);
    for (uint32_t i = 0; i < l->nstages; i++)
        close_up(&l->stages[i]->outputs);
    free(c.v);
    return r;
}

/* Sorts the records and lets drops and sums act. */
static int drop_superseded(trp_done_log *l)
{
    uint64_t *dropped = calloc(l->nstages + 1, sizeof *dropped);
    l->open = calloc(l->nstages + 1, sizeof *l->open);
    if (!dropped || !l->open) {
        free(dropped);
        return TRP_ENOMEM;
    }
    for (size_t i = 0; i < l->nstages; i++)
        dropped[l->stages[i]->index] = l->stages[i]->dropped;
    if (l->nrecords)
        qsort(l->records, l->nrecords, sizeof *l->records, compare);
    size_t first = 0;  /* of the present id */
    size_t oldest = 0; /* of it, not yet dropped by a task's drop */
    for (size_t i = 0; i < l->nrecords; i++) {
        struct trp_done_record *r = &l->records[i];
        if (i && by_id(&l->records[i - 1].id, &r->id) != 0)
            first = oldest = i;
        if (r->stage == IS_SUMS) {
            hand_sums(l, first, i);
            continue;
        }
        if (r->stage < IS_AGAIN) {
            r->dropped = r->line < dropped[r->stage];
            continue;
        }
        while (oldest < i && l->records[oldest].dropped)
            oldest++;
        if (oldest < i && r->stage == IS_AGAIN)
            make_stale(&l->records[oldest].outputs);
        else if (oldest < i)
            l->records[oldest].dropped = true;
    }
    for (size_t i = 0; i < l->nrecords; i++)
        if (l->records[i].stage < IS_AGAIN && !l->records[i].dropped)
            l->open[l->records[i].stage]++;
    free(dropped);
    if (l->nleft)
        qsort(l->left, l->nleft, sizeof *l->left, compare_left);
    forget_made(l);
    return settle_claims(l);
}

static int read_all(trp_done_log *l, trp_error *err)
{
    FILE *in = trp_held_fopen(l->path, "r");
    char *text = NULL;
    size_t capacity = 0;
    ssize_t n;
    int r = 0;
    if (!in)
        return errno == ENOENT
                   ? 0
                   : trp_error_set(err, TRP_ESYSTEM, "cannot read %.600s: %m", l->path);
    for (uint64_t line = 1; r == 0 && (n = getline(&text, &capacity, in)) > 0; line++) {
        l->torn = text[n - 1] != '\n';
        r = read_line(l, text, (size_t)n, line);
    }
    if (r == 0 && ferror(in))
        r = trp_error_set(err, TRP_ESYSTEM, "cannot read %.600s: %m", l->path);
    free(text);
    fclose(in);
    if (r == 0)
        r = drop_superseded(l);
    return r == TRP_ENOMEM ? trp_error_set(err, r, "out of memory for what is done")
                           : r;
}

int trp_done_log_open(const char *run_dir, bool read, trp_done_log **ret,
                      trp_error *err)
{
    trp_done_log *l = calloc(1, sizeof *l);
    int r = l ? 0 : TRP_ENOMEM;
    if (l) {
        l->fd = -1;
        pthread_mutex_init(&l->write, NULL);
        r = asprintf(&l->path, "%s/state/done.jsonl", run_dir) < 0 ? TRP_ENOMEM : 0;
    }
    if (r < 0) {
        if (l)
            pthread_mutex_destroy(&l->write);
        free(l);
        return trp_error_set(err, r, "out of memory for what is done");
    }
    if (read)
        r = read_all(l, err);
    if (r == 0) {
        l->fd = trp_held_open(l->path, O_WRONLY | O_APPEND | O_CREAT, 0600);
        if (l->fd < 0)
            r = trp_error_set(err, TRP_ESYSTEM, "cannot write %.600s: %m", l->path);
    }
    if (r < 0) {
        trp_done_log_close(l, NULL);
        return r;
    }
    *ret = l;
    return 0;
}

/* ---- asking ---- */

struct trp_done_record *trp_done_log_find(trp_done_log *l, struct trp_print id)
{
    size_t low = 0, high = l->nrecords;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_id(&l->records[middle].id, &id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < l->nrecords && by_id(&l->records[low].id, &id) == 0; low++) {
        struct trp_done_record *r = &l->records[low];
        if (r->stage >= IS_AGAIN || r->dropped || r->taken)
            continue;
        r->taken = true;
        l->open[r->stage]--;
        return r;
    }
    return NULL;
}

const struct trp_outputs *trp_done_log_left_by(const trp_done_log *l,
                                               struct trp_print id)
{
    uint32_t low = 0, high = l->nleft;
    while (low < high) { /* the first behind those of `id` */
        uint32_t middle = low + (high - low) / 2;
        if (by_id(&l->left[middle].id, &id) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low && by_id(&l->left[low - 1].id, &id) == 0 ? &l->left[low - 1].files
                                                        : NULL;
}

void trp_done_log_each(const trp_done_log *l, trp_done_file *each, void *context)
{
    const char **name = calloc((size_t)l->nstages + 1, sizeof *name);
    for (uint32_t i = 0; name && i < l->nstages; i++) {
        const struct stage *s = l->stages[i];
        name[s->index] = s->name;
        each(context, s->name, TRP_NONE, &s->outputs);
    }
    for (uint32_t i = 0; name && i < l->nrecords; i++)
        if (l->records[i].stage < IS_AGAIN)
            each(context, name[l->records[i].stage], l->records[i].task,
                 &l->records[i].outputs);
    free(name);
}

const struct trp_outputs *trp_done_log_stage_outputs(const trp_done_log *l,
                                                     const char *stage)
{
    const struct stage *s = stage_find(l, stage);
    return s && s->has_outputs ? &s->outputs : NULL;
}

const struct trp_print_parts *trp_done_log_parts(const trp_done_log *l,
                                                 const char *stage)
{
    const struct stage *s = stage_find(l, stage);
    return s && s->has_parts ? &s->parts : NULL;
}

/* Where the records of the next id begin. */
static size_t id_end(const trp_done_log *l, size_t first)
{
    size_t end = first + 1;
    while (end < l->nrecords && by_id(&l->records[first].id, &l->records[end].id) == 0)
        end++;
    return end;
}

bool trp_done_log_drop_rest(trp_done_log *l, const char *stage)
{
    const struct stage *s = stage_find(l, stage);
    bool dropped = false;
    if (!s || l->open[s->index] == 0)
        return false;
    for (size_t first = 0, end; first < l->nrecords; first = end) {
        bool taken = false;
        end = id_end(l, first);
        for (size_t i = first; i < end; i++)
            taken = taken || l->records[i].taken;
        for (size_t i = first; i < end && !taken; i++) {
            struct trp_done_record *r = &l->records[i];
            if (r->stage != s->index || r->dropped)
                continue;
            r->dropped = dropped = true;
            trp_done_log_drop_task(l, r->id);
        }
    }
    return dropped;
}

bool trp_done_log_has_stage(const trp_done_log *l, const char *stage)
{
    const struct stage *s = stage_find(l, stage);
    return s && (s->last_done > s->dropped || s->has_outputs);
}

void trp_done_log_forget(trp_done_log *l)
{
    for (size_t i = 0; i < l->nrecords; i++)
        trp_outputs_free(&l->records[i].outputs);
    for (size_t i = 0; i < l->nstages; i++) {
        trp_outputs_free(&l->stages[i]->outputs);
        free(l->stages[i]->name);
        free(l->stages[i]);
    }
    free(l->records);
    free(l->stages);
    free(l->open);
    l->records = NULL;
    l->stages = NULL;
    l->open = NULL;
    l->nrecords = l->records_capacity = l->nstages = l->stages_capacity = 0;
}

/* ---- writing ---- */

static void put_text(trp_done_log *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void put_text(trp_done_log *l, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    trp_put_raw(&l->line, text, (size_t)n);
}

static void put_path(trp_done_log *l, const char *path)
{
    char escaped[4];
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        if (*p > ' ' && *p < 127 && !strchr("%\"\\", *p)) {
            trp_put_u8(&l->line, *p);
            continue;
        }
        trp_escape(*p, escaped);
        trp_put_raw(&l->line, escaped, 3);
    }
}

static void put_print(trp_done_log *l, const char *before, struct trp_print print)
{
    put_text(l, "%s\"%016llx%016llx\"", before, (unsigned long long)print.high,
             (unsigned long long)print.low);
}

static bool is_known(struct trp_print print)
{
    return print.high || print.low;
}

static void put_outputs(trp_done_log *l, const struct trp_outputs *o, bool identity)
{
    put_text(l, "\"outputs\":[");
    for (size_t i = 0; i < o->n; i++) {
        put_text(l, "%s[\"", i ? "," : "");
        put_path(l, o->v[i].path);
        put_text(l, "\",%lld,%lld", (long long)o->v[i].size,
                 (long long)o->v[i].mtime_ns);
        if (identity)
            put_text(l, ",%lld,%lld", (long long)o->v[i].ino,
                     (long long)o->v[i].ctime_ns);
        else if (is_known(o->v[i].sum))
            put_print(l, ",", o->v[i].sum);
        if (o->v[i].temp && !identity)
            put_text(l, ",\"%s\"", temp_word);
        put_text(l, "]");
    }
    put_text(l, "]}\n");
}

/* Keeps the first error, of any thread; returns it. */
static int note_failed(trp_done_log *l, int failed)
{
    pthread_mutex_lock(&l->write);
    if (!l->failed)
        l->failed = failed;
    failed = l->failed;
    pthread_mutex_unlock(&l->write);
    return failed;
}

static void sync_now(trp_done_log *l)
{
    l->synced_ns = trp_clock_ns();
    if (fdatasync(l->fd) < 0)
        note_failed(l, errno);
}

static void sync_sometimes(trp_done_log *l)
{
    if (trp_clock_ns() - l->synced_ns >= SYNC_NS)
        sync_now(l);
}

/* Until write_line the log is this thread's. */
static void begin_line(trp_done_log *l)
{
    pthread_mutex_lock(&l->write);
    trp_buf_clear(&l->line);
    if (l->torn && !l->late.size)
        put_text(l, "\n");
}

/* Writes what it can of the bytes; returns how many, errno 0 or why it was not all. */
static size_t write_some(trp_done_log *l, const struct trp_buf *b)
{
    size_t done = 0;
    ssize_t n = 0;
    errno = b->failed ? ENOMEM : 0;
    while (done < b->size && !b->failed) {
        n = write(l->fd, b->data + done, b->size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
        errno = 0;
    }
    return done;
}

/* Keeps the rest of `b` where the disk is full and may have room soon. */
static bool keep_rest(trp_done_log *l, const struct trp_buf *b, size_t done, int why)
{
    struct trp_buf rest = {0};
    int64_t now = trp_clock_ns();
    if ((why != ENOSPC && why != EDQUOT) || !l->wait_ns || l->failed)
        return false;
    l->full_ns = l->full_ns ? l->full_ns : now;
    trp_put_raw(&rest, b->data + done, b->size - done);
    if (now - l->full_ns >= l->wait_ns || rest.failed) {
        trp_buf_free(&rest);
        return false;
    }
    trp_buf_free(&l->late);
    l->late = rest;
    return true;
}

/* Writes what is late, and then the line. */
static void write_line(trp_done_log *l)
{
    struct trp_buf *b = &l->line;
    if (l->late.size) {
        trp_put_raw(&l->late, l->line.data, l->line.size);
        b = &l->late;
    }
    size_t size = b->size, done = write_some(l, b);
    int why = errno;
    bool whole = done == size && !why;
    if (whole)
        l->full_ns = 0;
    if (!whole && !keep_rest(l, b, done, why)) {
        l->failed = l->failed ? l->failed : why ? why : ENOSPC;
        l->torn = l->torn || done > 0;
        trp_buf_free(&l->late);
    } else if (whole) {
        l->torn = false;
        trp_buf_free(&l->late);
    }
    if (l->line.failed)
        trp_buf_free(&l->line);
    pthread_mutex_unlock(&l->write);
}

/* Waits for room for what is late. */
static void write_late(trp_done_log *l)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    bool late = true;
    while (late) {
        pthread_mutex_lock(&l->write);
        trp_buf_clear(&l->line);
        late = l->late.size > 0;
        if (!late) {
            pthread_mutex_unlock(&l->write);
            break;
        }
        write_line(l);
        pthread_mutex_lock(&l->write);
        late = l->late.size > 0;
        pthread_mutex_unlock(&l->write);
        if (late)
            nanosleep(&pause, NULL);
    }
}

void trp_done_log_wait(trp_done_log *l, int64_t ns)
{
    l->wait_ns = ns;
}

static void put_files(trp_done_log *l, struct trp_print inputs,
                      const struct trp_outputs *outputs)
{
    if (is_known(inputs)) {
        put_print(l, "\"inputs\":", inputs);
        put_text(l, ",");
    }
    put_outputs(l, outputs, false);
}

static void put_drops(trp_done_log *l, const struct trp_done_drops *d)
{
    for (uint32_t i = 0; i < d->nids; i++)
        put_print(l, i ? "," : "\"drops\":[", d->ids[i]);
    if (d->nids)
        put_text(l, "],");
    for (uint32_t i = 0; i < d->nstages; i++)
        put_text(l, "%s\"%s\"", i ? "," : "\"drop_stages\":[", d->stages[i]);
    if (d->nstages)
        put_text(l, "],");
}

void trp_done_log_task(trp_done_log *l, const char *stage, uint32_t task,
                       struct trp_print id, struct trp_print print,
                       struct trp_print inputs, const struct trp_outputs *outputs,
                       const struct trp_done_drops *drops)
{
    begin_line(l);
    put_print(l, "{\"done\":", id);
    put_print(l, ",\"is\":", print);
    put_text(l, ",\"stage\":\"%s\",\"task\":%u,", stage, task);
    if (drops)
        put_drops(l, drops);
    put_files(l, inputs, outputs);
    write_line(l);
    sync_sometimes(l);
}

void trp_done_log_sums(trp_done_log *l, uint32_t task, struct trp_print id,
                       struct trp_print inputs_sums, const struct trp_outputs *outputs)
{
    begin_line(l);
    put_print(l, "{\"sums\":", id);
    put_text(l, ",\"task\":%u,", task);
    put_files(l, inputs_sums, outputs);
    write_line(l);
}

void trp_done_log_left(trp_done_log *l, uint32_t task, struct trp_print id,
                       const struct trp_outputs *files)
{
    begin_line(l);
    put_print(l, "{\"left\":", id);
    put_text(l, ",\"task\":%u,", task);
    put_outputs(l, files, true);
    write_line(l);
}

void trp_done_log_is(trp_done_log *l, const char *stage,
                     const struct trp_print_parts *parts)
{
    begin_line(l);
    put_text(l, "{\"stage_is\":\"%s\"", stage);
    for (int i = 0; i < TRP_PARTS; i++) {
        put_text(l, ",\"%s\"", part_names[i]);
        put_print(l, ":", parts->v[i]);
    }
    put_text(l, "}\n");
    write_line(l);
}

void trp_done_log_stage(trp_done_log *l, const char *stage,
                        const struct trp_outputs *outputs)
{
    begin_line(l);
    put_text(l, "{\"stage_outputs\":\"%s\",", stage);
    put_outputs(l, outputs, false);
    write_line(l);
    sync_sometimes(l);
}

void trp_done_log_drop_task(trp_done_log *l, struct trp_print id)
{
    begin_line(l);
    put_print(l, "{\"drop\":", id);
    put_text(l, "}\n");
    write_line(l);
}

void trp_done_log_again(trp_done_log *l, const char *stage, struct trp_print id)
{
    begin_line(l);
    put_print(l, "{\"again\":", id);
    put_text(l, ",\"stage\":\"%s\"}\n", stage);
    write_line(l);
}

void trp_done_log_attempt(trp_done_log *l, uint32_t attempt)
{
    begin_line(l);
    put_text(l, "{\"stage_attempt\":%u}\n", attempt);
    write_line(l);
}

uint32_t trp_done_log_attempts(const trp_done_log *l)
{
    return l->attempts;
}

void trp_done_log_drop_stage(trp_done_log *l, const char *stage)
{
    begin_line(l);
    put_text(l, "{\"drop_stage\":\"%s\"}\n", stage);
    write_line(l);
}

int trp_done_log_sync(trp_done_log *l, trp_error *err)
{
    sync_now(l);
    int failed = note_failed(l, 0);
    return failed ? trp_error_set(err, TRP_ESYSTEM, "cannot write %.600s: %s", l->path,
                                  strerror(failed))
                  : 0;
}

int trp_done_log_close(trp_done_log *l, trp_error *err)
{
    int r = 0;
    if (!l)
        return 0;
    if (l->fd >= 0) {
        write_late(l);
        r = trp_done_log_sync(l, err);
        close(l->fd);
    }
    trp_done_log_forget(l);
    for (uint32_t i = 0; i < l->nleft; i++)
        trp_outputs_free(&l->left[i].files);
    free(l->left);
    trp_buf_free(&l->line);
    trp_buf_free(&l->late);
    pthread_mutex_destroy(&l->write);
    free(l->path);
    free(l);
    return r;
}
