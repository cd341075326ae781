/*
 * One srun a node at a time, for all that is known to be there by then. It is a plain
 * child, asked for its end every LOOK_NS while there is one: so it can be waited for at
 * close as well, where the loop does not run. An srun that fails is started again,
 * later and later.
 *
 * Rejected: warning the step before it is killed. What kills it is the process that
 * srun has beside itself, which asks slurmctld for SIGKILL as soon as srun is gone.
 */
#include "cluster/slurm/jobs/tidy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#include "cluster/mpirun.h"
#include "cluster/slurm/jobs/additional_parts.h"
#include "cluster/slurm/steps/step.h"
#include "core/base/array.h"
#include "core/base/time.h"
#include "events/run_folder.h"
#include "os/child.h"

#define LOOK_NS INT64_C(20000000)
#define FIRST_PAUSE_NS INT64_C(500000000)
#define TELL_NS (2 * TRP_SECOND) /* at the run's end, a wait that is worth a word */

enum { WAIT_MS = 8000, LINE = 512 };

struct trp_slurm_debris {
    struct trp_slurm_debris *next;
    uint32_t node;
    char *name; /* of it: it may be gone */
    uint32_t *executors;
    uint32_t n, capacity;
    uint32_t asked;          /* of how many the srun knows */
    pid_t srun;              /* 0: none */
    int64_t at_ns, pause_ns; /* when the next one is started; after how long */
    int64_t until_ns;        /* when it is given up */
    bool asks;               /* the driver is to be asked what is needed first … */
    pid_t mover;             /* … an srun moves that away; 0: none … */
    int from_mover;          /* … whose lines come from here … */
    char line[LINE];         /* … this one so far */
    uint32_t nline;
    int64_t move_until_ns; /* … and is given up then */
};

static struct trp_slurm_debris *find_debris(const struct trp_slurm *s, uint32_t node)
{
    struct trp_slurm_debris *d = s->tidy.list;
    while (d && d->node != node)
        d = d->next;
    return d;
}

/* What there is of a node, made when there is nothing; NULL: out of memory. */
static struct trp_slurm_debris *need_debris(struct trp_slurm *s, uint32_t node)
{
    struct trp_slurm_debris *d = find_debris(s, node);
    if (d || !(d = calloc(1, sizeof *d)))
        return d;
    d->name = strdup(s->inventory.nodes[node].name);
    if (!d->name) {
        free(d);
        return NULL;
    }
    d->node = node;
    d->from_mover = -1;
    LL_PREPEND(s->tidy.list, d);
    return d;
}

static void look_soon(struct trp_slurm *s, struct trp_slurm_debris *d)
{
    d->until_ns = trp_additional_now() + TRP_SLURM_TIDY_NS;
    if (!s->closed)
        trp_slurm_pump_soon(s);
}

void trp_slurm_tidy_owe(struct trp_slurm *s, uint32_t node, uint32_t executor)
{
    struct trp_slurm_debris *d = need_debris(s, node);
    if (!d)
        return;
    if (TRP_ARRAY_GROW(d->executors, d->n, d->capacity))
        d->executors[d->n++] = executor;
    d->asks |= executor == TRP_NONE;
    look_soon(s, d);
}

void trp_slurm_tidy_move(struct trp_slurm *s, const char *node)
{
    for (uint32_t i = 0; i < s->inventory.nnodes; i++) {
        const struct trp_slurm_node *n = &s->inventory.nodes[i];
        struct trp_slurm_debris *d = NULL;
        if (n->name && strcmp(n->name, node) == 0 && i < s->tidy.nfiles &&
            s->tidy.files[i])
            d = need_debris(s, i);
        if (!d)
            continue;
        d->asks = true;
        look_soon(s, d);
    }
}

void trp_slurm_tidy_files(struct trp_slurm *s, const char *node, bool there)
{
    uint32_t n = s->inventory.nnodes;
    for (uint32_t i = 0; i < n; i++) {
        if (!s->inventory.nodes[i].name ||
            strcmp(s->inventory.nodes[i].name, node) != 0)
            continue;
        if (TRP_ARRAY_RESERVE_ZEROED(s->tidy.files, s->tidy.nfiles, (uint64_t)i + 1))
            s->tidy.files[i] = there;
    }
}

void trp_slurm_tidy_owe_files(struct trp_slurm *s, uint32_t node)
{
    for (uint32_t i = 0; i < s->tidy.nfiles; i++) {
        if (!s->tidy.files[i] || (node != TRP_NONE && node != i))
            continue;
        s->tidy.files[i] = false;
        trp_slurm_tidy_owe(s, i, TRP_NONE);
    }
}

static void drop(struct trp_slurm *s, struct trp_slurm_debris *d)
{
    LL_DELETE(s->tidy.list, d);
    free(d->name);
    free(d->executors);
    free(d);
}

bool trp_slurm_tidy_on(const struct trp_slurm *s, uint32_t node)
{
    return find_debris(s, node) != NULL;
}

bool trp_slurm_tidy_in(const struct trp_slurm *s, uint32_t part)
{
    for (const struct trp_slurm_debris *d = s->tidy.list; d; d = d->next) {
        if (s->inventory.nodes[d->node].part == part)
            return true;
    }
    return false;
}

/* ---- the step ---- */

int trp_slurm_tidy_main(int argc, char **argv)
{
    const char *const *owners = (const char *const *)argv;
    return trp_private_folders_tidy(owners, (size_t)argc, WAIT_MS) ? 0 : 1;
}

/* The srun, of these arguments, that `does` something there; what it prints goes to
 * `out`, -1: nowhere. 0: it could not be started. */
static pid_t start_srun(struct trp_slurm *s, const struct trp_slurm_debris *d,
                        char **take_argv, int out, const char *does)
{
    const char *more[] = {NULL};
    char what[64];
    pid_t pid = 0;
    char **env = trp_mpirun_environ(environ, NULL, more);
    if (take_argv && env &&
        trp_child_start(take_argv, env, (int[]){-1, out, -1}, &pid) == 0) {
        snprintf(what, sizeof what, "srun that %s %s", does, d->name);
        trp_run_folder_pid(s->command.run_dir, (int)pid, what);
        trp_slurm_srun_started(s);
    }
    trp_argv_free(take_argv);
    trp_argv_free(env);
    return pid;
}

static void start_tidying(struct trp_slurm *s, struct trp_slurm_debris *d)
{
    d->pause_ns = d->pause_ns ? 2 * d->pause_ns : FIRST_PAUSE_NS;
    d->at_ns = trp_additional_now() + d->pause_ns;
    d->srun = start_srun(s, d, trp_slurm_tidy_argv(s, d->node, d->executors, d->n), -1,
                         "tidies");
    if (d->srun)
        d->asked = d->n;
}

/* ---- what is needed elsewhere ---- */

static void tell_moved(const struct trp_slurm *s, const struct trp_slurm_debris *d,
                       const char *line)
{
    if (!s->closed)
        s->handler.batch.moved(s->handler.context, d->name, line);
}

static void start_moving(struct trp_slurm *s, struct trp_slurm_debris *d,
                         char *const *outputs)
{
    int ends[2];
    d->mover = 0;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        d->mover = start_srun(s, d, trp_slurm_move_argv(s, d->node, outputs), ends[1],
                              "moves outputs of");
        close(ends[1]);
        if (d->mover)
            d->from_mover = ends[0];
        else
            close(ends[0]);
    }
    if (!d->mover) {
        tell_moved(s, d, "! no srun could be started");
        tell_moved(s, d, NULL);
    }
}

/* A line that is longer is none of its. */
static void take_lines(const struct trp_slurm *s, struct trp_slurm_debris *d)
{
    char c[LINE];
    ssize_t n;
    while ((n = read(d->from_mover, c, sizeof c)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (c[i] != '\n') {
                d->nline += d->nline < LINE - 1;
                d->line[d->nline - 1] = c[i];
                continue;
            }
            d->line[d->nline] = '\0';
            d->nline = 0;
            tell_moved(s, d, d->line);
        }
    }
}

/* True: it goes on. */
static bool look_at_mover(const struct trp_slurm *s, struct trp_slurm_debris *d,
                          int64_t now, bool lost)
{
    int status = 0;
    if (lost || s->closed || now >= d->move_until_ns)
        kill(-d->mover, SIGKILL);
    take_lines(s, d);
    if (waitpid(d->mover, &status, WNOHANG) == 0)
        return true;
    take_lines(s, d);
    close(d->from_mover);
    d->from_mover = -1;
    d->mover = 0;
    d->nline = 0;
    if (status != 0)
        tell_moved(s, d, lost ? "! its node is gone" : "! the step that did it failed");
    tell_moved(s, d, NULL);
    d->until_ns = now + TRP_SLURM_TIDY_NS;
    return false;
}

/* Before anything is removed. True: something is being moved. */
static bool is_moving(struct trp_slurm *s, struct trp_slurm_debris *d, int64_t now,
                      bool lost, bool silent)
{
    if (d->mover && look_at_mover(s, d, now, lost))
        return true;
    if (!d->asks || lost || silent || d->srun)
        return false;
    int64_t takes = 0;
    char **outputs = s->closed || !s->handler.batch.needed
                         ? NULL
                         : s->handler.batch.needed(s->handler.context, d->name, &takes);
    d->asks = outputs != NULL;
    if (!outputs)
        return false;
    d->move_until_ns = now + takes;
    start_moving(s, d, outputs);
    trp_argv_free(outputs);
    return true;
}

/* ---- looking after them ---- */

/* Nothing can be sent there any more. */
static bool is_lost(const struct trp_slurm *s, uint32_t node)
{
    const struct trp_slurm_node *n = &s->inventory.nodes[node];
    const struct trp_slurm_job *j =
        n->name ? trp_slurm_additional_of(s, n->part) : NULL;
    return !n->name || (j && j->gone) ||
           trp_slurm_ledger_standing(s->ledger, node) == TRP_SLURM_GONE;
}

/* The srun has ended: true when all is removed. */
static bool is_done(struct trp_slurm_debris *d)
{
    int status = 0;
    if (waitpid(d->srun, &status, WNOHANG) == 0)
        return false;
    d->srun = 0;
    return status == 0 && d->asked == d->n;
}

/* When to look at it again; INT64_MAX: it is done with. */
static int64_t look_at(struct trp_slurm *s, struct trp_slurm_debris *d)
{
    int64_t now = trp_additional_now();
    bool lost = is_lost(s, d->node);
    bool silent = trp_slurm_ledger_standing(s->ledger, d->node) == TRP_SLURM_SILENT;
    if (is_moving(s, d, now, lost, silent))
        return now + LOOK_NS;
    bool done = d->srun ? is_done(d) : d->n == 0;
    bool given_up = now >= d->until_ns || lost;
    if (d->srun && given_up)
        kill(-d->srun, SIGKILL);
    if (!d->srun && ((done && !d->asks) || given_up)) {
        drop(s, d);
        return INT64_MAX;
    }
    if (!d->srun && !silent && now >= d->at_ns)
        start_tidying(s, d);
    return d->srun ? now + LOOK_NS : now < d->at_ns ? d->at_ns : now + FIRST_PAUSE_NS;
}

int64_t trp_slurm_tidy_look(struct trp_slurm *s)
{
    struct trp_slurm_debris *next;
    int64_t due = INT64_MAX;
    for (struct trp_slurm_debris *d = s->tidy.list; d; d = next) {
        next = d->next;
        int64_t one = look_at(s, d);
        due = trp_earlier(due, one);
    }
    return due;
}

static void tell_wait(const struct trp_slurm *s)
{
    const struct trp_slurm_debris *d = s->tidy.list;
    fprintf(stderr,
            "troupe: waiting for srun to remove what executors left on %s%s, %lld s at "
            "most\n",
            d->name, d->next ? " and other nodes" : "",
            (long long)(TRP_SLURM_TIDY_NS / TRP_SECOND));
}

void trp_slurm_tidy_close(struct trp_slurm *s)
{
    int64_t tell = trp_additional_now() + TELL_NS;
    while (trp_slurm_tidy_look(s) != INT64_MAX) {
        if (trp_additional_now() >= tell) {
            tell_wait(s);
            tell = INT64_MAX;
        }
        usleep(LOOK_NS / 1000);
    }
    free(s->tidy.files);
    s->tidy.files = NULL;
    s->tidy.nfiles = 0;
}
