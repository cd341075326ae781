/* What page_facts.c and facts_task.c share. */
#ifndef TRP_EVENTS_PAGE_FACTS_STATE_H
#define TRP_EVENTS_PAGE_FACTS_STATE_H

#include <jansson.h>

#include "events/page/page_facts.h"

/* Sets a number of the log's; TRP_ENOMEM. */
int trp_page_id_set(struct trp_page_id **ids, uint32_t id, uint32_t place);
/* TRP_NONE: it has none. */
uint32_t trp_page_id_get(const struct trp_page_id *ids, uint32_t id);
void trp_page_id_drop(struct trp_page_id **ids, uint32_t id);

/* The time in a field, ms, noted as the last one; 0: none. */
int64_t trp_page_at(struct trp_page_facts *f, const json_t *event, const char *field);
/* The place of the event's stage; TRP_NONE. */
uint32_t trp_page_stage_in(const struct trp_page_facts *f, const json_t *event);

/* facts_task.c */
int trp_page_on_task_start(void *context, const json_t *event);
int trp_page_on_task_end(void *context, const json_t *event);
/* A gang of the stage, told as launched, has begun only now. */
void trp_page_gang_has_room(struct trp_page_facts *f, uint32_t stage, int64_t at);
int trp_page_on_summary_begin(void *context, const json_t *event);
int trp_page_on_summary(void *context, const json_t *event);

#endif
