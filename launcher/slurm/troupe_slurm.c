/*
 * troupe-slurm: the only program of ours that is linked with libslurm.
 *
 * `troupe` and the driver start it with a socket as its stdin and stdout and speak the
 * protocol of cluster/slurm/helper/line.h with it. Two threads: this one reads lines and sees
 * the pipe close; a worker takes the calls, one after the other, since libslurm blocks
 * (for as long as slurmctld is away) and is not asked twice at once. When the pipe
 * closes, additional jobs that were not given back are ended, and, when nobody said
 * `bye`, steps that are guarded: after GO_S the jobs, which gives their steps time, and
 * steps of the driver's own after LEAVE_S more. A call that hangs is given up
 * after END_S; but to end additional jobs is tried for as long as slurmctld does not
 * answer, or for PATIENT_S where their own guards do it then.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "cluster/slurm/helper/line.h"

enum {
    END_S = 5,
    GO_S = 2,
    LEAVE_S = 10,
    PATIENT_S = 60,
    REFUSALS = 30,
    GUARDED = 256,
    PREFIX = 128
};

struct call {
    struct call *next;
    char text[];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct call *first, **last;
    bool closed; /* no more will come */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

/* Of the worker: whose steps are ended at the end. */
static struct {
    uint32_t job;
    char prefix[PREFIX];
} guarded[GUARDED];
static uint32_t nguarded;
static bool bye;
static _Atomic time_t answered; /* when slurmctld did, after the pipe had closed */

static struct call *take_call(void)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.first && !queue.closed)
        pthread_cond_wait(&queue.some, &queue.lock);
    struct call *c = queue.first;
    if (c)
        queue.first = c->next;
    if (!queue.first)
        queue.last = &queue.first;
    pthread_mutex_unlock(&queue.lock);
    return c;
}

static void add_call(const char *text, size_t size)
{
    struct call *c = malloc(sizeof *c + size + 1);
    if (!c)
        abort();
    memcpy(c->text, text, size);
    c->text[size] = '\0';
    c->next = NULL;
    pthread_mutex_lock(&queue.lock);
    *queue.last = c;
    queue.last = &c->next;
    pthread_cond_signal(&queue.some);
    pthread_mutex_unlock(&queue.lock);
}

/* ---- the worker ---- */

static int guard(const struct trp_slurm_line *line)
{
    if (nguarded == GUARDED)
        return ENOSPC;
    guarded[nguarded].job = (uint32_t)trp_slurm_line_number(line, "job");
    snprintf(guarded[nguarded++].prefix, PREFIX, "%s",
             trp_slurm_line_text(line, "name"));
    return 0;
}

static int perform_additional(const struct trp_slurm_line *line, uint32_t job)
{
    if (strcmp(line->word, "allocate") == 0)
        return trp_slurm_call_allocate(stdout, line);
    if (strcmp(line->word, "queue") == 0)
        return trp_slurm_call_queue(stdout, line);
    if (strcmp(line->word, "when") == 0)
        return trp_slurm_call_when(stdout, line);
    if (strcmp(line->word, "end") == 0)
        return trp_slurm_call_complete(job);
    if (strcmp(line->word, "cancel") == 0)
        return trp_slurm_call_end(job);
    if (strcmp(line->word, "shrink") == 0)
        return trp_slurm_call_shrink(job, trp_slurm_line_text(line, "nodes"),
                                     trp_slurm_line_number(line, "live"));
    if (strcmp(line->word, "take") == 0)
        return trp_slurm_call_take(job, trp_slurm_line_number(line, "guarded"));
    if (strcmp(line->word, "guarded") == 0)
        return trp_slurm_call_guarded(job, trp_slurm_line_number(line, "yes"));
    if (strcmp(line->word, "sweep") == 0)
        return trp_slurm_call_sweep(line);
    if (strcmp(line->word, "jobs") == 0)
        return trp_slurm_call_jobs(stdout, line->number);
    if (strcmp(line->word, "nodes") == 0)
        return trp_slurm_call_nodes(stdout, line->number);
    if (strcmp(line->word, "conf") == 0)
        return trp_slurm_call_conf(stdout, line->number);
    return EPROTO;
}

static int perform(const struct trp_slurm_line *line)
{
    uint32_t job = (uint32_t)trp_slurm_line_number(line, "job");
    uint32_t step = (uint32_t)trp_slurm_line_number(line, "step");
    const char *name = trp_slurm_line_text(line, "name");
    if (strcmp(line->word, "job") == 0)
        return trp_slurm_call_job(stdout, line->number, job);
    if (strcmp(line->word, "states") == 0)
        return trp_slurm_call_states(stdout, line->number, job);
    if (strcmp(line->word, "racks") == 0)
        return trp_slurm_call_racks(stdout, line->number,
                                    trp_slurm_line_text(line, "partition"));
    if (strcmp(line->word, "mpi") == 0)
        return trp_slurm_call_mpi(stdout, line->number);
    if (strcmp(line->word, "steps") == 0)
        return trp_slurm_call_steps(stdout, line->number, job);
    if (strcmp(line->word, "end-step") == 0)
        return *name ? trp_slurm_call_end_named(job, name)
                     : trp_slurm_call_end_step(job, step);
    if (strcmp(line->word, "term-step") == 0)
        return trp_slurm_call_term_step(job, name);
    if (strcmp(line->word, "guard") == 0)
        return guard(line);
    if (strcmp(line->word, "bye") != 0)
        return perform_additional(line, job);
    bye = true;
    return 0;
}

static void answer(struct call *c)
{
    struct trp_slurm_line line;
    trp_error err;
    int code = trp_slurm_line_parse(c->text, &line, &err);
    if (code < 0) {
        fprintf(stderr, "troupe-slurm: %s\n", err.text);
        return;
    }
    code = perform(&line);
    trp_slurm_line_begin(stdout, line.number, code ? "failed" : "done");
    if (code) {
        trp_slurm_line_put_number(stdout, "code", code);
        trp_slurm_line_put(stdout, "text", slurm_strerror(code));
        trp_slurm_line_put_number(stdout, "refusal", trp_slurm_refusal_of(code));
    }
    trp_slurm_line_put_number(stdout, "rpcs", (int64_t)trp_slurm_rpcs);
    trp_slurm_line_end(stdout);
    fflush(stdout);
}

/* For as long as slurmctld does not answer; where each job has a guard of its own, not
 * longer than PATIENT_S. */
static void give_back(void)
{
    time_t began = time(NULL);
    trp_slurm_sweep_at_end();
    for (int refusals = 0; trp_slurm_additional_are_left() && refusals < REFUSALS;) {
        int code = trp_slurm_additional_end_all();
        bool lost = trp_slurm_refusal_of(code) == TRP_SLURM_LOST;
        refusals += code && !lost;
        if (code && trp_slurm_additional_are_guarded() &&
            time(NULL) - began >= PATIENT_S)
            return;
        if (code)
            sleep(GO_S);
    }
}

/* A step ends by itself when its driver is gone, and leaves nothing; on a busy node, or
 * with large folders, it takes a while. */
static bool are_gone_in_time(void)
{
    for (int i = 0; i < LEAVE_S; i++) {
        int code = 0;
        for (uint32_t k = 0; k < nguarded && code != EBUSY; k++)
            code = trp_slurm_call_find_steps(guarded[k].job, guarded[k].prefix);
        if (code != EBUSY)
            return code == 0;
        answered = time(NULL);
        sleep(1);
    }
    return false;
}

static void *work(void *context)
{
    (void)context;
    slurm_init(NULL);
    for (struct call *c; (c = take_call()); free(c))
        answer(c);
    if (!bye && (nguarded || trp_slurm_additional_are_left()))
        sleep(GO_S);
    give_back();
    bool end = !bye && !are_gone_in_time();
    for (uint32_t i = 0; end && i < nguarded; i++)
        trp_slurm_call_end_steps(guarded[i].job, guarded[i].prefix);
    return NULL;
}

/* ---- reading ---- */

static void read_calls(void)
{
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t n; (n = getline(&line, &capacity, stdin)) > 0;) {
        if (n > TRP_SLURM_LINE_MAX)
            break;
        add_call(line, (size_t)(line[n - 1] == '\n' ? n - 1 : n));
    }
    free(line);
}

int main(void)
{
    pthread_t worker;
    struct timespec until;
    if (isatty(0)) {
        fputs("troupe-slurm: started by troupe, not by hand; see troupe --help\n",
              stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    queue.last = &queue.first;
    if (pthread_create(&worker, NULL, work, NULL) != 0) {
        fputs("troupe-slurm: no thread\n", stderr);
        return 1;
    }
    read_calls();
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_cond_signal(&queue.some);
    pthread_mutex_unlock(&queue.lock);
    clock_gettime(CLOCK_REALTIME, &until);
    for (time_t last = until.tv_sec; last; last = answered > last ? answered : 0) {
        until.tv_sec = last + END_S;
        if (pthread_timedjoin_np(worker, NULL, &until) == 0)
            return 0;
    }
    if (!trp_slurm_additional_are_left())
        _exit(1); /* it hangs in a call */
    pthread_join(worker, NULL);
    return 0;
}
