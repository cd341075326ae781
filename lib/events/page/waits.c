/*
 * A sweep over all times at which something changes. What a wait of a profile counts for
 * is the same for all its stages, so it is added up once a profile; a stage takes the
 * difference since it was last looked at, but for times in which it had a reason of its
 * own. What that has come to when a task begins is the task's wait. So the cost is O(n log
 * n) however many tasks wait at once.
 */
#include "events/page/waits.h"

#include <stdlib.h>
#include <string.h>

enum kind {
    SUBMITTED,
    ASKED,
    STEP,
    CAME,
    SPAN,
    SPAN_END,
    QUEUED,
    QUEUED_END,
    REASON,
    BEGUN,
    ENDED,
    STAGE_END
};

struct change {
    int64_t at;
    uint32_t place;
    enum kind kind;
};

/* Of a profile, now. */
struct state {
    int64_t slots, running, asked, queued, starting, jobs; /* jobs: in Slurm's queue */
    int64_t at, sum[TRP_PAGE_WAITS];
};

/* Of a stage, now. */
struct stage {
    bool open;
    enum trp_wait what;           /* as noted */
    int64_t at;                   /* all is added up to then … */
    int64_t sum[TRP_PAGE_WAITS];  /* … of its profile … */
    int64_t wait[TRP_PAGE_WAITS]; /* … of a task of it since it was submitted */
    int64_t left, running, since;
};

struct sweep {
    const struct trp_page_facts *f;
    struct change *v;
    size_t n;
    struct state *profiles;
    struct stage *stages;
    struct trp_page_stage_wait *ret;
};

const char *trp_page_wait_name(enum trp_page_wait w)
{
    static const char *const names[TRP_PAGE_WAITS] = {
        "free_slot", "starting", "queued",      "asked",  "slots",
        "locality",  "excluded", "max_running", "limits", "barrier",
        "gang",      "parents",  "end"};
    return names[w];
}

/* What a stage's reason counts for, whatever there is of executors; TRP_PAGE_WAITS: that
 * depends on them. */
static enum trp_page_wait own_wait(enum trp_wait what)
{
    switch (what) {
    case TRP_WAIT_PARENTS:
        return TRP_PAGE_WAIT_PARENTS;
    case TRP_WAIT_ROOM:
        return TRP_PAGE_WAIT_GANG;
    case TRP_WAIT_EXCLUDED:
        return TRP_PAGE_WAIT_EXCLUDED;
    case TRP_WAIT_END:
        return TRP_PAGE_WAIT_END;
    case TRP_WAIT_BARRIER:
        return TRP_PAGE_WAIT_BARRIER;
    case TRP_WAIT_MAX_RUNNING:
        return TRP_PAGE_WAIT_MAX_RUNNING;
    case TRP_WAIT_LIMITS:
        return TRP_PAGE_WAIT_LIMITS;
    case TRP_WAIT_LOCALITY:
        return TRP_PAGE_WAIT_LOCALITY;
    default:
        return TRP_PAGE_WAITS;
    }
}

/* What it is where the log shows a free slot that, by the reason, was none for it. */
static enum trp_page_wait free_slot_is(enum trp_wait what)
{
    if (what == TRP_WAIT_TURN || what == TRP_WAIT_SLOTS)
        return TRP_PAGE_WAIT_ROOM;
    if (what == TRP_WAIT_EXECUTOR || what == TRP_WAIT_START)
        return TRP_PAGE_WAIT_ASKED;
    return TRP_PAGE_WAIT_PLACE;
}

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static void add(struct sweep *s, int64_t at, enum kind kind, uint32_t place)
{
    if (at > 0)
        s->v[s->n++] = (struct change){at, place, kind};
}

static bool collect(struct sweep *s)
{
    const struct trp_page_facts *f = s->f;
    size_t most = 2 * ((size_t)f->ntasks + f->nstages + f->nspans) +
                  3 * (size_t)f->nexecutors + f->nreasons + 2 * (size_t)f->njobs + 1;
    s->v = calloc(most, sizeof *s->v);
    if (!s->v)
        return false;
    for (uint32_t i = 0; i < f->nstages; i++) {
        add(s, f->stages[i].submitted, SUBMITTED, i);
        add(s, f->stages[i].ended, STAGE_END, i);
    }
    for (uint32_t i = 0; i < f->nexecutors; i++) {
        const struct trp_page_executor *x = &f->executors[i];
        add(s, x->asked, ASKED, i);
        add(s, x->began, STEP, i);
        add(s, trp_page_executor_came(f, x), CAME, i);
    }
    for (uint32_t i = 0; i < f->nspans; i++) {
        add(s, f->spans[i].from, SPAN, i);
        add(s, trp_page_span_end(f, &f->spans[i]), SPAN_END, i);
    }
    for (uint32_t i = 0; i < f->njobs; i++) {
        add(s, f->jobs[i].queued, QUEUED, i);
        if (f->jobs[i].queued)
            add(s, trp_page_job_queued_to(f, &f->jobs[i]), QUEUED_END, i);
    }
    for (uint32_t i = 0; i < f->nreasons; i++)
        add(s, f->reasons[i].at, REASON, i);
    for (uint32_t i = 0; i < f->ntasks; i++) {
        add(s, f->tasks[i].begun, BEGUN, i);
        add(s, trp_page_task_end(f, &f->tasks[i]), ENDED, i);
    }
    qsort(s->v, s->n, sizeof *s->v, by_time);
    return true;
}

static enum trp_page_wait waits_for(const struct state *p)
{
    if (p->slots > p->running)
        return TRP_PAGE_WAIT_PLACE;
    if (p->starting > 0)
        return TRP_PAGE_WAIT_START;
    if (p->queued > 0 || (p->asked > 0 && p->jobs > 0))
        return TRP_PAGE_WAIT_QUEUE;
    return p->asked > 0 ? TRP_PAGE_WAIT_ASKED : TRP_PAGE_WAIT_ROOM;
}

/* The profile, with all added up to now; NULL: not known. */
static struct state *up_to(struct sweep *s, uint32_t profile, int64_t at)
{
    if (profile == TRP_NONE)
        return NULL;
    struct state *p = &s->profiles[profile];
    if (p->at)
        p->sum[waits_for(p)] += at - p->at;
    p->at = at;
    return p;
}

static void nothing_ran(struct sweep *s, uint32_t stage, int64_t at)
{
    struct stage *g = &s->stages[stage];
    if (g->open && g->left > 0 && g->running == 0)
        s->ret[stage].nothing_ran += at - g->since;
    g->since = at;
}

/* Adds up what a task of the stage has waited. */
static void wait_until(struct sweep *s, uint32_t stage, int64_t at)
{
    struct stage *g = &s->stages[stage];
    const struct state *p = up_to(s, s->f->stages[stage].profile, at);
    enum trp_page_wait own = own_wait(g->what);
    if (g->open && own != TRP_PAGE_WAITS)
        g->wait[own] += at - g->at;
    for (enum trp_page_wait i = 0; p && i < TRP_PAGE_WAITS; i++) {
        enum trp_page_wait of = i;
        if (i == TRP_PAGE_WAIT_PLACE)
            of = free_slot_is(g->what);
        if (g->open && own == TRP_PAGE_WAITS)
            g->wait[of] += p->sum[i] - g->sum[i];
        g->sum[i] = p->sum[i];
    }
    g->at = at;
}

/* So many tasks have waited so long. */
static void add_wait(struct sweep *s, uint32_t stage, int64_t tasks)
{
    for (int i = 0; i < TRP_PAGE_WAITS; i++) {
        int64_t *sum = &s->ret[stage].ms[i], all;
        if (__builtin_mul_overflow(tasks, s->stages[stage].wait[i], &all) ||
            __builtin_add_overflow(*sum, all, sum))
            *sum = INT64_MAX; /* a log may be anything */
    }
}

static void on_stage(struct sweep *s, const struct change *c)
{
    const struct trp_page_stage *of = &s->f->stages[c->place];
    struct stage *g = &s->stages[c->place];
    nothing_ran(s, c->place, c->at);
    wait_until(s, c->place, c->at);
    if (c->kind == STAGE_END && g->open && g->left > 0)
        add_wait(s, c->place, g->left); /* they never began */
    g->open = c->kind == SUBMITTED;
    g->what = TRP_WAIT_NOTHING;
    memset(g->wait, 0, sizeof g->wait);
    uint64_t others = of->summarised + of->skipped;
    g->left = g->open && of->ntasks > others ? (int64_t)(of->ntasks - others) : 0;
}

static void on_reason(struct sweep *s, const struct change *c)
{
    const struct trp_page_reason *r = &s->f->reasons[c->place];
    wait_until(s, r->stage, c->at);
    s->stages[r->stage].what = r->what;
}

static void on_task(struct sweep *s, const struct change *c)
{
    const struct trp_page_task *t = &s->f->tasks[c->place];
    struct stage *g = &s->stages[t->stage];
    struct state *p = up_to(s, s->f->stages[t->stage].profile, c->at);
    int64_t by = c->kind == BEGUN ? 1 : -1;
    bool first = t->attempt == 0 && !t->copy;
    nothing_ran(s, t->stage, c->at);
    wait_until(s, t->stage, c->at);
    g->running += by;
    if (p && t->executor != TRP_NONE)
        p->running += by;
    if (c->kind == ENDED)
        return;
    if (first && g->open && g->left > 0)
        add_wait(s, t->stage, 1);
    g->left -= g->left > 0 && first;
}

/* In an additional job of which the log does not tell how long it was in the queue. */
static bool in_timeless_job(const struct trp_page_facts *f, uint32_t job)
{
    for (uint32_t i = 0; i < f->njobs; i++)
        if (f->jobs[i].id == job)
            return f->jobs[i].additional && !f->jobs[i].asked;
    return false;
}

/* Asked for, then starting, then there or given up. */
static void on_executor(struct sweep *s, const struct change *c)
{
    const struct trp_page_executor *x = &s->f->executors[c->place];
    struct state *p = up_to(s, x->profile, c->at);
    if (!p)
        return;
    int64_t *waits = x->job && in_timeless_job(s->f, x->job) ? &p->queued : &p->asked;
    bool was_starting = c->kind == CAME && x->began > 0;
    if (c->kind == ASKED)
        (*waits)++;
    else if (was_starting)
        p->starting--;
    else
        (*waits)--;
    p->starting += c->kind == STEP;
}

static void on_span(struct sweep *s, const struct change *c)
{
    const struct trp_page_span *span = &s->f->spans[c->place];
    struct state *p = up_to(s, span->profile, c->at);
    if (p)
        p->slots +=
            (c->kind == SPAN ? 1 : -1) * (int64_t)s->f->profiles[span->profile].slots;
}

static void on_job(struct sweep *s, const struct change *c)
{
    struct state *p = up_to(s, s->f->jobs[c->place].profile, c->at);
    if (p)
        p->jobs += c->kind == QUEUED ? 1 : -1;
}

/* What waits still, in a run that goes on. */
static void close_open(struct sweep *s)
{
    const struct trp_page_facts *f = s->f;
    for (uint32_t i = 0; i < f->nstages; i++) {
        int64_t at = f->starts[f->stages[i].start].last;
        if (!s->stages[i].open)
            continue;
        nothing_ran(s, i, at);
        wait_until(s, i, at);
        if (s->stages[i].left > 0)
            add_wait(s, i, s->stages[i].left);
    }
}

struct trp_page_stage_wait *trp_page_waits(const struct trp_page_facts *f)
{
    struct sweep s = {.f = f,
                      .profiles = calloc((size_t)f->nprofiles + 1, sizeof *s.profiles),
                      .stages = calloc((size_t)f->nstages + 1, sizeof *s.stages),
                      .ret = calloc((size_t)f->nstages + 1, sizeof *s.ret)};
    bool good = s.profiles && s.stages && s.ret && collect(&s);
    for (size_t i = 0; good && i < s.n; i++) {
        switch (s.v[i].kind) {
        case SUBMITTED:
        case STAGE_END:
            on_stage(&s, &s.v[i]);
            break;
        case BEGUN:
        case ENDED:
            on_task(&s, &s.v[i]);
            break;
        case SPAN:
        case SPAN_END:
            on_span(&s, &s.v[i]);
            break;
        case QUEUED:
        case QUEUED_END:
            on_job(&s, &s.v[i]);
            break;
        case REASON:
            on_reason(&s, &s.v[i]);
            break;
        default:
            on_executor(&s, &s.v[i]);
        }
    }
    if (good)
        close_open(&s);
    free(s.v);
    free(s.profiles);
    free(s.stages);
    if (good)
        return s.ret;
    free(s.ret);
    return NULL;
}
