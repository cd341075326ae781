#include "events/run_status.h"

#include "events/json_text.h"

static void put_ms(struct trp_buf *b, int64_t ns)
{
    if (ns)
        trp_json_int(b, ns / 1000000);
    else
        TRP_JSON(b, "null");
}

/* clang-format off */
#define MS(b, name, ns) (TRP_JSON(b, ",\"" name "\":"), put_ms(b, ns))
/* clang-format on */

void trp_status_begin(struct trp_buf *b, const struct trp_status *s)
{
    TRP_JSON(b, "{\"run\":");
    trp_json_text(b, s->run);
    TRP_JSON_TEXT(b, "name", s->name);
    TRP_JSON_TEXT(b, "status", s->status);
    TRP_JSON_TEXT(b, "from", s->from);
    TRP_JSON_TEXT(b, "host", s->host);
    MS(b, "now", s->now);
    MS(b, "started", s->started);
    MS(b, "ended", s->ended);
    TRP_JSON(b, ",\"exit\":");
    if (s->ended)
        trp_json_int(b, s->exit_status);
    else
        TRP_JSON(b, "null");
    TRP_JSON_INT(b, "left_out", s->left_out);
    TRP_JSON_INT(b, "tasks", s->tasks);
    TRP_JSON_INT(b, "done", s->done);
    TRP_JSON(b, ",\"stages\":[");
}

void trp_status_stage(struct trp_buf *b, const struct trp_status_stage *s)
{
    trp_json_comma(b);
    TRP_JSON(b, "{\"name\":");
    trp_json_text(b, s->name);
    TRP_JSON_INT(b, "id", s->id);
    TRP_JSON_TEXT(b, "profile", s->profile);
    TRP_JSON_TEXT(b, "state", s->state);
    TRP_JSON_INT(b, "tasks", s->tasks);
    TRP_JSON_INT(b, "done", s->done);
    TRP_JSON_INT(b, "running", s->running);
    TRP_JSON_INT(b, "pending", s->pending);
    TRP_JSON_INT(b, "given_up", s->given_up);
    TRP_JSON_INT(b, "skipped", s->skipped);
    TRP_JSON_INT(b, "failures", s->failures);
    TRP_JSON_INT(b, "ran", s->ran);
    MS(b, "began", s->began);
    MS(b, "ended", s->ended);
    TRP_JSON_TEXT(b, "why", s->why);
    TRP_JSON(b, "}");
}

void trp_status_executors(struct trp_buf *b)
{
    TRP_JSON(b, "],\"executors\":[");
}

void trp_status_profile(struct trp_buf *b, const struct trp_status_profile *p)
{
    trp_json_comma(b);
    TRP_JSON(b, "{\"profile\":");
    trp_json_text(b, p->name);
    TRP_JSON_INT(b, "up", p->up);
    TRP_JSON_INT(b, "coming", p->coming);
    TRP_JSON_INT(b, "busy", p->busy);
    TRP_JSON_INT(b, "leaving", p->leaving);
    TRP_JSON_TEXT(b, "needs", p->needs);
    TRP_JSON(b, "}");
}

void trp_status_jobs(struct trp_buf *b)
{
    TRP_JSON(b, "],\"jobs\":[");
}

void trp_status_job(struct trp_buf *b, const struct trp_status_job *j)
{
    trp_json_comma(b);
    TRP_JSON(b, "{\"job\":");
    trp_json_int(b, j->job);
    TRP_JSON_BOOL(b, "additional", j->additional);
    TRP_JSON_TEXT(b, "state", j->state);
    TRP_JSON_TEXT(b, "profile", j->profile);
    TRP_JSON_TEXT(b, "reason", j->reason);
    TRP_JSON_INT(b, "nodes", j->nodes);
    MS(b, "start", j->start);
    MS(b, "ends", j->ends);
    TRP_JSON(b, "}");
}

void trp_status_end(struct trp_buf *b)
{
    TRP_JSON(b, "]}");
}

/* ---- from statistics ---- */

static const char *state_of(const struct trp_stage_statistics *s)
{
    if (s->outcome != TRP_OUTCOME_RUNNING)
        return trp_outcome_name(s->outcome);
    return s->submitted <= 0 ? "waiting" : s->open > 0 ? "running" : "ready";
}

struct trp_status_stage trp_status_of(const struct trp_statistics *all,
                                      const struct trp_stage_statistics *s)
{
    uint64_t done = s->durations.count < s->ntasks ? s->durations.count : s->ntasks;
    if (s->outcome == TRP_OUTCOME_SUCCEEDED)
        done = s->ntasks - s->given_up - s->skipped;
    return (struct trp_status_stage){.name = s->name,
                                     .id = s->stage.n,
                                     .profile =
                                         trp_statistics_profile_name(all, s->profile),
                                     .state = state_of(s),
                                     .tasks = s->ntasks,
                                     .done = (uint32_t)done,
                                     .running = (uint32_t)s->open,
                                     .given_up = s->given_up,
                                     .skipped = s->skipped,
                                     .failures = s->failures,
                                     .ran = s->durations.count,
                                     .began = s->submitted,
                                     .ended = s->ended,
                                     .why = ""};
}

uint32_t trp_status_first(uint32_t nstages, uint32_t *ret_left_out)
{
    *ret_left_out = nstages > TRP_STATUS_STAGES ? nstages - TRP_STATUS_STAGES : 0;
    return *ret_left_out;
}

/* ---- of a log ---- */

/* Of a run that does not go on, nothing runs. */
static void put_log_stage(struct trp_buf *b, const struct trp_run_record *r,
                          const struct trp_stage_statistics *s, bool live)
{
    struct trp_status_stage one = trp_status_of(&r->statistics, s);
    if (!live && s->outcome == TRP_OUTCOME_RUNNING) {
        one.state = s->submitted > 0 ? "unfinished" : "not run";
        one.running = 0;
    }
    trp_status_stage(b, &one);
}

static void put_log_profile(struct trp_buf *b, const struct trp_statistics *all,
                            uint32_t profile)
{
    struct trp_status_profile p = {.name = all->shapes[profile].name, .needs = ""};
    for (uint32_t i = 0; i < all->nexecutors; i++) {
        const struct trp_executor_statistics *x = &all->executors[i];
        if (!x->live || x->shape.n != profile)
            continue;
        p.up++;
        p.busy += x->open > 0;
    }
    if (p.up)
        trp_status_profile(b, &p);
}

void trp_status_of_log(struct trp_buf *b, const struct trp_run_record *r,
                       const struct trp_status *s)
{
    const struct trp_statistics *all = &r->statistics;
    struct trp_status head = *s;
    bool live = !s->ended && strcmp(s->status, "running") == 0;
    uint32_t i = 0;
    for (; i < all->nstages; i++) {
        struct trp_status_stage one = {0};
        if (all->stages[i])
            one = trp_status_of(all, all->stages[i]);
        head.tasks += one.tasks;
        head.done += one.done;
    }
    i = trp_status_first(all->nstages, &head.left_out);
    trp_status_begin(b, &head);
    for (; i < all->nstages; i++)
        if (all->stages[i])
            put_log_stage(b, r, all->stages[i], live);
    trp_status_executors(b);
    for (i = 0; live && i < all->nshapes; i++)
        if (all->shapes[i].known)
            put_log_profile(b, all, i);
    trp_status_jobs(b);
    trp_status_end(b);
}
