/*
 * The world of the engine's fuzz target, and the end of every input: whatever happened,
 * a healthy cluster brings all to its end, and nothing is left.
 */
#include <glib.h>
#include <string.h>

#include "conf/options.h"
#include "engine_moves.h"

/* ---- steps ---- */

static void tell_event(const struct world *w, const struct trp_event *ev)
{
    static const char *const names[] = {"job",
                                        "tasks of stage",
                                        "refused: stage",
                                        "fit of profile",
                                        "added executor",
                                        "refused: executor",
                                        "lost executor",
                                        "ended",
                                        "sync",
                                        "cancel job",
                                        "drain",
                                        "time",
                                        "decommission",
                                        "progress",
                                        "dataset",
                                        "released dataset",
                                        "cached dataset",
                                        "moved output of stage",
                                        "cancel stage"};
    unsigned long long id = ev->kind == TRP_EVENT_TASK_ENDED ? ev->ended.attempt.n : 0;
    /* Of all others but JOB, DRAIN and TIME the id comes first. */
    if (ev->kind >= TRP_EVENT_STAGE_TASKS && ev->kind <= TRP_EVENT_CANCEL_JOB && !id)
        id = ev->tasks.stage.n;
    world_say(w, "%lld %s %llx\n", (long long)w->now,
              (size_t)ev->kind < sizeof names / sizeof *names ? names[ev->kind] : "?",
              id);
}

int fuzz_step(struct fuzz_world *w, const struct trp_event *ev)
{
    tell_event(&w->world, ev);
    return world_try(&w->world, ev);
}

void fuzz_come(struct fuzz_world *w, uint32_t executor, const char *host,
               const char *rack)
{
    static const char *const addresses[] = {"0", "1"};
    static const struct trp_resource_addresses gpu = {"gpu", addresses, 2};
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_ADDED,
        .added = {{executor}, host, rack, &gpu, 1, 0}
    };
    fuzz_step(w, &ev);
}

/* One that is to be handed back is, unless it runs meanwhile: then it is ignored, and
 * the next time the attempt ends as a running one. */
static void end_first(struct fuzz_world *w)
{
    const struct world_attempt *a = &w->world.attempts[0];
    bool back = a->queued && (a->kill || a->recall);
    const struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = a->id,
                  .status = back      ? TRP_END_RECALLED
                            : a->kill ? TRP_END_KILLED
                                      : TRP_END_SUCCESS,
                  .duration_ns = 1000}
    };
    fuzz_step(w, &ev);
}

/* ---- the end ---- */

/* One thing that a healthy cluster would do now; false: there is nothing. */
static bool help(struct fuzz_world *w)
{
    w->world.now += 1000;
    for (uint32_t i = 0; i < w->world.nstages; i++)
        if (w->world.stages[i].ready && !w->world.stages[i].answered &&
            !w->world.stages[i].ended) {
            const struct trp_event ev = {
                .kind = TRP_EVENT_STAGE_TASKS, .tasks = {.stage = {i}, .ntasks = 3}
            };
            fuzz_step(w, &ev);
            return true;
        }
    for (uint32_t i = 0; i < w->world.nstages; i++)
        if (w->world.stages[i].check && !w->world.stages[i].checked &&
            !w->world.stages[i].ended) {
            const struct trp_event ev = {.kind = TRP_EVENT_STAGE_CHECKED,
                                         .checked = {.stage = {i}}};
            fuzz_step(w, &ev);
            return true;
        }
    for (uint32_t i = 0; i < w->world.nexecutors; i++) {
        const struct trp_event ev = {
            .kind = TRP_EVENT_EXECUTOR_LOST,
            .lost = {.executor = {i}, .reason = TRP_LOSS_RELEASED}
        };
        if (w->world.executors[i].state == WORLD_REQUESTED)
            fuzz_come(w, i, "late", NULL);
        else if (w->world.executors[i].state == WORLD_RELEASED)
            fuzz_step(w, &ev);
        else
            continue;
        return true;
    }
    if (!w->world.nattempts)
        return false;
    end_first(w);
    return true;
}

static void tell_waiting(const struct fuzz_world *w)
{
    struct trp_stage_view v;
    char why[200];
    for (uint32_t i = 0; i < trp_engine_stages(w->world.engine); i++)
        if (trp_engine_stage(w->world.engine, (trp_stage_id){i}, &v) == 0)
            fprintf(stderr,
                    "stage %u, profile %u, %s: %u tasks, %u pending, %u running, %u "
                    "queued, %u succeeded, %u failed: %s\n",
                    i, v.profile.n, trp_outcome_name(v.outcome), v.ntasks, v.pending,
                    v.running, v.queued, v.succeeded, v.failed,
                    trp_engine_why_waiting(w->world.engine, w->world.now,
                                           (trp_stage_id){i}, why, sizeof why));
}

/* Runs out; false: nothing is due and jobs are left, or it takes for ever. */
static bool run_out(struct fuzz_world *w)
{
    const struct trp_event time = {.kind = TRP_EVENT_TIME};
    for (int i = 0; i < 20000; i++) {
        if (world_all_over(&w->world))
            return true;
        if (help(w))
            continue;
        int64_t due = trp_engine_next_timer(w->world.engine);
        if (due == INT64_MAX)
            return false;
        w->world.now = due > w->world.now ? due : w->world.now;
        fuzz_step(w, &time);
    }
    return false;
}

static void finish_jobs(struct fuzz_world *w)
{
    bool over = run_out(w);
    if (!over)
        tell_waiting(w);
    FUZZ_CHECK(over, "%u of %u jobs ended, %u attempts are left", w->world.job_ends,
               w->world.njobs, w->world.nattempts);
}

void fuzz_finish(struct fuzz_world *w)
{
    const struct trp_event drain = {.kind = TRP_EVENT_DRAIN};
    struct trp_engine_counts counts;
    struct trp_stage_view view;
    for (uint32_t i = 0; w->world.config.fixed && i < FUZZ_PROFILES; i++)
        fuzz_come(w, world_expect(&w->world, w->profile[i]), "late", NULL);
    finish_jobs(w);
    fuzz_step(w, &drain);
    for (uint32_t i = w->ndatasets; i-- > 0;) {
        const struct trp_event ev = {.kind = TRP_EVENT_DATASET_FREED, .freed = {i}};
        fuzz_step(w, &ev);
    }
    for (uint32_t i = 0; i < w->world.nexecutors; i++) {
        const struct trp_event ev = {
            .kind = TRP_EVENT_EXECUTOR_LOST,
            .lost = {.executor = {i}, .reason = TRP_LOSS_RELEASED}
        };
        if (w->world.executors[i].state != WORLD_GONE)
            fuzz_step(w, &ev);
    }
    trp_engine_counts(w->world.engine, &counts);
    FUZZ_CHECK(counts.executors_live == 0 && counts.executors_requested == 0,
               "executors are left: %u, and %u asked for", counts.executors_live,
               counts.executors_requested);
    FUZZ_CHECK(counts.bytes_per_task == 0, "tasks are left");
    FUZZ_CHECK(counts.launches == counts.ends, "%llu launches, %llu ends",
               (unsigned long long)counts.launches, (unsigned long long)counts.ends);
    for (uint32_t i = 0; i < trp_engine_stages(w->world.engine); i++)
        FUZZ_CHECK(trp_engine_stage(w->world.engine, (trp_stage_id){i}, &view) < 0,
                   "stage %u is left", i);
}

/* ---- begin and end ---- */

static trp_profile_id add_profile(trp_profiles *p, const char *name, int64_t cores,
                                  int64_t cpus, trp_amount gpu)
{
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_error err;
    trp_profile_builder_init(&b, name);
    int rc = 0;
    if (cores)
        rc = trp_profile_builder_executor(&b, "cores", cores, &err);
    if (rc == 0)
        rc = trp_profile_builder_task(&b, "cpus", cpus * TRP_ONE, &err);
    if (rc == 0 && gpu)
        rc = trp_profile_builder_executor(&b, "gpu", 2, &err);
    if (rc == 0 && gpu)
        rc = trp_profile_builder_task(&b, "gpu", gpu, &err);
    if (rc == 0)
        rc = trp_profiles_add(p, &b, &id, &err);
    FUZZ_CHECK(rc == 0, "profile %s: %s", name, err.text);
    return id;
}

static void end_program(struct world *w, const char *what, const char *text)
{
    (void)w;
    FUZZ_CHECK(false, "%s: %s", what, text);
}

static const struct world_hooks hooks = {.broken = end_program};

bool fuzz_begin(struct fuzz_world *w, const struct trp_engine_config *config,
                const char *record)
{
    struct trp_profile_defaults d;
    trp_options_profile_defaults(NULL, &d);
    d.executor_cores = 2;
    d.cores_configured = true;
    *w = (struct fuzz_world){0};
    world_init(&w->world, &d);
    w->world.hooks = &hooks;
    w->world.manual = true;
    w->world.explain = getenv("FUZZ_TELL") ? stderr : NULL;
    w->profile[1] = add_profile(w->world.profiles, "wide", 5, 2, 0);
    w->profile[2] = add_profile(w->world.profiles, "gpu", 3, 1, TRP_ONE / 3);
    w->profile[3] = add_profile(w->world.profiles, "light", 0, 1, 0);
    if (world_try_start(&w->world, config) < 0) {
        world_free(&w->world);
        return false;
    }
    if (record)
        world_record(&w->world, record);
    return true;
}
