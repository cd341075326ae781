/*
 * Layer `alloc`: stages and tasks. A stage's attempts are numbered; where a step does
 * not say which it means, it is the newest.
 */
#include <stdio.h>

#include "sim/scenario/alloc_state.h"

static const char *attempt_name(struct alloc *s, const char *stage, int64_t attempt)
{
    char text[TRP_SIM_NAME_MAX + 32];
    int n = snprintf(text, sizeof(text), "%s/%lld", stage, (long long)attempt);
    return trp_conf_arena_text(trp_sim_keep(s->c), text, (size_t)n);
}

/* The stage attempt, the newest when none is said (below 0). */
static struct stage *find_stage(struct alloc *s, const struct trp_yaml_node *node,
                                int64_t attempt)
{
    const char *name = trp_sim_name(s->c, node, "stage");
    if (!name)
        return NULL;
    int n = trp_sim_names_find(&s->newest, name);
    if (n >= 0 && attempt < 0)
        return &s->stages[s->newest_of[n]];
    const char *full = n >= 0 ? attempt_name(s, name, attempt) : NULL;
    n = full ? trp_sim_names_find(&s->stage_names, full) : n;
    if (n >= 0)
        return &s->stages[n];
    trp_sim_refuse(s->c, node->mark, "no such stage \"%s\"", trp_show(name).text);
    return NULL;
}

struct stage_step {
    const struct trp_yaml_node *id, *profile;
    int64_t attempt, tasks;
    bool barrier;
};

static int make_stage(struct alloc *s, const char *name, const char *full,
                      const struct stage_step *v, trp_profile_id profile,
                      int64_t now_ns)
{
    int n = trp_sim_names_add(&s->stage_names, full);
    int newest = trp_sim_names_find(&s->newest, name);
    if (newest < 0)
        newest = trp_sim_names_add(&s->newest, name);
    if (n < 0 || newest < 0 || !TRP_ARRAY_GROW(s->stages, n, s->stages_cap) ||
        !TRP_ARRAY_GROW(s->newest_of, newest, s->newest_cap))
        return TRP_ENOMEM;
    s->stages[n] = (struct stage){.profile = profile,
                                  .ntasks = (uint32_t)v->tasks,
                                  .barrier = v->barrier,
                                  .live = true};
    s->newest_of[newest] = (uint32_t)n;
    s->tasks += v->tasks;
    trp_sim_more(s->c);
    int code = trp_targets_stage(s->targets, profile.n, (uint32_t)v->tasks, v->barrier,
                                 now_ns, &s->stages[n].handle);
    if (code == 0)
        alloc_shares_find(s);
    return code;
}

static int do_stage(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    struct stage_step v = {.tasks = 1};
    trp_profile_id profile;
    if (!TRP_SIM_FIELDS(s->c, value, "stage", &v, TRP_SIM_MUST(v, id, NODE),
                        TRP_SIM_MAY(v, attempt, WHOLE), TRP_SIM_MAY(v, profile, NODE),
                        TRP_SIM_MAY(v, tasks, WHOLE), TRP_SIM_MAY(v, barrier, BOOL)) ||
        !trp_sim_read_profile(s->c, v.profile, &profile))
        return TRP_EINVAL;
    const char *name = trp_sim_name(s->c, v.id, "id");
    if (!name)
        return TRP_EINVAL;
    const char *full = attempt_name(s, name, v.attempt);
    if (!full)
        return TRP_ENOMEM;
    if (trp_sim_names_find(&s->stage_names, full) >= 0)
        return trp_sim_refuse(s->c, v.id->mark, "stage \"%s\" is there already",
                              trp_show(full).text);
    if (s->tasks + v.tasks > TRP_SIM_TASKS)
        return trp_sim_refuse(s->c, value->mark, "more than %d tasks in a case",
                              TRP_SIM_TASKS);
    return make_stage(s, name, full, &v, profile, now_ns);
}

static int do_stage_done(struct alloc *s, const struct trp_yaml_node *value,
                         int64_t now_ns)
{
    (void)now_ns;
    struct stage_step v = {.attempt = -1};
    if (!TRP_SIM_FIELDS(s->c, value, "stage_done", &v, TRP_SIM_MUST(v, id, NODE),
                        TRP_SIM_MAY(v, attempt, WHOLE)))
        return TRP_EINVAL;
    struct stage *stage = find_stage(s, v.id, v.attempt);
    if (!stage)
        return TRP_EINVAL;
    if (stage->done)
        return trp_sim_refuse(s->c, value->mark, "the stage is done already");
    stage->done = true;
    stage->live = !trp_targets_stage_done(s->targets, stage->handle);
    return 0;
}

struct task_step {
    const struct trp_yaml_node *stage, *executor;
    int64_t attempt, task;
    int status; /* enum trp_targets_end */
    bool speculative;
    struct stage *at;   /* found */
    struct executor *x; /* NULL: none was written, or it is gone */
};

static int read_task(struct alloc *s, const struct trp_yaml_node *value,
                     const char *what, bool ends, struct task_step *v)
{
    static const struct trp_sim_field fields[] = {
        TRP_SIM_MUST(*v, stage, NODE),
        TRP_SIM_MUST(*v, task, WHOLE),
        TRP_SIM_MAY(*v, attempt, WHOLE),
        TRP_SIM_MAY(*v, executor, NODE),
        TRP_SIM_MAY(*v, speculative, BOOL),
        TRP_SIM_MUST_CHOICE(*v, status, "success|failed|killed"),
    };
    *v = (struct task_step){.attempt = -1};
    if (!trp_sim_fields(s->c, value, what, fields, ends ? 6 : 5, v))
        return TRP_EINVAL;
    const char *name = v->executor ? trp_sim_name(s->c, v->executor, "executor") : NULL;
    v->at = find_stage(s, v->stage, v->attempt);
    if (!v->at || (v->executor && !name))
        return TRP_EINVAL;
    if (v->task >= TRP_SIM_TASKS)
        return trp_sim_refuse(s->c, value->mark, "task %lld; there are at most %d",
                              (long long)v->task, TRP_SIM_TASKS);
    int n = name ? alloc_executor_of(s, name) : 0;
    if (n < 0)
        return n;
    v->x = name && !s->executors[n]->lost ? s->executors[n] : NULL;
    return 0;
}

static int do_start(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    struct task_step v;
    int code = read_task(s, value, "start", false, &v);
    if (code < 0)
        return code;
    if (!v.at->live)
        return trp_sim_refuse(s->c, value->mark, "the stage is over");
    code =
        trp_targets_started(s->targets, v.at->handle, (uint32_t)v.task, v.speculative);
    return code < 0 || !v.x ? code : trp_idle_started(s->idle, &v.x->idle, now_ns);
}

static int do_finish(struct alloc *s, const struct trp_yaml_node *value, int64_t now_ns)
{
    struct task_step v;
    int code = read_task(s, value, "finish", true, &v);
    if (code < 0)
        return code;
    if (v.at->live)
        v.at->live = !trp_targets_ended(s->targets, v.at->handle, (uint32_t)v.task,
                                        v.speculative, v.status, now_ns);
    return v.x ? trp_idle_ended(s->idle, &v.x->idle, now_ns) : 0;
}

static int do_speculative(struct alloc *s, const struct trp_yaml_node *value,
                          int64_t now_ns)
{
    struct task_step v;
    int code = read_task(s, value, "speculative", false, &v);
    if (code < 0 || !v.at->live)
        return code;
    return trp_targets_copy(s->targets, v.at->handle, (uint32_t)v.task, now_ns);
}

static int set_unschedulable(struct alloc *s, const struct trp_yaml_node *value,
                             bool is, int64_t now_ns)
{
    struct stage *stage = find_stage(s, value, -1);
    if (!stage)
        return TRP_EINVAL;
    if (stage->live && !stage->done)
        trp_targets_unschedulable(s->targets, stage->handle, is, now_ns);
    return 0;
}

static int do_unschedulable(struct alloc *s, const struct trp_yaml_node *value,
                            int64_t now_ns)
{
    return set_unschedulable(s, value, true, now_ns);
}

static int do_schedulable(struct alloc *s, const struct trp_yaml_node *value,
                          int64_t now_ns)
{
    return set_unschedulable(s, value, false, now_ns);
}

const struct alloc_action alloc_stage_actions[] = {
    {"stage",         do_stage        },
    {"stage_done",    do_stage_done   },
    {"start",         do_start        },
    {"finish",        do_finish       },
    {"speculative",   do_speculative  },
    {"unschedulable", do_unschedulable},
    {"schedulable",   do_schedulable  },
    {NULL,            NULL            },
};
