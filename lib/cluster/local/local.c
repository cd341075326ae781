/*
 * This machine as a cluster: executors and gangs as processes of it, within the ledger
 * of machine_ledger.c.
 *
 * Requests go into its queue; a timer that is due at once (the *pump*) serves
 * the queue from the loop, so that no callback comes from inside a call. An executor's
 * life is in executor_process.c, gangs are in local_gang.c.
 *
 * Teardown: everything is killed and waited for without running the loop (it is the
 * driver's); the libuv handles are closed, and the memory goes when the loop has run
 * their close callbacks, at the latest in uv_run before uv_loop_close.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/executor_entry.h"
#include "cluster/local/local.h"
#include "cluster/local/local_state.h"
#include "cluster/mpirun.h"
#include "os/held.h"

enum { CLOSE_SOFT_MS = 400, CLOSE_MS = 2800, CLOSE_LOOK_MS = 10 };

static struct trp_local *local_of(trp_cluster *c)
{
    return (struct trp_local *)c; /* `base` is its first member */
}

static void free_local(struct trp_local *l)
{
    trp_core_locks_close(&l->locks);
    trp_machine_ledger_free(l->ledger);
    trp_processes_free(l->processes);
    trp_local_free_scripts(l);
    trp_machine_free(&l->machine);
    trp_argv_free(l->texts);
    free(l->driver_address);
    free(l);
}

void trp_local_handle_closed(struct trp_local *l)
{
    if (--l->handles == 0 && l->closed)
        free_local(l);
}

static void on_child(uv_signal_t *children, int signal)
{
    (void)signal;
    trp_local_executors_reap(children->data);
}

void trp_local_own_closed(uv_handle_t *handle)
{
    trp_local_handle_closed(handle->data);
}

static void on_pump(uv_timer_t *timer)
{
    struct trp_local *l = timer->data;
    struct trp_local_executor *e, *next;
    HASH_ITER(hh, l->executors, e, next) {
        if (e->state == TRP_LOCAL_WITHDRAWN)
            trp_local_executor_tell(e);
    }
    trp_gangs_tell(l->gangs);
    for (struct trp_request *r; (r = trp_local_next(l));) {
        struct trp_ticket *t = (struct trp_ticket *)r; /* its first member */
        if (t->is_gang)
            trp_gangs_serve(l->gangs, ((struct trp_local_gang *)t)->attempt);
        else
            trp_local_executor_serve((struct trp_local_executor *)t);
    }
}

void trp_local_pump_soon(struct trp_local *l)
{
    uv_timer_start(&l->pump, on_pump, 0, 0);
}

static struct trp_local_executor *find_executor(struct trp_local *l, trp_executor_id id)
{
    struct trp_local_executor *e;
    HASH_FIND(hh, l->executors, &id.n, sizeof id.n, e);
    return e;
}

static uint32_t local_fit(trp_cluster *c, const struct trp_resource_profile *p,
                          uint32_t ranks, trp_error *err)
{
    struct trp_local *l = local_of(c);
    struct trp_machine_footprint footprint;
    trp_machine_footprint_make(p, ranks, &footprint);
    if (!ranks)
        trp_local_without_unknown(l, &footprint);
    return trp_machine_ledger_fit(l->ledger, &footprint, err);
}

static int local_open(trp_cluster *c, const char *driver_address, trp_error *err)
{
    struct trp_local *l = local_of(c);
    if (!l->runs_things)
        return trp_error_set(err, TRP_ESTATE, "this cluster was made for looking only");
    char *address = strdup(driver_address);
    if (!address)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    free(l->driver_address);
    l->driver_address = address;
    return 0;
}

/* Nothing is asked for ahead here: all room is held. */
static int local_start(trp_cluster *c, trp_executor_id executor,
                       const struct trp_resource_profile *p, bool ahead,
                       const char *not_on, trp_error *err)
{
    (void)ahead;
    struct trp_local *l = local_of(c);
    if (*not_on) /* only names of ours */
        return trp_error_set(err, TRP_EWAIT, "there is no other host than this one");
    if (!l->driver_address)
        return trp_error_set(err, TRP_ESTATE, "this cluster is not open");
    if (find_executor(l, executor))
        return trp_error_set(err, TRP_EEXIST, "executor %u was asked for already",
                             executor.n);
    if (local_fit(c, p, 0, err) == 0)
        return TRP_ENEVER;
    return trp_local_executor_ask(l, executor, p, err);
}

static void local_release(trp_cluster *c, trp_executor_id executor, bool told)
{
    struct trp_local_executor *e = find_executor(local_of(c), executor);
    if (e)
        trp_local_executor_release(e, told);
}

static void local_kill(trp_cluster *c, trp_executor_id executor)
{
    struct trp_local_executor *e = find_executor(local_of(c), executor);
    if (e)
        trp_local_executor_kill(e);
}

static int local_gang_start(trp_cluster *c, const struct trp_gang *g, trp_error *err)
{
    struct trp_local *l = local_of(c);
    if (!l->runs_things)
        return trp_error_set(err, TRP_ESTATE, "this cluster was made for looking only");
    if (local_fit(c, g->profile, g->ranks, err) == 0)
        return TRP_ENEVER;
    return trp_local_gang_ask(l, g, err);
}

static void local_gang_kill(trp_cluster *c, trp_attempt_id attempt, bool soft)
{
    struct trp_local *l = local_of(c);
    if (l->gangs)
        trp_gangs_kill(l->gangs, attempt, soft);
}

static void local_room(trp_cluster *c, struct trp_room *ret)
{
    trp_local_room(local_of(c), ret);
}

static void local_why(trp_cluster *c, const struct trp_resource_profile *p, char *text,
                      size_t size)
{
    (void)p;
    trp_local_why(local_of(c), text, size);
}

static const struct trp_topology *local_topology(trp_cluster *c)
{
    return &local_of(c)->topology;
}

/* Ends all executors: in order first, by force after CLOSE_SOFT_MS. */
static void close_executors(struct trp_local *l, uint64_t begin_ms)
{
    for (;;) {
        uint64_t spent = uv_hrtime() / 1000000 - begin_ms;
        struct trp_local_executor *e, *next;
        HASH_ITER(hh, l->executors, e, next) {
            trp_local_executor_close(e, spent >= CLOSE_SOFT_MS);
        }
        if (!l->executors)
            return;
        HASH_ITER(hh, l->executors, e, next) {
            if (spent >= CLOSE_MS)
                trp_local_executor_forget(e);
        }
        usleep(CLOSE_LOOK_MS * 1000);
    }
}

static void local_close(trp_cluster *c, struct trp_cluster_costs *ret_costs)
{
    struct trp_local *l = local_of(c);
    if (ret_costs)
        *ret_costs = (struct trp_cluster_costs){0};
    if (!l->runs_things) {
        free_local(l);
        return;
    }
    uint64_t begin_ms = uv_hrtime() / 1000000;
    l->closed = true;
    uv_close((uv_handle_t *)&l->pump, trp_local_own_closed);
    uv_close((uv_handle_t *)&l->children, trp_local_own_closed);
    trp_local_share_close(l);
    struct trp_local_executor *e, *next;
    HASH_ITER(hh, l->executors, e, next) {
        trp_local_executor_close(e, false);
    }
    trp_gangs_close(l->gangs);
    close_executors(l, begin_ms);
}

static const struct trp_cluster_ops ops = {
    .fit = local_fit,
    .open = local_open,
    .start = local_start,
    .release = local_release,
    .kill = local_kill,
    .gang_start = local_gang_start,
    .gang_kill = local_gang_kill,
    .topology = local_topology,
    .room = local_room,
    .close = local_close,
    .batch = {.why = local_why},
};

void trp_local_look_again(struct trp_local *l)
{
    l->host =
        (struct trp_host_view){.name = l->machine.host,
                               .rack = "",
                               .cores = trp_machine_ledger_cores(l->ledger),
                               .sockets = l->machine.sockets,
                               .numa_nodes = l->machine.numa_nodes,
                               .memory_mib = trp_machine_ledger_memory_mib(l->ledger),
                               .model = l->machine.model};
    l->host.devices = trp_machine_ledger_devices(l->ledger, &l->host.ndevices);
    l->topology = (struct trp_topology){.hosts = &l->host, .nhosts = 1};
}

/* Memory groups are named by the run's private folder of MPI files, whose name is
 * unique on this machine: two runs may have the same name. */
static void make_mark(struct trp_local *l)
{
    const char *base = l->mpi_folder ? strrchr(l->mpi_folder, '/') : NULL;
    if (base && base[1] && strlen(base + 1) < sizeof l->mark)
        memcpy(l->mark, base + 1, strlen(base + 1) + 1);
    else
        snprintf(l->mark, sizeof l->mark, "troupe-%d", (int)getpid());
}

static int make_runnable(struct trp_local *l, uv_loop_t *loop,
                         const struct trp_executor_command *command,
                         const struct trp_cluster_handler *handler, trp_error *err)
{
    l->texts = trp_executor_command_copy(command, &l->command);
    if (!l->texts)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    char path[4200];
    snprintf(path, sizeof path, "%s/state/executors", command->run_dir);
    if (trp_held_mkdir(path, 0700) < 0 && errno != EEXIST)
        return trp_error_set(err, TRP_ESYSTEM, "cannot make %s: %m", path);
    l->loop = loop;
    l->handler = *handler;
    l->mpi_folder = getenv(TRP_MPI_FOLDER);
    make_mark(l);
    char prefix[sizeof l->mark + 1];
    snprintf(prefix, sizeof prefix, "%s-", l->mark);
    trp_cgroup_memory_open("", prefix, l->mpi_folder, &l->cgroups);
    int code = trp_local_gangs_open(l, err);
    if (code < 0)
        return code;
    l->pump.data = l->children.data = l;
    uv_timer_init(loop, &l->pump);
    uv_signal_init(loop, &l->children);
    l->handles += 2;
    if (l->shares)
        trp_local_share_open(l);
    l->runs_things = true;
    uv_signal_start(&l->children, on_child, SIGCHLD);
    return 0;
}

int trp_cluster_local_new(uv_loop_t *loop, uint32_t cores, bool share,
                          const trp_site *site,
                          const struct trp_executor_command *command,
                          const struct trp_cluster_handler *handler,
                          trp_cluster **ret_cluster, trp_error *err)
{
    struct trp_local *l = calloc(1, sizeof *l);
    if (!l)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    l->base.ops = &ops;
    l->locks.fd = -1;
    int code = trp_machine_look(&l->machine, err);
    if (code == 0)
        code = trp_machine_ledger_new(cores ? cores : l->machine.cores,
                                      l->machine.memory_mib, site ? site->local : NULL,
                                      site ? site->nlocal : 0, &l->ledger, err);
    if (code == 0 && !trp_local_takes_scripts(l, site))
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    l->shares = share && !cores;
    if (code == 0) {
        /* Pretended cores, or a quota instead of a cpuset: the kernel decides better.
         */
        l->binds = l->machine.cores == l->machine.ncpus &&
                   trp_machine_ledger_cores(l->ledger) <= l->machine.ncpus;
        trp_local_look_again(l);
        if (command)
            code = make_runnable(l, loop, command, handler, err);
    }
    if (code < 0) {
        free_local(l);
        return code;
    }
    *ret_cluster = &l->base;
    return 0;
}
