/*
 * The oracle's rounds: levels and waits (semantics 7), which task an offer gets (8),
 * addresses (4), barrier sets (13), and rounds themselves (6).
 */
#include <assert.h>
#include <string.h>

#include "oracle.h"

/* ---- section 7: levels ---- */

static bool on_list(const struct oracle *o, const struct or_task_spec *t,
                    enum or_level level)
{
    for (int i = 0; i < t->npreferences; i++) {
        if (level == OR_PROCESS && t->preferences[i].executor != OR_NONE)
            return true;
        if (level == OR_NODE)
            return true;
        if (level == OR_RACK && o->setup->rack[t->preferences[i].host] != OR_NONE)
            return true;
    }
    return level == OR_ANY || (level == OR_NO_PREF && !t->npreferences);
}

static bool some_task_needs(const struct oracle *o, int set, enum or_level level)
{
    for (int t = 0; t < o->setup->sets[set].ntasks; t++)
        if (or_needs_to_run(&o->sets[set].tasks[t]) &&
            on_list(o, &o->setup->sets[set].tasks[t], level))
            return true;
    return false;
}

/* Does this preference name something alive? */
static bool key_alive(const struct oracle *o, const struct or_preference *p,
                      enum or_level level)
{
    if (level == OR_PROCESS)
        return p->executor != OR_NONE && or_alive(o, p->executor);
    for (int x = 0; x < OR_EXECUTORS; x++) {
        int host = o->setup->executors[x].host;
        if (!or_alive(o, x))
            continue;
        if (level == OR_NODE && host == p->host)
            return true;
        if (level == OR_RACK && o->setup->rack[host] != OR_NONE &&
            o->setup->rack[host] == o->setup->rack[p->host])
            return true;
    }
    return false;
}

/* The key of a list stays when the list has become empty ("may be stale"), until the
 * level is passed because no task needs it. */
static bool level_valid(const struct oracle *o, int set, enum or_level level)
{
    if (level == OR_ANY)
        return true;
    if (level == OR_NO_PREF)
        return some_task_needs(o, set, OR_NO_PREF);
    for (int t = 0; t < o->setup->sets[set].ntasks; t++) {
        const struct or_task_spec *spec = &o->setup->sets[set].tasks[t];
        if (o->sets[set].tasks[t].pushed <= o->sets[set].dropped[level])
            continue;
        for (int i = 0; i < spec->npreferences; i++)
            if (key_alive(o, &spec->preferences[i], level))
                return true;
    }
    return false;
}

static int index_of(const struct or_set *s, enum or_level level)
{
    int i = 0;
    while (s->levels[i] < level)
        i++;
    return i;
}

void or_recompute(struct oracle *o, int set)
{
    struct or_set *s = &o->sets[set];
    struct or_set old = *s;
    s->nlevels = 0;
    for (enum or_level l = OR_PROCESS; l < OR_LEVELS; l++)
        if (level_valid(o, set, l))
            s->levels[s->nlevels++] = l;
    if (!old.nlevels)
        return;
    s->current = index_of(s, old.levels[old.current]);
    if (s->current <= old.current)
        return;
    for (int i = 0; i < s->nlevels; i++) {
        bool was = false;
        for (int k = 0; k < old.nlevels; k++)
            was |= old.levels[k] == s->levels[i];
        if (!was) {
            s->current = i;
            return;
        }
    }
}

/* With the old rule the waits of a barrier set are 0. */
static int64_t wait_of(const struct oracle *o, int set, enum or_level level)
{
    bool none = o->setup->legacy_reset && o->setup->sets[set].barrier;
    return none ? 0 : o->setup->wait[level];
}

static enum or_level allowed_level(struct oracle *o, int set)
{
    struct or_set *s = &o->sets[set];
    while (s->current < s->nlevels - 1) {
        enum or_level level = s->levels[s->current];
        if (!some_task_needs(o, set, level)) {
            s->last = o->now;
            s->dropped[level] = s->pushes;
        } else if (o->now - s->last >= wait_of(o, set, level))
            s->last += wait_of(o, set, level);
        else
            break;
        s->current++;
    }
    return s->levels[s->current];
}

/* ---- section 4: addresses ---- */

static bool assign(const struct oracle *o, int profile, int executor,
                   int ret[OR_RESOURCES][OR_ADDRESSES])
{
    const struct or_profile *p = &o->setup->profiles[profile];
    const struct or_executor *x = &o->executors[executor];
    memset(ret, 0, sizeof(int[OR_RESOURCES][OR_ADDRESSES]));
    if (x->cores < p->cpus)
        return false;
    for (int r = 0; r < OR_RESOURCES; r++) {
        int take = p->take[r], best = OR_NONE;
        int whole = take >= OR_UNIT ? take / OR_UNIT : 0;
        for (int i = 0; i < OR_ADDRESSES && whole; i++)
            if (x->left[r][i] == OR_UNIT) {
                ret[r][i] = OR_UNIT;
                whole--;
            }
        if (whole)
            return false;
        if (!take || take >= OR_UNIT)
            continue;
        for (int i = 0; i < OR_ADDRESSES; i++)
            if (x->left[r][i] >= take &&
                (best == OR_NONE ||
                 (o->setup->pack && x->left[r][i] < x->left[r][best])))
                best = i;
        if (best == OR_NONE)
            return false;
        ret[r][best] = take;
    }
    return true;
}

/* Takes from (sign -1) or gives back to (sign 1) an executor. */
static void book(struct oracle *o, int profile, int executor,
                 int taken[OR_RESOURCES][OR_ADDRESSES], int sign)
{
    struct or_executor *x = &o->executors[executor];
    x->cores += sign * o->setup->profiles[profile].cpus;
    for (int r = 0; r < OR_RESOURCES; r++)
        for (int i = 0; i < OR_ADDRESSES; i++)
            x->left[r][i] += sign * taken[r][i];
}

bool or_may_run(const struct oracle *o, int profile, int executor)
{
    return profile == o->setup->executors[executor].profile ||
           (o->setup->fixed && o->setup->profiles[profile].task_only);
}

/* ---- section 8: picking ---- */

static bool in_list(const struct oracle *o, const struct or_task_spec *t, int executor,
                    enum or_level level)
{
    int host = o->setup->executors[executor].host, rack = o->setup->rack[host];
    for (int i = 0; i < t->npreferences; i++) {
        const struct or_preference *p = &t->preferences[i];
        if ((level == OR_PROCESS && p->executor == executor) ||
            (level == OR_NODE && p->host == host) ||
            (level == OR_RACK && rack != OR_NONE && o->setup->rack[p->host] == rack))
            return true;
    }
    return level == OR_ANY || (level == OR_NO_PREF && !t->npreferences);
}

static bool ran_on_host(const struct oracle *o, int set, int task, int host)
{
    for (int a = 0; a < o->nattempts; a++)
        if (o->attempts[a].set == set && o->attempts[a].task == task &&
            o->setup->executors[o->attempts[a].executor].host == host)
            return true;
    return false;
}

static bool may_be_picked(const struct or_task *t, bool speculative)
{
    return speculative ? t->speculatable && !t->done && t->copies <= 1
                       : or_needs_to_run(t);
}

/* Skipped, but kept on the list. */
static bool is_skipped(const struct oracle *o, int set, int task, int executor,
                       bool speculative)
{
    return or_task_excluded(o, set, task, executor) ||
           (speculative &&
            ran_on_host(o, set, task, o->setup->executors[executor].host));
}

static int top_of(const struct oracle *o, int set, int executor, enum or_level list,
                  bool speculative)
{
    int best = OR_NONE, best_push = -1;
    for (int i = 0; i < o->setup->sets[set].ntasks; i++) {
        const struct or_task *t = &o->sets[set].tasks[i];
        int pushed = speculative ? t->speculative_pushed : t->pushed;
        if (may_be_picked(t, speculative) && pushed > best_push &&
            !is_skipped(o, set, i, executor, speculative) &&
            in_list(o, &o->setup->sets[set].tasks[i], executor, list)) {
            best = i;
            best_push = pushed;
        }
    }
    return best;
}

/* The list of all tasks, from its tail: what is not skipped is taken off. */
static int scan_all(struct oracle *o, int set, int executor, bool speculative)
{
    struct or_set *s = &o->sets[set];
    int *list = speculative ? s->copies : s->all;
    int *n = speculative ? &s->ncopies : &s->nall;
    for (int i = *n - 1; i >= 0; i--) {
        int task = list[i];
        if (is_skipped(o, set, task, executor, speculative))
            continue;
        memmove(&list[i], &list[i + 1], (size_t)(*n - i - 1) * sizeof(*list));
        --*n;
        if (may_be_picked(&s->tasks[task], speculative))
            return task;
    }
    return OR_NONE;
}

static int pick(struct oracle *o, int set, int executor, enum or_level level,
                bool speculative, enum or_level *ret_level)
{
    for (enum or_level l = OR_PROCESS; l <= level; l++) {
        int t = l == OR_ANY ? scan_all(o, set, executor, speculative)
                            : top_of(o, set, executor, l, speculative);
        if (t != OR_NONE) {
            *ret_level = l == OR_NO_PREF ? OR_PROCESS : l;
            return t;
        }
    }
    return OR_NONE;
}

/* ---- section 6: rounds ---- */

static void launch(struct oracle *o, int set, int task, int executor,
                   enum or_level level, bool speculative,
                   int taken[OR_RESOURCES][OR_ADDRESSES])
{
    struct or_task *t = &o->sets[set].tasks[task];
    assert(o->nattempts < OR_ATTEMPTS);
    struct or_attempt *a = &o->attempts[o->nattempts++];
    *a = (struct or_attempt){.set = set,
                             .task = task,
                             .number = t->attempts++,
                             .executor = executor,
                             .launching = o->setup->manual_start,
                             .speculative = speculative,
                             .launched = o->now};
    memcpy(a->taken, taken, sizeof(a->taken));
    t->copies++;
    if (speculative)
        t->speculatable = false;
    struct or_decision d = {.kind = OR_LAUNCH,
                            .set = set,
                            .task = task,
                            .attempt = a->number,
                            .executor = executor,
                            .level = level,
                            .speculative = speculative};
    for (int r = 0; r < OR_RESOURCES; r++)
        for (int i = 0; i < OR_ADDRESSES; i++)
            if (taken[r][i])
                d.addresses[r] |= 1u << i;
    or_decide(o, d);
}

/* Of the lists as they are: what is stale in them counts. */
static bool has_pending(const struct oracle *o, int set)
{
    return o->sets[set].nall || o->sets[set].ncopies;
}

/* What became of a set in one round. */
struct turn {
    bool launched, rejected;
    enum or_level most_local;
};

static bool offer(struct oracle *o, int set, int executor, enum or_level max,
                  struct turn *turn)
{
    int profile = o->setup->sets[set].profile, taken[OR_RESOURCES][OR_ADDRESSES];
    struct or_set *s = &o->sets[set];
    if (!or_may_run(o, profile, executor) || !assign(o, profile, executor, taken))
        return false;
    if (s->zombie || or_set_excluded(o, set, executor))
        return false;
    enum or_level level = max, at;
    if (max != OR_NO_PREF) {
        level = allowed_level(o, set);
        level = level < max ? level : max;
    }
    bool speculative = false;
    int task = pick(o, set, executor, level, false, &at);
    if (task == OR_NONE) {
        speculative = true;
        task = pick(o, set, executor, level, true, &at);
    }
    if (task == OR_NONE) {
        turn->rejected |= max == OR_ANY && has_pending(o, set);
        return false;
    }
    if (o->setup->legacy_reset && max != OR_NO_PREF) {
        s->last = o->now;
        s->current = index_of(s, at);
    }
    book(o, profile, executor, taken, -1);
    if (o->setup->sets[set].barrier) {
        struct or_task *t = &s->tasks[task];
        t->picked = true;
        t->picked_on = executor;
        t->picked_level = at;
        memcpy(t->picked_taken, taken, sizeof(taken));
    } else {
        launch(o, set, task, executor, at, speculative, taken);
    }
    if (!turn->launched || at < turn->most_local)
        turn->most_local = at;
    turn->launched = true;
    return true;
}

static void reset_clock(struct oracle *o, int set, bool full, const struct turn *turn)
{
    struct or_set *s = &o->sets[set];
    if (o->setup->legacy_reset)
        return;
    if (turn->rejected) {
        s->no_reject = false;
    } else if (turn->launched && (full || s->no_reject)) {
        s->last = o->now;
        s->current = index_of(s, turn->most_local);
        s->no_reject = true;
    }
}

/* Section 12.4. */
static void check_unschedulable(struct oracle *o, int set)
{
    struct or_set *s = &o->sets[set];
    int top = OR_NONE, idle = OR_NONE;
    for (int i = 0; i < o->setup->sets[set].ntasks; i++)
        if (or_needs_to_run(&s->tasks[i]) &&
            (top == OR_NONE || s->tasks[i].pushed > s->tasks[top].pushed))
            top = i;
    if (!o->setup->exclusion.on || top == OR_NONE ||
        !or_completely_excluded(o, set, top))
        return;
    for (int x = OR_EXECUTORS - 1; x >= 0; x--)
        if (o->executors[x].state == OR_LIVE && or_executor_idle(o, x))
            idle = x;
    if (idle == OR_NONE && o->setup->fixed) {
        or_abort(o, set);
        return;
    }
    if (s->abort_at != INT64_MAX)
        return;
    s->abort_at = o->now + o->setup->exclusion.unschedulable_timeout;
}

/* Slots that are free now for a barrier set; semantics, difference 6: free amounts. */
static int free_slots(const struct oracle *o, int profile, const int *offers, int n)
{
    const struct or_profile *p = &o->setup->profiles[profile];
    int sum = 0;
    for (int i = 0; i < n; i++) {
        const struct or_executor *x = &o->executors[offers[i]];
        if (!or_may_run(o, profile, offers[i]))
            continue;
        int slots = x->cores / p->cpus;
        for (int r = 0; r < OR_RESOURCES; r++) {
            int whole = 0, parts = 0, take = p->take[r];
            for (int k = 0; k < OR_ADDRESSES && take; k++) {
                whole += x->left[r][k] == OR_UNIT;
                parts += x->left[r][k] / take;
            }
            if (take >= OR_UNIT)
                parts = whole / (take / OR_UNIT);
            slots = take && parts < slots ? parts : slots;
        }
        sum += slots;
    }
    return sum;
}

static void finish_barrier(struct oracle *o, int set)
{
    const struct or_set_spec *spec = &o->setup->sets[set];
    struct or_task *tasks = o->sets[set].tasks;
    int picked = 0;
    for (int i = 0; i < spec->ntasks; i++)
        picked += tasks[i].picked;
    for (int i = 0; i < spec->ntasks && picked == spec->ntasks; i++) {
        tasks[i].picked = false;
        launch(o, set, i, tasks[i].picked_on, tasks[i].picked_level, false,
               tasks[i].picked_taken);
    }
    /* Queued again, in no order that is said: the lowest ends on top. */
    for (int i = spec->ntasks - 1; i >= 0; i--) {
        if (!tasks[i].picked)
            continue;
        tasks[i].picked = false;
        book(o, spec->profile, tasks[i].picked_on, tasks[i].picked_taken, 1);
        or_push(o, set, i);
    }
    if (picked && picked < spec->ntasks && o->setup->legacy_reset)
        or_abort(o, set);
}

static void offer_to_set(struct oracle *o, int set, const int *offers, int n, bool full)
{
    struct turn turn = {0};
    struct or_set before = o->sets[set];
    bool barrier = o->setup->sets[set].barrier;
    if (barrier && free_slots(o, o->setup->sets[set].profile, offers, n) <
                       o->setup->sets[set].ntasks)
        return;
    for (int l = 0; l < before.nlevels; l++)
        for (bool again = true; again;) {
            again = false;
            for (int i = 0; i < n; i++)
                again |= offer(o, set, offers[i], before.levels[l], &turn);
        }
    reset_clock(o, set, full, &turn);
    if (!turn.launched)
        check_unschedulable(o, set);
    else
        for (int s = 0; s < OR_SETS; s++)
            o->sets[s].abort_at = INT64_MAX;
    if (barrier && turn.launched)
        finish_barrier(o, set);
}

void oracle_round(struct oracle *o, const bool *offered, bool full)
{
    int offers[OR_EXECUTORS], n = 0, order[OR_SETS];
    oracle_tick(o);
    for (int turn = 0; turn < o->added; turn++)
        for (int x = 0; x < OR_EXECUTORS; x++)
            if (o->executors[x].order == turn && or_alive(o, x) && offered[x] &&
                !or_app_excluded(o, x))
                offers[n++] = x;
    int nsets = or_order(o, order);
    bool takes_part[OR_SETS];
    for (int i = 0; i < nsets; i++)
        takes_part[i] = !o->sets[order[i]].zombie && has_pending(o, order[i]);
    for (int i = 0; i < nsets; i++)
        if (takes_part[i])
            offer_to_set(o, order[i], offers, n, full);
}

int oracle_slots(const struct oracle *o, int profile)
{
    const struct or_profile *p = &o->setup->profiles[profile];
    int sum = 0;
    for (int x = 0; x < OR_EXECUTORS; x++) {
        if (!or_alive(o, x) || !or_may_run(o, profile, x))
            continue;
        const struct or_profile *have =
            &o->setup->profiles[o->setup->executors[x].profile];
        int slots = have->cores / p->cpus;
        for (int r = 0; r < OR_RESOURCES; r++) {
            int take = p->take[r], parts;
            if (!take)
                continue;
            parts = take >= OR_UNIT ? have->have[r] / (take / OR_UNIT)
                                    : have->have[r] * (OR_UNIT / take);
            slots = parts < slots ? parts : slots;
        }
        sum += slots;
    }
    return sum;
}
