/*
 * What foreach.c and foreach_check.c share.
 */
#ifndef TRP_DRIVER_FOREACH_PLACE_H
#define TRP_DRIVER_FOREACH_PLACE_H

#include "conf/wording.h"
#include "driver/foreach.h"

/* Where an error is, and what all that evaluate need. */
struct trp_foreach_place {
    const trp_pipeline *p;
    const struct trp_pipeline_stage *s;
    trp_error *err;
    bool *absent; /* NULL, or it is only asked whether there is anything wrong: becomes
                   * true when a file is not there or cannot be looked at */
    int part;     /* of a product; -1: the stage itself */
    bool joins;   /* … nevertheless the items of a product are wanted */
};

static inline struct trp_mark trp_foreach_mark(const struct trp_pipeline_stage *s)
{
    return s->foreach_mark.line ? s->foreach_mark : s->mark;
}

#define TRP_FOREACH_REFUSE_AT(at, mark, code, fmt, ...)                                \
    trp_error_set((at)->err, code, "%s:%u:%u: stage %s: " fmt,                         \
                  trp_mark_file((at)->p->file, mark), (mark).line, (mark).column,      \
                  (at)->s->name, ##__VA_ARGS__)
#define TRP_FOREACH_REFUSE(at, code, fmt, ...)                                         \
    TRP_FOREACH_REFUSE_AT(at, trp_foreach_mark((at)->s), code, fmt, ##__VA_ARGS__)

/* "table" or "list file". */
const char *trp_foreach_word(const struct trp_foreach_place *at);
/* Part `k` of a product as a stage of its own. */
struct trp_pipeline_stage trp_foreach_part(const struct trp_pipeline_stage *s,
                                           uint32_t k);
/* The items, free them also after an error; columns that values name are there. */
int trp_foreach_read(const struct trp_foreach_place *at, const char *base,
                     struct trp_items *ret);
/* Whether they have a column of the name; what columns they have, for words. */
bool trp_items_have_column(const struct trp_items *i, const char *name);
void trp_items_list_columns(const struct trp_items *i, struct trp_nearest *near,
                            struct trp_name_list *all);

#endif
