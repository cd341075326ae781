/*
 * A line has a ring of samples, one every SPACE_MS at most, so that it reaches back over
 * the last minute however often somebody looks.
 *
 * Long tasks end in bursts: a minute without an end says nothing when, by the mean, none
 * was due. When several were due it says that the stage stands still.
 */
#include "events/pace.h"

#include <stdlib.h>
#include <uthash.h>

enum {
    BACK_MS = 60000,
    SAMPLES = 16,
    SPACE_MS = BACK_MS / (SAMPLES - 1),
    ENOUGH_MS = 10000, /* of looking */
    ENOUGH_TASKS = 5,  /* that ended, or were due */
};

struct line {
    uint32_t number;
    uint32_t n; /* samples there were: the last is at (n - 1) % SAMPLES */
    struct sample {
        int64_t at;
        uint64_t ran;
    } v[SAMPLES];
    uint64_t last; /* `ran` when it was asked about last */
    UT_hash_handle hh;
};

struct trp_pace {
    struct line *lines;
};

trp_pace *trp_pace_new(void)
{
    return calloc(1, sizeof(struct trp_pace));
}

void trp_pace_free(trp_pace *p)
{
    struct line *l, *next;
    if (!p)
        return;
    HASH_ITER(hh, p->lines, l, next) {
        HASH_DEL(p->lines, l);
        free(l);
    }
    free(p);
}

void trp_pace_forget(trp_pace *p, uint32_t line)
{
    struct line *l;
    HASH_FIND(hh, p->lines, &line, sizeof line, l);
    if (!l)
        return;
    HASH_DEL(p->lines, l);
    free(l);
}

static struct line *line_of(trp_pace *p, uint32_t number)
{
    struct line *l;
    HASH_FIND(hh, p->lines, &number, sizeof number, l);
    if (l || !(l = calloc(1, sizeof *l)))
        return l;
    l->number = number;
    HASH_ADD(hh, p->lines, number, sizeof l->number, l);
    return l;
}

/* The oldest sample that is not older than BACK_MS. */
static const struct sample *oldest(const struct line *l, int64_t now)
{
    uint32_t first = l->n > SAMPLES ? l->n - SAMPLES : 0;
    for (uint32_t i = first; i < l->n; i++)
        if (now - l->v[i % SAMPLES].at <= BACK_MS)
            return &l->v[i % SAMPLES];
    return NULL;
}

static void take(struct line *l, int64_t now, uint64_t ran)
{
    if (ran < l->last)
        l->n = 0;
    l->last = ran;
    if (l->n && now - l->v[(l->n - 1) % SAMPLES].at < SPACE_MS)
        return;
    l->v[l->n++ % SAMPLES] = (struct sample){now, ran};
    if (l->n == 2 * SAMPLES) /* it goes round: the number need not grow */
        l->n = SAMPLES;
}

double trp_pace_rate(trp_pace *p, uint32_t line, int64_t now_ms, int64_t began_ms,
                     uint64_t ran)
{
    struct line *l = line_of(p, line);
    double lived = began_ms && now_ms > began_ms ? (double)(now_ms - began_ms) : 0;
    double mean = lived > 0 ? (double)ran * 1000 / lived : 0;
    if (!l)
        return -1;
    take(l, now_ms, ran);
    const struct sample *from = oldest(l, now_ms);
    double span = from ? (double)(now_ms - from->at) : 0;
    if (span >= ENOUGH_MS) {
        double ended = (double)(ran - from->ran);
        if (ended >= ENOUGH_TASKS || mean * span / 1000 >= ENOUGH_TASKS)
            return ended * 1000 / span;
    }
    return ran && lived > 0 ? mean : -1;
}

int64_t trp_pace_left(double rate, uint64_t tasks)
{
    const double most = 1e15; /* 30,000 years */
    if (!tasks)
        return 0;
    if (rate <= 0 || (double)tasks * 1000 / rate > most)
        return -1;
    return (int64_t)((double)tasks * 1000 / rate);
}
