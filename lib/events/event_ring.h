/*
 * The ring between the thread that runs the engine and the thread that writes the event
 * log: fixed records, one producer, one consumer, no lock unless somebody has to wait.
 *
 * The producer never wakes the consumer for a record: the consumer looks by itself a
 * few times a second, which is all that the log promises, and is woken only when more
 * than usual has gathered or at the end. So a record costs a copy and one atomic store.
 *
 *     struct trp_event_record *r = trp_event_ring_claim(ring); // waits while it is full
 *     *r = …;
 *     trp_event_ring_publish(ring);
 */
#ifndef TRP_EVENTS_EVENT_RING_H
#define TRP_EVENTS_EVENT_RING_H

#include <stdbool.h>

#include "events/event_json.h"

enum trp_event_record_kind {
    TRP_RECORD_TEXT,
    TRP_RECORD_TASK_START,
    TRP_RECORD_TASK_END
};

struct trp_event_record {
    enum trp_event_record_kind kind;
    union {
        struct trp_task_record task;
        struct {
            char *data; /* whole lines; freed by who takes it */
            size_t size;
        } text;
    };
};

enum { TRP_EVENT_RING_RECORDS = 65536, TRP_EVENT_RING_TAKE = 256 };

typedef struct trp_event_ring trp_event_ring;

/* NULL: out of memory. */
trp_event_ring *trp_event_ring_new(void);
void trp_event_ring_free(trp_event_ring *r);

/* Producer. */
struct trp_event_record *trp_event_ring_claim(trp_event_ring *r);
void trp_event_ring_publish(trp_event_ring *r);
bool trp_event_ring_crowded(trp_event_ring *r); /* more than three quarters full */
void trp_event_ring_close(trp_event_ring *r);   /* nothing more will come */

/* Consumer: up to TRP_EVENT_RING_TAKE records in a row, 0 when there are none; then gives
 * their room back. */
uint32_t trp_event_ring_take(trp_event_ring *r, struct trp_event_record **ret);
void trp_event_ring_give_back(trp_event_ring *r, uint32_t n);
bool trp_event_ring_closed(trp_event_ring *r);
/* Sleeps so long, or until an eighth is full or it is closed. */
void trp_event_ring_nap(trp_event_ring *r, uint32_t ms);

#endif
