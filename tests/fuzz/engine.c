/*
 * The engine's events: bytes become a bounded run of them, real and made up, late and
 * twice, on a cluster of a few executors and profiles. After each event all actions are
 * taken and all invariants checked; at the end everything runs out, and must be gone.
 * One bit asks for the same run twice, which must decide the same. What most runs do
 * without (copies, exclusion, datasets, …) is in engine_moves.c.
 *
 * Input: 5 bytes of configuration, then moves of a byte with the bytes that they need
 * behind them (as numbers that keep their meaning when there are more kinds of things).
 * Ids are chosen among those that there are, and one beyond.
 */
#include <string.h>

#include "conf/options.h"
#include "engine_moves.h"

enum { MOVES = 256, STAGES = 5, TASKS = 12 };

static const char *const hosts[] = {"h0", "h1", "h2", "h3", "late"};
static const char *const racks[] = {"r0", "r1", NULL};

/* ---- configuration ---- */

static bool asks_for_features(uint8_t flags)
{
    return (flags & 0xe0) == 0xc0;
}

static void choose_config(struct fuzz_bytes *b, struct trp_engine_config *c)
{
    uint8_t flags = fuzz_byte(b), locality = fuzz_byte(b), limits = fuzz_byte(b);
    uint8_t queue = fuzz_byte(b), more = fuzz_byte(b);
    trp_options_engine_config(NULL, c);
    c->pack = flags & 1;
    c->release_idle = flags & 2;
    c->keep_going = flags & 4;
    c->fixed = (flags & 0x18) == 0x18;
    c->reuse = (enum trp_reuse)((flags >> 5) % 3);
    for (int i = 0; i < 3; i++) {
        static const int level[] = {TRP_PROCESS_LOCAL, TRP_NODE_LOCAL, TRP_RACK_LOCAL};
        static const int64_t wait[] = {3 * SECOND, 0, 1, SECOND};
        c->locality_wait_ns[level[i]] = wait[locality >> 2 * i & 3];
    }
    c->max_failures = 1 + (limits & 3);
    c->max_start_failures = 1 + (limits >> 2 & 3);
    c->max_executors = limits & 0x10 ? 1 + (more & 3u) : UINT32_MAX;
    c->alloc_max_executors = limits & 0x20 ? 1 + (more >> 2 & 3u) : UINT32_MAX;
    c->min_executors = limits & 0x40 ? 1 + (more >> 4 & 3) : 0;
    c->queue_ahead_ns = queue & 1 ? 0 : queue & 2 ? SECOND : SECOND / 100;
    c->queue_ahead_max = queue & 4 ? 1 + (queue >> 4) : 2048;
    c->idle_timeout_ns = queue & 8 ? SECOND : 60 * SECOND;
    if (asks_for_features(flags))
        choose_features(b, c);
}

/* ---- jobs ---- */

struct job {
    struct trp_stage_spec stages[STAGES];
    struct trp_parent_spec parents[STAGES][STAGES];
    int32_t not_on[STAGES];
};

static void choose_parents(struct fuzz_bytes *b, struct job *j, uint32_t i)
{
    struct trp_stage_spec *s = &j->stages[i];
    uint8_t which = fuzz_byte(b), each = fuzz_byte(b);
    s->parents = j->parents[i];
    for (uint32_t p = 0; p < i; p++) {
        if (!(which >> p & 1))
            continue;
        j->parents[i][s->nparents++] =
            (struct trp_parent_spec){.stage = p,
                                     .each = each >> p & 1,
                                     .by = each >> p & 1 && each & 0x20,
                                     .shuffle = j->stages[p].map && each & 0x40};
        if (each >> p & 1 && each & 0x20)
            s->tasks_known = s->tasks_known && each & 0x80;
        else if (each >> p & 1 && !(each & 0x80)) /* else it may not be possible */
            s->ntasks = j->stages[p].ntasks;
    }
    if ((which & 0xe0) == 0xe0) /* one that does not stand before it */
        j->parents[i][s->nparents++].stage = i + (each & 1);
}

static void choose_stage(struct fuzz_world *w, struct fuzz_bytes *b, struct job *j,
                         uint32_t i)
{
    struct trp_stage_spec *s = &j->stages[i];
    uint8_t kind = fuzz_byte(b), rules = fuzz_byte(b), more = fuzz_byte(b);
    s->name = "s";
    s->profile = w->profile[kind & 3];
    s->tasks_known = kind & 4;
    s->ntasks = fuzz_below(b, TASKS);
    if ((kind & 0x38) == 0x38) {
        s->kind = TRP_STAGE_GANG;
        s->ranks = kind >> 6;
        s->ntasks = 1;
    }
    if ((kind & 0xf8) == 0xd0)
        s->profile.n = FUZZ_PROFILES; /* there is none */
    s->max_failures = rules & 3;
    s->max_running = rules & 4 ? 1 + (more & 3) : 0;
    s->tolerate = rules & 8 ? more >> 2 & 3 : 0;
    s->tolerate_ppm = rules & 0x10 ? UINT32_C(250000) * (more >> 4 & 3) : 0;
    s->memory_factor_ppm = rules & 0x20 ? 1500000 : 0;
    s->min_executors = rules & 0x40 ? 1 + (more >> 6) : 0;
    s->max_executors = rules & 0x80 ? s->min_executors + 1 : 0;
    j->not_on[i] = 2;
    s->not_on = &j->not_on[i];
    s->nnot_on = more & 1;
    if (w->features) {
        uint8_t dag = fuzz_byte(b);
        s->map = (dag & 3) == 3;
        s->barrier = (dag & 0xc) == 0xc;
        s->indeterminate = (dag & 0x30) == 0x30;
        s->checked = (dag & 0xc0) == 0xc0;
    }
    choose_parents(b, j, i);
}

static void move_job(struct fuzz_world *w, struct fuzz_bytes *b)
{
    struct job j = {0};
    uint32_t n = 1 + fuzz_below(b, STAGES);
    struct trp_job_spec spec = {.stages = j.stages, .nstages = n};
    const struct trp_event ev = {.kind = TRP_EVENT_JOB, .job = {&spec}};
    for (uint32_t i = 0; i < n; i++)
        choose_stage(w, b, &j, i);
    if (n == STAGES && fuzz_byte(b) > 250)
        spec.nstages = 0;
    fuzz_step(w, &ev);
}

/* ---- stages ---- */

static void move_stage_tasks(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint32_t first[TASKS + 1];
    struct trp_place places[TASKS * 2];
    uint8_t done[TASKS], stage = fuzz_byte(b), how = fuzz_byte(b);
    struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_TASKS,
        .tasks = {.stage = {stage % (w->world.nstages + 1)},
                  .ntasks = fuzz_below(b, TASKS)}
    };
    uint32_t n = 0;
    for (uint32_t i = 0; i < ev.tasks.ntasks; i++) {
        uint8_t to = fuzz_byte(b);
        first[i] = n;
        for (uint32_t k = 0; k < (to & 3) && k < 2; k++, to = (uint8_t)(to * 5 + 1))
            places[n++] = (struct trp_place){hosts[to >> 2 & 3],
                                             to & 0x80 ? to >> 4 & 3 : TRP_NONE};
        done[i] = how & 2 && to & 0x10;
    }
    first[ev.tasks.ntasks] = n;
    if (how & 1)
        ev.tasks.prefer = (struct trp_preferences){first, places};
    ev.tasks.done = how & 2 ? done : NULL;
    uint32_t values[TASKS + 1];
    struct trp_by_task above[TASKS];
    struct trp_by by[3];
    ev.tasks.nby = how >> 2 & 3;
    ev.tasks.by = by;
    for (uint32_t i = 0; ev.tasks.nby && i < ev.tasks.ntasks; i++) {
        uint8_t of = fuzz_byte(b);
        values[i] = of & 3;
        above[i] = (struct trp_by_task){(i + (of >> 2 & 3)) / 2, of >> 4 & 3};
    }
    for (uint32_t i = 0; i < ev.tasks.nby; i++)
        by[i] = (struct trp_by){how >> 4 & 7, values, ev.tasks.ntasks, above,
                                ev.tasks.ntasks};
    fuzz_step(w, &ev);
}

static void move_stage_refused(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {
        .kind = TRP_EVENT_STAGE_REFUSED,
        .refused_stage = {{fuzz_below(b, w->world.nstages + 1)}, "no match"}
    };
    fuzz_step(w, &ev);
    const struct trp_event checked = {
        .kind = TRP_EVENT_STAGE_CHECKED,
        .checked = {ev.refused_stage.stage, w->world.now & 1024 ? "not made" : NULL}
    };
    const struct trp_event contended = {.kind = TRP_EVENT_CONTENDED,
                                        .contended = {w->world.now & 2048}};
    if (w->features)
        fuzz_step(w, &checked);
    if (w->features)
        fuzz_step(w, &contended);
}

static void move_fit(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint8_t n = fuzz_byte(b);
    const struct trp_event ev = {
        .kind = TRP_EVENT_PROFILE_FIT,
        .fit = {{fuzz_below(b, FUZZ_PROFILES + 3)},
                n >= 128 ? 8
                : n >= 8 ? UINT32_MAX
                         : n,
                n >= 128 ? 5 + n % 4 : n % 3,
                n % 2 ? "too small" : NULL,
                n % 4,
                n % 8 >= 4}
    };
    const struct trp_event wait = {
        .kind = TRP_EVENT_QUEUE_WAIT,
        .queue_wait = {ev.fit.profile, (n - 129) * SECOND}
    };
    fuzz_step(w, &ev);
    if (n >= 128)
        fuzz_step(w, &wait);
}

/* ---- executors ---- */

static void move_added(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint32_t x = choose_executor(w, b);
    uint8_t where = fuzz_byte(b);
    fuzz_come(w, x, hosts[where & 3], racks[(where >> 2) % 3]);
}

/* All that are asked for come up: what a cluster mostly does. */
static void move_all_added(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint8_t where = fuzz_byte(b);
    for (uint32_t i = 0; i < w->world.nexecutors; i++)
        if (w->world.executors[i].state == WORLD_REQUESTED)
            fuzz_come(w, i, hosts[(where + i) & 3], racks[(where >> 2) % 3]);
}

static void move_refused(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint32_t x = choose_executor(w, b);
    uint8_t how = fuzz_byte(b);
    const struct trp_event granted = {.kind = TRP_EVENT_EXECUTOR_GRANTED,
                                      .granted = {{x}}};
    if (how < 50) {
        fuzz_step(w, &granted);
        return;
    }
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.executor = {x},
                    .how = how > 200   ? TRP_REFUSED_NEVER
                           : how > 100 ? TRP_REFUSED_LATER
                                       : TRP_REFUSED_FAILED,
                    .untried = how & 4,
                    .text = how & 1 ? "no room" : NULL,
                    .cause = how & 2 ? "room" : NULL}
    };
    fuzz_step(w, &ev);
}

static void move_lost(struct fuzz_world *w, struct fuzz_bytes *b)
{
    uint32_t x = choose_executor(w, b);
    uint8_t how = fuzz_byte(b);
    enum trp_loss reason = (enum trp_loss)(how & 15);
    if (reason > TRP_LOSS_TIME_LIMIT)
        reason = TRP_LOSS_EXITED;
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_LOST,
        .lost = {.executor = {x},
                 .reason = reason,
                 .has_culprit = how & 0x80,
                 .culprit = how & 0x80 ? choose_attempt(w, b) : (trp_attempt_id){0},
                 .code = how >> 4}
    };
    fuzz_step(w, &ev);
}

/* Only where executors are simply there: else nobody expects one unasked. */
static void move_expect(struct fuzz_world *w, struct fuzz_bytes *b)
{
    trp_profile_id p = w->profile[fuzz_below(b, FUZZ_PROFILES)];
    if (w->world.config.fixed && w->world.nexecutors < 64)
        world_expect(&w->world, p);
}

/* ---- attempts, jobs, time ---- */

static void move_ended(struct fuzz_world *w, struct fuzz_bytes *b)
{
    trp_attempt_id id = choose_attempt(w, b);
    uint8_t how = fuzz_byte(b);
    enum trp_end_status status = (enum trp_end_status)(how & 15);
    enum trp_end_status last = w->features ? TRP_END_OUTPUT : TRP_END_PLATFORM;
    if (how >= 0x80 || status == TRP_END_LOST || status > last)
        status = TRP_END_SUCCESS;
    struct trp_event ev = {
        .kind = TRP_EVENT_TASK_ENDED,
        .ended = {.attempt = id,
                  .status = status,
                  .code = how >> 4,
                  .duration_ns =
                      (how & 0x40 ? -1 : 1) * (INT64_C(1) << fuzz_below(b, 63))}
    };
    if (w->features)
        choose_end(w, b, &ev);
    fuzz_step(w, &ev);
}

/* So many of the first ones end well. */
static void move_all_ended(struct fuzz_world *w, struct fuzz_bytes *b)
{
    for (uint32_t n = 1 + fuzz_below(b, 32); n && w->world.nattempts; n--) {
        const struct trp_event ev = {
            .kind = TRP_EVENT_TASK_ENDED,
            .ended = {.attempt = w->world.attempts[0].id,
                      .status =
                          w->world.attempts[0].kill ? TRP_END_KILLED : TRP_END_SUCCESS,
                      .duration_ns = 1000000}
        };
        fuzz_step(w, &ev);
    }
}

static void move_cancel(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {.kind = TRP_EVENT_CANCEL_JOB,
                                 .cancel = {{fuzz_below(b, w->world.njobs + 1)}}};
    fuzz_step(w, &ev);
}

static void move_drain(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {.kind = TRP_EVENT_DRAIN};
    if (fuzz_byte(b) >= 0xc0)
        fuzz_step(w, &ev);
}

/* Also back, which a careless driver could do; and to the next timer. */
static void move_time(struct fuzz_world *w, struct fuzz_bytes *b)
{
    const struct trp_event ev = {.kind = TRP_EVENT_TIME};
    uint8_t n = fuzz_byte(b);
    int64_t due = trp_engine_next_timer(w->world.engine);
    if (n >= 0xf0)
        w->world.now -= w->world.now / 4;
    else if (n >= 0x80 && due != INT64_MAX)
        w->world.now = due > w->world.now ? due : w->world.now;
    else if (w->world.now < INT64_C(1) << 60)
        w->world.now += INT64_C(1) << n % 56;
    fuzz_step(w, &ev);
}

static void move_views(struct fuzz_world *w, struct fuzz_bytes *b)
{
    char text[200];
    struct trp_stage_view view;
    trp_stage_id stage = {fuzz_below(b, w->world.nstages + 1)};
    trp_engine_stage(w->world.engine, stage, &view);
    const char *why =
        trp_engine_why_waiting(w->world.engine, w->world.now, stage, text, sizeof text);
    FUZZ_CHECK(why && strlen(why) < sizeof text, "no reason why stage %u waits",
               stage.n);
}

/* New ones take places behind the first 15: what is kept as numbers stays what it is. */
static const struct {
    const char *name;
    void (*make)(struct fuzz_world *w, struct fuzz_bytes *b);
} moves[32] = {
    {"job",           move_job          },
    {"stage_tasks",   move_stage_tasks  },
    {"stage_refused", move_stage_refused},
    {"fit",           move_fit          },
    {"added",         move_added        },
    {"all_added",     move_all_added    },
    {"refused",       move_refused      },
    {"lost",          move_lost         },
    {"expect",        move_expect       },
    {"ended",         move_ended        },
    {"all_ended",     move_all_ended    },
    {"cancel",        move_cancel       },
    {"drain",         move_drain        },
    {"time",          move_time         },
    {"views",         move_views        },
    {"decommission",  move_decommission },
    {"progress",      move_progress     },
    {"dataset",       move_dataset      },
    {"dataset_job",   move_dataset_job  },
    {"cached",        move_cached       },
    {"moved",         move_moved        },
    {"released",      move_released     },
    {"cancel_stage",  move_cancel_stage },
    {"ended",         move_ended        },
    {"all_added",     move_all_added    },
    {"all_ended",     move_all_ended    },
    {"time",          move_time         },
    {"stage_tasks",   move_stage_tasks  },
    {"job",           move_job          },
    {"lost",          move_lost         },
    {"dataset_job",   move_dataset_job  },
    {"ended",         move_ended        },
};

int fuzz_move_number(const char *name)
{
    for (int i = 0; i < 32; i++)
        if (strcmp(moves[i].name, name) == 0)
            return i;
    return -1;
}

/* The line of a .moves file (tests/fuzz/corpus_maker.c) that says the same. */
static void tell_move(const struct fuzz_world *w, const char *name, const uint8_t *from,
                      const uint8_t *to)
{
    world_say(&w->world, "move %s", name);
    for (; from < to; from++)
        world_say(&w->world, " %u", *from);
    world_say(&w->world, "\n");
}

/* ---- one input ---- */

uint64_t fuzz_play(const uint8_t *data, size_t size, const char *record)
{
    static struct fuzz_world w;
    struct fuzz_bytes b = {data, data + size};
    struct trp_engine_config config;
    choose_config(&b, &config);
    if (!fuzz_begin(&w, &config, record))
        return 0;
    tell_move(&w, "config", data, b.at);
    w.features = size > 0 && asks_for_features(data[0]);
    w.world.now = SECOND;
    for (int i = 0; i < MOVES && b.at < b.end && w.world.njobs < FUZZ_JOBS; i++) {
        uint8_t n = fuzz_byte(&b) % (sizeof moves / sizeof *moves);
        const uint8_t *from = b.at;
        moves[n].make(&w, &b);
        tell_move(&w, moves[n].name, from, b.at);
        w.world.now += 1000;
    }
    fuzz_finish(&w);
    uint64_t hash = w.world.hash;
    world_free(&w.world);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t hash = fuzz_play(data, size, NULL);
    if (size > 0 && data[size - 1] & 1)
        FUZZ_CHECK(fuzz_play(data, size, NULL) == hash,
                   "the same events decide otherwise");
    return 0;
}
