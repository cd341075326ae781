/*
 * The choice of what runs: one pass over the stages, parents first.
 *
 * A stage is *touched* when a task of it runs, or when it would have to run but is
 * beyond --until. A touched parent makes every record of a stage worthless, which is
 * written to the log at once: were it only known in memory, a run that is stopped
 * before the stage's turn would leave records that the next --resume believes. The same
 * goes for a task whose command has changed, since it may fail half-way and the command
 * may then be changed back.
 *
 * A task that was done and is not among its stage's tasks any more, since its item is gone,
 * touches the stages that wait for all of its stage. Its record is dropped then: should the
 * item come again, so does the task.
 *
 * A stage's foreach can be evaluated here when no stage above it is touched: nothing
 * that it reads is going to be made. What was evaluated is kept for the stage's start.
 *
 * What is temp and gone is nothing that stands against a task. When all is chosen, a second
 * pass, children first, finds the tasks whose files are needed by what runs: they run again,
 * and nothing is touched by that, since they are what they were.
 *
 * Cost: one hash and one look-up a task, one lstat an output; where contents are compared,
 * reading each file whose size is the same. Rejected: a chain of hashes through the stages,
 * where touching a stage would change nothing if it made the same files again: the contract
 * asks for the simple rule.
 */
#include "driver/resume.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/bytes.h"
#include "core/base/ids.h"
#include "driver/command_env.h"
#include "driver/file_sums.h"
#include "driver/group.h"
#include "driver/kept_lists.h"

/* Of a stage, what is temp and gone. */
struct gone {
    const char **first; /* of each task, the first; NULL: none is, of any */
    uint32_t *n;
    const char *whole; /* of the stage */
    uint32_t nwhole;
};

struct chooser {
    const struct trp_resume_request *q;
    const trp_pipeline *p;
    struct trp_stage_choice *choice;
    bool *kept;   /* not beyond --until */
    bool *taken;  /* taken as done by --from */
    bool *forced; /* by --force, itself or a stage above it */
    bool *touched;
    bool *again; /* tasks that were done run again */
    bool *late;  /* it may be found to be done when those above have ended */
    bool *fewer; /* tasks that were done are not among its tasks any more */
    struct gone *gone;
    struct trp_buf columns; /* of a task */
    bool before;            /* nothing has run yet */
    trp_error *err;
};

bool trp_resume_checks_contents(const trp_options *o)
{
    return strcmp(trp_options_text(o, "resume.check"), "contents") == 0;
}

/* ---- fingerprints ---- */

/* Whether `text` names the variable, and not one whose name only begins so. */
static bool names(const char *text, const char *variable)
{
    size_t n = strlen(variable);
    for (const char *at = text; at && (at = strstr(at, variable)); at += n)
        if (at[n] != 'S')
            return true;
    return false;
}

/* Whether a text differs by the number of the task. */
static bool names_task(const char *text)
{
    return names(text, "TROUPE_TASK") || strstr(text, "${task}");
}

struct printer {
    struct trp_buf b, named;
    bool by_index, by_count, by_row, by_rows;
};

/* Of a row: the columns that a text names, or that it has the row itself. */
static void note_columns(struct printer *p, const char *text)
{
    static const char *const before[] = {"TROUPE_COL_", "${col.", "${rows."};
    static const char *const rows[] = {"TROUPE_ITEM", "${item}", "${dir}",
                                       "${name}",     "${stem}", "${ext}"};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        p->by_row = p->by_row || strstr(text, rows[k]);
    p->by_rows = p->by_rows || strstr(text, "TROUPE_ROWS");
    for (size_t k = 0; k < sizeof before / sizeof *before; k++)
        for (const char *at = text; (at = strstr(at, before[k]));) {
            at += strlen(before[k]);
            size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789_");
            trp_put_raw(&p->named, at, n);
            trp_put_u8(&p->named, 0);
        }
}

static void put_text(struct printer *p, const char *text)
{
    trp_put_u8(&p->b, text != NULL);
    trp_put_text(&p->b, text);
    p->by_index = p->by_index || (text && names_task(text));
    p->by_count = p->by_count || (text && strstr(text, "TROUPE_TASKS"));
    if (text)
        note_columns(p, text);
}

static void put_texts(struct printer *p, char *const *v, uint32_t n)
{
    trp_put_u32(&p->b, n);
    for (uint32_t i = 0; i < n; i++)
        put_text(p, v[i]);
}

static void put_pairs(struct printer *p, const struct trp_pair *v, uint32_t n)
{
    trp_put_u32(&p->b, n);
    for (uint32_t i = 0; i < n; i++) {
        put_text(p, v[i].key);
        put_text(p, v[i].value);
    }
}

/* Whether a text has the variable of the param. */
static bool has_param(const char *text, const char *key)
{
    char word[100];
    size_t n = (size_t)snprintf(word, sizeof word, "TROUPE_PARAM_%.80s", key);
    for (const char *at = text; at && (at = strstr(at, word)); at += n)
        if (!at[n] || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                              "0123456789_",
                              at[n]))
            return true;
    return false;
}

static bool have_param(char *const *v, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (has_param(v[i], key))
            return true;
    return false;
}

/* Does the stage name the param otherwise than by ${}, which has been filled in? */
static bool names_param(const struct trp_pipeline_stage *s, const char *key)
{
    bool named = s->all_params || has_param(s->run, key) ||
                 has_param(s->prelude, key) || have_param(s->argv, s->nargv, key) ||
                 have_param(s->wrap, s->nwrap, key);
    for (uint32_t i = 0; i < s->nparams; i++)
        named = named || strcmp(s->params[i], key) == 0;
    for (uint32_t i = 0; i < s->nenv; i++)
        named = named || has_param(s->env[i].value, key);
    return named;
}

bool trp_param_is_named(const trp_pipeline *p, uint32_t param)
{
    bool named = p->in_values[param];
    for (uint32_t i = 0; i < p->nstages + p->nabsent && !named; i++)
        named = names_param(&p->stages[i], p->params[param].key);
    return named;
}

static void put_params(struct printer *p, const trp_pipeline *of,
                       const struct trp_pipeline_stage *s)
{
    for (uint32_t i = 0; i < of->nparams; i++)
        if (names_param(s, of->params[i].key)) {
            put_text(p, of->params[i].key);
            put_text(p, of->params[i].value);
        }
}

/* The print of what was put; begins anew. */
static struct trp_print take_part(struct printer *p)
{
    struct trp_print print = trp_print_of(p->b.data, p->b.size);
    trp_buf_clear(&p->b);
    return print;
}

static void put_command(struct printer *p, const struct chooser *c,
                        const struct trp_pipeline_stage *s)
{
    const struct trp_shell shell = trp_stage_shell(c->p, s, c->q->options);
    trp_put_u8(&p->b, s->run ? (uint8_t)shell.kind : 0);
    put_texts(p, shell.words, s->run ? shell.nwords : 0);
    put_text(p, s->run);
    put_texts(p, s->argv, s->nargv);
    put_texts(p, s->wrap, s->nwrap);
    put_text(p, s->prelude);
    put_text(p, s->cwd);
    put_texts(p, s->outputs, s->noutputs);
    put_texts(p, s->inputs, s->ninputs);
}

/* The same that print_stage has, part by part. */
static void print_parts(struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    struct trp_print *v = c->choice[i].parts.v;
    struct printer p = {0};
    put_command(&p, c, s);
    trp_put_u32(&p.b, s->spec.ranks);
    v[TRP_PART_COMMAND] = take_part(&p);
    put_pairs(&p, s->env, s->nenv);
    v[TRP_PART_ENVIRONMENT] = take_part(&p);
    put_params(&p, c->p, s);
    v[TRP_PART_PARAMS] = take_part(&p);
    trp_buf_free(&p.named);
    trp_buf_free(&p.b);
}

static int print_stage(struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    struct printer p = {0};
    put_command(&p, c, s);
    put_pairs(&p, s->env, s->nenv);
    put_params(&p, c->p, s);
    trp_put_u32(&p.b, s->spec.ranks);
    bool failed = p.b.failed || p.named.failed;
    c->choice[i].by_row = p.by_row;
    c->choice[i].by_rows = p.by_rows;
    c->choice[i].named = p.named;
    c->choice[i].print = trp_print_of(p.b.data, p.b.size);
    c->choice[i].by_index = p.by_index;
    c->choice[i].by_count = p.by_count;
    trp_buf_free(&p.b);
    return failed ? trp_error_set(c->err, TRP_ENOMEM, "out of memory for stage %s",
                                  s->name)
                  : 0;
}

bool trp_task_inputs(const struct trp_pipeline_stage *s, const char *cwd,
                     const struct trp_task_values *v, struct trp_outputs *ret,
                     char **ret_unmatched)
{
    bool item = !s->ninputs && s->foreach == TRP_FOREACH_FILES && v->item;
    if (ret_unmatched)
        *ret_unmatched = NULL;
    if (item)
        trp_outputs_add(ret, cwd, v->item, true);
    for (uint32_t i = 0; i < s->ninputs; i++) {
        bool none;
        char *pattern = trp_output_expand(s->inputs[i], v, &none);
        size_t before = ret->n;
        if (pattern)
            trp_outputs_match(ret, cwd, pattern, true, NULL);
        if (ret_unmatched && !*ret_unmatched && ret->n == before)
            *ret_unmatched = pattern;
        else
            free(pattern);
    }
    return item || s->ninputs;
}

struct trp_print trp_inputs_print(const struct trp_outputs *files)
{
    struct trp_buf b = {0};
    trp_put_u8(&b, 1);
    for (uint32_t i = 0; i < files->n; i++) {
        trp_put_text(&b, files->v[i].path);
        trp_put_s64(&b, files->v[i].size);
        trp_put_s64(&b, files->v[i].mtime_ns);
    }
    struct trp_print print = trp_print_of(b.data, b.size);
    trp_buf_free(&b);
    return print;
}

/* Is the task of a row known by its key? */
static bool by_key(const struct trp_stage_choice *c, const struct trp_items *items,
                   const struct trp_task_values *v)
{
    return v->item && items->keyed && !c->by_row;
}

/* The value of a group, without its columns. */
static struct trp_print print_of_item(const struct trp_items *items,
                                      const struct trp_task_values *v)
{
    return trp_print_of(v->item, items->row ? trp_item_text_size(v->item, v->item_size)
                                            : v->item_size);
}

/* The next column of an item, NAME=VALUE, from *at on, which is moved; NULL at the end. */
static const char *next_column(const char **at, const char *end, size_t *ret_size)
{
    const char *column = *at;
    if (column >= end)
        return NULL;
    *ret_size = strnlen(column, (size_t)(end - column));
    *at = column + *ret_size + 1;
    return column;
}

/* Where the columns of an item begin, and end. */
static const char *columns_of(const struct trp_task_values *v, const char **ret_end)
{
    *ret_end = v->item + v->item_size;
    return v->item + trp_item_text_size(v->item, v->item_size) + 1;
}

struct trp_print trp_task_id(const struct trp_stage_choice *c, const char *stage,
                             const struct trp_items *items,
                             const struct trp_task_values *v)
{
    struct trp_print name = trp_print_of(stage, strlen(stage));
    struct trp_print which =
        v->item ? print_of_item(items, v) : (struct trp_print){0, v->task};
    bool keyed = by_key(c, items, v);
    const char *end, *at = keyed ? columns_of(v, &end) : NULL;
    size_t n;
    const char *key = keyed ? next_column(&at, end, &n) : NULL;
    for (uint32_t k = 0; key && k < items->key; k++)
        key = next_column(&at, end, &n);
    if (key)
        which = trp_print_of(key, n);
    uint64_t all[5] = {name.high, name.low, (uint64_t)(v->item != NULL) + keyed,
                       which.high, which.low};
    return trp_print_of(all, sizeof all);
}

static bool is_named(const struct trp_stage_choice *c, const char *column, size_t n)
{
    const char *names = (const char *)c->named.data;
    size_t length = strcspn(column, "=");
    for (size_t at = 0; at < c->named.size; at += strlen(names + at) + 1)
        if (length < n && strlen(names + at) == length &&
            memcmp(names + at, column, length) == 0)
            return true;
    return false;
}

/* How many rows a group has, and the columns of them that are named. */
static void put_rows(const struct trp_stage_choice *c, const struct trp_items *items,
                     uint32_t task, struct trp_buf *b)
{
    uint32_t from = items->row_first[task], to = items->row_first[task + 1];
    trp_put_u32(b, to - from);
    for (uint32_t k = 0; k < items->ncolumns; k++) {
        const char *name = items->columns[k];
        bool named = c->by_rows;
        for (size_t at = 0; at < c->named.size && !named;
             at += strlen((const char *)c->named.data + at) + 1)
            named = strcmp((const char *)c->named.data + at, name) == 0;
        if (named)
            trp_put_raw(b, name, strlen(name) + 1);
        for (uint32_t r = from; named && r < to; r++) {
            trp_row_column(items, items->row[r].data, k, b);
            trp_put_u8(b, 0);
        }
    }
}

struct trp_print trp_task_print(const struct trp_stage_choice *c,
                                const struct trp_items *items,
                                const struct trp_task_values *v)
{
    uint64_t all[4] = {c->print.high, c->print.low,
                       c->by_index ? (uint64_t)v->task + 1 : 0,
                       c->by_count ? (uint64_t)items->ntasks + 1 : 0};
    struct trp_buf b = {0};
    if (!by_key(c, items, v) && !items->row && !c->nby)
        return trp_print_of(all, sizeof all);
    size_t n;
    trp_put_raw(&b, all, sizeof all);
    const char *end = NULL, *column;
    const char *at = by_key(c, items, v) ? columns_of(v, &end) : NULL;
    while (at && (column = next_column(&at, end, &n)))
        if (is_named(c, column, n))
            trp_put_raw(&b, column, n + (column + n < end)); /* with its NUL */
    if (items->row)
        put_rows(c, items, v->task, &b);
    for (uint32_t k = 0; k < c->nby; k++)
        trp_put_raw(&b, &c->by[k].set[c->by[k].values[v->task]], sizeof *c->by[k].set);
    struct trp_print print = trp_print_of(b.data, b.size);
    trp_buf_free(&b);
    return print;
}

/* ---- --from, --until, --force ---- */

static int find_stage(struct chooser *c, const char *option, const char *name,
                      uint32_t *ret)
{
    for (uint32_t i = 0; i < c->p->nstages; i++)
        if (strcmp(c->p->stages[i].name, name) == 0) {
            *ret = i;
            return 0;
        }
    return trp_error_set(
        c->err, TRP_EINVAL, "%s: %s has no stage %s; its first stage is %s", option,
        c->p->file, name, c->p->nstages ? c->p->stages[0].name : "none");
}

/* Marks every stage above those that are marked. */
static void mark_above(const trp_pipeline *p, bool *mark)
{
    for (uint32_t k = p->nstages; k-- > 0;) {
        const struct trp_pipeline_stage *s = &p->stages[p->order[k]];
        for (uint32_t a = 0; mark[p->order[k]] && a < s->nafter; a++)
            mark[s->after[a].index] = true;
    }
}

/* Marks every stage below those that are marked. */
static void mark_below(const trp_pipeline *p, bool *mark)
{
    for (uint32_t k = 0; k < p->nstages; k++) {
        const struct trp_pipeline_stage *s = &p->stages[p->order[k]];
        for (uint32_t a = 0; a < s->nafter; a++)
            mark[p->order[k]] = mark[p->order[k]] || mark[s->after[a].index];
    }
}

/* Its marks, of each stage, in one piece that is to be freed; NULL: out of memory. */
static bool *make_marks(struct chooser *c)
{
    size_t n = c->p->nstages;
    bool *marks = calloc(n * 7 + 1, sizeof *marks);
    c->gone = marks ? calloc(n + 1, sizeof *c->gone) : NULL;
    if (!c->gone) {
        free(marks);
        trp_error_set(c->err, TRP_ENOMEM, "out of memory for %zu stages", n);
        return NULL;
    }
    c->kept = marks;
    c->taken = marks + n;
    c->forced = marks + 2 * n;
    c->touched = marks + 3 * n;
    c->fewer = marks + 4 * n;
    c->again = marks + 5 * n;
    c->late = marks + 6 * n;
    return marks;
}

static void free_marks(struct chooser *c, bool *marks)
{
    for (uint32_t i = 0; i < c->p->nstages; i++) {
        free(c->gone[i].first);
        free(c->gone[i].n);
    }
    free(c->gone);
    free(marks);
    trp_buf_free(&c->columns);
}

static int read_options(struct chooser *c)
{
    const struct trp_resume_request *q = c->q;
    uint32_t stage = 0, n = c->p->nstages;
    int r = 0;
    for (uint32_t i = 0; i < q->nforce && r == 0; i++) {
        r = find_stage(c, "--force", q->force[i], &stage);
        if (r == 0)
            c->forced[stage] = true;
    }
    mark_below(c->p, c->forced);
    if (r == 0 && q->from && (r = find_stage(c, "--from", q->from, &stage)) == 0) {
        c->taken[stage] = true;
        mark_above(c->p, c->taken);
        c->taken[stage] = false;
    }
    memset(c->kept, q->until ? 0 : 1, n * sizeof *c->kept);
    if (r == 0 && q->until && (r = find_stage(c, "--until", q->until, &stage)) == 0) {
        c->kept[stage] = true;
        mark_above(c->p, c->kept);
    }
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        c->taken[i] = c->taken[i] && !c->forced[i];
        any = any || (c->kept[i] && !c->taken[i]);
    }
    if (r == 0 && !any && n)
        r = trp_error_set(c->err, TRP_EINVAL,
                          "--from %s --until %s leaves no stage to run", q->from,
                          q->until);
    return r;
}

int trp_resume_check(const trp_pipeline *p, const char *from, const char *until,
                     trp_error *err)
{
    const struct trp_resume_request q = {.pipeline = p, .from = from, .until = until};
    struct chooser c = {.q = &q, .p = p, .err = err};
    bool *marks = make_marks(&c);
    int r = marks ? read_options(&c) : TRP_ENOMEM;
    if (marks)
        free_marks(&c, marks);
    return r;
}

/* ---- what is done ---- */

static void drop_stage(struct chooser *c, uint32_t i)
{
    if (trp_done_log_has_stage(c->q->log, c->p->stages[i].name))
        trp_done_log_drop_stage(c->q->log, c->p->stages[i].name);
}

/* Why what was done of a stage is to be done again. The first reason stands. */
static void because(struct chooser *c, uint32_t i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void because(struct chooser *c, uint32_t i, const char *fmt, ...)
{
    struct trp_stage_choice *choice = &c->choice[i];
    va_list args;
    if (*choice->why)
        return;
    va_start(args, fmt);
    vsnprintf(choice->why, sizeof choice->why, fmt, args);
    va_end(args);
}

/* Which parts of what a stage is have changed. */
static void because_of_parts(struct chooser *c, uint32_t i)
{
    static const char *const labels[TRP_PARTS] = {"its command", "its env", "params"};
    const struct trp_print_parts *was =
        trp_done_log_parts(c->q->log, c->p->stages[i].name);
    char text[64] = "";
    size_t n = 0;
    for (int k = 0; was && k < TRP_PARTS; k++)
        if (was->v[k].high != c->choice[i].parts.v[k].high ||
            was->v[k].low != c->choice[i].parts.v[k].low)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
                                  labels[k]);
    const bool many = c->choice[i].items.row || c->choice[i].nby;
    because(c, i, "%s changed",
            n      ? text
            : many ? "its rows, or which tasks are before it,"
                   : "command, env or params");
}

/* The stage above that runs again, so that no task of stage `i` can be done; NULL: none.
 * Parents with `each` are asked task by task where that can be known: then what the stage
 * works on is what it is now, since it begins when they have begun. */
static const char *above_touched(const struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    for (uint32_t a = 0; a < s->nafter; a++) {
        const struct trp_after *after = &s->after[a];
        bool none = after->each
                        ? !c->choice[after->index].done && !c->late[after->index]
                        : c->again[after->index];
        if (c->touched[after->index] && none)
            return after->stage;
    }
    return NULL;
}

/* The items of a stage, with the files that are temp and have gone. */
static int evaluate(const struct chooser *c, uint32_t i, trp_error *err)
{
    trp_pipeline p = *c->p;
    struct trp_kept_lists lists = {.run_dir = c->q->run_dir};
    if (c->before && c->q->temp_set && c->q->run_dir) {
        if (p.kept_lists)
            lists = *p.kept_lists;
        lists.gone = trp_temp_set_gone;
        lists.gone_context = c->q->temp_set;
        p.kept_lists = &lists;
    }
    return trp_foreach_evaluate(&p, &p.stages[i], c->q->cwd, &c->choice[i].items, err);
}

/* Is it decided late? */
static bool waits_to_see(const struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    for (uint32_t a = 0; a < s->nafter; a++)
        if (s->after[a].each ? c->late[s->after[a].index]
                             : c->touched[s->after[a].index])
            return true;
    return false;
}

/* The stage above, waited for as a whole, of which tasks are gone: what they made may be
 * in what stage `i` made of all. */
static const char *above_fewer(const struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    for (uint32_t a = 0; a < s->nafter; a++)
        if (c->fewer[s->after[a].index] && !s->after[a].each)
            return s->after[a].stage;
    return NULL;
}

/* ---- by columns ---- */

/* Who those above are: the sum of what they are known by, whatever their order. */
static int find_sets(const trp_pipeline *p, const struct trp_stage_choice *choice,
                     uint32_t above, struct trp_by_tasks *by)
{
    const struct trp_stage_choice *c = &choice[above];
    struct trp_buf b = {0};
    struct trp_print id = {0, 0};
    uint32_t last = TRP_NONE;
    bool failed = false;
    for (uint32_t k = 0; k < by->by.nabove && !failed; k++) {
        struct trp_task_values v;
        if (by->above[k].task != last) {
            last = by->above[k].task;
            failed = !trp_items_values(&c->items, last, &b, &v);
            id = failed ? id : trp_task_id(c, p->stages[above].name, &c->items, &v);
        }
        by->set[by->above[k].value].high += id.high;
        by->set[by->above[k].value].low += id.low;
    }
    trp_buf_free(&b);
    return failed ? TRP_ENOMEM : 0;
}

void trp_resume_unlink(struct trp_stage_choice *c)
{
    for (uint32_t k = 0; k < c->nby; k++)
        trp_by_free(&c->by[k]);
    free(c->by);
    c->by = NULL;
    c->nby = 0;
}

int trp_resume_links(const trp_pipeline *p, const char *cwd,
                     struct trp_stage_choice *choice, uint32_t stage,
                     const struct trp_items *own, trp_error *err)
{
    const struct trp_pipeline_stage *s = &p->stages[stage];
    struct trp_stage_choice *c = &choice[stage];
    uint32_t n = 0;
    int r = 0;
    trp_resume_unlink(c);
    for (uint32_t a = 0; a < s->nafter; a++)
        n += s->after[a].by != NULL;
    if (!n)
        return 0;
    c->by = calloc(n, sizeof *c->by);
    for (uint32_t a = 0; a < s->nafter && c->by && r == 0; a++) {
        uint32_t above = s->after[a].index;
        struct trp_items *items = &choice[above].items;
        if (!s->after[a].by)
            continue;
        if (!items->known)
            r = trp_foreach_evaluate(p, &p->stages[above], cwd, items, err);
        if (r == 0)
            r = trp_by_make(p, s, &s->after[a], own, items, &c->by[c->nby], err);
        if (r == 0 && (r = find_sets(p, choice, above, &c->by[c->nby++])) < 0)
            trp_error_set(err, r, "out of memory for stage %s", s->name);
    }
    if (!c->by)
        r = trp_error_set(err, TRP_ENOMEM, "out of memory for stage %s", s->name);
    if (r < 0)
        trp_resume_unlink(c);
    return r;
}

/* What a task above has made is, or will be, as it was. */
static bool is_there(const struct trp_stage_choice *above, uint32_t task)
{
    return (above->done && above->done[task]) || (above->remade && above->remade[task]);
}

/* Marks the values of which a task above runs. */
static void mark_stale(const struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    uint32_t n = 0;
    for (uint32_t a = 0; a < s->nafter; a++) {
        const struct trp_stage_choice *above = &c->choice[s->after[a].index];
        const struct trp_by_tasks *by = s->after[a].by ? &c->choice[i].by[n++] : NULL;
        for (uint32_t k = 0; by && c->touched[s->after[a].index] && k < by->by.nabove;
             k++)
            if (!is_there(above, by->above[k].task))
                by->stale[by->above[k].value] = 1;
    }
}

/* Whether there are as many tasks as of each parent that runs again with `each`; if not,
 * what they are depends on what the parents do. */
static bool as_many_as_above(const struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    for (uint32_t a = 0; a < s->nafter; a++) {
        uint32_t above = s->after[a].index;
        if (s->after[a].each && !s->after[a].by && c->touched[above] &&
            c->choice[above].items.ntasks != c->choice[i].items.ntasks)
            return false;
    }
    return true;
}

/* Whether it is known which tasks above its tasks wait for. What is wrong there is told when
 * the stage starts. */
static bool is_linked(struct chooser *c, uint32_t i)
{
    trp_error why;
    if (!as_many_as_above(c, i) ||
        trp_resume_links(c->p, c->q->cwd, c->choice, i, &c->choice[i].items, &why) < 0)
        return false;
    if (c->choice[i].nby)
        mark_stale(c, i);
    return true;
}

/* Whether those above that task `t` of stage `i` waits for do not run. */
static bool each_done(const struct chooser *c, uint32_t i, uint32_t t)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    for (uint32_t k = 0; k < c->choice[i].nby; k++)
        if (c->choice[i].by[k].stale[c->choice[i].by[k].values[t]])
            return false;
    for (uint32_t a = 0; a < s->nafter; a++) {
        const struct trp_stage_choice *above = &c->choice[s->after[a].index];
        if (s->after[a].each && !s->after[a].by && c->touched[s->after[a].index] &&
            !(t < above->items.ntasks && is_there(above, t)))
            return false;
    }
    return true;
}

/* The first output that is to be there, of a task or (`v` NULL) of the stage, and is not.
 * NULL: there is none. */
static const char *missing_output(const struct chooser *c,
                                  const struct trp_pipeline_stage *s,
                                  const struct trp_task_values *v)
{
    static const struct trp_task_values none;
    for (uint32_t i = 0; i < s->noutputs; i++)
        if (!s->optional[i] && !s->temp[i] &&
            trp_output_of_task(s->outputs[i]) == (v != NULL) &&
            !trp_output_is_made(s->outputs[i], c->q->cwd, v ? v : &none))
            return s->outputs[i];
    return NULL;
}

/* Whether the files that the task read are as they were. */
static bool inputs_changed(const struct chooser *c, const struct trp_pipeline_stage *s,
                           const struct trp_done_record *r,
                           const struct trp_task_values *v)
{
    struct trp_outputs files = {0};
    struct trp_print was = r->inputs, is;
    bool contents = c->q->contents && (r->inputs_sums.high || r->inputs_sums.low);
    if (!was.high && !was.low)
        return false;
    trp_task_inputs(s, c->q->cwd, v, &files, NULL);
    trp_temp_set_drop(c->q->temp_set, &files);
    for (uint32_t i = 0; contents && i < files.n; i++)
        trp_output_sum(&files.v[i], c->q->cwd, false, NULL);
    is = contents ? trp_file_sums_of(&files) : trp_inputs_print(&files);
    was = contents ? r->inputs_sums : was;
    trp_outputs_free(&files);
    return is.high != was.high || is.low != was.low;
}

static void because_of_output(struct chooser *c, uint32_t i, const char *path)
{
    because(c, i, "output %.200s %s", path,
            trp_output_is_there(path, c->q->cwd) ? "changed" : "is not there");
}

/* Whether nothing that the task has made or read stands against its being done. */
static bool files_stand(struct chooser *c, uint32_t i, uint32_t t,
                        const struct trp_done_record *r,
                        const struct trp_task_values *v)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    const char *changed = trp_outputs_changed(&r->outputs, c->q->cwd, c->q->contents);
    const char *missing = changed ? NULL : missing_output(c, s, v);
    char word[TRP_TASK_WORD];
    if (changed)
        because_of_output(c, i, changed);
    else if (missing)
        because(c, i, "output %.200s is not there", missing);
    else if (inputs_changed(c, s, r, v))
        because(c, i, "inputs of task %s changed",
                trp_items_word(&c->choice[i].items, t, word));
    else
        return true;
    return false;
}

/* ---- what is temp ---- */

/* Notes what is gone of what a task has made. Without memory nothing is. */
static void note_gone(struct chooser *c, uint32_t i, uint32_t t,
                      const struct trp_done_record *r)
{
    struct gone *g = &c->gone[i];
    const char *first;
    uint32_t n = trp_outputs_gone(&r->outputs, c->q->cwd, &first);
    size_t all = (size_t)c->choice[i].items.ntasks + 1;
    if (!n)
        return;
    if (!g->first)
        g->first = calloc(all, sizeof *g->first);
    if (!g->n)
        g->n = calloc(all, sizeof *g->n);
    if (!g->first || !g->n)
        return;
    g->first[t] = first;
    g->n[t] = n;
}

/* Keeps what there is. */
static void note_made(struct trp_stage_choice *choice, uint32_t t,
                      const struct trp_done_record *r)
{
    struct trp_outputs files = {0};
    for (uint32_t k = 0; k < r->outputs.n; k++) {
        struct trp_output copy = r->outputs.v[k];
        if (copy.temp && !copy.stale && (copy.path = strdup(copy.path)))
            trp_outputs_append(&files, &copy);
    }
    if (files.n && TRP_ARRAY_GROW(choice->made, choice->nmade, choice->made_capacity))
        choice->made[choice->nmade++] = (struct trp_temp_made){t, files};
    else
        trp_outputs_free(&files);
}

static void note_whole(struct chooser *c, uint32_t i)
{
    const struct trp_outputs *left =
        trp_done_log_stage_outputs(c->q->log, c->p->stages[i].name);
    struct gone *g = &c->gone[i];
    if (left)
        g->nwhole = trp_outputs_gone(left, c->q->cwd, &g->whole);
}

/* The stage that runs and needs what a task has made, or (TRP_NONE) any; NULL: there is none. */
static const char *needs(const struct chooser *c, uint32_t i, uint32_t t)
{
    const struct trp_temp_users *users = c->q->temp_users;
    for (uint32_t k = users->first[i]; k < users->first[i + 1]; k++) {
        const struct trp_temp_user *u = &users->v[k];
        const struct trp_stage_choice *of = &c->choice[u->stage];
        bool done = u->each && of->done && t < of->items.ntasks && of->done[t];
        if (of->runs && !done)
            return c->p->stages[u->stage].name;
    }
    return NULL;
}

/* A task that is done runs, since a stage needs what it had made. */
static int remake(struct chooser *c, uint32_t i, uint32_t t, const char *stage,
                  const char *path)
{
    struct trp_stage_choice *choice = &c->choice[i];
    if (!choice->remade)
        choice->remade = calloc((size_t)choice->items.ntasks + 1, 1);
    if (!choice->remade)
        return trp_error_set(c->err, TRP_ENOMEM, "out of memory for stage %s",
                             c->p->stages[i].name);
    because(c, i, "stage %.64s needs %.200s again", stage, path);
    choice->done[t] = 0;
    choice->remade[t] = 1;
    choice->ndone--;
    choice->nremade++;
    choice->nagain++;
    choice->runs = true;
    choice->complete = false;
    return 0;
}

/* What comes after the stage is chosen. */
static int settle_gone(struct chooser *c, uint32_t i)
{
    struct trp_stage_choice *choice = &c->choice[i];
    const struct gone *g = &c->gone[i];
    const char *path = g->whole, *by = path ? needs(c, i, TRP_NONE) : NULL;
    bool barrier = c->p->stages[i].spec.barrier;
    int r = 0;
    if (!by && barrier) /* all or none */
        for (uint32_t t = 0; g->n && t < choice->items.ntasks && !by; t++)
            if ((path = g->first[t]))
                by = needs(c, i, t);
    choice->ngone = by ? 0 : g->nwhole;
    for (uint32_t t = 0; choice->done && t < choice->items.ntasks && r == 0; t++) {
        const char *own = g->n ? g->first[t] : NULL, *why = by;
        if (!choice->done[t] || (!by && !own))
            continue;
        if (!why)
            why = needs(c, i, t);
        if (why)
            r = remake(c, i, t, why, own && !by ? own : path);
        else
            choice->ngone += g->n[t];
    }
    return r;
}

/* Of a stage that is taken as done: what is temp and gone is looked for all the same. */
static int look_at_taken(struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    struct trp_stage_choice *choice = &c->choice[i];
    struct trp_task_values v;
    if (!c->q->log || !s->temp_mark.line || evaluate(c, i, NULL) < 0)
        return 0;
    choice->done = calloc((size_t)choice->items.ntasks + 1, 1);
    if (!choice->done)
        return trp_error_set(c->err, TRP_ENOMEM, "out of memory for stage %s", s->name);
    for (uint32_t t = 0; t < choice->items.ntasks; t++) {
        const struct trp_done_record *r =
            trp_items_values(&choice->items, t, &c->columns, &v)
                ? trp_done_log_find(c->q->log,
                                    trp_task_id(choice, s->name, &choice->items, &v))
                : NULL;
        choice->done[t] = 1;
        if (r)
            note_gone(c, i, t, r);
    }
    choice->ndone = choice->items.ntasks;
    note_whole(c, i);
    return 0;
}

/* ---- task by task ---- */

static bool task_done(struct chooser *c, uint32_t i, uint32_t t)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    struct trp_stage_choice *choice = &c->choice[i];
    struct trp_task_values v;
    if (!trp_items_values(&choice->items, t, &c->columns, &v))
        return false;
    struct trp_print id = trp_task_id(choice, s->name, &choice->items, &v);
    struct trp_print print = trp_task_print(choice, &choice->items, &v);
    const struct trp_done_record *r = trp_done_log_find(c->q->log, id);
    if (!r)
        return false;
    if (r->print.high != print.high || r->print.low != print.low)
        because_of_parts(c, i);
    else if (!each_done(c, i, t))
        because(c, i, "the tasks before them run again");
    else if (files_stand(c, i, t, r, &v)) {
        note_gone(c, i, t, r);
        note_made(choice, t, r);
        return true;
    }
    choice->nagain++;
    trp_done_log_drop_task(c->q->log, id);
    return false;
}

/* Finds which tasks of a stage are done; none when something stands against that. */
static int find_done(struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    struct trp_stage_choice *choice = &c->choice[i];
    const struct trp_outputs *left = trp_done_log_stage_outputs(c->q->log, s->name);
    const char *above = above_touched(c, i), *fewer = above_fewer(c, i);
    const char *changed = left && !above && !fewer && !c->forced[i] && !s->always
                              ? trp_outputs_changed(left, c->q->cwd, c->q->contents)
                              : NULL;
    bool had = trp_done_log_has_stage(c->q->log, s->name);
    if (had && c->forced[i])
        because(c, i, "--force");
    else if (had && s->always)
        because(c, i, "always: true");
    else if (had && above)
        because(c, i, "stage %.64s runs again", above);
    else if (had && fewer)
        because(c, i, "tasks of stage %.64s are gone", fewer);
    else if (had && changed)
        because_of_output(c, i, changed);
    if (c->forced[i] || s->always || above || fewer || changed) {
        drop_stage(c, i);
        c->again[i] = had;
        if (!above || trp_foreach_known(s)) /* to be told */
            evaluate(c, i, NULL);
        return 0;
    }
    if (waits_to_see(c, i) && had) {
        choice->late = c->late[i] = choice->runs = true;
        because(c, i, "only if a task that it waits for succeeds now");
        return 0;
    }
    /* What is wrong with its foreach is told when the stage starts. */
    if (!choice->items.known && evaluate(c, i, NULL) < 0)
        return 0;
    if (!is_linked(c, i)) {
        trp_items_free(&choice->items);
        because(c, i, "what it works on is made anew");
        drop_stage(c, i);
        c->again[i] = had;
        return 0;
    }
    choice->done = calloc((size_t)choice->items.ntasks + 1, 1);
    if (!choice->done)
        return trp_error_set(c->err, TRP_ENOMEM, "out of memory for stage %s", s->name);
    for (uint32_t t = 0; t < choice->items.ntasks; t++) {
        choice->done[t] = task_done(c, i, t);
        choice->ndone += choice->done[t];
    }
    c->fewer[i] = trp_done_log_drop_rest(c->q->log, s->name);
    choice->runs = choice->ndone < choice->items.ntasks;
    /* While tasks are left to run they may still make it. */
    const char *missing =
        choice->runs || !choice->items.ntasks ? NULL : missing_output(c, s, NULL);
    if (missing) {
        because(c, i, "output %.200s is not there", missing);
        drop_stage(c, i);
        memset(choice->done, 0, choice->ndone);
        choice->nagain = choice->ndone;
        choice->ndone = 0;
        choice->runs = true;
    }
    c->again[i] = choice->nagain > 0;
    if (choice->runs && s->spec.barrier) { /* all or none */
        c->again[i] = c->again[i] || choice->ndone;
        choice->ndone = 0;
        memset(choice->done, 0, choice->items.ntasks);
    }
    choice->complete = !choice->runs;
    note_whole(c, i);
    return 0;
}

/* Of a stage that --until leaves out, forgets what was made of something that is made
 * anew now: no later start could tell. */
static int forget_stale(struct chooser *c, uint32_t i)
{
    const struct trp_pipeline_stage *s = &c->p->stages[i];
    struct trp_stage_choice *choice = &c->choice[i];
    struct trp_task_values v;
    for (uint32_t a = 0; a < s->nafter; a++)
        c->touched[i] = c->touched[i] || c->touched[s->after[a].index];
    bool whole = above_touched(c, i) || above_fewer(c, i);
    if (!whole && !c->touched[i])
        return 0;
    c->touched[i] = true;
    if (!whole && waits_to_see(c, i)) { /* a success above drops what it is of */
        choice->late = c->late[i] = true;
        return 0;
    }
    c->again[i] = true;
    if (whole || evaluate(c, i, NULL) < 0 || !is_linked(c, i)) {
        drop_stage(c, i);
        return 0;
    }
    choice->done = calloc((size_t)choice->items.ntasks + 1, 1);
    if (!choice->done)
        return trp_error_set(c->err, TRP_ENOMEM, "out of memory for stage %s", s->name);
    for (uint32_t t = 0; t < choice->items.ntasks; t++) {
        choice->done[t] = each_done(c, i, t);
        if (!choice->done[t] && trp_items_values(&choice->items, t, &c->columns, &v))
            trp_done_log_drop_task(c->q->log,
                                   trp_task_id(choice, s->name, &choice->items, &v));
    }
    return 0;
}

static int choose_stage(struct chooser *c, uint32_t i)
{
    struct trp_stage_choice *choice = &c->choice[i];
    if (!c->kept[i])
        return c->q->log ? forget_stale(c, i) : 0;
    if (c->taken[i])
        return look_at_taken(c, i);
    choice->runs = true;
    int r = c->q->log ? find_done(c, i) : 0;
    c->touched[i] = choice->runs;
    return r;
}

/* `done` was for the choices of the stages below where no task is, items where no task
 * runs, but for those that tasks are found by. */
static void tidy(struct chooser *c)
{
    memset(c->kept, 0, c->p->nstages * sizeof *c->kept);
    for (uint32_t i = 0; i < c->p->nstages; i++)
        for (uint32_t a = 0; c->choice[i].runs && a < c->p->stages[i].nafter; a++)
            if (c->p->stages[i].after[a].by)
                c->kept[c->p->stages[i].after[a].index] = true;
    for (uint32_t i = 0; i < c->p->nstages; i++) {
        struct trp_stage_choice *choice = &c->choice[i];
        if (!choice->runs && !c->kept[i])
            trp_items_free(&choice->items);
        if (!choice->runs || (!choice->ndone && !choice->remade)) {
            free(choice->done);
            choice->done = NULL;
        }
    }
}

bool trp_resume_any_late(const struct trp_stage_choice *v, uint32_t n)
{
    bool any = false;
    for (uint32_t i = 0; v && i < n; i++)
        any = any || v[i].late;
    return any;
}

int trp_resume_late(const struct trp_resume_request *q, struct trp_stage_choice *choice,
                    uint32_t stage, const char *made, trp_error *err)
{
    struct chooser c = {.q = q, .p = q->pipeline, .err = err, .choice = choice};
    const struct trp_pipeline_stage *s = &c.p->stages[stage];
    bool *marks = make_marks(&c);
    if (!marks)
        return TRP_ENOMEM;
    for (uint32_t a = 0; a < s->nafter; a++)
        c.touched[s->after[a].index] =
            s->after[a].each && choice[s->after[a].index].done;
    choice[stage].late = false;
    choice[stage].why[0] = '\0';
    choice[stage].runs = true;
    int r = trp_foreach_evaluate(c.p, s, q->cwd, &choice[stage].items, err);
    if (r == 0 && made) {
        because(&c, stage, "a task of stage %.64s succeeded", made);
    } else if (r == 0) {
        r = find_done(&c, stage);
        if (r == 0 && !choice[stage].items.known)
            r = trp_foreach_evaluate(c.p, s, q->cwd, &choice[stage].items, err);
    }
    if (r == 0 && q->temp_users)
        r = settle_gone(&c, stage);
    free_marks(&c, marks);
    return r;
}

int trp_resume_choose(const struct trp_resume_request *q, struct trp_stage_choice **ret,
                      trp_error *err)
{
    uint32_t n = q->pipeline->nstages;
    struct chooser c = {.q = q, .p = q->pipeline, .before = true, .err = err};
    bool *marks = make_marks(&c);
    c.choice = calloc((size_t)n + 1, sizeof *c.choice);
    if (!marks || !c.choice) {
        if (marks)
            free_marks(&c, marks);
        free(c.choice);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u stages", n);
    }
    int r = read_options(&c);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = print_stage(&c, i);
        print_parts(&c, i);
    }
    for (uint32_t k = 0; k < n && r == 0; k++)
        r = choose_stage(&c, c.p->order[k]);
    for (uint32_t k = n; k-- > 0 && r == 0 && q->temp_users;)
        r = settle_gone(&c, c.p->order[k]);
    if (r == 0 && q->log)
        r = trp_done_log_sync(q->log, err);
    if (r == 0)
        tidy(&c);
    free_marks(&c, marks);
    if (r < 0) {
        trp_stage_choices_free(c.choice, n);
        return r;
    }
    *ret = c.choice;
    return 0;
}

void trp_stage_choice_words(const struct trp_stage_choice *c, char *buf, size_t size)
{
    uint32_t todo = c->items.ntasks - c->ndone;
    char done[48] = "", run[48], gone[64] = "";
    if (c->runs && c->ndone)
        snprintf(done, sizeof done,
                 c->ndone == 1 ? "%u task is done, " : "%u tasks are done, ", c->ndone);
    if (c->runs && c->items.known)
        snprintf(run, sizeof run, "%u of %u run%s", todo, c->items.ntasks,
                 todo == 1 ? "s" : "");
    else
        strcpy(run, !c->runs ? "does not run" : c->ndone ? "the others run" : "runs");
    if (c->ngone)
        snprintf(gone, sizeof gone, "; %u temp file%s gone, and nothing needs %s",
                 c->ngone, c->ngone == 1 ? " is" : "s are",
                 c->ngone == 1 ? "it" : "them");
    snprintf(buf, size, "%s%s%s%s%s", done, run, c->runs && *c->why ? ": " : "",
             c->runs ? c->why : "", gone);
}

bool trp_stage_choice_text(const trp_pipeline *p, const struct trp_stage_choice *v,
                           uint32_t stage, char *buf, size_t size)
{
    const struct trp_stage_choice *c = &v[stage];
    const char *name = p->stages[stage].name;
    if (!c->runs || c->late || !*c->why) {
        char words[440];
        trp_stage_choice_words(c, words, sizeof words);
        snprintf(buf, size, "stage %s: %s", name, words);
        return false;
    }
    if (c->nagain)
        snprintf(buf, size, "stage %s: %u task%s that %s done %s to run again: %s",
                 name, c->nagain, c->nagain == 1 ? "" : "s",
                 c->nagain == 1 ? "was" : "were", c->nagain == 1 ? "is" : "are",
                 c->why);
    else
        snprintf(buf, size, "stage %s is to run again: %s", name, c->why);
    return true;
}

void trp_temp_made_free(struct trp_stage_choice *c)
{
    for (uint32_t k = 0; k < c->nmade; k++)
        trp_outputs_free(&c->made[k].files);
    free(c->made);
    c->made = NULL;
    c->nmade = c->made_capacity = 0;
}

void trp_stage_choices_free(struct trp_stage_choice *v, uint32_t n)
{
    for (uint32_t i = 0; v && i < n; i++) {
        trp_items_free(&v[i].items);
        trp_buf_free(&v[i].named);
        trp_resume_unlink(&v[i]);
        free(v[i].done);
        free(v[i].remade);
        trp_temp_made_free(&v[i]);
    }
    free(v);
}
