/*
 * Memory: who is over the limit, and who is to blame.
 *
 * In a cgroup the kernel enforces the limit; we only learn of it. Each command is in a group
 * of its own below the executor's, where these can be made: in one that was made for the
 * executor, by version 1 (in version 2 none can be where processes are; a step's of Slurm
 * could not be removed if the spawner were killed, and Slurm counts no kill below it). Its counter says
 * whether any process of the command was killed, also one whose status a pipe hides. To join
 * costs one write, by the child, which has one thread: moving a whole process would have the
 * kernel hold up all forks for some 12 ms.
 *
 * Without such groups there is one counter for all. An attempt that was killed while it had
 * grown is told as killed for memory, and takes one off what has not been accounted for; so is
 * any that ran alone. Of several that ended well meanwhile it is not known whose the process
 * was: they are told as unclear.
 *
 * Without one, every 200 ms while something runs: the resident sizes of all attempts'
 * process trees are added up. They count shared pages more than once, so a sum below
 * the limit is certainly below it and costs one read a process; only above it are the
 * proportional sizes (smaps_rollup, slow for large processes) read, and the largest
 * attempt is killed when those are above, too. Pages of mapped files are left out: the
 * kernel takes them back when memory is short, in a cgroup as well. With a watched
 * parent its own memory counts; when it is the largest, it is the one that is killed.
 *
 * Functions share a process. When that dies for memory, the one to blame is the thread
 * with the most minor faults (pages touched) since its task began, as last seen.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/spawner_internal.h"
#include "os/clock.h"
#include "os/process.h"

#define SAMPLE_NS INT64_C(200000000)
enum { NOBODY = -1, PARENT = -2, CHAIN_MAX = 256 };

static bool has_cgroup(const struct trp_keeper *k)
{
    return k->config.cgroup[0] != '\0';
}

static int open_in_cgroup(const struct trp_keeper *k, const char *v1, const char *v2)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", k->config.cgroup, v1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    snprintf(path, sizeof path, "%s/%s", k->config.cgroup, v2);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The number behind `key` (at a line's begin; "" the file's only number), or 0. */
static uint64_t read_number(int fd, const char *key)
{
    char text[1024];
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
    size_t length = strlen(key);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0)
            return strtoull(line + length, NULL, 10);
    }
    return 0;
}

static uint64_t oom_kills(const struct trp_keeper *k)
{
    return read_number(k->cgroup_events, "oom_kill ");
}

static void group_path(const struct trp_keeper *k, const struct trp_running *r,
                       const char *file, char *buf, size_t size)
{
    snprintf(buf, size, "%s/c%u%s", k->config.cgroup, (unsigned)(r - k->running), file);
}

/* Whether a group in the executor's is under its limit, and has a counter. */
static bool can_make_groups(const struct trp_keeper *k)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/memory.use_hierarchy", k->config.cgroup);
    int fd = k->config.own_cgroup ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool can = read_number(fd, "") == 1;
    if (fd >= 0)
        close(fd);
    return can;
}

void trp_memory_open(struct trp_keeper *k)
{
    k->cgroup_events = k->cgroup_peak = -1;
    k->sample_at_ns = INT64_MAX;
    if (!has_cgroup(k))
        return;
    k->cgroup_events = open_in_cgroup(k, "memory.oom_control", "memory.events");
    k->cgroup_peak = open_in_cgroup(k, "memory.max_usage_in_bytes", "memory.peak");
    k->oom_seen = oom_kills(k);
    k->makes_groups = can_make_groups(k);
}

int trp_memory_group(struct trp_keeper *k, struct trp_running *r)
{
    struct trp_command_group *g = &r->group;
    char path[4300];
    if (k->live == 0) /* kills while nothing ran are nobody's */
        k->oom_seen = oom_kills(k);
    r->kills_before = oom_kills(k);
    if (!k->makes_groups)
        return -1;
    if (!g->tried) {
        g->tried = true;
        group_path(k, r, "", path, sizeof path);
        bool made = mkdir(path, 0755) == 0;
        group_path(k, r, "/tasks", path, sizeof path);
        g->tasks = made ? open(path, O_WRONLY | O_CLOEXEC) : -1;
        group_path(k, r, "/memory.oom_control", path, sizeof path);
        g->events = made ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        g->has = g->tasks >= 0 && g->events >= 0;
    }
    if (!g->has)
        return -1;
    g->seen = read_number(g->events, "oom_kill ");
    return g->tasks;
}

/* It is alone while no other command is without a group. */
static void note_alone(struct trp_keeper *k, struct trp_running *r)
{
    r->alone = true;
    for (uint32_t i = 0; i < k->nrunning; i++) {
        struct trp_running *o = &k->running[i];
        if (o != r && o->state != TRP_RUN_FREE && !o->grouped)
            o->alone = r->alone = false;
    }
}

void trp_memory_begin(struct trp_keeper *k, struct trp_running *r)
{
    if (r && has_cgroup(k)) {
        if (!r->grouped)
            note_alone(k, r);
        return;
    }
    if (k->sample_at_ns == INT64_MAX && (k->config.memory_mib > 0 || has_cgroup(k)))
        k->sample_at_ns = trp_clock_ns() + SAMPLE_NS;
}

bool trp_memory_killed(struct trp_keeper *k, const struct trp_running *r, bool by_kill,
                       bool good)
{
    if (r->grouped)
        return read_number(r->group.events, "oom_kill ") > r->group.seen;
    uint64_t kills = oom_kills(k);
    /* Another exit status may come from a command whose helper was killed; with several
     * attempts it could be anybody's. */
    if (kills <= k->oom_seen || (!by_kill && !r->alone) ||
        (good && kills <= r->kills_before))
        return false;
    k->oom_seen = by_kill ? k->oom_seen + 1 : kills;
    return true;
}

bool trp_memory_unclear(const struct trp_keeper *k, const struct trp_running *r)
{
    uint64_t kills = r->grouped ? 0 : oom_kills(k);
    return kills > r->kills_before && kills > k->oom_seen;
}

void trp_memory_end(struct trp_keeper *k)
{
    char path[4300];
    for (uint32_t i = 0; i < k->nrunning; i++) {
        group_path(k, &k->running[i], "", path, sizeof path);
        if (k->running[i].group.tried)
            rmdir(path);
    }
}

int64_t trp_memory_peak_kib(const struct trp_keeper *k)
{
    return (int64_t)(read_number(k->cgroup_peak, "") / 1024);
}

/* ---- sampling -------------------------------------------------------------------- */

static int by_pid(const void *pid, const void *process)
{
    return *(const pid_t *)pid - ((const struct trp_process *)process)->pid;
}

static int find(const struct trp_process *all, int n, pid_t pid)
{
    const struct trp_process *p = bsearch(&pid, all, (size_t)n, sizeof *all, by_pid);
    return p ? (int)(p - all) : NOBODY;
}

static int main_of(const struct trp_keeper *k, pid_t pid)
{
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state == TRP_RUN_LIVE && k->running[i].pid == pid)
            return (int)i;
    return NOBODY;
}

/* The entry whose process this is: the first main process up its ancestors. */
static int owner_of(struct trp_keeper *k, const struct trp_process *all, int n, int i)
{
    for (int steps = 0; i >= 0 && steps < CHAIN_MAX; steps++) {
        const struct trp_process *p = &all[i];
        if (p->pid == k->self)
            return NOBODY;
        int entry = main_of(k, p->pid);
        if (entry >= 0)
            return entry;
        if (p->parent == k->self) {
            struct trp_running *r = trp_strays_owner(k, p->pid, p->group);
            return r && r->state == TRP_RUN_LIVE ? (int)(r - k->running) : NOBODY;
        }
        if (k->config.watched && p->pid == k->config.watched)
            return PARENT;
        i = find(all, n, p->parent);
    }
    return NOBODY;
}

static int64_t pss_kib(const struct trp_process *p, long page_kib)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", p->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int64_t size = (int64_t)(read_number(fd, "Pss:") - read_number(fd, "Pss_File:"));
    if (fd >= 0)
        close(fd);
    return size ? size : p->rss_pages * page_kib;
}

/* Sums of the sizes of each owner's processes: sums[nrunning] is the parent's. */
static int64_t add_up(struct trp_keeper *k, const struct trp_process *all, int n,
                      const int *owner, bool exact, int64_t *sums)
{
    long page_kib = sysconf(_SC_PAGESIZE) / 1024;
    int64_t total = 0;
    memset(sums, 0, (k->nrunning + 1) * sizeof *sums);
    for (int i = 0; i < n; i++) {
        if (owner[i] == NOBODY)
            continue;
        int64_t size = exact ? pss_kib(&all[i], page_kib) : all[i].rss_pages * page_kib;
        sums[owner[i] == PARENT ? k->nrunning : (uint32_t)owner[i]] += size;
        total += size;
    }
    return total;
}

/* The running function with the most pages touched since it began. */
static bool blame(struct trp_keeper *k, trp_attempt_id *ret)
{
    uint32_t n = atomic_load(&k->shared->nthreads), busy = 0;
    uint64_t most = 0;
    for (uint32_t i = 0; i < n && i < TRP_WATCHED_THREADS; i++) {
        struct trp_watched_thread *t = &k->shared->thread[i];
        uint64_t attempt = atomic_load(&t->attempt);
        if (!atomic_load(&t->busy))
            continue;
        const struct trp_function_sample *s = k->samples ? &k->samples[i] : NULL;
        uint64_t touched =
            s && s->seen && s->attempt == attempt ? s->last - s->first : 0;
        if (busy++ == 0 || touched > most) {
            ret->n = attempt;
            most = touched;
        }
    }
    return busy > 0;
}

static void kill_parent(struct trp_keeper *k, int64_t size_kib)
{
    struct trp_last_words last_words = {
        .said = true,
        .reason = TRP_LOSS_MEMORY,
        .limit_mib = k->config.memory_mib,
        .peak_mib = size_kib / 1024,
    };
    last_words.has_culprit = blame(k, &last_words.culprit);
    trp_shared_last_words(k->shared, &last_words);
    kill(k->config.watched, SIGKILL);
}

static void kill_largest(struct trp_keeper *k, const int64_t *sums)
{
    uint32_t largest = k->nrunning;
    for (uint32_t i = 0; i < k->nrunning; i++) {
        struct trp_running *r = &k->running[i];
        if (sums[i] > r->pss_kib)
            r->pss_kib = sums[i];
        if (sums[i] > sums[largest])
            largest = i;
    }
    if (largest < k->nrunning)
        trp_running_kill(&k->running[largest], TRP_END_MEMORY, false);
    else if (sums[largest] > 0)
        kill_parent(k, sums[largest]);
}

static void sample_sizes(struct trp_keeper *k)
{
    struct trp_process *all = NULL;
    int n = trp_process_list(&all);
    int *owner = n > 0 ? calloc((size_t)n, sizeof *owner) : NULL;
    int64_t *sums = calloc(k->nrunning + 1, sizeof *sums);
    int64_t limit = k->config.memory_mib * 1024;
    if (owner && sums) {
        for (int i = 0; i < n; i++)
            owner[i] = owner_of(k, all, n, i);
        if (add_up(k, all, n, owner, false, sums) > limit &&
            add_up(k, all, n, owner, true, sums) > limit)
            kill_largest(k, sums);
    }
    free(sums);
    free(owner);
    free(all);
}

/* Faults of the parent's busy threads; how many are busy. */
static uint32_t sample_functions(struct trp_keeper *k)
{
    uint32_t n = atomic_load(&k->shared->nthreads), busy = 0;
    if (n && !k->samples)
        k->samples = calloc(TRP_WATCHED_THREADS, sizeof *k->samples);
    for (uint32_t i = 0; k->samples && i < n && i < TRP_WATCHED_THREADS; i++) {
        struct trp_watched_thread *t = &k->shared->thread[i];
        struct trp_function_sample *s = &k->samples[i];
        uint64_t attempt = atomic_load(&t->attempt);
        struct trp_process now;
        if (!atomic_load(&t->busy))
            continue;
        busy++;
        if (!trp_process_read_thread(k->parent, atomic_load(&t->thread), &now))
            continue;
        uint64_t first = atomic_load(&t->faults);
        if (!s->seen || s->attempt != attempt)
            s->first = first == UINT64_MAX ? now.minor_faults : first;
        s->seen = true;
        s->attempt = attempt;
        s->last = now.minor_faults;
    }
    return busy;
}

void trp_memory_tick(struct trp_keeper *k, int64_t now)
{
    uint32_t busy = sample_functions(k);
    if (busy == 0) {
        /* The next function wakes us; one that began just now did not yet. */
        atomic_store(&k->shared->sampling, 0);
        busy = sample_functions(k);
        if (busy)
            atomic_store(&k->shared->sampling, 1);
    }
    bool sizes = !has_cgroup(k) && k->config.memory_mib > 0;
    if (sizes && (k->live || busy))
        sample_sizes(k);
    k->sample_at_ns = busy || (sizes && k->live) ? now + SAMPLE_NS : INT64_MAX;
}

void trp_memory_last_words(struct trp_keeper *k, struct trp_last_words *ret)
{
    *ret = (struct trp_last_words){0};
    if (atomic_load(&k->shared->last_words) == TRP_LAST_WORDS_SAID) {
        *ret = k->shared->last;
        return;
    }
    if (oom_kills(k) <= k->oom_seen)
        return;
    sample_functions(k); /* threads that are still to be seen in /proc */
    *ret = (struct trp_last_words){
        .said = true,
        .reason = TRP_LOSS_MEMORY,
        .limit_mib = k->config.memory_mib,
        .peak_mib = trp_memory_peak_kib(k) / 1024,
    };
    ret->has_culprit = blame(k, &ret->culprit);
}
