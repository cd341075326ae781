/*
 * Names of tasks: what messages call a task, and the names that an event log has told.
 *
 * The log tells them once a stage, when it is submitted, some thousands a line:
 *
 *     {"Event":"TroupeTaskNames","Stage ID":…,"First Task Index":…,"Names":[…],"Timestamp":…}
 *
 *     struct trp_task_names n = {0};
 *     trp_task_names_take(&n, e->stage, e);           // of each TRP_LOG_TASK_NAMES
 *     trp_task_word(7, trp_task_name(&n, stage, 7), word);
 *     trp_task_names_free(&n);
 */
#ifndef TRP_EVENTS_TASK_NAMES_H
#define TRP_EVENTS_TASK_NAMES_H

#include "core/base/bytes.h"
#include "events/log_event.h"

enum { TRP_TASK_WORD = 256 };

/* What a message calls a task, and `troupe logs` finds it by: its name, "key=NAME" where the
 * name alone would be the number of a task; its number when it has no name (NULL). What is
 * no text in it is a dot, and of more than 200 bytes it shows the first. Returns `buf`. */
const char *trp_task_word(uint32_t task, const char *name, char buf[TRP_TASK_WORD]);

/* Zero-initialise. */
struct trp_task_names {
    struct trp_names_of_stage *stages;
};

/* Takes an event, of what the caller calls `stage`. Its names from 0 on take the place of
 * those of before. TRP_ENOMEM. */
int trp_task_names_take(struct trp_task_names *n, uint32_t stage,
                        const struct trp_log_event *e);
/* NULL: none was told. Valid until the next event. */
const char *trp_task_name(const struct trp_task_names *n, uint32_t stage,
                          uint32_t task);
/* How many of a stage were told, from task 0 on. */
uint32_t trp_task_names_count(const struct trp_task_names *n, uint32_t stage);
void trp_task_names_free(struct trp_task_names *n);

#endif
