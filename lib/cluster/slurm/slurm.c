/*
 * A cluster of Slurm jobs, the driver's own and additional ones (additional.h):
 * executors and gangs as steps of them, within the ledger of their nodes.
 *
 * What was granted was asked of Slurm once, before the cluster is made (job_answer.h);
 * after that executors come and go by srun alone, and troupe-slurm (helper.h) is there
 * for what srun cannot do. Requests go into the ledger's queue; a timer that is due at
 * once (the *pump*) serves it from the loop, so that no callback comes from inside a
 * call.
 *
 * Teardown: as of the local cluster, without running the loop. Each executor gets one
 * blow after the other (executor_step.c) until its srun is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/slurm/slurm_parts.h"
#include "core/base/time.h"
#include "os/whole_file.h"

enum {
    CLOSE_FIRST_MS = 2200, /* from the first blow, which lets a step tidy up */
    CLOSE_BLOW_MS = 600,   /* from one of the others to the next */
    CLOSE_LOOK_MS = 10,
    CLOSE_BLOWS = 4,
    TOLD_NS = 1000000000, /* a wait for the limit of calls that is worth a word */
};

static struct trp_slurm *slurm_of(trp_cluster *c)
{
    return (struct trp_slurm *)c; /* `base` is its first member */
}

/* Tells how many nodes are held, when that has changed. */
static void tell_nodes(struct trp_slurm *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->inventory.nnodes; i++)
        n += s->inventory.nodes[i].name &&
             trp_slurm_ledger_standing(s->ledger, i) != TRP_SLURM_GONE;
    if (n == s->nodes_told || !s->handler.batch.nodes)
        return;
    const struct trp_cluster_job_news own = {.job = s->inventory.parts[0].leader,
                                             .what = TRP_JOB_BEGAN};
    if (!s->nodes_told && s->handler.batch.job)
        s->handler.batch.job(s->handler.context, &own);
    s->nodes_told = n;
    s->handler.batch.nodes(s->handler.context, n);
}

static bool within_budget(struct trp_slurm *s);

/* False: calls to Slurm have to wait. */
static bool serve(struct trp_slurm *s)
{
    struct trp_slurm_request *r;
    bool budget;
    while ((budget = within_budget(s)) && (r = trp_slurm_ledger_next(s->ledger))) {
        /* A request is the first member of the gang or executor that asks. */
        if (r->gang)
            trp_gangs_serve(s->gangs, ((struct trp_slurm_gang *)r)->attempt);
        else
            trp_slurm_executor_happen((struct trp_slurm_executor *)r, TRP_SLURM_ON_ROOM,
                                      NULL);
    }
    return budget;
}

static void on_wake(uv_timer_t *timer)
{
    trp_slurm_pump_soon(timer->data);
}

/* When all requests that have room were served: gives back what is too much, asks for
 * what is missing. */
static void look_after(struct trp_slurm *s)
{
    int64_t tidy = trp_slurm_tidy_look(s); /* before the nodes go that it needs */
    trp_slurm_shrink_own(s);
    int64_t due = trp_slurm_additional_look(s), again = trp_slurm_shrink_due(s);
    due = trp_earlier(due, again);
    due = trp_earlier(due, tidy);
    if (due == INT64_MAX)
        return;
    int64_t left = due - (int64_t)uv_hrtime();
    uv_timer_start(&s->wake, on_wake, left > 0 ? (uint64_t)(left / 1000000 + 1) : 1, 0);
}

void trp_slurm_on_pump(uv_timer_t *timer)
{
    struct trp_slurm *s = timer->data;
    struct trp_slurm_executor *e, *next;
    HASH_ITER(hh, s->executors, e, next) {
        if (e->state == TRP_SLURM_EXECUTOR_WITHDRAWN)
            trp_slurm_executor_tell(e);
    }
    trp_gangs_tell(s->gangs);
    if (s->misplaced_text[0] && s->handler.notice)
        s->handler.notice(s->handler.context, s->misplaced_text);
    s->misplaced_text[0] = '\0';
    tell_nodes(s);
    trp_slurm_shrink_hold(s);
    bool budget = serve(s);
    if (budget && trp_slurm_shrink_lift(s)) {
        budget = serve(s);
        trp_slurm_shrink_hold_again(s);
    }
    if (budget)
        look_after(s);
    if (s->held_changed && s->handler.held) {
        s->held_changed = false;
        s->handler.held(s->handler.context);
    }
}

static void tell_if_waiting(struct trp_slurm *s)
{
    struct trp_slurm_executor *e, *next;
    HASH_ITER(hh, s->executors, e, next) {
        if (!s->told_limit && e->state == TRP_SLURM_EXECUTOR_QUEUED)
            trp_slurm_tell_limit(s);
    }
}

static bool within_budget(struct trp_slurm *s)
{
    int64_t now = (int64_t)uv_hrtime();
    uint64_t rpcs = trp_slurm_helper_rpcs(s->helper);
    trp_slurm_budget_take(&s->budget, now, rpcs - s->rpcs_taken);
    s->rpcs_taken = rpcs;
    int64_t at = trp_slurm_budget_when(&s->budget, now, TRP_SLURM_SRUN_RPCS);
    if (at <= now)
        return true;
    if (s->inventory.calls && at - now >= TOLD_NS)
        tell_if_waiting(s);
    if (!uv_is_active((uv_handle_t *)&s->pump))
        uv_timer_start(&s->pump, s->on_pump, (uint64_t)(at - now) / 1000000 + 1, 0);
    return false;
}

static struct trp_slurm_executor *find_executor(struct trp_slurm *s, trp_executor_id id)
{
    struct trp_slurm_executor *e;
    HASH_FIND(hh, s->executors, &id.n, sizeof id.n, e);
    return e;
}

/* ---- the interface ---- */

static uint32_t slurm_fit(trp_cluster *c, const struct trp_resource_profile *p,
                          uint32_t ranks, trp_error *err)
{
    struct trp_slurm *s = slurm_of(c);
    struct trp_slurm_footprint footprint;
    int code = ranks ? trp_slurm_footprint_rank(p, s->site, &footprint, err)
                     : trp_slurm_footprint_executor(p, s->site, &footprint, err);
    if (code < 0)
        return 0;
    if (!s->ledger)
        return trp_slurm_additional_fit(s, p, ranks, &footprint, err);
    uint32_t inside =
        trp_slurm_ledger_fit(s->ledger, &footprint, ranks ? ranks : 1, err);
    /* A plan asks Slurm only where this job has no room. */
    if (!s->additional.allowed || (inside && !s->runs_things))
        return inside;
    trp_error why;
    uint32_t outside = trp_slurm_additional_fit(s, p, ranks, &footprint, &why);
    if (inside == 0 && outside == 0 && err)
        trp_error_set(err, TRP_ENEVER, "%s; nor in an additional job: %s", err->text,
                      why.text);
    return inside > outside ? inside : outside;
}

static uint32_t slurm_held(trp_cluster *c, const struct trp_resource_profile *p)
{
    struct trp_slurm *s = slurm_of(c);
    struct trp_slurm_footprint footprint;
    return trp_slurm_footprint_executor(p, s->site, &footprint, NULL) < 0
               ? 0
               : trp_slurm_ledger_held(s->ledger, &footprint, 1);
}

/* The file with ompi-server's address is on this host alone: executors on other hosts
 * are told what is in it. */
static int read_uri(struct trp_slurm *s, trp_error *err)
{
    char text[4096];
    if (!*s->command.ompi_server) {
        free(s->uri);
        s->uri = strdup("");
        return s->uri ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    ssize_t n = trp_file_begin(AT_FDCWD, s->command.ompi_server, 0, text, sizeof text);
    if (n <= 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot read %s: %s",
                             s->command.ompi_server,
                             n == 0 ? "it is empty" : strerror(errno));
    free(s->uri);
    s->uri = strndup(text, strcspn(text, "\n"));
    return s->uri ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

static int slurm_open(trp_cluster *c, const char *driver_address, trp_error *err)
{
    struct trp_slurm *s = slurm_of(c);
    if (!s->runs_things)
        return trp_error_set(err, TRP_ESTATE, "this cluster was made for looking only");
    char *address = strdup(driver_address);
    if (!address)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    free(s->driver_address);
    s->driver_address = address;
    trp_slurm_pump_soon(s);
    trp_slurm_sweep(s);
    return read_uri(s, err);
}

static int slurm_start(trp_cluster *c, trp_executor_id executor,
                       const struct trp_resource_profile *p, bool ahead,
                       const char *not_on, trp_error *err)
{
    struct trp_slurm *s = slurm_of(c);
    if (!s->driver_address)
        return trp_error_set(err, TRP_ESTATE, "this cluster is not open");
    if (find_executor(s, executor))
        return trp_error_set(err, TRP_EEXIST, "executor %u was asked for already",
                             executor.n);
    if (slurm_fit(c, p, 0, err) == 0)
        return TRP_ENEVER;
    return trp_slurm_executor_ask(s, executor, p, ahead, not_on, err);
}

static void slurm_came(trp_cluster *c, trp_executor_id executor)
{
    struct trp_slurm_executor *e = find_executor(slurm_of(c), executor);
    if (e)
        trp_slurm_executor_happen(e, TRP_SLURM_ON_CAME, NULL);
}

static void slurm_needed_now(trp_cluster *c, trp_executor_id executor)
{
    struct trp_slurm_executor *e = find_executor(slurm_of(c), executor);
    if (e)
        trp_slurm_executor_needed_now(e);
}

static void slurm_may_add(trp_cluster *c, trp_executor_id executor)
{
    struct trp_slurm *s = slurm_of(c);
    struct trp_slurm_executor *e = find_executor(s, executor);
    if (!e)
        return;
    trp_slurm_ledger_may_add(&e->request);
    trp_slurm_pump_soon(s);
}

static void slurm_ask_wait(trp_cluster *c, const struct trp_resource_profile *p,
                           uint32_t executors)
{
    trp_slurm_additional_ask_wait(slurm_of(c), p, executors);
}

static void slurm_release(trp_cluster *c, trp_executor_id executor, bool told)
{
    struct trp_slurm_executor *e = find_executor(slurm_of(c), executor);
    if (e)
        trp_slurm_executor_happen(e, told ? TRP_SLURM_ON_DISMISS : TRP_SLURM_ON_RELEASE,
                                  NULL);
}

static void slurm_kill(trp_cluster *c, trp_executor_id executor)
{
    struct trp_slurm_executor *e = find_executor(slurm_of(c), executor);
    if (e)
        trp_slurm_executor_happen(e, TRP_SLURM_ON_KILL, NULL);
}

static void slurm_silent(trp_cluster *c, trp_executor_id executor, bool silent)
{
    struct trp_slurm_executor *e = find_executor(slurm_of(c), executor);
    if (e)
        trp_slurm_executor_silent(e, silent);
}

static int slurm_gang_start(trp_cluster *c, const struct trp_gang *g, trp_error *err)
{
    struct trp_slurm *s = slurm_of(c);
    if (!s->runs_things)
        return trp_error_set(err, TRP_ESTATE, "this cluster was made for looking only");
    if (slurm_fit(c, g->profile, g->ranks, err) == 0)
        return TRP_ENEVER;
    return trp_slurm_gang_ask(s, g, err);
}

static void slurm_gang_kill(trp_cluster *c, trp_attempt_id attempt, bool soft)
{
    struct trp_slurm *s = slurm_of(c);
    if (s->gangs && soft)
        trp_slurm_gang_terminate(s, attempt);
    if (s->gangs)
        trp_gangs_kill(s->gangs, attempt, soft);
}

static void slurm_room(trp_cluster *c, struct trp_room *ret)
{
    trp_slurm_ledger_room(slurm_of(c)->ledger, ret);
}

static bool slurm_guard(trp_cluster *c, uint32_t id)
{
    return trp_slurm_additional_guard(slurm_of(c), id);
}

static void slurm_why(trp_cluster *c, const struct trp_resource_profile *p, char *text,
                      size_t size)
{
    trp_slurm_additional_why(slurm_of(c), p, text, size);
}

static void slurm_jobs(trp_cluster *c,
                       void (*tell)(void *context, const struct trp_cluster_job *job),
                       void *context)
{
    trp_slurm_jobs_tell(slurm_of(c), tell, context);
}

static void slurm_outlived(trp_cluster *c, trp_executor_id executor, int64_t takes_ns)
{
    struct trp_slurm *s = slurm_of(c);
    const struct trp_slurm_executor *e = find_executor(s, executor);
    struct trp_slurm_job *j = e && e->request.state == TRP_SLURM_PLACED
                                  ? trp_slurm_job_of(s, &e->request)
                                  : NULL;
    if (j)
        trp_slurm_additional_outlived(s, j, e->request.kind->context, takes_ns);
}

static void slurm_stages_changed(trp_cluster *c)
{
    struct trp_slurm *s = slurm_of(c);
    if (!s->shrink.allowed)
        return;
    s->shrink.news = true;
    trp_slurm_pump_soon(s);
}

static void slurm_files(trp_cluster *c, const char *node, bool there)
{
    trp_slurm_tidy_files(slurm_of(c), node, there);
}

static void slurm_move(trp_cluster *c, const char *node)
{
    trp_slurm_tidy_move(slurm_of(c), node);
}

static const struct trp_topology *slurm_topology(trp_cluster *c)
{
    return &slurm_of(c)->topology;
}

static void close_executors(struct trp_slurm *s)
{
    uint64_t begin_ms = uv_hrtime() / 1000000;
    while (s->executors) {
        uint64_t spent = uv_hrtime() / 1000000 - begin_ms;
        unsigned blow = spent < CLOSE_FIRST_MS
                            ? 1
                            : 2 + (unsigned)((spent - CLOSE_FIRST_MS) / CLOSE_BLOW_MS);
        struct trp_slurm_executor *e, *next;
        HASH_ITER(hh, s->executors, e, next) {
            trp_slurm_executor_close(e, blow < CLOSE_BLOWS ? blow : CLOSE_BLOWS);
        }
        if (s->executors)
            usleep(CLOSE_LOOK_MS * 1000);
    }
}

/* The helper goes first, so that its count is the last. */
static void tell_costs(struct trp_slurm *s, struct trp_cluster_costs *ret)
{
    uint64_t rpcs = trp_slurm_helper_stop(s->helper, true);
    s->helper = NULL;
    if (ret)
        *ret = (struct trp_cluster_costs){.rpcs = s->answer_rpcs + rpcs,
                                          .sruns = s->sruns,
                                          .srun_rpcs = s->sruns * TRP_SLURM_SRUN_RPCS};
}

static void slurm_close(trp_cluster *c, struct trp_cluster_costs *ret_costs)
{
    struct trp_slurm *s = slurm_of(c);
    if (ret_costs)
        *ret_costs = (struct trp_cluster_costs){0};
    if (!s->runs_things) {
        s->free(s);
        return;
    }
    s->closed = true;
    uv_close((uv_handle_t *)&s->pump, trp_slurm_own_closed);
    uv_close((uv_handle_t *)&s->wake, trp_slurm_own_closed);
    uv_close((uv_handle_t *)&s->helper_poll, trp_slurm_own_closed);
    uv_close((uv_handle_t *)&s->watch.timer, trp_slurm_own_closed);
    uv_close((uv_handle_t *)&s->ghosts.timer, trp_slurm_own_closed);
    trp_gangs_close(s->gangs);
    close_executors(s);
    trp_slurm_tidy_owe_files(s, TRP_NONE);
    trp_slurm_tidy_close(s);
    trp_slurm_additional_close(s);
    tell_costs(s, ret_costs);
    trp_slurm_additional_tell_ends(s);
    trp_slurm_additional_close_guards(s);
}

const struct trp_cluster_ops trp_slurm_ops = {
    .fit = slurm_fit,
    .open = slurm_open,
    .start = slurm_start,
    .release = slurm_release,
    .kill = slurm_kill,
    .gang_start = slurm_gang_start,
    .gang_kill = slurm_gang_kill,
    .topology = slurm_topology,
    .room = slurm_room,
    .close = slurm_close,
    .batch =
        {
                .held = slurm_held,
                .came = slurm_came,
                .may_add = slurm_may_add,
                .needed_now = slurm_needed_now,
                .ask_wait = slurm_ask_wait,
                .silent = slurm_silent,
                .guard = slurm_guard,
                .why = slurm_why,
                .jobs = slurm_jobs,
                .outlived = slurm_outlived,
                .stages_changed = slurm_stages_changed,
                .files = slurm_files,
                .move = slurm_move,
                },
};
