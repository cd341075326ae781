/*
 * Finds and kills the processes that a command leaves behind: strays.
 *
 * The spawner is the subreaper: a process whose parents are gone becomes its child. So
 * while any descendant of an ended attempt lives, one of them is a direct child of the
 * spawner and not the main process of an attempt. We look at those children only, kill
 * the strays, and look again when one dies: its children are ours by then.
 *
 * The token in its environment says whose a stray is. When it has cleared its
 * environment, its process group does (every command leads one). We kill one that
 * belongs to no live attempt.
 *
 * Cost. Most commands leave nothing, and looking must cost them nothing. /proc/loadavg
 * has the pid that was given out last. When its distance from the pid of the attempt is
 * the number of processes we started since, nobody else made a process, and no stray
 * can exist: one read. Otherwise, when the attempt was too short for pids to wrap
 * around, we check the few pids given out since. Otherwise we read the list of our
 * children where the kernel has one (CONFIG_PROC_CHILDREN, as in Debian), else all of
 * /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"

#include "executor/spawner_internal.h"
#include "os/process.h"

enum { ENVIRONMENT_MAX = 8 << 20, WINDOW_PIDS = 512, WINDOW_NS = 100000000 };

/* Our children: from the kernel's list, or from all of /proc. */
static int list_children(struct trp_keeper *k, struct trp_process **ret)
{
    struct trp_process *all = NULL;
    int n = 0;
    uint32_t capacity = 0;
    if (k->children < 0) {
        int total = trp_process_list(&all);
        for (int i = 0; i < total; i++)
            if (all[i].parent == k->self)
                all[n++] = all[i];
        *ret = all;
        return n;
    }
    char text[4096 + 1];
    size_t kept = 0;
    off_t at = 0;
    for (ssize_t got; (got = pread(k->children, text + kept, 4096 - kept, at)) > 0;) {
        at += got;
        text[kept + (size_t)got] = '\0';
        char *p = text;
        for (char *space; (space = strchr(p, ' ')); p = space + 1) {
            struct trp_process one;
            *space = '\0';
            if (!trp_process_read((pid_t)strtol(p, NULL, 10), &one))
                continue;
            if (!TRP_ARRAY_GROW(all, (uint32_t)n, capacity))
                break;
            all[n++] = one;
        }
        kept = strlen(p);
        memmove(text, p, kept + 1);
    }
    *ret = all;
    return n;
}

bool trp_process_token(pid_t pid, const char *token, uint64_t *ret_attempt)
{
    char path[64];
    struct trp_buf env = {0};
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t n = 1; n > 0 && env.size < ENVIRONMENT_MAX;) {
        uint8_t *to = trp_buf_reserve(&env, 4096);
        n = to ? read(fd, to, 4096) : 0;
        env.size -= to ? 4096 - (size_t)(n > 0 ? n : 0) : 0;
    }
    close(fd);
    trp_put_u8(&env, 0);
    const char *at = env.failed || !env.size
                         ? NULL
                         : memmem(env.data, env.size, token, strlen(token));
    if (at)
        *ret_attempt = strtoull(at + strlen(token) + 1, NULL, 16);
    trp_buf_free(&env);
    return at != NULL;
}

struct trp_running *trp_strays_owner(struct trp_keeper *k, pid_t pid, pid_t group)
{
    uint64_t attempt;
    bool token = trp_process_token(pid, k->token, &attempt);
    for (uint32_t i = 0; i < k->nrunning; i++) {
        struct trp_running *r = &k->running[i];
        if (r->state != TRP_RUN_FREE &&
            (token ? r->attempt.n == attempt : r->pid == group))
            return r;
    }
    return NULL;
}

/* The pid that was given out last; -1: not known. */
static long long last_pid(const struct trp_keeper *k)
{
    char text[128];
    ssize_t n = k->loadavg >= 0 ? pread(k->loadavg, text, sizeof text - 1, 0) : -1;
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *last = strrchr(text, ' ');
    return last ? strtoll(last + 1, NULL, 10) : -1;
}

/* A child of ours that is neither a main process nor a helper. */
static bool is_stray(const struct trp_keeper *k, pid_t pid)
{
    struct trp_process p;
    if (trp_running_of(k, pid) || (kill(pid, 0) != 0 && errno == ESRCH))
        return false;
    return trp_process_read(pid, &p) && p.parent == k->self;
}

bool trp_strays_none(const struct trp_keeper *k, const struct trp_running *r)
{
    long long last = last_pid(k), births = (long long)(k->births - r->births);
    if (last == r->pid + births)
        return true;
    if (last < r->pid || last - r->pid > WINDOW_PIDS || r->end.duration_ns > WINDOW_NS)
        return false;
    for (long long pid = r->pid + 1; pid <= last; pid++)
        if (is_stray(k, (pid_t)pid))
            return false;
    return true;
}

/* The whole group, when it is nobody's who lives. */
static bool may_kill_group(const struct trp_keeper *k, pid_t group)
{
    if (group <= 1 || group == getpgrp())
        return false;
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state == TRP_RUN_LIVE && k->running[i].pid == group)
            return false;
    return true;
}

uint32_t trp_strays_kill(struct trp_keeper *k)
{
    struct trp_process *child = NULL;
    int n = list_children(k, &child);
    uint32_t left = 0;
    for (int i = 0; i < n; i++) {
        if (trp_running_of(k, child[i].pid))
            continue;
        struct trp_running *r = trp_strays_owner(k, child[i].pid, child[i].group);
        if (r && r->state == TRP_RUN_LIVE)
            continue;
        if (child[i].state == 'Z') {
            left++; /* its end is about to be told */
            continue;
        }
        if (may_kill_group(k, child[i].group))
            kill(-child[i].group, SIGKILL);
        if (kill(child[i].pid, SIGKILL) == 0 || errno != EPERM)
            left++;
    }
    free(child);
    return left;
}
