/*
 * The durations of a set's successes are kept in two heaps: `low` has the smaller half
 * with its largest on top, `high` the rest with its smallest on top, which is the upper
 * median. A success goes to one of them and at most one duration changes sides.
 *
 * Thresholds are computed in doubles, as in Spark, and cut to whole nanoseconds: a run
 * time that is whole is above the one exactly when it is above the other.
 */
#include "core/sched/speculation.h"

#include <float.h>
#include <stdlib.h>

#include "core/base/heap.h"
#include "core/base/rare.h"

struct trp_speculation {
    struct trp_heap low,
        high;              /* `low` negated, so that both have the smallest on top */
    double records, run_s; /* of all successes */
};

/* ---- durations ---- */

trp_speculation *trp_speculation_new(void)
{
    return calloc(1, sizeof(struct trp_speculation));
}

void trp_speculation_free(trp_speculation *s)
{
    if (!s)
        return;
    free(s->low.v);
    free(s->high.v);
    free(s);
}

/* `low` has floor(n / 2) durations. */
static bool insert(trp_speculation *s, int64_t x)
{
    if (s->low.n == s->high.n) {
        /* One more in `high`: the largest of `low` and x. */
        if (!s->low.n || x >= -s->low.v[0])
            return trp_heap_push(&s->high, x);
        if (!trp_heap_push(&s->high, -s->low.v[0]))
            return false;
        trp_heap_pop(&s->low);
        return trp_heap_push(&s->low, -x); /* there is room */
    }
    if (x <= s->high.v[0])
        return trp_heap_push(&s->low, -x);
    if (!trp_heap_push(&s->low, -s->high.v[0]))
        return false;
    trp_heap_pop(&s->high);
    return trp_heap_push(&s->high, x);
}

TRP_RARE int trp_speculation_succeeded(trp_speculation *s, int64_t duration_ns,
                                       uint64_t records)
{
    if (duration_ns < 0)
        duration_ns = 0;
    if (!insert(s, duration_ns))
        return TRP_ENOMEM;
    s->records += (double)records;
    s->run_s += (double)duration_ns / 1e9;
    return 0;
}

static uint32_t successes(const trp_speculation *s)
{
    return s->low.n + s->high.n;
}

int64_t trp_speculation_median(const trp_speculation *s)
{
    return s->high.n ? s->high.v[0] : 0;
}

/* ---- judgement ---- */

/* factor * ns, cut to whole ones and to what an int64_t holds. */
static int64_t times(double factor, int64_t ns)
{
    double x = factor * (double)ns;
    return x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

bool trp_speculation_gate(const struct trp_speculation_config *c,
                          const trp_speculation *s,
                          const struct trp_speculation_set *set,
                          struct trp_speculation_gate *ret_gate)
{
    bool has_duration = c->duration_threshold_ns > 0;
    if (!c->enabled || set->zombie || set->barrier ||
        (set->ntasks == 1 && !has_duration))
        return false;
    uint32_t least = (uint32_t)(c->quantile * (double)set->ntasks);
    if (successes(s) >= (least ? least : 1)) {
        int64_t threshold = times(c->multiplier, trp_speculation_median(s));
        if (threshold < c->min_runtime_ns)
            threshold = c->min_runtime_ns;
        *ret_gate = (struct trp_speculation_gate){threshold, true};
        return true;
    }
    if (!has_duration || set->ntasks > set->slots)
        return false;
    *ret_gate = (struct trp_speculation_gate){c->duration_threshold_ns, false};
    return true;
}

double trp_speculation_rate(uint64_t records, int64_t run_ns)
{
    return run_ns > 0 ? (double)records / ((double)run_ns / 1e9) : 0;
}

static bool is_inefficient(const struct trp_speculation_config *c,
                           const trp_speculation *s,
                           const struct trp_speculation_gate *gate, double rate,
                           int64_t run_ns)
{
    if (run_ns > times(c->long_run_factor, gate->threshold_ns))
        return true;
    /* Spark's average is without bound until a success has read something. */
    double average = s->records > 0 && s->run_s > 0 ? s->records / s->run_s : DBL_MAX;
    return rate < average * c->rate_multiplier;
}

static int64_t later(int64_t a, int64_t b)
{
    return b > 0 && a > INT64_MAX - b ? INT64_MAX : a + b;
}

/* It is expected to end after its executor. */
static bool is_outlived(const struct trp_speculation_config *c,
                        const trp_speculation *s,
                        const struct trp_speculation_facts *facts)
{
    if (facts->decommissioned_ns == TRP_SPECULATION_NEVER || !c->kill_interval_ns)
        return false;
    return later(facts->launched_ns, trp_speculation_median(s)) >
           later(facts->decommissioned_ns, c->kill_interval_ns);
}

bool trp_speculation_judge(const struct trp_speculation_config *c,
                           const trp_speculation *s,
                           const struct trp_speculation_gate *gate,
                           const struct trp_speculation_facts *facts, int64_t now_ns)
{
    int64_t run = now_ns - facts->launched_ns;
    if (run > gate->threshold_ns && (!gate->by_median || !c->efficiency ||
                                     is_inefficient(c, s, gate, facts->rate, run)))
        return true;
    return gate->by_median && is_outlived(c, s, facts);
}
