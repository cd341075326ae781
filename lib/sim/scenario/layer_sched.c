/*
 * Layers `sched` and `health`: task sets on executors, offered as steps say (semantics
 * 2, 4, 6 to 13 and 19). The steps; layer_sched_read.c reads what the file declares,
 * layer_sched_tell.c tells what the engine decides, layer_sched_state.c how things
 * stand.
 */
#include "sim/scenario/layer_sched.h"

#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"

/* ---- opening ---- */

static int add_executor(struct trp_sched *s, const struct trp_sim_executor *x,
                        int64_t now_ns, trp_error *err)
{
    uint32_t n = trp_sim_executor_number(s->engine, &s->executors, x->id);
    if (n == TRP_NONE || !TRP_ARRAY_GROW(s->order, s->norder, s->order_cap))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    trp_error why;
    int rc = trp_sim_executor_add(s->c, s->engine, now_ns, n, x, &why);
    if (rc < 0)
        return trp_error_set(err, rc, "executor %s: %s", x->id, why.text);
    s->order[s->norder++] = n;
    return 0;
}

static int open_layer(void *state, trp_error *err)
{
    struct trp_sched *s = state;
    struct trp_engine_config config;
    const trp_options *o = trp_sim_options(s->c);
    trp_options_engine_config(o, &config);
    config.fixed = !trp_sim_dynamic(s->c);
    config.host_files = trp_options_bool(o, "shuffle.service.enabled") ||
                        (trp_options_is_set(o, "shuffle.host_files") &&
                         trp_options_bool(o, "shuffle.host_files"));
    config.racks = trp_sim_racks(s->c, &config.nracks);
    int rc = trp_sched_read_pools(s);
    if (rc == 0)
        rc = trp_engine_new(&config, trp_sim_profiles(s->c), &s->engine, err);
    if (rc == 0)
        rc = trp_sched_alone_begin(s->engine, s->pools, s->npools,
                                   trp_sim_manual_start(s->c), err);
    if (rc == 0)
        rc = trp_sched_read_sets(s, err);
    uint32_t n = 0;
    const struct trp_sim_executor *x = trp_sim_executors(s->c, &n);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        rc = add_executor(s, &x[i], 0, err);
    return rc;
}

static void close_layer(void *state)
{
    struct trp_sched *s = state;
    trp_engine_free(s->engine);
    trp_sim_names_free(&s->executors);
    trp_sim_names_free(&s->names);
    free(s->order);
}

/* ---- what steps name ---- */

static struct trp_sched_set *find_set(struct trp_sched *s,
                                      const struct trp_yaml_node *at, const char *name)
{
    int n = trp_sim_names_find(&s->names, name);
    if (n >= 0)
        return &s->sets[n];
    trp_sim_refuse(s->c, at->mark, "no task set \"%s\"", trp_show(name).text);
    return NULL;
}

/* An executor that is there; NULL: refused. */
static struct trp_executor *
find_executor(struct trp_sched *s, const struct trp_yaml_node *at, const char *name)
{
    int n = trp_sim_names_find(&s->executors, name);
    struct trp_executor *x = n >= 0 ? s->engine->executors[n] : NULL;
    if (!x)
        trp_sim_refuse(s->c, at->mark, "no executor \"%s\"", trp_show(name).text);
    return x;
}

/* Steps that speak of an attempt of a task. */
struct of_attempt {
    const char *set, *executor, *from;
    int64_t task, attempt, records;
    int status;
};

#define OF_ATTEMPT_FIELDS                                                              \
    TRP_SIM_MUST(v, set, NAME), TRP_SIM_MUST(v, task, WHOLE),                          \
        TRP_SIM_MAY(v, attempt, WHOLE), TRP_SIM_MAY(v, executor, NAME)

/* The slot of the live attempt that is meant; TRP_NONE: refused. */
static uint32_t find_attempt(struct trp_sched *s, const struct trp_yaml_node *at,
                             const struct of_attempt *v)
{
    const struct trp_sched_set *set = find_set(s, at, v->set);
    int executor = v->executor ? trp_sim_names_find(&s->executors, v->executor) : -1;
    if (!set)
        return TRP_NONE;
    uint32_t slot = TRP_NONE;
    if (set->set && v->task < set->ntasks)
        slot = set->set->tasks[v->task].attempt;
    while (slot != TRP_NONE) {
        const struct trp_attempt *a = &s->engine->attempts.v[slot];
        if ((v->attempt < 0 || v->attempt == a->number) &&
            (!v->executor || executor == (int)a->executor))
            return slot;
        slot = a->twin;
    }
    trp_sim_refuse(s->c, at->mark, "no such attempt of task %lld of \"%s\" is running",
                   (long long)v->task, trp_show(v->set).text);
    return TRP_NONE;
}

/* ---- steps ---- */

static int step_submit(struct trp_sched *s, const struct trp_yaml_node *value,
                       trp_error *err)
{
    const char *name = trp_sim_name(s->c, value, "submit");
    struct trp_sched_set *set = name ? find_set(s, value, name) : NULL;
    if (!set)
        return TRP_EINVAL;
    if (set->set)
        return trp_sim_refuse(s->c, value->mark, "\"%s\" was submitted already",
                              trp_show(name).text);
    const struct trp_preferences prefer = {.first = set->first, .places = set->places};
    const struct trp_set_spec spec = {
        .attempt = (uint32_t)set->attempt,
        .job = (uint32_t)set->job,
        .pool = set->pool,
        .map = set->map,
        .barrier = set->barrier,
        .ntasks = set->ntasks,
        .prefer = set->first ? &prefer : NULL,
    };
    struct trp_task_set *made = trp_sched_alone_submit(s->engine, (uint32_t)set->stage,
                                                       set->profile, &spec, err);
    if (!made)
        return err->code;
    trp_sched_tell(s); /* what it replaced, under the old name */
    set->set = made;
    trp_set_check_finished(s->engine, made);
    return 0;
}

static int offer(struct trp_sched *s, uint32_t *v, uint32_t n, bool full,
                 trp_error *err)
{
    trp_sim_work(s->c, (uint64_t)n * s->nsets);
    return trp_sched_alone_round(s->engine, v, n, full, err);
}

/* Offers in the order in which executors were added, whatever the list's. */
static int round_over(struct trp_sched *s, const struct trp_yaml_node *value,
                      trp_error *err)
{
    const struct trp_yaml_node *first;
    uint32_t count, n = 0;
    if (!trp_sim_list(s->c, value, "round", TRP_SIM_ENTRIES, &first, &count))
        return TRP_EINVAL;
    uint8_t *named = calloc(s->executors.n + 1, 1);
    uint32_t *v = calloc(s->norder + 1, sizeof(*v));
    int rc = named && v ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (const struct trp_yaml_node *i = first; rc == 0 && i; i = i->next) {
        const char *name = trp_sim_name(s->c, i, "an executor");
        const struct trp_executor *x = name ? find_executor(s, i, name) : NULL;
        if (x)
            named[x->id.n] = 1;
        else
            rc = TRP_EINVAL;
    }
    for (uint32_t i = 0; rc == 0 && i < s->norder; i++)
        if (named[s->order[i]])
            v[n++] = s->order[i];
    if (rc == 0)
        rc = offer(s, v, n, true, err);
    free(named);
    free(v);
    return rc;
}

static int round_step(struct trp_sched *s, const struct trp_yaml_node *value,
                      trp_error *err)
{
    struct partial {
        const char *partial;
    } v = {0};
    if (value->kind == TRP_YAML_LIST)
        return round_over(s, value, err);
    if (value->kind == TRP_YAML_SCALAR && !strcmp(value->text, "full"))
        return offer(s, s->order, s->norder, true, err);
    if (value->kind == TRP_YAML_SCALAR)
        return trp_sim_wrong(s->c, value->mark,
                             "round is \"%s\"; write full, a list of executors, or "
                             "{partial: EXECUTOR}",
                             trp_show(value->text).text);
    if (!TRP_SIM_FIELDS(s->c, value, "round", &v, TRP_SIM_MUST(v, partial, NAME)))
        return TRP_EINVAL;
    const struct trp_executor *x = find_executor(s, value, v.partial);
    uint32_t n = x ? x->id.n : 0;
    return x ? offer(s, &n, 1, false, err) : TRP_EINVAL;
}

static int step_end(struct trp_sched *s, const struct trp_yaml_node *value,
                    int64_t now_ns, trp_error *err)
{
    static const char words[] = "success|failed|killed|commit_denied|fetch_failed|"
                                "lost_result|not_serializable|output_exists|mistake|"
                                "executor_lost";
    static const enum trp_end_status statuses[] = {
        TRP_END_SUCCESS, TRP_END_EXIT,        TRP_END_KILLED,     TRP_END_DENIED,
        TRP_END_FETCH,   TRP_END_RESULT_LOST, TRP_END_UNWRITABLE, TRP_END_EXISTS,
        TRP_END_MISTAKE, TRP_END_LOST,
    };
    struct of_attempt v = {.attempt = -1};
    if (!TRP_SIM_FIELDS(
            s->c, value, "end", &v, OF_ATTEMPT_FIELDS, TRP_SIM_MAY(v, records, WHOLE),
            TRP_SIM_MUST_CHOICE(v, status, words), TRP_SIM_MAY(v, from, NAME)))
        return TRP_EINVAL;
    uint32_t slot = find_attempt(s, value, &v);
    const struct trp_executor *from = v.from ? find_executor(s, value, v.from) : NULL;
    if (slot == TRP_NONE || (v.from && !from))
        return TRP_EINVAL;
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = trp_attempt_id_of(s->engine, slot),
                  .status = statuses[v.status],
                  .duration_ns = now_ns - s->engine->attempts.v[slot].launched_ns,
                  .records = (uint64_t)v.records,
                  .from = {.stage = {TRP_NONE},
                           .map = TRP_NONE,
                           .executor = {from ? from->id.n : TRP_NONE}}},
    };
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

static int started(struct trp_sched *s, const struct trp_yaml_node *value)
{
    struct of_attempt v = {.attempt = -1};
    if (!TRP_SIM_FIELDS(s->c, value, "started", &v, OF_ATTEMPT_FIELDS))
        return TRP_EINVAL;
    uint32_t slot = find_attempt(s, value, &v);
    if (slot == TRP_NONE)
        return TRP_EINVAL;
    trp_sched_alone_started(s->engine, slot);
    return 0;
}

static int progress(struct trp_sched *s, const struct trp_yaml_node *value,
                    int64_t now_ns, trp_error *err)
{
    struct of_attempt v = {.attempt = -1};
    if (!TRP_SIM_FIELDS(s->c, value, "progress", &v, OF_ATTEMPT_FIELDS,
                        TRP_SIM_MUST(v, records, WHOLE)))
        return TRP_EINVAL;
    uint32_t slot = find_attempt(s, value, &v);
    if (slot == TRP_NONE)
        return TRP_EINVAL;
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_PROGRESS,
        .progress = {.attempt = trp_attempt_id_of(s->engine, slot),
                     .records = (uint64_t)v.records},
    };
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

static int step_add(struct trp_sched *s, const struct trp_yaml_node *value,
                    int64_t now_ns, trp_error *err)
{
    struct trp_sim_executor x;
    if (!trp_sim_read_executor(s->c, value, &x))
        return TRP_EINVAL;
    return add_executor(s, &x, now_ns, err);
}

static int step_lose(struct trp_sched *s, const struct trp_yaml_node *value,
                     int64_t now_ns, trp_error *err)
{
    struct trp_event ev;
    const char *name;
    if (!trp_sim_read_lose(s->c, value, false, &name, &ev))
        return TRP_EINVAL;
    const struct trp_executor *x = find_executor(s, value, name);
    if (!x)
        return TRP_EINVAL;
    ev.lost.executor = x->id;
    return trp_sched_lose(s, &ev, now_ns, err);
}

static int step_decommission(struct trp_sched *s, const struct trp_yaml_node *value,
                             int64_t now_ns, trp_error *err)
{
    const char *name = trp_sim_name(s->c, value, "decommission");
    const struct trp_executor *x = name ? find_executor(s, value, name) : NULL;
    if (!x)
        return TRP_EINVAL;
    struct trp_event ev = {.kind = TRP_EVENT_EXECUTOR_DECOMMISSIONED,
                           .decommissioned = {.executor = x->id}};
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

/* Without an executor: the run itself. */
static int ends(struct trp_sched *s, const struct trp_yaml_node *value, int64_t now_ns,
                trp_error *err)
{
    struct ends {
        const char *executor;
        int64_t at_ms;
    } v = {0};
    if (!TRP_SIM_FIELDS(s->c, value, "ends", &v, TRP_SIM_MAY(v, executor, NAME),
                        TRP_SIM_MUST(v, at_ms, WHOLE)))
        return TRP_EINVAL;
    const struct trp_executor *x =
        v.executor ? find_executor(s, value, v.executor) : NULL;
    if (v.executor && !x)
        return TRP_EINVAL;
    struct trp_event ev = {
        .kind = TRP_EVENT_ENDS,
        .ends = {.executor = {x ? x->id.n : TRP_NONE}, .at_ns = v.at_ms * 1000000}
    };
    return trp_engine_step(s->engine, now_ns, &ev, err);
}

static int step_exclude(struct trp_sched *s, const struct trp_yaml_node *value,
                        trp_error *err)
{
    struct exclude {
        const char *executor, *host;
    } v = {0};
    if (!TRP_SIM_FIELDS(s->c, value, "exclude", &v, TRP_SIM_MAY(v, executor, NAME),
                        TRP_SIM_MAY(v, host, NAME)))
        return TRP_EINVAL;
    if (!v.executor == !v.host)
        return trp_sim_wrong(s->c, value->mark,
                             "write exclude: {executor: …} or "
                             "{host: …}");
    if (v.host)
        return trp_sched_alone_exclude_host(s->engine, v.host, err);
    uint32_t n = trp_sim_executor_number(s->engine, &s->executors, v.executor);
    if (n == TRP_NONE)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for an executor");
    return trp_sched_alone_exclude_executor(s->engine, n, err);
}

static int only_word(struct trp_sched *s, const struct trp_yaml_node *value,
                     const char *what, const char *word)
{
    const char *text = trp_sim_name(s->c, value, what);
    if (!text)
        return TRP_EINVAL;
    if (strcmp(text, word) != 0)
        return trp_sim_wrong(s->c, value->mark, "%s is \"%s\"; write %s", what,
                             trp_show(text).text, word);
    return 0;
}

static int checks(struct trp_sched *s, const char *action,
                  const struct trp_yaml_node *value)
{
    bool speculate = !strcmp(action, "speculate");
    int rc = only_word(s, value, action, speculate ? "now" : "exclusions");
    trp_sim_work(s->c, s->ntasks);
    if (rc == 0 && speculate)
        trp_copies_check(s->engine);
    else if (rc == 0)
        trp_exclusion_expire(s->engine);
    return rc;
}

static int act(struct trp_sched *s, const char *action,
               const struct trp_yaml_node *value, int64_t now_ns, trp_error *err)
{
    if (!strcmp(action, "submit"))
        return step_submit(s, value, err);
    if (!strcmp(action, "round"))
        return round_step(s, value, err);
    if (!strcmp(action, "end"))
        return step_end(s, value, now_ns, err);
    if (!strcmp(action, "started"))
        return started(s, value);
    if (!strcmp(action, "progress"))
        return progress(s, value, now_ns, err);
    if (!strcmp(action, "add"))
        return step_add(s, value, now_ns, err);
    if (!strcmp(action, "lose"))
        return step_lose(s, value, now_ns, err);
    if (!strcmp(action, "decommission"))
        return step_decommission(s, value, now_ns, err);
    if (!strcmp(action, "ends"))
        return ends(s, value, now_ns, err);
    if (!strcmp(action, "exclude"))
        return step_exclude(s, value, err);
    if (!strcmp(action, "wait"))
        return 0;
    return checks(s, action, value);
}

static int fire(void *state, int64_t now_ns, trp_error *err)
{
    struct trp_sched *s = state;
    const struct trp_event ev = {.kind = TRP_EVENT_TIME};
    int rc = trp_engine_step(s->engine, now_ns, &ev, err);
    trp_sched_tell(s);
    return rc;
}

static int step(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err)
{
    struct trp_sched *s = state;
    int rc = fire(s, now_ns, err); /* the engine's time is that of the step */
    if (rc == 0)
        rc = act(s, action, value, now_ns, err);
    trp_sched_tell(s);
    return rc;
}

static int64_t next_timer(void *state)
{
    const struct trp_sched *s = state;
    return trp_engine_next_timer(s->engine);
}

const struct trp_sim_layer trp_sim_layer_sched = {
    .names = "sched health",
    .keys = "task_sets pools executors racks manual_start",
    .actions = "submit round end started progress add lose decommission ends speculate "
               "tick exclude wait",
    .happened = "launch aborted finished zombie requeued kill speculatable",
    .states = "levels excluded unschedulable slots free",
    .ordered = "levels",
    .whole = "",
    .size = sizeof(struct trp_sched),
    .open = open_layer,
    .close = close_layer,
    .step = step,
    .next_timer = next_timer,
    .fire = fire,
    .state = trp_sched_state,
};
