/*
 * Every invariant of the engine, checked the hard way: counts against lists, resources
 * against what attempts hold, and that no free slot stays empty while a task that may
 * run there is pending. For tests and fuzzers; O(everything).
 */
#include <string.h>

#include "core/engine_state.h"

#define CHECK(holds, ...)                                                              \
    do {                                                                               \
        if (!(holds))                                                                  \
            return trp_error_set(err, TRP_ESTATE, __VA_ARGS__);                        \
    } while (0)

static bool is_of_its_task(const struct trp_engine *e, uint32_t slot)
{
    const struct trp_attempt *a = &e->attempts.v[slot];
    uint32_t s = a->set->tasks[a->task].attempt;
    while (s != TRP_NONE && s != slot)
        s = e->attempts.v[s].twin;
    return s == slot;
}

static int check_executor(const struct trp_engine *e, const struct trp_executor *x,
                          trp_error *err)
{
    uint32_t running = 0, queued = 0;
    int64_t cores = 0;
    for (uint32_t s = x->running; s != TRP_NONE; s = e->attempts.v[s].next) {
        const struct trp_attempt *a = &e->attempts.v[s];
        CHECK(a->state == TRP_ATTEMPT_RUNNING && a->executor == x->id.n,
              "executor %u: attempt %u on the wrong list", x->id.n, s);
        CHECK(is_of_its_task(e, s), "attempt %u is not its task's", s);
        CHECK(!a->recall_sent, "attempt %u runs, and is being recalled", s);
        cores += a->set->profile->task_cpus;
        running++;
    }
    for (uint32_t s = x->queue_first; s != TRP_NONE; s = e->attempts.v[s].next) {
        const struct trp_attempt *a = &e->attempts.v[s];
        bool out = !trp_executor_may_get(x) && !x->yields;
        out |= trp_health_at(a->set->health, x->id.n, x->host) == TRP_HEALTH_OUT;
        CHECK(a->state == TRP_ATTEMPT_QUEUED, "queued attempt %u runs", s);
        CHECK(!out || a->recall_sent || a->kill_sent,
              "executor %u gets nothing more, and attempt %u waits there", x->id.n, s);
        queued++;
    }
    CHECK(running == x->nrunning && queued == x->nqueued,
          "executor %u: %u running, counted %u; %u queued, counted %u", x->id.n,
          x->nrunning, running, x->nqueued, queued);
    CHECK(!x->came || cores + x->cores_free == x->cores,
          "executor %u: %lld cores in use and %lld free of %lld", x->id.n,
          (long long)cores, (long long)x->cores_free, (long long)x->cores);
    CHECK((x->free_next != NULL) == (trp_executor_may_get(x) && x->cores_free > 0),
          "executor %u: wrongly in or out of the ring of free ones", x->id.n);
    CHECK((x->queued_next != NULL) == (x->nqueued > 0),
          "executor %u: wrongly in or out of the ring of queues", x->id.n);
    CHECK(!x->nqueued || x->nrunning, "executor %u: tasks queue behind nothing",
          x->id.n);
    return 0;
}

/* Grants of all running attempts and what is left add up to 1 for each address. */
static int check_ledger(const struct trp_engine *e, const struct trp_executor *x,
                        trp_error *err)
{
    uint32_t n = x->ledger ? trp_ledger_resources(x->ledger) : 0;
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t i = 0; i < trp_ledger_addresses(x->ledger, r); i++) {
            trp_amount sum = trp_ledger_left(x->ledger, r, i);
            for (uint32_t s = x->running; s != TRP_NONE; s = e->attempts.v[s].next)
                for (uint32_t g = 0; g < e->attempts.v[s].ngrants; g++) {
                    const struct trp_grant *gr = &e->attempts.v[s].grants[g];
                    if (gr->resource == r && gr->address == i)
                        sum += gr->amount;
                }
            CHECK(sum == TRP_ONE, "executor %u: %s %s is given twice or lost", x->id.n,
                  trp_ledger_resource_name(x->ledger, r),
                  trp_ledger_address(x->ledger, r, i));
        }
    return 0;
}

/* Live attempts of one task, running and queued ones counted. */
static int check_task(const struct trp_engine *e, const struct trp_task_set *s,
                      uint32_t task, uint32_t *running, uint32_t *queued,
                      trp_error *err)
{
    uint32_t n = 0;
    for (uint32_t slot = s->tasks[task].attempt; slot != TRP_NONE;
         slot = e->attempts.v[slot].twin, n++) {
        const struct trp_attempt *a = &e->attempts.v[slot];
        CHECK(trp_task_set_main(a->set) == s && a->task == task &&
                  a->state != TRP_ATTEMPT_FREE,
              "task %u of stage %s: its attempt is another's", task, s->stage->name);
        *running += a->state == TRP_ATTEMPT_RUNNING;
        *queued += a->state == TRP_ATTEMPT_QUEUED;
        CHECK(n < 2, "task %u of stage %s has more than one copy", task,
              s->stage->name);
    }
    return 0;
}

static int check_set(const struct trp_engine *e, const struct trp_task_set *s,
                     trp_error *err)
{
    uint32_t pending = 0, running = 0, queued = 0, done = 0, failed = 0, copies = 0;
    for (uint32_t i = 0; i < s->ntasks; i++) {
        const struct trp_task *t = &s->tasks[i];
        done += (t->flags & TRP_TASK_DONE) != 0;
        failed += (t->flags & TRP_TASK_FAILED) != 0;
        copies += (t->flags & TRP_TASK_SPECULATABLE) != 0;
        pending += trp_task_is_pending(t);
        int rc = check_task(e, s, i, &running, &queued, err);
        if (rc < 0)
            return rc;
    }
    uint32_t sum[4] = {0};
    for (const struct trp_task_set *o = s; o; o = o->overflow) {
        sum[0] += o->pending;
        sum[1] += o->running;
        sum[2] += o->queued;
        sum[3] += o->copies;
    }
    /* In a zombie nothing that comes back is pending any more. */
    CHECK((s->zombie || pending == sum[0]) && running == sum[1] && queued == sum[2] &&
              done == s->done && failed == s->failed && copies == sum[3],
          "stage %s: pending %u (counted %u), running %u (%u), queued %u (%u), done %u "
          "(%u), failed %u (%u), copies %u (%u)",
          s->stage->name, sum[0], pending, sum[1], running, sum[2], queued, s->done,
          done, s->failed, failed, sum[3], copies);
    CHECK(s->zombie || !s->class || e->sched_alone || s->listed == trp_set_has_work(s),
          "stage %s: wrongly in or out of its class's order", s->stage->name);
    return 0;
}

/* No free slot stays empty while a task that may run there is pending. Left out are
 * sets of which tasks wait for a host, before they may run anywhere. In those a task
 * without a preference may wait as well: one that came back when the set did not have
 * the level NO_PREF, for levels are as of the last time that an executor came or went
 * (semantics, section 7.2). When no task waits for a host any more all levels are passed
 * for free (7.3). What is kept for a barrier set is not free for others. */
static int check_no_idle(const struct trp_engine *e, const struct trp_class *c,
                         trp_error *err)
{
    for (const struct trp_task_set *s = c->first;
         s && !e->draining && !e->sched_alone && !e->gated; s = s->next) {
        uint32_t max = s->stage->max_running, at_once = 0;
        for (const struct trp_task_set *o = s->stage->set; o; o = o->overflow)
            at_once += o->running + o->queued;
        if (s->levels[s->current] != TRP_ANY && s->pending_host)
            continue;
        if (!s->pending || s->barrier || s->health || (max && at_once >= max))
            continue;
        const struct trp_task_set *keeper = trp_keep_keeper(e, s);
        const struct trp_executor *x = c->free;
        for (uint32_t n = c->nfree; n; n--, x = x->free_next) {
            struct trp_grant grants[256];
            bool fits = x->cores_free >= s->profile->task_cpus &&
                        !(keeper && trp_keep_refuses(e, keeper, s, x)) &&
                        !(e->has_ends && trp_ends_outlive(e, s, x)) &&
                        trp_ledger_propose(x->ledger, s->profile, e->config.pack,
                                           grants, 256) >= 0;
            CHECK(!fits, "executor %u has a free slot, stage %s has %u pending tasks",
                  x->id.n, s->stage->name, s->pending);
        }
    }
    return 0;
}

static int check_class(const struct trp_engine *e, const struct trp_class *c,
                       trp_error *err)
{
    uint32_t live = 0, requested = 0, idle = 0, free = 0, queued = 0, yielding = 0,
             ahead = 0, inside = 0, granted = 0, recalls = 0;
    for (uint32_t i = 0; i < e->nexecutors; i++) {
        const struct trp_executor *x = e->executors[i];
        if (!x || x->class != c->profile.n)
            continue;
        live += x->state == TRP_EXECUTOR_LIVE;
        bool is_requested = x->state == TRP_EXECUTOR_REQUESTED,
             is_idle = x->state == TRP_EXECUTOR_LIVE && !x->nrunning;
        CHECK(is_requested == trp_bits_has(&c->requested, x->id.n) &&
                  is_idle == trp_bits_has(&c->idle, x->id.n),
              "executor %u: wrongly in or out of the requested or the idle ones",
              x->id.n);
        requested += is_requested;
        idle += is_idle;
        free += x->free_next != NULL;
        queued += x->nqueued;
        for (uint32_t s = x->queue_first; s != TRP_NONE; s = e->attempts.v[s].next)
            recalls += e->attempts.v[s].recall_sent;
        yielding += x->yields;
        ahead += x->ahead;
        inside += trp_bits_has(&c->inside, x->id.n);
        CHECK(is_requested || !trp_bits_has(&c->inside, x->id.n),
              "executor %u is not requested, and waits", x->id.n);
        granted += x->granted;
    }
    CHECK(live == c->live && requested == c->requested.n && idle == c->idle.n &&
              free == c->nfree && queued == c->nqueued,
          "profile %u: live %u (counted %u), requested %u (%u), idle %u (%u), free %u "
          "(%u), "
          "queued %u (%u)",
          c->profile.n, c->live, live, c->requested.n, requested, c->idle.n, idle,
          c->nfree, free, c->nqueued, queued);
    CHECK(recalls == c->recalls, "profile %u: %u recalls under way (counted %u)",
          c->profile.n, c->recalls, recalls);
    CHECK(granted == c->granted, "profile %u: %u requests have room (counted %u)",
          c->profile.n, granted, c->granted);
    CHECK(inside == c->inside.n, "profile %u: %u requests stay inside (counted %u)",
          c->profile.n, c->inside.n, inside);
    CHECK(ahead == c->nahead, "profile %u: %u stand apart (counted %u)", c->profile.n,
          c->nahead, ahead);
    uint64_t wanted = 0;
    for (const struct trp_stage *s = e->ahead; s; s = s->ahead.next)
        wanted += s->profile.n == c->profile.n ? s->ahead.n : 0;
    CHECK(wanted == c->ahead, "profile %u: %u wanted ahead (counted %llu)",
          c->profile.n, c->ahead, (unsigned long long)wanted);
    CHECK(yielding == c->yielding, "profile %u: %u yield (counted %u)", c->profile.n,
          c->yielding, yielding);
    uint64_t open = 0;
    for (const struct trp_task_set *m = e->sets; m; m = m->all_next)
        for (const struct trp_task_set *s = m; s; s = s->overflow)
            if (s->class == c && !s->zombie && !s->is_bounded)
                open += (uint64_t)s->pending + s->running + s->queued + s->copies;
    CHECK(open == c->open, "profile %u: %llu tasks open (counted %llu)", c->profile.n,
          (unsigned long long)c->open, (unsigned long long)open);
    int rc = trp_ramp_check(e, c, err);
    return rc < 0 || e->sched_alone ? rc : check_no_idle(e, c, err);
}

/* What is over of a stage, by the kind of its end. */
static int check_stage(const struct trp_stage *s, trp_error *err)
{
    uint32_t over = 0, lost = 0;
    for (uint32_t i = 0; i < s->nparents; i++) {
        const struct trp_stage_link *l = &s->parents[i];
        bool counts = l->by && l->parent && s->state != TRP_STAGE_ENDED;
        int rc = counts ? trp_task_links_check(l, err) : 0;
        if (rc < 0)
            return rc;
    }
    if (s->is_map || !s->bits)
        return 0;
    for (uint32_t i = 0; i < s->ntasks; i++) {
        over += trp_bit(s->bits, i);
        lost += s->lost && trp_bit(s->lost, i);
    }
    CHECK(over == s->succeeded + s->given_up + s->unasked && lost == s->given_up &&
              s->skipped <= lost,
          "stage %s: %u tasks are over (counted %u done, %u given up, %u skipped, %u "
          "not asked for), %u lost",
          s->name, over, s->succeeded, s->given_up, s->skipped, s->unasked, lost);
    return 0;
}

/* Executors that are forced to go stand in a list, the earliest first. */
static int check_forced(const struct trp_engine *e, trp_error *err)
{
    uint32_t listed = 0, forced = 0;
    const struct trp_executor *last = NULL;
    for (const struct trp_executor *x = e->force_first; x; x = x->force_next) {
        CHECK(x->decommissioned_ns != INT64_MAX &&
                  (!last || last->decommissioned_ns <= x->decommissioned_ns),
              "executor %u: forced to go out of turn", x->id.n);
        last = x;
        listed++;
    }
    for (uint32_t i = 0; i < e->nexecutors; i++)
        forced += e->executors[i] && e->executors[i]->forced;
    CHECK(listed == forced, "%u executors are to be forced to go, %u in the list",
          forced, listed);
    return 0;
}

/* What is counted of when the tasks of a set began is of those that run. */
static int check_began(const struct trp_task_set *s, trp_error *err)
{
    for (; s; s = s->overflow) {
        uint32_t n = 0;
        for (uint32_t i = 0; i <= TRP_START_COLUMNS; i++)
            n += s->began.columns[i].n;
        CHECK(!s->class || n == s->running, "stage %s: %u tasks run, and %u began",
              s->stage->name, s->running, n);
    }
    return 0;
}

static int check_leaving(const struct trp_engine *e, trp_error *err)
{
    uint32_t leaving = 0;
    for (uint32_t i = 0; i < e->nexecutors; i++)
        leaving += e->executors[i] && e->executors[i]->came &&
                   e->executors[i]->state == TRP_EXECUTOR_RELEASING;
    CHECK(leaving == e->leaving, "%u executors leave (counted %u)", e->leaving,
          leaving);
    return 0;
}

int trp_engine_sanity_check(const trp_engine *e, trp_error *err)
{
    int rc = check_forced(e, err);
    if (rc == 0)
        rc = check_leaving(e, err);
    for (uint32_t i = 0; i < e->nexecutors && rc == 0; i++)
        if (e->executors[i]) {
            rc = check_executor(e, e->executors[i], err);
            if (rc == 0)
                rc = check_ledger(e, e->executors[i], err);
        }
    for (const struct trp_task_set *s = e->sets; s && rc == 0; s = s->all_next) {
        rc = check_set(e, s, err);
        if (rc == 0)
            rc = check_began(s, err);
    }
    for (uint32_t i = 0; i < e->nstages && rc == 0; i++)
        if (e->stages[i])
            rc = check_stage(e->stages[i], err);
    if (rc == 0 && e->pools)
        rc = trp_pools_check(e->pools, err);
    for (uint32_t i = 0; i < e->nclasses && rc == 0; i++)
        if (e->classes[i])
            rc = check_class(e, e->classes[i], err);
    return rc;
}
