/* Child processes that play streams, and delta debugging over them. */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *runner_break;

enum {
    STEPS_BREAK = 3,      /* of the kind runner_break */
    SECONDS_A_STREAM = 3, /* of cpu time; more is an endless loop */
    TRIES_MAX = 6000,     /* streams tried to make one shorter, … */
    SECONDS_MAX = 60,     /* … and how long */
};

/* What the child tells while it lives, in shared memory. */
struct report {
    uint64_t seed, held;
    struct verdict verdict;
};

static struct report *report_new(void)
{
    void *p = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return p;
}

static void limit_time(void)
{
    struct itimerval t = {.it_value.tv_sec = SECONDS_A_STREAM};
    setitimer(ITIMER_VIRTUAL, &t, NULL);
}

static pid_t fork_quietly(bool quiet)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    int null = pid == 0 && quiet ? open("/dev/null", O_WRONLY) : -1;
    if (null >= 0)
        dup2(null, 2);
    return pid;
}

/* Waits for the child; the way it died becomes the verdict. */
static void collect(pid_t pid, struct verdict *v)
{
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM)
        verdict_break(v, "ends", "not over after %d s of cpu time", SECONDS_A_STREAM);
    else if (WIFSIGNALED(status))
        verdict_break(v, "does not crash", "killed by signal %d (%s)", WTERMSIG(status),
                      strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        verdict_break(v, "does not crash", "ended with status %d", WEXITSTATUS(status));
}

static void play(const struct stream *s, FILE *explain, struct verdict *v)
{
    uint32_t n = 0;
    s->subject->play(s, explain, v);
    for (uint32_t i = 0; runner_break && i < s->nsteps && !v->broken[0]; i++) {
        n += strcmp(s->subject->kinds[s->steps[i].kind], runner_break) == 0;
        if (n < STEPS_BREAK)
            continue;
        verdict_break(v, "is made up", "%u steps are %s", n, runner_break);
        v->at = i;
    }
}

uint64_t run_seeds(const struct subject *subject, uint64_t first, uint64_t n,
                   struct verdict *ret, uint64_t *ret_seed)
{
    static struct stream s;
    struct report *r = report_new();
    pid_t pid = fork_quietly(true);
    if (pid == 0) {
        for (uint64_t i = 0; i < n && !r->verdict.broken[0]; i++) {
            r->seed = first + i;
            limit_time();
            stream_make(&s, subject, r->seed);
            play(&s, NULL, &r->verdict);
            r->held += !r->verdict.broken[0];
        }
        _exit(0);
    }
    collect(pid, &r->verdict);
    uint64_t held = r->held;
    *ret = r->verdict;
    *ret_seed = r->seed;
    munmap(r, sizeof(*r));
    return held;
}

void run_stream(const struct stream *s, FILE *explain, bool quiet, struct verdict *ret)
{
    struct report *r = report_new();
    pid_t pid = fork_quietly(quiet);
    if (pid == 0) {
        limit_time();
        if (explain)
            setvbuf(explain, NULL, _IOLBF, 0); /* it may crash */
        play(s, explain, &r->verdict);
        _exit(0);
    }
    collect(pid, &r->verdict);
    *ret = r->verdict;
    munmap(r, sizeof(*r));
}

/* ---- delta debugging ---- */

struct reduction {
    struct stream best, trial;
    const char *broken;
    uint32_t tries;
    time_t until;
};

/* Does the trial break the same? Then it is the best so far. */
static bool still_breaks(struct reduction *r)
{
    struct verdict v;
    if (r->tries >= TRIES_MAX || time(NULL) >= r->until)
        return false;
    r->tries++;
    run_stream(&r->trial, NULL, true, &v);
    if (strcmp(v.broken, r->broken) != 0)
        return false;
    if (v.at + 1 < r->trial.nsteps)
        r->trial.nsteps = v.at + 1;
    r->best = r->trial;
    return true;
}

static void cut(struct stream *s, uint32_t from, uint32_t n)
{
    memmove(&s->steps[from], &s->steps[from + n],
            (s->nsteps - from - n) * sizeof(*s->steps));
    s->nsteps -= n;
}

/* Leaves out chunks of steps, from halves down to single ones. */
static bool drop_steps(struct reduction *r)
{
    bool any = false;
    for (uint32_t size = r->best.nsteps; size; size /= 2)
        for (uint32_t i = r->best.nsteps; i-- > 0;) {
            if (i >= r->best.nsteps || i % size)
                continue;
            uint32_t left = r->best.nsteps - i;
            r->trial = r->best;
            cut(&r->trial, i, size < left ? size : left);
            any |= still_breaks(r);
        }
    return any;
}

/* Lowers one number of the trial: to 0, to half, by one. */
static bool lower(struct reduction *r, uint32_t *of_best, uint32_t *of_trial)
{
    bool any = false;
    for (uint32_t now = *of_best; now; now = *of_best) {
        uint32_t tries[] = {0, now / 2, now - 1}, i;
        for (i = 0; i < 3; i++) {
            r->trial = r->best;
            *of_trial = tries[i];
            if (still_breaks(r))
                break;
        }
        if (i == 3)
            break;
        any = true;
    }
    return any;
}

static bool lower_all(struct reduction *r)
{
    bool any = false;
    for (uint32_t i = 0; r->best.subject->knobs[i]; i++)
        any |= lower(r, &r->best.knob[i], &r->trial.knob[i]);
    for (uint32_t i = 0; i < r->best.nsteps; i++)
        for (uint32_t k = 0; k < STREAM_ARGS && i < r->best.nsteps; k++)
            any |= lower(r, &r->best.steps[i].arg[k], &r->trial.steps[i].arg[k]);
    return any;
}

uint32_t reduce_stream(struct stream *s, const struct verdict *of)
{
    static struct reduction r;
    r = (struct reduction){
        .best = *s, .broken = of->broken, .until = time(NULL) + SECONDS_MAX};
    if (of->at + 1 < r.best.nsteps) {
        r.trial = r.best;
        r.trial.nsteps = of->at + 1;
        still_breaks(&r);
    }
    for (bool again = true; again && r.tries < TRIES_MAX && time(NULL) < r.until;) {
        again = drop_steps(&r);
        again |= lower_all(&r);
    }
    *s = r.best;
    return r.tries;
}
