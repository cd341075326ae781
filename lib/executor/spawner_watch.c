/*
 * Is the spawner at work? And what is done about one that is not.
 *
 * The parent asks by a frame, once a second while attempts are with the spawner, which
 * answers by counting in the memory that both share: nobody is woken by an answer. One
 * that is silent for 3 s is given up when the kernel says that it is stopped, any other
 * after 10 s: a slow file system, on which it opens a log or starts a program, is no
 * reason to lose the work of all other tasks. Both are counted in time in which the
 * parent itself looked, so that an executor that was suspended with its spawner, as
 * Slurm does it with whole jobs, does not take its own absence for the spawner's.
 *
 * Rejected: opening logs in a thread or process of its own. It costs each attempt a
 * switch of context, and the exec behind it can hang as well.
 *
 * What a dead spawner leaves. Main processes die with it (PR_SET_PDEATHSIG), what these
 * had started does not. It is found, in one pass over /proc, by the spawner's session,
 * by the token in its environment, as a child of the parent where that is the
 * subreaper, and as a child of any of these; killed, and looked for again until two
 * passes in a row find nothing, since a process may start another one behind the
 * reader's back.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/time.h"
#include "executor/spawner_internal.h"
#include "os/clock.h"
#include "os/process.h"

#define PING_NS (1000 * TRP_MS)
enum { STOPPED_MS = 3000, HANGS_MS = 10000 };
enum { DEATH_MS = 200, BURY_MS = 5000, LOOK_MS = 2, SCRATCH_ENTRIES = 50000 };

/* ---- is it at work? -------------------------------------------------------------- */

static void tell_death(trp_spawner *s, int status)
{
    struct trp_spawner_fate *f = &s->fate;
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        f->signal = WTERMSIG(status);
        snprintf(f->text, sizeof f->text, "was killed by %s%s (%d)",
                 name ? "SIG" : "signal", name ? name : "", f->signal);
    } else if (WEXITSTATUS(status)) {
        snprintf(f->text, sizeof f->text, "ended with exit status %d",
                 WEXITSTATUS(status));
    } else {
        snprintf(f->text, sizeof f->text, "ended");
    }
}

static bool has_died(trp_spawner *s)
{
    int status = 0;
    if (s->reaped || waitpid(s->pid, &status, WNOHANG) == 0)
        return s->reaped;
    s->reaped = true;
    if (!s->fate.text[0])
        tell_death(s, status);
    return true;
}

static bool is_stopped(const trp_spawner *s)
{
    struct trp_process p;
    return trp_process_read(s->pid, &p) && p.state == 'T';
}

bool trp_spawner_is_lost(trp_spawner *s, int64_t waited_ns)
{
    if (s->fate.text[0] || has_died(s))
        return true;
    bool stopped = waited_ns >= STOPPED_MS * TRP_MS && is_stopped(s);
    if (!stopped && waited_ns < HANGS_MS * TRP_MS)
        return false;
    s->fate.hangs = true;
    if (stopped)
        snprintf(s->fate.text, sizeof s->fate.text, "was stopped");
    else
        snprintf(s->fate.text, sizeof s->fate.text, "hung for %d s", HANGS_MS / 1000);
    return true;
}

/* One frame, one small send, which a socket takes whole or not at all. */
static bool ping(trp_spawner *s)
{
    static const uint8_t frame[] = {1, 0, 0, 0, TRP_FRAME_PING};
    if (send(s->socket, frame, sizeof frame, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof frame)
        return false;
    s->asked++;
    return true;
}

int64_t trp_spawner_next_look(const trp_spawner *s)
{
    return s->looked_ns + PING_NS;
}

int trp_spawner_look(trp_spawner *s, int64_t now_ns)
{
    bool answered = atomic_load(&s->shared->answered) == s->asked;
    bool silent = s->waits && (s->unsent || !answered);
    bool away = now_ns - s->looked_ns > 2 * PING_NS;
    if (trp_spawner_is_lost(s, silent && !away ? now_ns - s->waits_since_ns : 0))
        return TRP_ESYSTEM;
    if (!silent || away)
        s->waits_since_ns = now_ns;
    s->waits = true;
    if (answered)
        s->unsent = !ping(s); /* its socket is full: it reads nothing */
    s->looked_ns = now_ns;
    return TRP_OK;
}

/* ---- what a dead one leaves ------------------------------------------------------ */

struct family {
    const trp_spawner *spawner;
    struct trp_process *all;
    bool *member;
    int n;
    bool adopted;
};

static bool is_member(const struct family *f, int i)
{
    const struct trp_process *p = &f->all[i];
    pid_t spawner = f->spawner->pid;
    uint64_t attempt;
    return p->session == spawner || p->parent == spawner ||
           (f->adopted && p->parent == getpid()) ||
           trp_process_token(p->pid, f->spawner->token, &attempt);
}

/* Marks children of members; true when there was one more. */
static bool mark_children(struct family *f)
{
    bool changed = false;
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < f->n && !f->member[i]; k++)
            if (f->member[k] && f->all[i].parent == f->all[k].pid)
                changed = f->member[i] = true;
    return changed;
}

/* One pass; how many live that a signal reaches. */
static uint32_t kill_family(const trp_spawner *s, bool adopted)
{
    struct family f = {.spawner = s, .adopted = adopted};
    uint32_t left = 0;
    f.n = trp_process_list(&f.all);
    f.member = f.n > 0 ? calloc((size_t)f.n, sizeof *f.member) : NULL;
    for (int i = 0; f.member && i < f.n; i++)
        f.member[i] = is_member(&f, i);
    while (f.member && mark_children(&f))
        ;
    for (int i = 0; f.member && i < f.n; i++) {
        const struct trp_process *p = &f.all[i];
        if (!f.member[i] || p->pid == s->pid || p->pid == getpid() || p->state == 'Z' ||
            p->state == 'X')
            continue;
        if (kill(p->pid, SIGKILL) == 0)
            left++;
    }
    free(f.member);
    free(f.all);
    return left;
}

uint32_t trp_spawner_bury(trp_spawner *s, bool adopted,
                          struct trp_spawner_fate *ret_fate)
{
    uint32_t left = 1;
    /* Its socket closes a moment before it has ended. */
    for (int i = 0; i < DEATH_MS && s->gone && !has_died(s); i++)
        poll(NULL, 0, 1);
    if (!has_died(s) && !s->fate.text[0]) {
        s->fate.hangs = true;
        snprintf(s->fate.text, sizeof s->fate.text, "did not end");
    }
    if (!s->reaped)
        kill(s->pid, SIGKILL);
    int64_t deadline = trp_clock_ns() + BURY_MS * TRP_MS;
    for (int clean = 0; clean < 2 && trp_clock_ns() < deadline;) {
        left = kill_family(s, adopted);
        clean = left ? 0 : clean + 1;
        if (left)
            poll(NULL, 0, LOOK_MS);
    }
    /* Where it cannot even die, removing what lies beside it would hang as well. */
    if (has_died(s) && left == 0)
        trp_scratch_remove(s->shared, s->scratch, SCRATCH_ENTRIES);
    if (ret_fate)
        *ret_fate = s->fate;
    return left;
}
