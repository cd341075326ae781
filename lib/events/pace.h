/*
 * How fast tasks end, as seen by somebody who looks now and then, and how long what is
 * left will take: of each *line* of counting (a stage, or the whole run), by a number.
 *
 * The rate is that of the last minute, once that was looked at for 10 s and some tasks
 * ended or should have; before, it is the mean since the stage began. What cannot be told
 * is negative: nothing has ended, nothing runs.
 *
 *     double rate = trp_pace_rate(p, stage, now_ms, began_ms, ran);
 *     int64_t left_ms = trp_pace_left(rate, tasks - done);
 */
#ifndef TRP_EVENTS_PACE_H
#define TRP_EVENTS_PACE_H

#include <stdint.h>

typedef struct trp_pace trp_pace;

trp_pace *trp_pace_new(void); /* NULL: out of memory */
void trp_pace_free(trp_pace *p);

/* Tasks a second; < 0: not known. `ran`: how many have ended well by `now_ms`; a smaller
 * number than before begins anew. `began_ms` 0: not known. */
double trp_pace_rate(trp_pace *p, uint32_t line, int64_t now_ms, int64_t began_ms,
                     uint64_t ran);
/* The line is over. */
void trp_pace_forget(trp_pace *p, uint32_t line);

/* ms; -1: not known. */
int64_t trp_pace_left(double rate, uint64_t tasks);

#endif
