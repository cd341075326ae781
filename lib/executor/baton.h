/*
 * A baton: the right to run the loop (MPI, sockets) of this process, held by one thread
 * at a time and taken over by a standby when its holder is busy elsewhere for long.
 *
 * Why: handing a short task, or the caller's wait, to another thread costs two wake-ups
 * (10–100 us); running it on the thread that has the loop costs none. But that thread
 * may turn out to be away for long, and then heartbeats and admissions must go on.
 *
 * States: FREE (nobody), HELD (a thread is in the loop), AWAY (its holder left the loop
 * to run something and may be robbed).
 *
 *     trp_baton_take(b);                 // blocks until FREE, or AWAY for too long
 *     ... loop ...
 *     trp_baton_leave(b);                // HELD → AWAY, one atomic
 *     ... run the short task ...
 *     if (trp_baton_return(b))           // AWAY → HELD; else somebody has the loop
 *         trp_baton_give(b);             // HELD → FREE, wakes a taker
 *
 * A standby that waits in trp_baton_take looks every 2 ms while somebody is AWAY, and
 * robs one who is away since the last look. While the baton is HELD it looks less and
 * less often, and after ten seconds not at all: a leave wakes it.
 */
#ifndef TRP_EXECUTOR_BATON_H
#define TRP_EXECUTOR_BATON_H

#include <stdbool.h>

typedef struct trp_baton trp_baton;
trp_baton *trp_baton_new(void); /* FREE; NULL: out of memory */
void trp_baton_free(trp_baton *b);
void trp_baton_take(trp_baton *b);
bool trp_baton_try(trp_baton *b); /* takes it when FREE, never blocks */
void trp_baton_leave(trp_baton *b);
/* The same, for what is known to be short: after a pause of less than ten seconds
 * nobody is woken for it. If it is long after all it is robbed as long after as the
 * pause was, at most a second. */
void trp_baton_leave_shortly(trp_baton *b);
bool trp_baton_return(trp_baton *b); /* AWAY → HELD; false: robbed meanwhile */
void trp_baton_give(trp_baton *b);

#endif
