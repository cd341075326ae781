/*
 * Families are found in the list of all processes. Not /proc/PID/task/PID/children: not
 * every kernel has it. A pid is signalled within microseconds of having been read,
 * which is as safe against reuse as a pid can be.
 *
 * Descendants are marked to a fixpoint: a parent may come behind its child in the
 * array.
 */
#include "os/processes.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/process.h"

struct member {
    bool member; /* of the family that is looked for */
    bool spared;
};

struct trp_processes {
    struct trp_process *v;
    uint32_t n;
    struct member *of; /* side by side with v */
};

static void take_snapshot(struct trp_processes *s)
{
    *s = (struct trp_processes){0};
    int n = trp_process_list(&s->v);
    s->of = n > 0 ? calloc((size_t)n, sizeof *s->of) : NULL;
    s->n = s->of ? (uint32_t)n : 0;
}

static void drop(struct trp_processes *s)
{
    free(s->v);
    free(s->of);
}

/* Signals the members and frees the snapshot. */
static uint32_t signal_members(struct trp_processes *s, int signal)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct trp_process *p = &s->v[i];
        if (!s->of[i].member || s->of[i].spared || trp_process_is_dead(p) ||
            p->pid == getpid())
            continue;
        n++;
        if (signal)
            kill(p->pid, signal);
    }
    drop(s);
    return n;
}

uint32_t trp_session_signal(pid_t session, int signal)
{
    struct trp_processes s;
    take_snapshot(&s);
    for (uint32_t i = 0; i < s.n; i++)
        s.of[i].member = s.v[i].session == session;
    return signal_members(&s, signal);
}

trp_processes *trp_processes_take(void)
{
    trp_processes *s = malloc(sizeof *s);
    if (s)
        take_snapshot(s);
    return s;
}

uint32_t trp_processes_of_session(const trp_processes *s, pid_t session)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->v[i].session == session && !trp_process_is_dead(&s->v[i]);
    return n;
}

void trp_processes_free(trp_processes *s)
{
    if (s)
        drop(s);
    free(s);
}

uint32_t trp_children_signal(pid_t parent, int signal)
{
    struct trp_processes s;
    take_snapshot(&s);
    for (uint32_t i = 0; i < s.n; i++)
        s.of[i].member = s.v[i].parent == parent;
    return signal_members(&s, signal);
}

static const struct member *find_process(const struct trp_processes *s, pid_t pid)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->v[i].pid == pid)
            return &s->of[i];
    }
    return NULL;
}

static bool is_one_of(pid_t pid, const pid_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] == pid)
            return true;
    }
    return false;
}

/* One round; true when something changed. */
static bool mark_descendants(struct trp_processes *s, pid_t ancestor,
                             const pid_t *spare, uint32_t nspare)
{
    bool changed = false;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct trp_process *p = &s->v[i];
        struct member *m = &s->of[i];
        if (m->member || m->spared)
            continue;
        const struct member *parent = find_process(s, p->parent);
        m->spared = is_one_of(p->pid, spare, nspare) || (parent && parent->spared);
        m->member = !m->spared && (p->parent == ancestor || (parent && parent->member));
        changed = changed || m->member || m->spared;
    }
    return changed;
}

uint32_t trp_descendants_signal(pid_t ancestor, const pid_t *spare, uint32_t nspare,
                                int signal)
{
    struct trp_processes s;
    take_snapshot(&s);
    while (mark_descendants(&s, ancestor, spare, nspare))
        ;
    return signal_members(&s, signal);
}

static bool runs(pid_t pid, const struct stat *program)
{
    char path[64];
    struct stat exe;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    return stat(path, &exe) == 0 && exe.st_dev == program->st_dev &&
           exe.st_ino == program->st_ino;
}

pid_t trp_descendants_find(pid_t ancestor, const char *program)
{
    struct trp_processes s;
    struct stat its;
    if (stat(program, &its) < 0)
        return 0;
    take_snapshot(&s);
    while (mark_descendants(&s, ancestor, NULL, 0))
        ;
    pid_t found = 0;
    for (uint32_t i = 0; i < s.n && !found; i++) {
        if (s.of[i].member && runs(s.v[i].pid, &its))
            found = s.v[i].pid;
    }
    drop(&s);
    return found;
}

/* Are both lines in the environment that a process was started with? */
static bool environment_has(pid_t pid, const char *first, const char *second)
{
    char path[32], *line = NULL;
    size_t room = 0;
    unsigned found = 0;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && found != 3 && getdelim(&line, &room, '\0', f) > 0)
        found |= strcmp(line, first) == 0 ? 1 : strcmp(line, second) == 0 ? 2 : 0;
    if (f)
        fclose(f);
    free(line);
    return found == 3;
}

uint32_t trp_commands_signal(const char *run_dir, uint32_t executor, int signal)
{
    struct trp_processes s;
    char id[64], *run = NULL;
    snprintf(id, sizeof id, "TROUPE_EXECUTOR=%u", executor);
    if (asprintf(&run, "TROUPE_RUN_DIR=%s", run_dir) < 0)
        return 0;
    take_snapshot(&s);
    for (uint32_t i = 0; i < s.n; i++)
        s.of[i].member =
            !trp_process_is_dead(&s.v[i]) && environment_has(s.v[i].pid, id, run);
    free(run);
    return signal_members(&s, signal);
}

uint32_t trp_children_list(pid_t *ret, uint32_t cap)
{
    struct trp_processes s;
    uint32_t n = 0;
    take_snapshot(&s);
    for (uint32_t i = 0; i < s.n; i++) {
        if (s.v[i].parent != getpid())
            continue;
        if (n < cap)
            ret[n] = s.v[i].pid;
        n++;
    }
    drop(&s);
    return n;
}
