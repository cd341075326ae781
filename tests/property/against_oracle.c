/*
 * The subject "oracle": small random cases of task sets on executors, played by the
 * engine and by the oracle at once. After each step both must have decided the same:
 * launches in the same order, everything else as sets, and be in the same state.
 */
#include <stdlib.h>
#include <string.h>

#include "small_case.h"

enum kind {
    SUBMIT,
    ADD,
    ROUND,
    ROUND_OF,
    PARTIAL,
    END,
    LOSE,
    DECOMMISSION,
    STARTED,
    PROGRESS,
    SPECULATE,
    TICK,
    KINDS,
};
static const char *const kinds[] = {
    "submit",       "add",     "round",    "round_of",  "partial", "end", "lose",
    "decommission", "started", "progress", "speculate", "tick",    NULL};

/* ---- making ---- */

static enum kind random_kind(struct rng *r)
{
    static const uint8_t weights[KINDS] = {
        [SUBMIT] = 8,   [ADD] = 10,     [ROUND] = 16,    [ROUND_OF] = 10,
        [PARTIAL] = 12, [END] = 34,     [LOSE] = 3,      [DECOMMISSION] = 2,
        [STARTED] = 4,  [PROGRESS] = 3, [SPECULATE] = 8, [TICK] = 2,
    };
    return (enum kind)rng_weighted(r, weights, KINDS);
}

/* Every step's last argument is how long after the one before it happens (ms). */
static void make(struct stream *s, struct rng *r)
{
    static const uint32_t pauses[] = {0, 0, 1, 500, 999, 1000, 1001, 2000, 5000};
    small_make_knobs(s->knob, r);
    s->nsteps = 15 + rng_below(r, 80);
    for (uint32_t i = 0; i < s->nsteps; i++) {
        struct step *t = &s->steps[i];
        t->kind = i < 4 ? (i % 2 ? SUBMIT : ADD) : random_kind(r);
        t->arg[0] = rng_below(r, 64);
        t->arg[1] = rng_one_in(r, 2) ? rng_below(r, 10) : 0;
        t->arg[2] = rng_below(r, 20);
        t->arg[3] = pauses[rng_below(r, 9)];
    }
}

/* ---- comparing ---- */

static void write_decision(const struct or_decision *d, char *buf, size_t size)
{
    static const char *const words[] = {
        "launch", "kill", "requeued", "speculatable", "finished", "aborted", "zombie"};
    static const char *const levels[] = {"PROCESS_LOCAL", "NODE_LOCAL", "NO_PREF",
                                         "RACK_LOCAL", "ANY"};
    int n = snprintf(buf, size, "%s set %d", words[d->kind], d->set);
    if (d->task != OR_NONE)
        n += snprintf(buf + n, size - (size_t)n, " task %d", d->task);
    if (d->kind == OR_LAUNCH)
        snprintf(buf + n, size - (size_t)n, ".%d on e%d, %s%s, gpu %x fpga %x",
                 d->attempt, d->executor, levels[d->level],
                 d->speculative ? ", speculative" : "", d->addresses[0],
                 d->addresses[1]);
    else if (d->attempt != OR_NONE)
        snprintf(buf + n, size - (size_t)n, ".%d", d->attempt);
}

/* Not told by both: the kills that follow from a set's end (the DAG's), and what the
 * engine tells again of a task whose other attempt still runs. */
static bool is_compared(const struct oracle *o, const struct or_decision *d)
{
    if (d->set == OR_NONE)
        return true;
    const struct or_set *s = &o->sets[d->set];
    return d->kind != OR_KILL || !s->zombie || s->finished;
}

/* Launches keep their order and stand first; the rest is sorted. */
static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum { LINE = 128 };

static int write_sorted(const struct oracle *o, const struct or_decision *v, int n,
                        char (*lines)[LINE])
{
    int launches = 0, all;
    for (int i = 0; i < n; i++)
        if (v[i].kind == OR_LAUNCH)
            write_decision(&v[i], lines[launches++], LINE);
    all = launches;
    for (int i = 0; i < n; i++)
        if (v[i].kind != OR_LAUNCH && is_compared(o, &v[i]))
            write_decision(&v[i], lines[all++], LINE);
    qsort(lines[launches], (size_t)(all - launches), LINE, by_text);
    return all;
}

static void compare(const struct oracle *o, const struct small_engine *e, FILE *explain,
                    struct verdict *v)
{
    static char want[OR_DECISIONS][LINE], got[OR_DECISIONS][LINE];
    int nwant = write_sorted(o, o->decisions, o->ndecisions, want);
    int ngot = write_sorted(o, e->decisions, e->ndecisions, got);
    for (int i = 0; explain && i < (nwant > ngot ? nwant : ngot); i++) {
        const char *w = i < nwant ? want[i] : "nothing";
        const char *g = i < ngot ? got[i] : "nothing";
        if (strcmp(w, g) == 0)
            fprintf(explain, "    %s\n", w);
        else
            fprintf(explain, "    oracle: %s; engine: %s\n", w, g);
    }
    for (int i = 0; i < nwant || i < ngot; i++) {
        const char *w = i < nwant ? want[i] : "nothing";
        const char *g = i < ngot ? got[i] : "nothing";
        if (strcmp(w, g) != 0) {
            verdict_break(v, "engine and oracle decide the same",
                          "oracle: %s; engine: %s", w, g);
            return;
        }
    }
}

/* ---- playing ---- */

struct both {
    struct or_setup setup;
    struct oracle oracle;
    struct small_engine engine;
};

static int pick_attempt(const struct oracle *o, uint32_t which)
{
    int n = 0;
    for (int a = 0; a < o->nattempts; a++)
        n += o->attempts[a].state == OR_RUNNING;
    which = n ? which % (uint32_t)n : 0;
    for (int a = 0; n && a < o->nattempts; a++)
        if (o->attempts[a].state == OR_RUNNING && which-- == 0)
            return a;
    return OR_NONE;
}

static int pick_executor(const struct oracle *o, enum or_executor_state state,
                         uint32_t which)
{
    int n = 0;
    for (int x = 0; x < OR_EXECUTORS; x++)
        n += o->executors[x].state == state;
    which = n ? which % (uint32_t)n : 0;
    for (int x = 0; n && x < OR_EXECUTORS; x++)
        if (o->executors[x].state == state && which-- == 0)
            return x;
    return OR_NONE;
}

static int play_submit(struct both *b, uint32_t which, trp_error *err)
{
    /* A later attempt of a stage comes after the earlier one. */
    for (int i = 0; i < b->setup.nsets; i++) {
        int s = (int)((which + (uint32_t)i) % (uint32_t)b->setup.nsets);
        const struct or_set_spec *spec = &b->setup.sets[s];
        if (b->oracle.sets[s].submitted ||
            (spec->attempt && !b->oracle.sets[s - 1].submitted))
            continue;
        oracle_submit(&b->oracle, s);
        return small_submit(&b->engine, s, err);
    }
    return 0;
}

static int play_round(struct both *b, const uint32_t *a, enum kind kind, trp_error *err)
{
    bool offered[OR_EXECUTORS] = {false};
    int order[OR_EXECUTORS], n = 0;
    int one = pick_executor(&b->oracle, OR_LIVE, a[0]);
    for (int x = 0; x < OR_EXECUTORS; x++)
        offered[x] = kind == ROUND || (kind == PARTIAL && x == one) ||
                     (kind == ROUND_OF && (a[0] >> x & 1));
    for (int turn = 0; turn < b->oracle.added; turn++)
        for (int x = 0; x < OR_EXECUTORS; x++)
            if (b->oracle.executors[x].state == OR_LIVE &&
                b->oracle.executors[x].order == turn && offered[x])
                order[n++] = x;
    oracle_round(&b->oracle, offered, kind != PARTIAL);
    return small_round(&b->engine, order, n, kind != PARTIAL, err);
}

static int play_add(struct both *b, uint32_t which, trp_error *err)
{
    int x = pick_executor(&b->oracle, OR_ABSENT, which);
    if (x == OR_NONE)
        return 0;
    /* What is excluded may not come; whether it still is, is looked at first. */
    oracle_tick(&b->oracle);
    small_tick(&b->engine);
    if (or_app_excluded(&b->oracle, x))
        return 0;
    oracle_add(&b->oracle, x);
    return small_add(&b->engine, x, err);
}

static int play_end(struct both *b, const uint32_t *a, trp_error *err)
{
    int i = pick_attempt(&b->oracle, a[0]);
    if (i == OR_NONE)
        return 0;
    enum or_end status =
        a[1] < OR_END_EXECUTOR_LOST ? (enum or_end)a[1] : OR_END_FAILED;
    int64_t ran = b->oracle.now - b->oracle.attempts[i].launched;
    oracle_end(&b->oracle, i, status, a[2] * 100);
    return small_end(&b->engine, i, status, ran, a[2] * 100, err);
}

static int play_step(struct both *b, const struct step *s, trp_error *err)
{
    const uint32_t *a = s->arg;
    int x = pick_executor(&b->oracle, OR_LIVE, a[0]), t;
    switch ((enum kind)s->kind) {
    case SUBMIT:
        return play_submit(b, a[0], err);
    case ADD:
        return play_add(b, a[0], err);
    case ROUND:
    case ROUND_OF:
    case PARTIAL:
        return play_round(b, a, (enum kind)s->kind, err);
    case END:
        return play_end(b, a, err);
    case LOSE:
        if (x == OR_NONE)
            return 0;
        oracle_lose(&b->oracle, x, (enum or_loss)(a[1] % 5));
        return small_lose(&b->engine, x, (enum or_loss)(a[1] % 5), err);
    case DECOMMISSION:
        if (x == OR_NONE || b->oracle.executors[x].decommissioned)
            return 0;
        oracle_decommission(&b->oracle, x);
        return small_decommission(&b->engine, x, err);
    case STARTED:
    case PROGRESS:
        t = pick_attempt(&b->oracle, a[0]);
        if (t == OR_NONE)
            return 0;
        if (s->kind == STARTED) {
            oracle_started(&b->oracle, t);
            small_started(&b->engine, t);
            return 0;
        }
        oracle_progress(&b->oracle, t, a[2] * 100);
        return small_progress(&b->engine, t, a[2] * 100, err);
    case SPECULATE:
        oracle_speculate(&b->oracle);
        small_speculate(&b->engine);
        return 0;
    case TICK:
        oracle_tick(&b->oracle);
        small_tick(&b->engine);
        return 0;
    case KINDS:
        break;
    }
    return 0;
}

static void play_all(struct both *b, const struct stream *s, FILE *explain,
                     struct verdict *v)
{
    char what[256];
    trp_error err;
    int64_t now = 0;
    for (uint32_t i = 0; i < s->nsteps && !v->broken[0]; i++) {
        const struct step *t = &s->steps[i];
        v->at = i;
        now += t->arg[3];
        if (explain) {
            fprintf(explain, "%lld ms: ", (long long)now);
            stream_write_step(s, i, explain);
            fprintf(explain, "\n");
        }
        oracle_begin(&b->oracle, now);
        if (small_time(&b->engine, now, &err) < 0 || play_step(b, t, &err) < 0)
            verdict_break(v, "the engine takes the step", "%s", err.text);
        bool exclusions = t->kind == ROUND || t->kind == ROUND_OF || t->kind == TICK;
        if (!v->broken[0])
            compare(&b->oracle, &b->engine, explain, v);
        if (!v->broken[0] &&
            !small_same_state(&b->engine, &b->oracle, exclusions, what, sizeof(what)))
            verdict_break(v, "engine and oracle are in the same state", "%s", what);
        if (!v->broken[0] && trp_engine_sanity_check(b->engine.world.engine, &err) < 0)
            verdict_break(v, "the engine's own check", "%s", err.text);
    }
    if (!v->broken[0])
        v->at = s->nsteps;
}

static uint64_t play_once(const struct stream *s, FILE *explain, struct verdict *v)
{
    static struct both b;
    trp_error err;
    small_setup(s->knob, &b.setup);
    if (explain)
        small_write(&b.setup, explain);
    oracle_init(&b.oracle, &b.setup);
    if (small_open(&b.engine, &b.setup, &err) < 0)
        verdict_break(v, "the engine takes the setup", "%s", err.text);
    else
        play_all(&b, s, explain, v);
    if (explain)
        fprintf(explain, "%s\n", v->broken[0] ? v->text : "both agree");
    small_close(&b.engine);
    return 0;
}

static void play(const struct stream *s, FILE *explain, struct verdict *ret)
{
    stream_play(s, play_once, false, explain, ret);
}

const struct subject oracle_subject = {
    .name = "oracle", .knobs = small_knobs, .kinds = kinds, .make = make, .play = play};
