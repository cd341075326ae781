/*
 * What happens in a virtual run: executors come up and die, nodes fail, attempts run
 * and end.
 *
 * The time of an executor, from having room to giving it back, is given to stages as in
 * the closing summary of a real run: to the stage whose task ran there last, and what
 * was before its first task to the stage of that task.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run/virtual_run_state.h"

static struct trp_random random_of(const struct trp_virtual_run *r, enum trp_draw what,
                                   uint64_t a, uint64_t b)
{
    return trp_random_of(r->c.seed, what, a, b);
}

/* ---- room ---- */

static void job_queued(void *context, uint32_t line, uint32_t shares, uint32_t nodes)
{
    struct trp_virtual_run *r = context;
    struct trp_random random = random_of(r, TRP_DRAW_QUEUE, ++r->jobs, 0);
    int64_t wait = trp_distribution_draw(&r->c.cluster->wait, &random);
    int64_t most = TRP_SIM_TIME_MAX;
    if (r->c.cluster->wait_per_node_ns < most / (nodes + 1))
        wait += r->c.cluster->wait_per_node_ns * nodes;
    else
        wait = most;
    r->result->jobs++;
    trp_virtual_later(r, wait, TRP_DUE_JOB, line, shares);
}

/* Before it fails: exponential, so that it does not matter since when it is up. */
static void dies_later(struct trp_virtual_run *r, enum trp_draw what, uint32_t a,
                       uint64_t b, int64_t mean)
{
    struct trp_distribution d = {.kind = TRP_EXPONENTIAL, .least = mean, .scale = 1};
    struct trp_random random = random_of(r, what, a, b);
    if (mean > 0)
        trp_virtual_later(r, trp_distribution_draw(&d, &random),
                          what == TRP_DRAW_NODE ? TRP_DUE_NODE : TRP_DUE_DEATH, a, b);
}

static void granted(void *context, uint32_t share)
{
    struct trp_virtual_run *r = context;
    uint32_t owner = trp_virtual_owner(r->cluster, share);
    bool gang = trp_virtual_is_gang(r->cluster, share);
    uint64_t key = gang ? r->attempts[owner].id : owner;
    struct trp_random random = random_of(r, TRP_DRAW_START, key, gang);
    int64_t in = trp_distribution_draw(&r->c.cluster->start_up, &random);
    if (gang) {
        r->attempts[owner].granted = r->now;
        trp_virtual_later(r, in, TRP_DUE_GANG, 0, key);
        return;
    }
    struct trp_virtual_executor *x = &r->executors[owner];
    x->state = TRP_VIRTUAL_STARTS;
    x->since = r->now;
    x->part = (float)trp_virtual_amounts(r->cluster, share).nodes;
    r->result->executors++;
    trp_virtual_later(r, in, TRP_DUE_UP, owner, 0);
    dies_later(r, TRP_DRAW_EXECUTOR, owner, 0, r->c.cluster->executor_mtbf_ns);
}

static void node_used(void *context, uint32_t node, uint32_t use)
{
    struct trp_virtual_run *r = context;
    dies_later(r, TRP_DRAW_NODE, node, use, r->c.cluster->node_mtbf_ns);
}

const struct trp_virtual_handler trp_virtual_cluster_handler = {
    .job = job_queued, .granted = granted, .node_used = node_used};

/* ---- executors ---- */

void trp_virtual_settle(struct trp_virtual_run *r, uint32_t executor, uint32_t next)
{
    struct trp_virtual_executor *x = &r->executors[executor];
    if (x->state != TRP_VIRTUAL_STARTS && x->state != TRP_VIRTUAL_UP)
        return;
    if (x->stage != TRP_NONE) {
        struct trp_sim_amounts a = trp_virtual_amounts(r->cluster, x->share);
        trp_sim_amounts_add(&r->result->stages[x->stage].held, &a,
                            (double)(r->now - x->since) / 1e9);
        x->since = r->now;
    }
    if (next != TRP_NONE)
        x->stage = next;
}

/* "0", "1", …: as a task sees the devices that it was given. */
static const char *const *addresses(void)
{
    static char numbers[TRP_SIM_NODE_DEVICES][8];
    static const char *names[TRP_SIM_NODE_DEVICES];
    if (names[0])
        return names;
    for (uint32_t i = 0; i < TRP_SIM_NODE_DEVICES; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%u", i);
        names[i] = numbers[i];
    }
    return names;
}

/* How long it waited in the queue, as the driver sees it. */
static void tell_wait(struct trp_virtual_run *r, const struct trp_virtual_executor *x)
{
    struct trp_event ev = {
        .kind = TRP_EVENT_QUEUE_WAIT,
        .queue_wait = {.profile = trp_virtual_profile(r->cluster, x->share),
                       .wait_ns = x->since - x->asked}
    };
    if (r->c.ahead && trp_virtual_is_outside(r->cluster, x->share))
        trp_virtual_step(r, &ev);
}

static void executor_up(struct trp_virtual_run *r, uint32_t n)
{
    struct trp_virtual_executor *x = &r->executors[n];
    const struct trp_resource_profile *p;
    char host[96], rack[96];
    uint32_t node = trp_virtual_node(r->cluster, x->share), nresources = 0;
    if (x->state != TRP_VIRTUAL_STARTS)
        return;
    x->state = TRP_VIRTUAL_UP;
    tell_wait(r, x);
    if (++r->up > r->result->most_executors)
        r->result->most_executors = r->up;
    p = trp_profiles_get(r->c.profiles, trp_virtual_profile(r->cluster, x->share));
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (p->custom[i].executor > 0)
            r->resources[nresources++] = (struct trp_resource_addresses){
                p->custom[i].name, addresses(), (uint32_t)p->custom[i].executor};
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {.executor = {n},
                  .host = trp_virtual_host(r->cluster, node, host, sizeof host),
                  .rack = trp_virtual_rack(r->cluster, node, rack, sizeof rack),
                  .resources = r->resources,
                  .nresources = nresources}
    };
    trp_virtual_step(r, &ev);
}

static void executor_lost(struct trp_virtual_run *r, uint32_t n, enum trp_loss reason)
{
    struct trp_virtual_executor *x = &r->executors[n];
    bool has_room = x->state == TRP_VIRTUAL_STARTS || x->state == TRP_VIRTUAL_UP;
    if (!has_room && x->state != TRP_VIRTUAL_WITHDRAWN)
        return;
    trp_virtual_settle(r, n, TRP_NONE);
    r->up -= x->state == TRP_VIRTUAL_UP;
    r->result->lost += reason != TRP_LOSS_RELEASED;
    struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_LOST, .lost = {.executor = {n}, .reason = reason}
    };
    uint32_t share = x->share;
    x->state = TRP_VIRTUAL_GONE; /* its attempts are told as lost by the engine */
    trp_virtual_step(r, &ev);
    if (has_room)
        trp_virtual_leave(r->cluster, share, r->now);
    r->freed = true;
}

/* ---- attempts ---- */

struct trp_virtual_attempt *trp_virtual_attempt(struct trp_virtual_run *r, uint64_t id)
{
    uint32_t slot = (uint32_t)id;
    return slot < r->nattempts && r->attempts[slot].id == id ? &r->attempts[slot]
                                                             : NULL;
}

/* How long the attempt will take and how it will end. */
static void draw(const struct trp_virtual_run *r, struct trp_virtual_attempt *t)
{
    const struct trp_sim_stage *s = &r->c.durations->stages[t->stage];
    int64_t limit = r->c.pipeline->stages[t->stage].timeout_ns;
    double fail = s->fail_written ? s->fail : r->c.cluster->task_failure;
    struct trp_random random =
        random_of(r, TRP_DRAW_TASK, t->stage, (uint64_t)t->task << 16 | t->number);
    t->takes = trp_distribution_draw(&s->of.d, &random);
    t->status = TRP_END_SUCCESS;
    if (fail > 0 && trp_random_unit(&random) < fail) {
        t->takes = (int64_t)((double)t->takes * trp_random_unit(&random));
        t->status = TRP_END_EXIT;
    }
    if (limit > 0 && t->takes > limit) {
        t->takes = limit;
        t->status = TRP_END_TIMEOUT;
    }
}

void trp_virtual_begin(struct trp_virtual_run *r, uint32_t slot)
{
    struct trp_virtual_attempt *t = &r->attempts[slot];
    struct trp_virtual_stage *s = &r->result->stages[t->stage];
    if (t->executor != TRP_NONE && r->executors[t->executor].stage != t->stage)
        trp_virtual_settle(r, t->executor, t->stage);
    t->started = r->now;
    if (s->first < 0)
        s->first = r->now;
    if (t->number == 0) {
        s->wait += (double)(r->now - s->ready) / 1e9;
        s->waited++;
    }
    draw(r, t);
    trp_virtual_later(r, t->takes, TRP_DUE_END, 0, t->id);
}

/* Out of its executor's queue. */
static void unqueue(struct trp_virtual_run *r, uint32_t slot)
{
    struct trp_virtual_executor *x = &r->executors[r->attempts[slot].executor];
    uint32_t before = TRP_NONE;
    for (uint32_t i = x->queue_first; i != slot; i = r->attempts[i].next)
        before = i;
    if (before == TRP_NONE)
        x->queue_first = r->attempts[slot].next;
    else
        r->attempts[before].next = r->attempts[slot].next;
    if (x->queue_last == slot)
        x->queue_last = before;
}

/* Its place is taken by the head of the queue, when that is of the same stage; the
 * engine knows that it is so. */
static void attempt_ends(struct trp_virtual_run *r, uint64_t id,
                         enum trp_end_status status)
{
    struct trp_virtual_attempt *t = trp_virtual_attempt(r, id);
    if (!t || (status == TRP_END_RECALLED && t->started >= 0))
        return;
    uint32_t slot = (uint32_t)id, head = TRP_NONE;
    bool ran = t->started >= 0;
    if (t->executor != TRP_NONE && ran)
        head = r->executors[t->executor].queue_first;
    else if (t->executor != TRP_NONE)
        unqueue(r, slot);
    if (head != TRP_NONE && r->attempts[head].stage == t->stage) {
        unqueue(r, head);
        trp_virtual_begin(r, head);
        t = &r->attempts[slot];
    }
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = {id},
                  .status = status,
                  .code = status == TRP_END_EXIT,
                  .duration_ns = ran ? r->now - t->started : 0}
    };
    trp_virtual_step(r, &ev);
}

/* ---- what is due ---- */

static void node_fails(struct trp_virtual_run *r, uint32_t node, uint32_t use)
{
    uint32_t *shares, n;
    if (!trp_virtual_node_fails(r->cluster, node, use, &shares, &n))
        return;
    trp_virtual_later(r, r->c.cluster->node_repair_ns, TRP_DUE_REPAIRED, node, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t owner = trp_virtual_owner(r->cluster, shares[i]);
        if (owner == TRP_NONE) /* left */
            continue;
        if (trp_virtual_is_gang(r->cluster, shares[i]))
            attempt_ends(r, r->attempts[owner].id, TRP_END_EXIT);
        else
            executor_lost(r, owner, TRP_LOSS_EXITED);
    }
    free(shares);
}

static void submit_pipeline(struct trp_virtual_run *r)
{
    struct trp_job_spec job = {.stages = r->specs.stages,
                               .nstages = r->specs.nstages,
                               .drains = !r->c.fail_fast};
    struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {.spec = &job}};
    r->result->start = r->now;
    trp_virtual_step(r, &ev);
}

static void gang_runs(struct trp_virtual_run *r, uint64_t id)
{
    struct trp_virtual_attempt *t = trp_virtual_attempt(r, id);
    if (t && t->started < 0)
        trp_virtual_begin(r, (uint32_t)id);
}

void trp_virtual_happen(struct trp_virtual_run *r, const struct trp_virtual_due *due)
{
    struct trp_virtual_attempt *t;
    switch ((enum trp_virtual_due_kind)due->kind) {
    case TRP_DUE_BEGIN:
        submit_pipeline(r);
        return;
    case TRP_DUE_JOB:
        trp_virtual_job_ready(r->cluster, due->a, (uint32_t)due->b);
        r->freed = true;
        return;
    case TRP_DUE_UP:
        executor_up(r, due->a);
        return;
    case TRP_DUE_GANG:
        gang_runs(r, due->b);
        return;
    case TRP_DUE_END:
        t = trp_virtual_attempt(r, due->b);
        if (t)
            attempt_ends(r, due->b, t->status);
        return;
    case TRP_DUE_KILLED:
        attempt_ends(r, due->b, (enum trp_end_status)due->a);
        return;
    case TRP_DUE_GONE:
        executor_lost(r, due->a, TRP_LOSS_RELEASED);
        return;
    case TRP_DUE_DEATH:
        executor_lost(r, due->a, TRP_LOSS_EXITED);
        return;
    case TRP_DUE_NODE:
        node_fails(r, due->a, (uint32_t)due->b);
        return;
    case TRP_DUE_REPAIRED:
        trp_virtual_node_repaired(r->cluster, due->a);
        r->freed = true;
        return;
    }
}
