/*
 * How an attempt ends.
 *
 *     LIVE      main process died      → its group is killed, its status read
 *     DRAINING  no stray of it is left → scratch folder looked at
 *     CLEANING  a helper has removed a large scratch folder
 *     LOOKING   an output of it is not there yet, which may be late
 *     FREE      its end is recorded; the next of its stage's queue takes its place
 *
 * The group is killed while the main process is still a zombie, so that its number
 * cannot belong to a stranger. Strays that cannot be killed (set-user-id programs, or
 * stuck in the kernel) hold the end up for 10 s at most.
 *
 * When the parent is gone the order is: kill everything, last words, close their socket
 * (the driver must not wait for us), reap, remove the scratch root, exit.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/time.h"
#include "executor/spawner_internal.h"
#include "os/clock.h"
#include "os/tree.h"

enum { REMOVE_HERE = 2000, SOFT_MS = 5000, GANG_MS = 2000, DRAIN_MS = 10000 };

void trp_scratch_name(const struct trp_keeper *k, const struct trp_running *r,
                      char *buf, size_t size)
{
    unsigned entry = (unsigned)(r - k->running);
    if (r->generation)
        snprintf(buf, size, "%u.%u", entry, r->generation);
    else
        snprintf(buf, size, "%u", entry);
}

void trp_keeper_report(struct trp_keeper *k, const struct trp_end *end)
{
    if (k->ends.size == 0)
        trp_ends_begin(&k->ends);
    trp_ends_put(&k->ends, end);
    if (k->held++ == 0)
        k->held_since = trp_clock_ns();
    k->urgent |= end->status != TRP_END_SUCCESS;
    k->ends_made++;
}

void trp_keeper_refuse(struct trp_keeper *k, trp_attempt_id attempt, const char *fmt,
                       ...)
{
    char text[TRP_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct trp_end end = {
        .attempt = attempt,
        .status = TRP_END_START,
        .extra = (const uint8_t *)text,
        .extra_size = (uint32_t)strlen(text),
    };
    trp_keeper_report(k, &end);
}

/* Are the outputs there of an attempt that ended well? If not, it has failed, as `text`
 * says, or was killed meanwhile, or (false) is looked at again. */
static bool settle_outputs(struct trp_running *r, char *text, size_t size)
{
    char missing[TRP_ERROR_TEXT / 2];
    int64_t now = trp_clock_ns();
    if (r->end.status != TRP_END_SUCCESS || !r->outputs)
        return true;
    trp_outputs_missing(r, missing, sizeof missing);
    if (!*missing)
        return true;
    if (r->cause == TRP_END_KILLED) {
        r->end.status = TRP_END_KILLED;
        return true;
    }
    if (now - r->drain_ns < r->stage->command.outputs_wait_ns) {
        r->look_ns = r->state == TRP_RUN_LOOKING ? 2 * r->look_ns : 10 * TRP_MS;
        if (r->look_ns > 1000 * TRP_MS)
            r->look_ns = 1000 * TRP_MS;
        r->look_at_ns = now + r->look_ns;
        r->state = TRP_RUN_LOOKING;
        return false;
    }
    snprintf(text, size, "%s", missing);
    r->end.status = TRP_END_OUTPUT;
    r->end.extra = (const uint8_t *)text;
    r->end.extra_size = (uint32_t)strlen(text);
    return true;
}

/* The very last step of an attempt. Its place is passed on first, so that nothing is idle
 * while its logs are looked at; its end is sent behind both. */
static void finish_attempt(struct trp_keeper *k, struct trp_running *r)
{
    char text[TRP_ERROR_TEXT];
    if (r->gang && r->state != TRP_RUN_LOOKING)
        trp_gang_finish(k, r, &r->end, text, sizeof text);
    if (!settle_outputs(r, text, sizeof text))
        return;
    trp_keeper_report(k, &r->end);
    const struct trp_running ended = *r;
    char *resources = r->resources;
    r->stage = NULL;
    trp_outputs_forget(r);
    r->resources = NULL;
    r->state = TRP_RUN_FREE;
    k->live--;
    if (!ended.gang) /* `r` may be used again, or moved */
        trp_keeper_pass_place(k, ended.stage, &resources);
    trp_logs_settle(k, &ended);
    trp_command_stage_release(k, ended.stage);
}

/* A scratch folder with many entries: another process removes it, or the loop would
 * stand still. */
static bool start_helper(struct trp_keeper *k, struct trp_running *r, const char *name)
{
    k->births++;
    pid_t pid = fork();
    if (pid == 0) {
        size_t budget = SIZE_MAX;
        _exit(trp_tree_remove(k->scratch, name, &budget) == TRP_OK ? 0 : 1);
    }
    if (pid < 0)
        return false;
    r->helper = pid;
    r->state = TRP_RUN_CLEANING;
    return true;
}

static void clean(struct trp_keeper *k, struct trp_running *r)
{
    char name[32];
    size_t budget = REMOVE_HERE;
    trp_scratch_name(k, r, name, sizeof name);
    r->look_at_ns = INT64_MAX;
    if (!trp_scratch_give(&r->scratch, k->scratch, name)) {
        int left = trp_tree_remove(k->scratch, name, &budget);
        if (left == TRP_EWAIT && start_helper(k, r, name))
            return;
        if (left != TRP_OK)
            r->generation++; /* it stays until the end; the next one gets another */
    }
    finish_attempt(k, r);
}

/* Looks whether anything of an ended attempt is left. */
static void settle_attempt(struct trp_keeper *k, struct trp_running *r, int64_t now)
{
    if (trp_strays_kill(k) == 0 || now - r->drain_ns > DRAIN_MS * TRP_MS) {
        clean(k, r);
        return;
    }
    r->look_ns = r->look_ns ? 2 * r->look_ns : TRP_MS;
    if (r->look_ns > 50 * TRP_MS)
        r->look_ns = 50 * TRP_MS;
    r->look_at_ns = now + r->look_ns;
}

static int64_t cpu_ns(const struct rusage *u)
{
    return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * INT64_C(1000000000) +
           (u->ru_utime.tv_usec + u->ru_stime.tv_usec) * INT64_C(1000);
}

/* How it ended, from what wait4 told and why we killed it. */
static void judge(struct trp_keeper *k, struct trp_running *r, int status)
{
    struct trp_end *e = &r->end;
    bool by_kill = false;
    if (WIFEXITED(status)) {
        e->status = WEXITSTATUS(status) ? TRP_END_EXIT : TRP_END_SUCCESS;
        e->code = WEXITSTATUS(status);
        by_kill = e->code == 128 + SIGKILL; /* as shells and mpirun tell it */
    } else {
        e->status = TRP_END_SIGNAL;
        e->code = WTERMSIG(status);
        by_kill = e->code == SIGKILL;
    }
    if (r->cause == TRP_END_KILLED && e->status == TRP_END_SUCCESS && !r->asked) {
        return; /* it was done before the kill came */
    } else if (r->cause != TRP_END_SUCCESS) {
        e->status = r->cause;
        e->code = 0;
    } else if (trp_memory_killed(k, r, by_kill, e->status == TRP_END_SUCCESS)) {
        e->status = TRP_END_MEMORY;
        int64_t peak = trp_memory_peak_kib(k);
        if (peak > e->peak_kib)
            e->peak_kib = peak;
    }
    if (e->status == TRP_END_MEMORY)
        e->code = SIGKILL;
    if (e->status == TRP_END_MEMORY ||
        (e->status == TRP_END_SUCCESS && trp_memory_unclear(k, r)))
        e->limit_mib = k->config.memory_mib;
}

static void main_ended(struct trp_keeper *k, struct trp_running *r)
{
    int status = 0;
    struct rusage usage;
    int64_t now = trp_clock_ns();
    kill(-r->pid, SIGKILL);
    wait4(r->pid, &status, 0, &usage);
    r->end = (struct trp_end){
        .attempt = r->attempt,
        .duration_ns = now - r->started_ns,
        .cpu_ns = cpu_ns(&usage),
        .peak_kib = usage.ru_maxrss > r->pss_kib ? usage.ru_maxrss : r->pss_kib,
    };
    judge(k, r, status);
    r->state = TRP_RUN_DRAINING;
    r->timeout_at_ns = r->begin_at_ns = r->kill_at_ns = INT64_MAX;
    r->drain_ns = now;
    if (trp_strays_none(k, r))
        clean(k, r);
    else
        settle_attempt(k, r, now);
}

static void helper_ended(struct trp_keeper *k, struct trp_running *r)
{
    int status = 1;
    waitpid(r->helper, &status, 0);
    if (status != 0)
        r->generation++;
    finish_attempt(k, r);
}

struct trp_running *trp_running_of(const struct trp_keeper *k, pid_t pid)
{
    for (uint32_t i = 0; i < k->nrunning; i++) {
        struct trp_running *r = &k->running[i];
        if ((r->state == TRP_RUN_LIVE && r->pid == pid) ||
            (r->state == TRP_RUN_CLEANING && r->helper == pid))
            return r;
    }
    return NULL;
}

void trp_keeper_reap(struct trp_keeper *k)
{
    bool strays = false;
    for (;;) {
        siginfo_t dead = {.si_pid = 0};
        if (waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            dead.si_pid == 0)
            break;
        struct trp_running *r = trp_running_of(k, dead.si_pid);
        if (!r) {
            waitpid(dead.si_pid, NULL, 0);
            strays = true;
        } else if (r->state == TRP_RUN_LIVE) {
            main_ended(k, r);
        } else {
            helper_ended(k, r);
        }
    }
    int64_t now = trp_clock_ns();
    for (uint32_t i = 0; strays && i < k->nrunning; i++)
        if (k->running[i].state == TRP_RUN_DRAINING)
            settle_attempt(k, &k->running[i], now);
}

void trp_running_kill(struct trp_running *r, uint8_t cause, bool soft)
{
    if (r->cause == TRP_END_SUCCESS)
        r->cause = cause;
    if (r->state == TRP_RUN_LOOKING)
        r->look_at_ns = 0;
    if (r->state != TRP_RUN_LIVE)
        return;
    r->timeout_at_ns = INT64_MAX;
    r->polite = soft && r->by_srun;
    if (r->polite) {
        r->asked = true;
        /* srun would kill them for a SIGTERM: the backend has Slurm send them one. */
        r->kill_at_ns = trp_clock_ns() + SOFT_MS * TRP_MS;
        return;
    }
    /* mpirun, when asked politely, ends its ranks and removes what it made in /dev/shm
     * and elsewhere. */
    int64_t grace = soft ? SOFT_MS * TRP_MS : r->gang ? GANG_MS * TRP_MS : 0;
    if (grace == 0) {
        kill(-r->pid, SIGKILL);
        return;
    }
    int64_t at = trp_clock_ns() + grace;
    r->asked = true;
    kill(-r->pid, SIGTERM);
    kill(-r->pid, SIGCONT);
    r->kill_at_ns = trp_earlier(r->kill_at_ns, at);
}

void trp_keeper_timers(struct trp_keeper *k, int64_t now)
{
    for (uint32_t i = 0; i < k->nrunning; i++) {
        struct trp_running *r = &k->running[i];
        if (r->state == TRP_RUN_LIVE && now >= r->timeout_at_ns)
            trp_running_kill(r, TRP_END_TIMEOUT, false);
        if (r->state == TRP_RUN_LIVE && now >= r->begin_at_ns) {
            r->begin_at_ns = INT64_MAX;
            if (!trp_gang_has_begun(k, r))
                trp_running_kill(r, TRP_END_RECALLED, false);
        }
        if (r->state == TRP_RUN_LIVE && now >= r->kill_at_ns) {
            r->kill_at_ns = INT64_MAX;
            if (r->polite)
                trp_running_kill(r, r->cause, false);
            else
                kill(-r->pid, SIGKILL);
        }
        if (r->state == TRP_RUN_DRAINING && now >= r->look_at_ns)
            settle_attempt(k, r, now);
        else if (r->state == TRP_RUN_LOOKING && now >= r->look_at_ns)
            finish_attempt(k, r);
    }
    if (now >= k->sample_at_ns)
        trp_memory_tick(k, now);
}

int64_t trp_keeper_next_timer(const struct trp_keeper *k)
{
    int64_t next = k->sample_at_ns;
    for (uint32_t i = 0; i < k->nrunning; i++) {
        const struct trp_running *r = &k->running[i];
        if (r->state == TRP_RUN_FREE)
            continue;
        next = trp_earlier(next, r->timeout_at_ns);
        next = trp_earlier(next, r->begin_at_ns);
        next = trp_earlier(next, r->kill_at_ns);
        next = trp_earlier(next, r->look_at_ns);
    }
    return next;
}

/* ---- the end of the process ------------------------------------------------------ */

static bool gangs_live(const struct trp_keeper *k)
{
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state == TRP_RUN_LIVE && k->running[i].gang)
            return true;
    return false;
}

static void kill_all(struct trp_keeper *k, bool gangs_too)
{
    for (uint32_t i = 0; i < k->nrunning; i++) {
        struct trp_running *r = &k->running[i];
        if (r->state != TRP_RUN_LIVE || (r->gang && !gangs_too))
            continue;
        kill(-r->pid, SIGKILL);
        r->state = TRP_RUN_DRAINING;
    }
}

/* Reaps until nothing is left, or for 3.5 s. */
static void reap_all(struct trp_keeper *k)
{
    int64_t begin = trp_clock_ns(), now = begin;
    bool gangs = gangs_live(k);
    while (now - begin < 3500 * TRP_MS) {
        pid_t pid;
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
            struct trp_running *r = trp_running_of(k, pid);
            if (r)
                r->state = TRP_RUN_DRAINING;
        }
        if (pid < 0 && errno == ECHILD)
            return;
        if (gangs && (now - begin > GANG_MS * TRP_MS || !gangs_live(k))) {
            kill_all(k, true);
            gangs = false;
        }
        trp_strays_kill(k);
        poll(NULL, 0, 5);
        now = trp_clock_ns();
    }
}

_Noreturn void trp_keeper_end(struct trp_keeper *k, bool parent_lost)
{
    struct trp_last_words last_words = {0};
    if (parent_lost && k->last_words.fd >= 0)
        trp_memory_last_words(k, &last_words);
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state == TRP_RUN_LIVE && k->running[i].gang)
            kill(-k->running[i].pid, SIGTERM);
    kill_all(k, false);
    if (last_words.said)
        trp_last_words_say(&k->last_words, &last_words);
    if (k->last_words.fd >= 0)
        close(k->last_words.fd);
    reap_all(k);
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state != TRP_RUN_FREE)
            trp_logs_settle(k, &k->running[i]);
    trp_memory_end(k);
    trp_scratch_remove(k->shared, k->config.scratch, SIZE_MAX);
    _exit(0);
}
