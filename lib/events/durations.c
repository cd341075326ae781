/*
 * Quantiles of durations: see the header for the shape. Steps of a 64th of an octave
 * were chosen over a sampling sketch (t-digest, reservoir): the error has a bound that
 * does not depend on the data, adding is a shift and an increment, and nothing is
 * random.
 */
#include "events/durations.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/error.h"

enum { STEP_BITS = 6, STEPS = 1 << STEP_BITS };

/* Octave 0 holds 0 to 63, one step each; octave k >= 1 holds 2^(k+5) to 2^(k+6) - 1. */
static uint32_t octave_of(uint64_t v)
{
    return v < STEPS ? 0 : 63 - (uint32_t)__builtin_clzll(v) - STEP_BITS + 1;
}

static uint32_t step_of(uint64_t v, uint32_t octave)
{
    return octave == 0 ? (uint32_t)v : (uint32_t)(v >> (octave - 1)) & (STEPS - 1);
}

static int64_t middle_of(uint32_t octave, uint32_t step)
{
    if (octave == 0)
        return step;
    uint64_t width = UINT64_C(1) << (octave - 1);
    return (int64_t)((STEPS + step) * width + width / 2);
}

static int count(struct trp_durations *d, uint64_t v, uint64_t times)
{
    uint32_t octave = octave_of(v);
    if (!d->octaves[octave]) {
        d->octaves[octave] = calloc(STEPS, sizeof **d->octaves);
        if (!d->octaves[octave])
            return TRP_ENOMEM;
    }
    d->octaves[octave][step_of(v, octave)] += times;
    return 0;
}

/* Counts the exact values and goes on with the histogram. */
static int to_octaves(struct trp_durations *d)
{
    d->octaves = calloc(TRP_DURATIONS_OCTAVES, sizeof *d->octaves);
    if (!d->octaves)
        return TRP_ENOMEM;
    for (uint64_t i = 0; i < d->count; i++)
        if (count(d, (uint64_t)d->values[i], 1) < 0)
            return TRP_ENOMEM;
    free(d->values);
    d->values = NULL;
    d->cap = 0;
    return 0;
}

/* Keeps a value exactly. */
static int keep_exact(struct trp_durations *d, int64_t ns)
{
    if (!TRP_ARRAY_GROW(d->values, d->count, d->cap))
        return TRP_ENOMEM;
    d->values[d->count] = ns;
    return 0;
}

static int add_duration(struct trp_durations *d, int64_t ns, uint64_t times)
{
    int err = 0;
    if (!d->octaves && d->count < TRP_DURATIONS_EXACT)
        err = keep_exact(d, ns);
    else if (!d->octaves)
        err = to_octaves(d);
    if (err == 0 && d->octaves)
        err = count(d, (uint64_t)ns, times);
    if (err < 0)
        return err;
    if (d->count == 0 || ns < d->least)
        d->least = ns;
    if (ns > d->greatest)
        d->greatest = ns;
    d->count += times;
    return 0;
}

int trp_durations_add(struct trp_durations *d, int64_t ns)
{
    return add_duration(d, ns > 0 ? ns : 0, 1);
}

int trp_durations_add_many(struct trp_durations *d, int64_t ns, uint64_t times)
{
    int err = 0;
    for (; times > 0 && !d->octaves && err == 0; times--)
        err = trp_durations_add(d, ns);
    return err == 0 && times > 0 ? add_duration(d, ns > 0 ? ns : 0, times) : err;
}

/* Adds the counters of a histogram. */
static int merge_octaves(struct trp_durations *to, const struct trp_durations *from)
{
    if (!to->octaves && to_octaves(to) < 0)
        return TRP_ENOMEM;
    for (uint32_t o = 0; o < TRP_DURATIONS_OCTAVES; o++) {
        if (from->octaves[o] && !to->octaves[o] &&
            !(to->octaves[o] = calloc(STEPS, sizeof **to->octaves)))
            return TRP_ENOMEM;
        for (uint32_t s = 0; from->octaves[o] && s < STEPS; s++)
            to->octaves[o][s] += from->octaves[o][s];
    }
    if (to->count == 0 || from->least < to->least)
        to->least = from->least;
    if (from->greatest > to->greatest)
        to->greatest = from->greatest;
    to->count += from->count;
    return 0;
}

int trp_durations_merge(struct trp_durations *to, const struct trp_durations *from)
{
    if (from->octaves)
        return merge_octaves(to, from);
    int err = 0;
    for (uint64_t i = 0; i < from->count && err == 0; i++)
        err = trp_durations_add(to, from->values[i]);
    return err;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The value of this rank (from 1), never outside what was seen. */
static int64_t ranked(const struct trp_durations *d, uint64_t rank)
{
    if (rank <= 1)
        return d->least;
    if (rank >= d->count)
        return d->greatest;
    if (!d->octaves) {
        int64_t sorted[TRP_DURATIONS_EXACT];
        memcpy(sorted, d->values, d->count * sizeof *sorted);
        qsort(sorted, d->count, sizeof *sorted, compare);
        return sorted[rank - 1];
    }
    for (uint32_t o = 0; o < TRP_DURATIONS_OCTAVES; o++)
        for (uint32_t s = 0; d->octaves[o] && s < STEPS; s++) {
            if (rank > d->octaves[o][s]) {
                rank -= d->octaves[o][s];
                continue;
            }
            int64_t v = middle_of(o, s);
            return v < d->least ? d->least : v > d->greatest ? d->greatest : v;
        }
    return d->greatest;
}

int64_t trp_durations_quantile(const struct trp_durations *d, uint32_t permille)
{
    if (d->count == 0)
        return 0;
    if (permille == 500 && d->count % 2 == 0) {
        int64_t a = ranked(d, d->count / 2), b = ranked(d, d->count / 2 + 1);
        return a + (b - a) / 2;
    }
    return ranked(d, (d->count * permille + 999) / 1000);
}

void trp_durations_free(struct trp_durations *d)
{
    for (uint32_t o = 0; d->octaves && o < TRP_DURATIONS_OCTAVES; o++)
        free(d->octaves[o]);
    free(d->octaves);
    free(d->values);
    *d = (struct trp_durations){0};
}
