/* What page_facts.c and facts_task.c share. */
#ifndef TRP_EVENTS_PAGE_FACTS_STATE_H
#define TRP_EVENTS_PAGE_FACTS_STATE_H

#include "events/page/page_facts.h"

/* Sets a number of the log's; TRP_ENOMEM. */
int trp_page_id_set(struct trp_page_id **ids, uint32_t id, uint32_t place);
/* TRP_NONE: it has none. */
uint32_t trp_page_id_get(const struct trp_page_id *ids, uint32_t id);
void trp_page_id_drop(struct trp_page_id **ids, uint32_t id);

/* A time, which is noted, in ms; 0: none. */
int64_t trp_page_note(struct trp_page_facts *f, int64_t ns);
/* The place of the event's stage; TRP_NONE. */
uint32_t trp_page_stage_of(const struct trp_page_facts *f,
                           const struct trp_log_event *e);

/* facts_task.c */
int trp_page_on_task_start(void *facts, const struct trp_log_event *e);
int trp_page_on_task_end(void *facts, const struct trp_log_event *e);
int trp_page_on_summary_begin(void *facts, const struct trp_log_event *e);
int trp_page_on_summary(void *facts, const struct trp_log_event *e);

#endif
