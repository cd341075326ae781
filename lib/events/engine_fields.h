/*
 * What the engine is told and what it decides, as bytes and as text.
 *
 * One table (engine_fields_table.c) names every member of struct trp_event and struct
 * trp_action, of the engine's options and of a profile; writing, reading and showing
 * go by it. A new event or action is one row there, a new member one field.
 *
 * Numbers are written in as few bytes as they need (LEB128, zigzag where they may be
 * negative). Reading trusts nothing: counts, choices and texts are checked.
 */
#ifndef TRP_EVENTS_ENGINE_FIELDS_H
#define TRP_EVENTS_ENGINE_FIELDS_H

#include "core/base/bytes.h"
#include "core/engine.h"

/* Memory of what was read; all at once is freed. */
struct trp_fields_memory {
    void **v;
    uint32_t n, cap;
};
void trp_fields_memory_free(struct trp_fields_memory *m);

void trp_fields_put_event(struct trp_buf *b, const struct trp_event *e);
void trp_fields_put_action(struct trp_buf *b, const struct trp_action *a);
void trp_fields_put_config(struct trp_buf *b, const struct trp_engine_config *c);
void trp_fields_put_defaults(struct trp_buf *b, const struct trp_profile_defaults *d);
/* A profile as it was written. */
void trp_fields_put_builder(struct trp_buf *b, const struct trp_profile_builder *p);

/* False: it is none. What the results point to lives in `m`. */
bool trp_fields_get_event(struct trp_view *v, struct trp_fields_memory *m,
                          struct trp_event *ret);
bool trp_fields_get_config(struct trp_view *v, struct trp_fields_memory *m,
                           struct trp_engine_config *ret);
bool trp_fields_get_defaults(struct trp_view *v, struct trp_fields_memory *m,
                             struct trp_profile_defaults *ret);
bool trp_fields_get_builder(struct trp_view *v, struct trp_fields_memory *m,
                            struct trp_profile_builder *ret);

/* One line: "launch attempt=0.0 stage=1 task=7 …". False: it is none. */
bool trp_fields_show_event(struct trp_view *v, char *buf, size_t size);
bool trp_fields_show_action(struct trp_view *v, char *buf, size_t size);

/* LEB128. */
void trp_put_varint(struct trp_buf *b, uint64_t v);
uint64_t trp_get_varint(struct trp_view *v);

#endif
