/*
 * Cores that the runs of one user share (docs/decisions/0072): each executor and each
 * gang has its cores locked (os/core_locks.h) for as long as it has its share of the
 * ledger.
 *
 * A run waits if its first request would have room without the cores of others. It then
 * takes a place in the machine's queue, and keeps it until no request waits for that
 * reason. Only the first run of the queue takes cores, as they come free, and all of a
 * gang's at once; the others take none, even if some are free. A run that has cores and
 * is not the first is `contended`: its engine gives back executors that are idle.
 *
 * All this is looked at every LOOK_MS, as long as the run has shared cores, or waits for
 * some: one call into the kernel. Nobody is woken, nobody has to answer. A run that is
 * stopped (SIGSTOP) keeps its cores and its place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cluster/local/local_state.h"

enum { LOOK_MS = 200 };

/* Several processors may be one core for a CPU quota: those in front stand for them. */
static uint32_t look(struct trp_local *l, bool *ret_others)
{
    return trp_core_locks_look(&l->locks, l->machine.cpus,
                               trp_machine_ledger_cores(l->ledger), ret_others);
}

void trp_local_why(struct trp_local *l, char *text, size_t size)
{
    uint32_t cores = trp_machine_ledger_cores(l->ledger), n;
    bool *others = l->held_up ? calloc(cores, sizeof *others) : NULL;
    *text = '\0';
    if (!others)
        return;
    n = look(l, others);
    char runs[200] = "";
    bool first = !trp_core_locks_others_first(&l->locks);
    trp_core_locks_runs(&l->locks, runs, sizeof runs);
    snprintf(text, size, "other runs of this user%s%s%s have %u of the %u cores here%s",
             *runs ? " (" : "", runs, *runs ? ")" : "", n, cores,
             first ? "" : ", and wait for more before this one");
    free(others);
}

void trp_local_room(struct trp_local *l, struct trp_room *ret)
{
    trp_machine_ledger_room(l->ledger, ret);
    bool *others = l->locks.fd < 0 ? NULL : calloc(ret->cores, sizeof *others);
    uint64_t theirs = others ? look(l, others) : 0;
    ret->cores_free -= theirs < ret->cores_free ? theirs : ret->cores_free;
    free(others);
}

/* Once a run; what it waits for later is told with its stages. */
static void tell_held_up(struct trp_local *l)
{
    char why[400], text[500];
    if (l->told_held_up || !l->handler.notice)
        return;
    l->told_held_up = true;
    trp_local_why(l, why, sizeof why);
    snprintf(text, sizeof text,
             "waiting for cores: %s; --local=N takes N without waiting", why);
    l->handler.notice(l->handler.context, text);
}

static void on_look(uv_timer_t *timer)
{
    struct trp_local *l = timer->data;
    bool contended = l->sharing && trp_core_locks_others_first(&l->locks);
    if (l->held_up) {
        tell_held_up(l);
        trp_local_pump_soon(l);
    } else if (!l->sharing) {
        uv_timer_stop(timer);
    }
    if (contended == l->contended)
        return;
    l->contended = contended;
    if (l->handler.contended)
        l->handler.contended(l->handler.context, contended);
}

static void look_soon(struct trp_local *l)
{
    if (!uv_is_active((uv_handle_t *)&l->share))
        uv_timer_start(&l->share, on_look, LOOK_MS, LOOK_MS);
}

static void set_held_up(struct trp_local *l, bool is)
{
    l->held_up = is;
    if (is) {
        trp_core_locks_queue(&l->locks);
        look_soon(l);
    } else {
        trp_core_locks_unqueue(&l->locks);
    }
}

/* What may not be had is marked in the ledger: what others have, or, as long as others
 * are before this run, everything. False: out of memory. */
static bool mark_others(struct trp_local *l)
{
    uint32_t cores = trp_machine_ledger_cores(l->ledger);
    bool *others = malloc(cores * sizeof *others);
    if (!others)
        return false;
    if (trp_core_locks_others_first(&l->locks)) {
        for (uint32_t i = 0; i < cores; i++)
            others[i] = true;
    } else {
        look(l, others);
    }
    trp_machine_ledger_others(l->ledger, others);
    free(others);
    return true;
}

/* False: another run was faster. */
static bool lock_cores(struct trp_local *l, const struct trp_request *r, bool take)
{
    uint32_t n = (uint32_t)r->footprint.cores;
    uint32_t *cpus = malloc((n + 1) * sizeof *cpus);
    bool done = cpus != NULL;
    for (uint32_t i = 0; i < n && cpus; i++)
        cpus[i] = l->machine.cpus[r->cores[i]];
    if (cpus && take)
        done = trp_core_locks_take(&l->locks, cpus, n);
    else if (cpus)
        trp_core_locks_give(&l->locks, cpus, n);
    free(cpus);
    return done;
}

struct trp_request *trp_local_next(struct trp_local *l)
{
    if (l->locks.taken && l->handler.notice) {
        char text[300];
        l->locks.taken = false;
        snprintf(text, sizeof text,
                 "cores are not shared with other runs of this user: what is in the "
                 "place of /tmp/troupe-cores-%u is not this user's alone; set "
                 "XDG_RUNTIME_DIR to a folder of your own",
                 (unsigned)geteuid());
        l->handler.notice(l->handler.context, text);
    }
    if (l->locks.fd < 0)
        return trp_machine_ledger_next(l->ledger);
    if (!trp_machine_ledger_has_room(l->ledger)) {
        set_held_up(l, false);
        return NULL;
    }
    struct trp_request *r = mark_others(l) ? trp_machine_ledger_next(l->ledger) : NULL;
    if (r && lock_cores(l, r, true)) {
        l->sharing++;
        look_soon(l);
        return r;
    }
    if (r)
        trp_machine_ledger_put_back(l->ledger, r);
    set_held_up(l, true);
    return NULL;
}

void trp_local_leave(struct trp_local *l, struct trp_request *r)
{
    if (l->locks.fd >= 0 && r->state == TRP_REQUEST_HAS) {
        l->sharing--;
        lock_cores(l, r, false);
    }
    trp_machine_ledger_leave(l->ledger, r);
}

void trp_local_share_open(struct trp_local *l)
{
    if (!trp_core_locks_open(&l->locks))
        return;
    l->share.data = l;
    uv_timer_init(l->loop, &l->share);
    l->handles++;
}

void trp_local_share_close(struct trp_local *l)
{
    if (l->locks.fd < 0)
        return;
    trp_core_locks_unqueue(&l->locks);
    uv_close((uv_handle_t *)&l->share, trp_local_own_closed);
}
