/*
 * Whether to poll for an answer before sleeping until it comes.
 *
 * To poll for what comes at once is cheaper than to be woken by it. But it is in vain
 * for what takes longer, and where both sides share a processor it keeps the other from
 * running. What happened before decides: after a poll in vain the next waits are slept
 * through at once, twice as many each time, until a poll pays again.
 */
#ifndef TRP_OS_SPIN_H
#define TRP_OS_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum { TRP_SPIN_NS = 100000, TRP_SPIN_LEAST = 2, TRP_SPIN_MOST = 64 };

/* All zero: poll. */
struct trp_spin {
    uint32_t skip; /* waits without a poll after the last one in vain; 0: it paid */
    uint32_t left; /* of them, and the one in vain, still to end */
};

/* Nothing has come for `since_ns`: go on polling? False: sleep. */
static inline bool trp_spin_on(struct trp_spin *s, int64_t since_ns)
{
    if (s->left > 0)
        return false;
    if (since_ns < TRP_SPIN_NS)
        return true;
    s->skip = s->skip == 0                   ? TRP_SPIN_LEAST
              : s->skip <= TRP_SPIN_MOST / 2 ? s->skip * 2
                                             : TRP_SPIN_MOST;
    s->left = s->skip + 1;
    return false;
}

/* What was waited for has come. */
static inline void trp_spin_came(struct trp_spin *s)
{
    if (s->left > 0)
        s->left--;
    else
        s->skip = 0;
}

#endif
