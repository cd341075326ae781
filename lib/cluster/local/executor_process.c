/*
 * One executor as a process of this machine: `mpirun -np 1 PROGRAM` in a session of its
 * own, told its shape in TROUPE_EXECUTOR, its output in state/executors/ID.log, its
 * memory limited by a control group where one can be made (the executor joins it
 * itself, so that mpirun's memory does not count).
 *
 * The end. mpirun puts the executor into a process group of its own, so groups do not
 * help; sessions do. To end one by force, mpirun's children in the session (the
 * executor) are killed first: mpirun then ends in order and removes its files, and the
 * executor's spawner sees its parent gone, kills all commands and removes scratch
 * folders. An mpirun that is alone then, or what is still there KILL_AFTER_MS later, is
 * killed with the session and the control group. An executor is told gone, and its room
 * is free, when mpirun has ended and nobody of its session or control group is left:
 * looked at every LOOK_MS. After an end that was not in order its commands, too, are
 * looked for by their environment: executor and spawner may have been killed together.
 * What the kernel cannot end (it waits for a file system) holds this up for STUCK_MS.
 *
 * One look is a pass over all processes of the machine, but where a control group
 * tells, and there may be a thousand executors: those that end at the time share a
 * pass, and PASS_SHARE times its length goes by before the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/executor_entry.h"
#include "cluster/local/local_state.h"
#include "cluster/mpirun.h"
#include "events/run_folder.h"
#include "executor/executor.h"
#include "os/child.h"
#include "os/held.h"
#include "os/log_tail.h"
#include "os/processes.h"
#include "os/tree.h"

enum {
    COMING_UP_MS = 1000,  /* to the first look whether it has ended before it called */
    RELEASE_MS = 2000,    /* from SHUTDOWN to the kill */
    KILL_AFTER_MS = 1500, /* from killing the executor to killing its session */
    LINGER_MS = 4000,     /* what a spawner may take to clean up after its executor */
    CGROUP_MS = 2000,     /* what the kernel may take to free its memory group */
    STUCK_MS = 15000,
    LOOK_MS = 20,
    PASS_SHARE = 5,
    MANY = INT32_MAX,
    TEXT = 600,
    LAST_WORDS = 160, /* a longer last line of its log is not told */
};

int trp_local_executor_ask(struct trp_local *l, trp_executor_id id,
                           const struct trp_resource_profile *p, trp_error *err)
{
    struct trp_local_executor *e = calloc(1, sizeof *e);
    if (!e)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    e->local = l;
    e->id = id.n;
    e->slots = p->slots;
    e->memory_mib = p->total_mib;
    e->state = TRP_LOCAL_WAITS;
    trp_machine_footprint_make(p, 0, &e->ticket.request.footprint);
    bool discovers = trp_local_has_scripted(l, &e->ticket.request.footprint);
    int code =
        discovers ? 0 : trp_machine_ledger_ask(l->ledger, &e->ticket.request, err);
    if (code < 0) {
        free(e);
        return code;
    }
    HASH_ADD(hh, l->executors, id, sizeof e->id, e);
    if (!e->hh.tbl)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (discovers)
        code = trp_local_discover(e, err);
    else
        trp_local_pump_soon(l);
    if (code < 0) {
        if (e->hh.tbl)
            HASH_DEL(l->executors, e);
        trp_local_leave(l, &e->ticket.request);
        free(e);
    }
    return code;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct trp_local_executor *e = handle->data;
    struct trp_local *l = e->local;
    free(e);
    trp_local_handle_closed(l);
}

/* Out of the ledger; freed once its timer is closed. */
void trp_local_executor_forget(struct trp_local_executor *e)
{
    struct trp_local *l = e->local;
    trp_local_discovery_stop(e);
    HASH_DEL(l->executors, e);
    trp_local_leave(l, &e->ticket.request);
    if (e->has_timer)
        uv_close((uv_handle_t *)&e->timer, on_timer_closed);
    else
        free(e);
}

static void tell_gone(struct trp_local_executor *e, const struct trp_gone *g)
{
    struct trp_local *l = e->local;
    trp_executor_id id = {e->id};
    trp_local_executor_forget(e);
    trp_local_pump_soon(l);
    l->handler.gone(l->handler.context, id, g);
}

void trp_local_executor_tell(struct trp_local_executor *e)
{
    const struct trp_gone g = {.text = "withdrawn before it was started"};
    tell_gone(e, &g);
}

void trp_local_executor_failed(struct trp_local_executor *e, int code, const char *text)
{
    bool never = code == TRP_ENEVER || code == TRP_ELIMIT;
    const struct trp_gone g = {.status = never ? TRP_ENEVER : TRP_ESYSTEM,
                               .text = text};
    tell_gone(e, &g);
}

/* state/executors/ID.log of the run, malloc'ed. */
static char *log_path(const struct trp_local_executor *e)
{
    char *path;
    if (asprintf(&path, "%s/state/executors/%u.log", e->local->command.run_dir, e->id) <
        0)
        return NULL;
    return path;
}

static int open_log(const struct trp_local_executor *e)
{
    char *path = log_path(e);
    if (!path)
        return -1;
    int fd = trp_held_open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    free(path);
    return fd;
}

/* The executor was killed on purpose: it was not needed any more. */
static void drop_banners(const struct trp_local_executor *e)
{
    char *path = log_path(e);
    if (path)
        trp_log_drop_banners(path);
    free(path);
}

/* mpirun tells the executor's death by a signal as 128 + signal. */
static void describe_end(const struct trp_local_executor *e, char *cause, size_t size)
{
    int signal = e->signal;
    char last[LAST_WORDS] = "", *path = log_path(e);
    bool said = path && trp_log_last_line(path, last, sizeof last);
    free(path);
    if (!signal && e->exit_status > 128 && e->exit_status < 128 + NSIG)
        signal = e->exit_status - 128;
    const char *name = signal ? sigabbrev_np(signal) : NULL;
    char how[64];
    if (e->taken)
        snprintf(how, sizeof how, "ended, and the program took its exit status");
    else if (name)
        snprintf(how, sizeof how, "was killed by SIG%s (%d)", name, signal);
    else
        snprintf(how, sizeof how, "ended with exit status %d", e->exit_status);
    snprintf(cause, size, "%s%s%s%s", how, e->memory ? " (killed for memory)" : "",
             said ? ": " : "", last);
}

/* An mpirun that was killed leaves its files, some megabytes. */
static void remove_session_files(const struct trp_local_executor *e)
{
    char pattern[TRP_CGROUP_PATH];
    glob_t found;
    if (!e->local->mpi_folder)
        return;
    snprintf(pattern, sizeof pattern, "%s/ompi.*/pid.%d", e->local->mpi_folder, e->pid);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        size_t all = SIZE_MAX;
        trp_tree_remove(AT_FDCWD, found.gl_pathv[0], &all);
        globfree(&found);
    }
}

/* Nothing of it is left. */
static void tell_end(struct trp_local_executor *e)
{
    char text[TEXT], cause[TEXT - 128];
    if (e->hard)
        remove_session_files(e);
    bool as_told = e->dismissed || e->exit_status + e->signal == 0;
    describe_end(e, cause, sizeof cause);
    snprintf(text, sizeof text,
             "executor %u %s; see troupe-runs/%.60s/state/executors/%u.log", e->id,
             cause, e->local->command.run_name, e->id);
    if (e->dismissed && !e->memory)
        drop_banners(e);
    const struct trp_gone g = {.status = as_told ? 0 : TRP_ESYSTEM,
                               .memory = e->memory,
                               .text = text,
                               .cause = cause};
    tell_gone(e, &g);
}

static uint32_t in_cgroup(const struct trp_local_executor *e)
{
    return e->cgroup[0] && !trp_cgroup_is_empty(e->cgroup) ? 1 : 0;
}

/* Kills all; who was left? */
static uint32_t kill_rest(const struct trp_local_executor *e)
{
    uint32_t left = trp_session_signal(e->pid, SIGKILL);
    if (e->cgroup[0])
        left += (uint32_t)trp_cgroup_kill(e->cgroup);
    return left + in_cgroup(e);
}

/* Who is left, by a pass that began after the last one that it looked at? MANY: there
 * was none, it is too early for another. */
static uint32_t count_rest(struct trp_local_executor *e)
{
    struct trp_local *l = e->local;
    uint64_t now = uv_hrtime();
    if (l->passed_ns <= e->looked_ns && now >= l->pass_ns) {
        trp_processes_free(l->processes);
        l->processes = trp_processes_take();
        l->passed_ns = now;
        now = uv_hrtime();
        l->pass_ns = now + PASS_SHARE * (now - l->passed_ns);
    }
    if (l->passed_ns <= e->looked_ns || !l->processes)
        return MANY;
    e->looked_ns = l->passed_ns;
    return trp_processes_of_session(l->processes, e->pid) + in_cgroup(e);
}

/* It joins its control group before it starts anything, if it can; memory that was used
 * there tells that it did. mpirun does not. */
static bool has_joined_cgroup(const struct trp_local_executor *e)
{
    return e->cgroup[0] && !e->by_mpirun &&
           trp_cgroup_peak_mib(e->cgroup, e->local->cgroups.v2) > 0;
}

/* Of one that has ended: all that it started is in its control group, if it joined it. */
static uint32_t count_left(struct trp_local_executor *e)
{
    return has_joined_cgroup(e) ? in_cgroup(e) : count_rest(e);
}

/* The kernel frees a group some 50 ms after the last process of it; one that it does
 * not free is left to the end of the run. */
static bool remove_cgroup(struct trp_local_executor *e, bool late)
{
    if (!e->cgroup[0])
        return true;
    if (trp_cgroup_oom_kills(e->cgroup, e->local->cgroups.v2) > 0)
        e->memory = true;
    return trp_cgroup_remove(e->cgroup) || late;
}

static bool reap(struct trp_local_executor *e);

/* Looks again and again at what is left: of a session whose mpirun has ended, or of one
 * whose executor was killed. There, an mpirun that is alone is not waited for: it takes
 * it a second to get over the death of its child. */
static void on_look(uv_timer_t *timer)
{
    struct trp_local_executor *e = timer->data;
    uint64_t spent = uv_now(e->local->loop) - e->since_ms;
    if (e->state == TRP_LOCAL_RUNS && reap(e))
        return;
    if (e->state == TRP_LOCAL_RUNS) {
        e->hard = e->hard || spent > KILL_AFTER_MS || count_rest(e) <= 1;
        if (e->hard)
            kill_rest(e);
    } else {
        bool hard = e->hard || spent > LINGER_MS;
        uint32_t left = hard ? kill_rest(e) : count_left(e);
        if (left == 0 && e->exit_status + e->signal != 0)
            left = trp_commands_signal(e->local->command.run_dir, e->id, SIGKILL);
        if ((left == 0 || spent > STUCK_MS) && remove_cgroup(e, spent > CGROUP_MS)) {
            tell_end(e);
            return;
        }
    }
    uv_timer_start(timer, on_look, LOOK_MS, 0);
}

/* Looks after 1, 2, 4, … s whether it has ended: SIGCHLD may not come (see reap), and only
 * of one that has called does the driver know. An mpirun that has started nothing within
 * TRP_MPIRUN_START_MS is killed. Its log says so: the last line of that is told with its
 * end. */
static void on_coming_up(uv_timer_t *timer)
{
    struct trp_local_executor *e = timer->data;
    uint64_t spent = uv_now(e->local->loop) - e->since_ms;
    if (e->state != TRP_LOCAL_RUNS || reap(e))
        return;
    if (spent < TRP_MPIRUN_START_MS) {
        uint64_t left = TRP_MPIRUN_START_MS - spent;
        uv_timer_start(timer, on_coming_up, spent < left ? spent : left, 0);
        return;
    }
    if (!e->by_mpirun || trp_children_signal(e->pid, 0) > 0)
        return;
    int log = open_log(e);
    if (log >= 0) {
        dprintf(log, TRP_MPIRUN_LATE);
        close(log);
    }
    trp_local_executor_kill(e);
}

static void on_release_late(uv_timer_t *timer)
{
    trp_local_executor_kill(timer->data);
}

static void process_ended(struct trp_local_executor *e, int status)
{
    e->state = TRP_LOCAL_ENDS;
    e->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    e->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    e->since_ms = uv_now(e->local->loop);
    e->looked_ns = uv_hrtime();
    uv_timer_start(&e->timer, on_look, 0, 0);
}

/* Has its process ended? Asked when a child has, and of one that is killed as well: a C
 * program may block or handle SIGCHLD. One that waits for any child itself has taken the
 * status. */
static bool reap(struct trp_local_executor *e)
{
    int status = 0;
    pid_t pid = waitpid(e->pid, &status, WNOHANG);
    e->taken = pid < 0 && errno == ECHILD;
    if (pid != e->pid && !e->taken)
        return false;
    process_ended(e, e->taken ? W_EXITCODE(1, 0) : status);
    return true;
}

void trp_local_executors_reap(struct trp_local *l)
{
    struct trp_local_executor *e, *next;
    HASH_ITER(hh, l->executors, e, next) {
        if (e->state == TRP_LOCAL_RUNS)
            reap(e);
    }
}

void trp_local_executor_kill(struct trp_local_executor *e)
{
    if (e->state == TRP_LOCAL_WAITS || e->state == TRP_LOCAL_DISCOVERS) {
        trp_local_executor_release(e, false);
        return;
    }
    if (e->state != TRP_LOCAL_RUNS || reap(e))
        return;
    e->dismissed = true;
    e->since_ms = uv_now(e->local->loop);
    e->looked_ns = uv_hrtime();
    trp_mpirun_kill_program(e->pid, e->by_mpirun);
    uv_timer_start(&e->timer, on_look, LOOK_MS, 0);
}

void trp_local_executor_release(struct trp_local_executor *e, bool told)
{
    if (e->state == TRP_LOCAL_WAITS || e->state == TRP_LOCAL_DISCOVERS) {
        trp_local_discovery_stop(e);
        trp_local_leave(e->local, &e->ticket.request);
        e->state = TRP_LOCAL_WITHDRAWN;
        trp_local_pump_soon(e->local);
    } else if (e->state == TRP_LOCAL_RUNS && !told) {
        trp_local_executor_kill(e);
    } else if (e->state == TRP_LOCAL_RUNS && !e->dismissed) {
        e->dismissed = true;
        uv_timer_start(&e->timer, on_release_late, RELEASE_MS, 0);
    }
}

/* Logical processors as "0-3,8"; "" when it does not fit: then it is not bound. */
static void put_cpuset(const struct trp_local_executor *e, char *text, size_t size)
{
    const struct trp_request *r = &e->ticket.request;
    const uint32_t *cpus = e->local->machine.cpus;
    size_t at = 0;
    text[0] = '\0';
    for (uint64_t i = 0, end; i < r->footprint.cores; i = end) {
        end = i + 1;
        while (end < r->footprint.cores &&
               cpus[r->cores[end]] == cpus[r->cores[end - 1]] + 1)
            end++;
        uint32_t from = cpus[r->cores[i]], to = cpus[r->cores[end - 1]];
        int n = snprintf(text + at, size - at, from == to ? "%s%u" : "%s%u-%u",
                         at ? "," : "", from, to);
        at += (size_t)n;
        if (at >= size) {
            text[0] = '\0';
            return;
        }
    }
}

static char *make_entry(const struct trp_local_executor *e, trp_error *err)
{
    struct trp_executor_shape shape = {.id = e->id,
                                       .cores =
                                           (uint32_t)e->ticket.request.footprint.cores,
                                       .slots = e->slots,
                                       .memory_mib = e->memory_mib};
    if (e->local->binds)
        put_cpuset(e, shape.cpuset, sizeof shape.cpuset);
    snprintf(shape.cgroup, sizeof shape.cgroup, "%s", e->cgroup);
    return trp_executor_entry(&e->local->command, e->local->driver_address, &shape,
                              err);
}

/* A machine without memory groups is served all the same: the executor then watches its
 * tasks' memory itself. */
static void make_cgroup(struct trp_local_executor *e)
{
    char name[96];
    const struct trp_local *l = e->local;
    if (!l->cgroups.usable || e->memory_mib <= 0)
        return;
    snprintf(name, sizeof name, "%s-%u", l->mark, e->id);
    if (!trp_cgroup_memory_make(&l->cgroups, name, e->memory_mib, e->cgroup))
        e->cgroup[0] = '\0';
}

static int start_process(struct trp_local_executor *e, trp_error *err)
{
    const struct trp_executor_command *c = &e->local->command;
    e->by_mpirun = *c->ompi_server != '\0';
    make_cgroup(e);
    char *entry = make_entry(e, err);
    if (!entry)
        return err->code;
    const char *more[] = {entry, NULL};
    char **argv = trp_mpirun_argv(c->ompi_server, c->argv);
    char **env = trp_mpirun_environ(environ, e->local->mpi_folder, more);
    int log = open_log(e), code = 0, error;
    if (!argv || !env)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (log < 0)
        code = trp_error_set(err, TRP_ESYSTEM, "cannot open the log of executor %u: %m",
                             e->id);
    else if ((error = trp_child_start(argv, env, (int[]){-1, log, log}, &e->pid)) != 0)
        code = trp_error_set(err, error == ENOENT ? TRP_ENEVER : TRP_EWAIT,
                             "cannot start executor %u: %s: %s", e->id, argv[0],
                             strerror(error));
    if (log >= 0)
        close(log);
    trp_argv_free(argv);
    trp_argv_free(env);
    free(entry);
    return code;
}

void trp_local_executor_serve(struct trp_local_executor *e)
{
    struct trp_local *l = e->local;
    trp_error err;
    int code = start_process(e, &err);
    if (code < 0) {
        if (e->cgroup[0])
            trp_cgroup_remove(e->cgroup);
        bool never = code == TRP_ENEVER || code == TRP_ELIMIT;
        const struct trp_gone g = {.status = never ? TRP_ENEVER : TRP_EWAIT,
                                   .text = err.text};
        tell_gone(e, &g);
        return;
    }
    char what[64];
    e->state = TRP_LOCAL_RUNS;
    e->timer.data = e;
    uv_timer_init(l->loop, &e->timer);
    e->has_timer = true;
    l->handles++;
    e->since_ms = uv_now(l->loop);
    uv_timer_start(&e->timer, on_coming_up, COMING_UP_MS, 0);
    snprintf(what, sizeof what, "%sexecutor %u", e->by_mpirun ? "mpirun of " : "",
             e->id);
    trp_run_folder_pid(l->command.run_dir, e->pid, what);
    struct trp_granted granted = {.host = l->machine.host,
                                  .resources = e->ticket.request.devices,
                                  .nresources = e->ticket.request.footprint.ndevices};
    l->handler.granted(l->handler.context, (trp_executor_id){e->id}, &granted);
}

bool trp_local_executor_close(struct trp_local_executor *e, bool hard)
{
    if (e->state == TRP_LOCAL_RUNS) {
        int status;
        trp_mpirun_kill_program(e->pid, e->by_mpirun);
        if (hard)
            kill(e->pid, SIGKILL);
        if (waitpid(e->pid, &status, WNOHANG) == 0)
            return false;
        e->state = TRP_LOCAL_ENDS;
        e->looked_ns = uv_hrtime();
        drop_banners(e);
    }
    if (e->state == TRP_LOCAL_ENDS && (hard ? kill_rest(e) : count_rest(e)) > 0)
        return false;
    if (e->cgroup[0] && !trp_cgroup_remove(e->cgroup))
        return false;
    trp_local_executor_forget(e);
    return true;
}
