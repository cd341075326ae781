/*
 * One stage: a row a key in one table, with a function where the value is more than one
 * member. What needs two keys (run or argv, tasks or foreach or mpi) is checked when all
 * are read; of two keys that exclude each other the later one in the file is the wrong
 * one.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "conf/pipeline_load.h"
#include "conf/scalars.h"
#include "conf/wording.h"
#include "core/base/ids.h"
#include "core/base/template.h"

/* Rows of keys that are members of a struct reading. */
#define AT(member) offsetof(struct reading, member)
#define INTO(name, how, member, ...)                                                   \
    TRP_YAML_INTO(name, how, struct reading, member, __VA_ARGS__)

enum { FACTOR_MAX = 100, COUNT_MAX = 1000000, EXIT_MAX = 255, PPM_OF_PERCENT = 10000 };

/* The stage, and where its keys stand (line 0: not written). */
struct reading {
    struct trp_pipeline_stage s;
    struct trp_mark run, argv, prelude, shell, tasks, foreach, mpi, allow_empty;
    struct trp_mark barrier, max_running, tolerate, pool;
};

static TRP_YAML_READER(read_name)
{
    struct reading *r = context;
    r->s.name = trp_yaml_word(y, value, "name");
    r->s.mark = value->mark;
    if (r->s.name && !trp_is_name(r->s.name))
        trp_yaml_wrong(
            y, value->mark,
            "\"%s\" is not a stage's name; write at most 64 letters, digits, "
            "'_', '.' and '-', no '.' or '-' first",
            trp_show(r->s.name).text);
}

static TRP_YAML_READER(read_argv)
{
    struct reading *r = context;
    r->s.argv = trp_yaml_texts(y, value, "argv", &r->s.nargv);
    if (value->kind == TRP_YAML_LIST && value->count == 0)
        trp_yaml_wrong(y, value->mark, "argv is empty; name a program");
    else if (r->s.nargv > 0 && !*r->s.argv[0])
        trp_yaml_wrong(y, value->first->mark, "argv names no program; name one");
}

static TRP_YAML_READER(read_wrap)
{
    struct reading *r = context;
    r->s.wrap = trp_yaml_texts(y, value, "wrap", &r->s.nwrap);
    if (r->s.nwrap > 0 && !*r->s.wrap[0])
        trp_yaml_wrong(y, value->first->mark, "wrap names no program; name one");
}

void trp_pipeline_shell_read(trp_yaml *y, const struct trp_yaml_node *value,
                             struct trp_shell *ret)
{
    if (value->kind == TRP_YAML_LIST) {
        ret->kind = TRP_SHELL_WORDS;
        ret->words = trp_yaml_texts(y, value, "shell", &ret->nwords);
        if (!value->count || (ret->nwords > 0 && !*ret->words[0]))
            trp_yaml_wrong(y, value->mark, "shell names no program; name one");
        return;
    }
    const char *word = trp_yaml_word(y, value, "shell");
    if (word && strcmp(word, "sh") == 0)
        ret->kind = TRP_SHELL_SH;
    else if (word && strcmp(word, "bash") == 0)
        ret->kind = TRP_SHELL_BASH;
    else if (word)
        trp_yaml_wrong(y, value->mark,
                       "shell is bash, sh or a list such as [/bin/zsh, -c]; what tasks "
                       "run is run: TEXT");
}

static TRP_YAML_READER(read_shell)
{
    struct reading *r = context;
    trp_pipeline_shell_read(y, value, &r->s.shell);
}

static TRP_YAML_READER(read_stage_params)
{
    struct reading *r = context;
    if (value->kind == TRP_YAML_SCALAR && strcmp(value->text, "all") == 0)
        r->s.all_params = true;
    else
        r->s.params = trp_yaml_texts(y, value, "params", &r->s.nparams);
}

static TRP_YAML_READER(read_tasks)
{
    struct reading *r = context;
    r->s.tasks_written = true;
    r->s.tasks = TRP_NONE; /* after an error */
    trp_yaml_count(y, value, "tasks", 0, TRP_PIPELINE_TASKS, &r->s.tasks);
}

/* ---- foreach ---- */

static void foreach_kind(trp_yaml *y, struct reading *r,
                         const struct trp_yaml_node *key, enum trp_foreach_kind kind)
{
    if (r->s.foreach != TRP_FOREACH_NONE)
        trp_yaml_wrong(y, key->mark,
                       "a second source of items; write one of files, items, lines, "
                       "table, product");
    r->s.foreach = kind;
    r->s.foreach_mark = key->next->mark;
}

static TRP_YAML_READER(read_files)
{
    struct reading *r = context;
    foreach_kind(y, r, key, TRP_FOREACH_FILES);
    r->s.pattern = trp_yaml_word(y, value, "files");
}

static TRP_YAML_READER(read_lines)
{
    struct reading *r = context;
    foreach_kind(y, r, key, TRP_FOREACH_LINES);
    r->s.pattern = trp_yaml_word(y, value, "lines");
}

static TRP_YAML_READER(read_table)
{
    struct reading *r = context;
    foreach_kind(y, r, key, TRP_FOREACH_TABLE);
    r->s.pattern = trp_yaml_word(y, value, "table");
}

static TRP_YAML_READER(read_items)
{
    struct reading *r = context;
    foreach_kind(y, r, key, TRP_FOREACH_ITEMS);
    if (!trp_yaml_is_list(y, value, "items") || value->count == 0)
        return;
    r->s.items = trp_yaml_alloc(y, value->count, sizeof(*r->s.items));
    if (!r->s.items)
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next) {
        char *text = trp_yaml_text(y, item, "an item of items");
        r->s.items[r->s.nitems++] = (struct trp_text){text, item->size};
    }
}

static const struct trp_yaml_key part_keys[] = {
    TRP_YAML_READ("files", read_files),
    TRP_YAML_READ("items", read_items),
    TRP_YAML_READ("lines", read_lines),
    TRP_YAML_READ("table", read_table),
};

/* A part of a product: a list of items, or a foreach of its own. */
static void read_part(trp_yaml *y, const struct trp_yaml_node *key,
                      struct trp_foreach_part *ret)
{
    char name[80];
    struct reading r = {0};
    int n = snprintf(name, sizeof name, "col.%s", key->text);
    if (n >= (int)sizeof name || !trp_template_is_name(name, (size_t)n))
        trp_yaml_wrong(
            y, key->mark,
            "\"%s\" is no name of a column; write letters, digits and '_', no "
            "digit first",
            trp_show(key->text).text);
    if (key->next->kind == TRP_YAML_LIST) {
        read_items(y, key, key->next, &r);
    } else if (trp_yaml_mapping(y, key->next, "a part of product", part_keys,
                                TRP_YAML_COUNT(part_keys), &r) &&
               r.s.foreach == TRP_FOREACH_NONE) {
        trp_yaml_wrong(y, key->next->mark,
                       "the part has no items; write a list, or one of files, items, "
                       "lines, table");
    }
    *ret = (struct trp_foreach_part){
        .name = trp_yaml_text(y, key, "a part of product"),
        .kind = r.s.foreach,
        .pattern = r.s.pattern,
        .items = r.s.items,
        .nitems = r.s.nitems,
        .mark = key->next->mark,
    };
}

static TRP_YAML_READER(read_product)
{
    struct reading *r = context;
    foreach_kind(y, r, key, TRP_FOREACH_PRODUCT);
    if (!trp_yaml_is_mapping(y, value, "product") ||
        !trp_yaml_is_bounded(y, value, "parts of a product", TRP_COLUMNS_MAX))
        return;
    if (value->count == 0)
        trp_yaml_wrong(y, value->mark, "product has no parts; write {NAME: [a, b]}");
    r->s.parts = trp_yaml_alloc(y, value->count, sizeof *r->s.parts);
    for (key = value->first; key && r->s.parts; key = key->next->next)
        if (key->kind == TRP_YAML_SCALAR)
            read_part(y, key, &r->s.parts[r->s.nparts++]);
}

static TRP_YAML_READER(read_foreach)
{
    struct reading *r = context;
    bool sound = TRP_YAML_MAPPING(
        y, value, "foreach", r, TRP_YAML_READ("files", read_files),
        INTO("group", word, s.group, .value_mark = AT(s.group_mark)),
        TRP_YAML_READ("items", read_items),
        INTO("key", word, s.key, .value_mark = AT(s.key_mark)),
        TRP_YAML_READ("lines", read_lines), TRP_YAML_READ("product", read_product),
        TRP_YAML_READ("table", read_table));
    if (sound && r->s.foreach == TRP_FOREACH_NONE)
        trp_yaml_wrong(y, value->mark,
                       "foreach has no items; write one of files, items, lines, table, "
                       "product");
    else if (r->s.group && r->s.key)
        trp_yaml_wrong(
            y, r->s.key_mark,
            "key beside group: a group's value is its task's name; leave key out");
    else if (r->s.group && r->s.foreach != TRP_FOREACH_TABLE)
        trp_yaml_wrong(
            y, r->s.group_mark,
            "group names a column of a table; write table: FILE beside it, or "
            "leave it out");
    else if (r->s.key && r->s.foreach != TRP_FOREACH_TABLE)
        trp_yaml_wrong(y, r->s.key_mark,
                       "key names a column of a table; write table: FILE beside it, or "
                       "leave it out");
}

static TRP_YAML_READER(read_task_logs)
{
    struct reading *r = context;
    const char *text = trp_yaml_word(y, value, "task_logs");
    if (!text)
        return;
    r->s.one_log = !strcmp(text, "stage");
    if (!r->s.one_log && strcmp(text, "task") != 0)
        trp_yaml_wrong(y, value->mark,
                       "task_logs is \"%s\"; write stage, for one compressed stream a "
                       "stage, or task, for files of each",
                       trp_show(text).text);
}

static TRP_YAML_READER(read_when)
{
    struct reading *r = context;
    if (!trp_yaml_is_scalar(y, value, "when"))
        return;
    r->s.when = value->mark;
    r->s.absent = trp_means_no(value->text);
}

/* ---- after ---- */

static void read_parent(trp_yaml *y, const struct trp_yaml_node *node,
                        struct trp_after *a)
{
    a->index = TRP_NONE;
    a->mark = node->mark;
    if (node->kind == TRP_YAML_MAPPING)
        TRP_YAML_MAPPING(
            y, node, "an item of after", a,
            TRP_YAML_INTO("by", word, struct trp_after, by,
                          .value_mark = offsetof(struct trp_after, by_mark)),
            TRP_YAML_INTO("each", flag, struct trp_after, each),
            TRP_YAML_INTO("stage", word, struct trp_after, stage,
                          .value_mark = offsetof(struct trp_after, mark),
                          .required = true));
    else
        a->stage = trp_yaml_word(y, node, "after");
    if (a->by && a->each)
        trp_yaml_wrong(y, a->by_mark,
                       "an item of after has both each and by; keep one of them");
    a->each = a->each || a->by;
}

static TRP_YAML_READER(read_after)
{
    struct reading *r = context;
    bool list = value->kind == TRP_YAML_LIST;
    uint32_t n = list ? value->count : 1;
    if (n == 0)
        return;
    r->s.after = trp_yaml_alloc(y, n, sizeof(*r->s.after));
    if (!r->s.after)
        return;
    r->s.nafter = n;
    if (!list) {
        read_parent(y, value, r->s.after);
        return;
    }
    struct trp_after *a = r->s.after;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next)
        read_parent(y, item, a++);
}

/* ---- mpi, env, limits ---- */

static TRP_YAML_READER(read_mpi)
{
    struct reading *r = context;
    r->s.spec.ranks = 1; /* after an error */
    TRP_YAML_MAPPING(y, value, "mpi", r,
                     INTO("ranks", count, s.spec.ranks, .min = 1,
                          .max = TRP_PIPELINE_RANKS, .required = true));
}

static TRP_YAML_READER(read_barrier)
{
    struct reading *r = context;
    trp_yaml_bool(y, value, "barrier", &r->s.spec.barrier);
    if (r->s.spec.barrier)
        r->barrier = key->mark;
}

static TRP_YAML_READER(read_env)
{
    struct reading *r = context;
    r->s.env = trp_yaml_pairs(y, value, "env", &r->s.nenv);
    if (value->kind != TRP_YAML_MAPPING)
        return;
    for (key = value->first; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue;
        if (!key->size || strchr(key->text, '='))
            trp_yaml_wrong(y, key->mark,
                           "\"%s\" cannot be a variable's name; write one that is not "
                           "empty and has no '='",
                           trp_show(key->text).text);
        else if (!strncmp(key->text, "TROUPE_", strlen("TROUPE_")))
            trp_yaml_wrong(y, key->mark,
                           "%s is set by troupe itself; choose a name without TROUPE_",
                           trp_show(key->text).text);
    }
}

/* "3" tasks or "1%" of them. */
static TRP_YAML_READER(read_tolerate)
{
    struct reading *r = context;
    char number[16] = "";
    double percent = 0;
    bool scalar = value->kind == TRP_YAML_SCALAR;
    if (!scalar || value->size < 2 || value->text[value->size - 1] != '%') {
        trp_yaml_count(y, value, "tolerate", 0, TRP_PIPELINE_TASKS,
                       &r->s.spec.tolerate);
        return;
    }
    if (value->size <= sizeof(number))
        memcpy(number, value->text, value->size - 1);
    if (strlen(number) != value->size - 1 || !trp_number_parse(number, &percent) ||
        percent > 100)
        trp_yaml_wrong(
            y, value->mark,
            "tolerate: \"%s\" is not a share; write a number of tasks, or 0%% "
            "to 100%%",
            trp_show(value->text).text);
    else
        r->s.spec.tolerate_ppm = (uint32_t)(percent * PPM_OF_PERCENT + 0.5);
}

struct output {
    char *pattern;
    bool optional, temp, guarded;
};

/* PATTERN, or {file: PATTERN, optional: true, temp: true}. */
static TRP_YAML_READER(read_outputs)
{
    struct trp_pipeline_stage *s = &((struct reading *)context)->s;
    if (!trp_yaml_is_list(y, value, "outputs") || value->count == 0)
        return;
    s->outputs = trp_yaml_alloc(y, value->count, sizeof *s->outputs);
    s->optional = trp_yaml_alloc(y, value->count, sizeof *s->optional);
    s->temp = trp_yaml_alloc(y, value->count, sizeof *s->temp);
    s->guarded = trp_yaml_alloc(y, value->count, sizeof *s->guarded);
    if (!s->outputs || !s->optional || !s->temp || !s->guarded)
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next) {
        struct output o = {0};
        if (item->kind == TRP_YAML_MAPPING)
            TRP_YAML_MAPPING(
                y, item, "an item of outputs", &o,
                TRP_YAML_INTO("file", word, struct output, pattern, .required = true),
                TRP_YAML_INTO("optional", flag, struct output, optional),
                TRP_YAML_INTO("temp", flag, struct output, temp),
                TRP_YAML_INTO("protected", flag, struct output, guarded));
        else
            o.pattern = trp_yaml_text(y, item, "an item of outputs");
        if (o.pattern && !*o.pattern)
            trp_yaml_wrong(y, item->mark,
                           "an empty pattern in outputs; write one or leave it out");
        if (o.temp && o.guarded)
            trp_yaml_wrong(y, item->mark,
                           "an output that is temp goes, and one that is protected "
                           "stays; leave one of them out");
        if (!o.pattern)
            continue;
        if (o.temp && !s->temp_mark.line)
            s->temp_mark = item->mark;
        s->outputs[s->noutputs] = o.pattern;
        s->temp[s->noutputs] = o.temp;
        s->guarded[s->noutputs] = o.guarded;
        s->optional[s->noutputs++] = o.optional;
    }
}

static TRP_YAML_READER(read_inputs)
{
    struct reading *r = context;
    r->s.inputs = trp_yaml_texts(y, value, "inputs", &r->s.ninputs);
    const struct trp_yaml_node *item =
        value->kind == TRP_YAML_LIST ? value->first : NULL;
    for (; item; item = item->next)
        if (item->kind == TRP_YAML_SCALAR && item->size == 0)
            trp_yaml_wrong(y, item->mark,
                           "an empty pattern in inputs; write one or leave it out");
}

static TRP_YAML_READER(read_prefer)
{
    struct reading *r = context;
    r->s.prefer = trp_yaml_texts(y, value, "prefer", &r->s.nprefer);
    if (value->kind != TRP_YAML_LIST)
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next) {
        const char *slash = strchr(item->text, '/');
        int64_t executor = 0;
        if (trp_template_names_task(item->text))
            continue; /* known when its stage starts */
        bool sound = item->size > 0 && slash != item->text &&
                     (!slash || (trp_whole_parse(slash + 1, &executor) &&
                                 executor >= 0 && executor < TRP_NONE));
        if (item->kind == TRP_YAML_SCALAR && !sound)
            trp_yaml_wrong(y, item->mark,
                           "prefer: \"%s\" is not a place; write HOST or "
                           "HOST/EXECUTOR-NUMBER",
                           trp_show(item->text).text);
    }
}

/* ---- retries, executors ---- */

static TRP_YAML_READER(read_memory_factor)
{
    struct reading *r = context;
    double factor = 0;
    trp_yaml_number(y, value, "memory_factor", 1, FACTOR_MAX, &factor);
    r->s.spec.memory_factor_ppm = (uint32_t)(factor * 1e6 + 0.5);
}

static TRP_YAML_READER(read_not_on)
{
    struct reading *r = context;
    if (!trp_yaml_is_list(y, value, "not_on") || value->count == 0)
        return;
    int32_t *statuses = trp_yaml_alloc(y, value->count, sizeof(*statuses));
    r->s.spec.not_on = statuses;
    if (!statuses)
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next) {
        int64_t status = 0;
        if (trp_yaml_whole(y, item, "an exit status of not_on", 1, EXIT_MAX, &status))
            statuses[r->s.spec.nnot_on++] = (int32_t)status;
    }
}

static TRP_YAML_READER(read_retries)
{
    TRP_YAML_MAPPING(
        y, value, "retries", context,
        INTO("max_failures", count, s.spec.max_failures, .min = 1, .max = COUNT_MAX),
        TRP_YAML_READ("memory_factor", read_memory_factor),
        TRP_YAML_READ("not_on", read_not_on));
}

static TRP_YAML_READER(read_look_ahead)
{
    struct reading *r = context;
    const char *text = trp_yaml_word(y, value, "look_ahead");
    if (!text)
        return;
    if (strcmp(text, "auto") == 0)
        r->s.spec.look_ahead = TRP_LOOK_AHEAD_AUTO;
    else if (strcmp(text, "off") == 0)
        r->s.spec.look_ahead = TRP_LOOK_AHEAD_OFF;
    else if (trp_time_parse(text, INT64_C(1000000000), &r->s.spec.look_ahead_ns,
                            NULL) == 0)
        r->s.spec.look_ahead = TRP_LOOK_AHEAD_TIME;
    else
        trp_yaml_wrong(y, value->mark,
                       "look_ahead is \"%s\"; write auto, off, or a time such as 30s",
                       trp_show(text).text);
}

static TRP_YAML_READER(read_executors)
{
    struct reading *r = context;
    TRP_YAML_MAPPING(
        y, value, "executors", r, TRP_YAML_READ("look_ahead", read_look_ahead),
        INTO("max", count, s.spec.max_executors, .min = 1, .max = COUNT_MAX),
        INTO("min", count, s.spec.min_executors, .max = COUNT_MAX));
    if (r->s.spec.max_executors && r->s.spec.min_executors > r->s.spec.max_executors)
        trp_yaml_wrong(y, value->mark, "min %u is above max %u; make it smaller",
                       r->s.spec.min_executors, r->s.spec.max_executors);
}

/* ---- the stage ---- */

const struct trp_yaml_key trp_pipeline_stage_keys[] = {
    TRP_YAML_READ("name", read_name, .required = true),
    TRP_YAML_READ("after", read_after),
    INTO("profile", word, s.profile, .value_mark = AT(s.profile_mark)),
    INTO("run", word, s.run, .key_mark = AT(run), .value_mark = AT(s.run_mark)),
    TRP_YAML_READ("argv", read_argv, .key_mark = AT(argv)),
    TRP_YAML_READ("tasks", read_tasks, .key_mark = AT(tasks)),
    TRP_YAML_READ("foreach", read_foreach, .key_mark = AT(foreach)),
    INTO("allow_empty", flag, s.allow_empty, .key_mark = AT(allow_empty)),
    TRP_YAML_READ("mpi", read_mpi, .key_mark = AT(mpi)),
    TRP_YAML_READ("barrier", read_barrier),
    TRP_YAML_READ("env", read_env),
    INTO("cwd", word, s.cwd),
    INTO("timeout", time, s.timeout_ns),
    TRP_YAML_READ("outputs", read_outputs),
    TRP_YAML_READ("inputs", read_inputs, .value_mark = AT(s.inputs_mark)),
    INTO("always", flag, s.always),
    TRP_YAML_READ("params", read_stage_params),
    TRP_YAML_READ("prefer", read_prefer),
    INTO("max_running", count, s.spec.max_running, .min = 1, .max = TRP_PIPELINE_TASKS,
         .key_mark = AT(max_running)),
    TRP_YAML_READ("tolerate", read_tolerate, .key_mark = AT(tolerate)),
    INTO("prelude", text, s.prelude, .key_mark = AT(prelude)),
    TRP_YAML_READ("shell", read_shell, .key_mark = AT(shell)),
    TRP_YAML_READ("wrap", read_wrap),
    TRP_YAML_READ("retries", read_retries),
    TRP_YAML_READ("executors", read_executors),
    INTO("pool", word, s.spec.pool, .key_mark = AT(pool),
         .value_mark = AT(s.pool_mark)),
    TRP_YAML_READ("when", read_when),
    TRP_YAML_READ("task_logs", read_task_logs),
};
const uint32_t trp_pipeline_nstage_keys =
    sizeof trp_pipeline_stage_keys / sizeof *trp_pipeline_stage_keys;

/* Two keys of which only one may stand: the later one is wrong. */
static void refuse_both(trp_yaml *y, struct trp_mark a, struct trp_mark b,
                        const char *what)
{
    if (a.line && b.line)
        trp_yaml_wrong(y, trp_mark_before(a, b) ? b : a, "%s", what);
}

void trp_pipeline_stage_read(trp_yaml *y, const struct trp_yaml_node *node,
                             struct trp_pipeline_stage *ret)
{
    struct reading r = {
        .s = {.tasks = 1, .mark = node->mark}
    };
    const struct trp_pipeline_stage *s = &r.s;
    trp_pipeline_foreign(y, node, true);
    bool sound = trp_yaml_mapping(y, node, "a stage", trp_pipeline_stage_keys,
                                  trp_pipeline_nstage_keys, &r);
    if (sound && !r.run.line && !r.argv.line)
        trp_yaml_wrong(y, node->mark,
                       "a stage has neither \"run\" nor \"argv\"; add one of them");
    refuse_both(y, r.run, r.argv, "a stage has both run and argv; keep one of them");
    refuse_both(y, r.prelude, r.argv,
                "prelude is shell text before run, argv has no shell; use run");
    refuse_both(y, r.shell, r.argv, "argv has no shell; use run, or leave shell out");
    refuse_both(y, r.tasks, r.foreach,
                "a stage has both tasks and foreach; keep one of them");
    refuse_both(y, r.mpi, r.tasks, "a gang (mpi) is one task; leave tasks out");
    refuse_both(y, r.mpi, r.foreach, "a gang (mpi) is one task; leave foreach out");
    refuse_both(y, r.barrier, r.mpi,
                "the ranks of a gang (mpi) start together anyway; leave barrier out");
    refuse_both(y, r.mpi, r.pool,
                "a gang (mpi) runs beside the executors, in no pool; leave pool out");
    refuse_both(y, r.barrier, r.max_running,
                "all tasks of a barrier stage run at once; leave max_running out");
    refuse_both(
        y, r.barrier, r.tolerate,
        "when a task of a barrier stage fails all run again; leave tolerate out");
    for (uint32_t i = 0; i < s->nafter; i++)
        if (s->after[i].each)
            refuse_both(y, r.barrier, s->after[i].mark,
                        s->after[i].by
                            ? "all tasks of a barrier stage start at once; leave by out"
                            : "all tasks of a barrier stage start at once; leave each "
                              "out");
    *ret = r.s;
}
