/*
 * Stages: their links, states and attempts.
 */
#ifndef TRP_CORE_DAG_STAGES_H
#define TRP_CORE_DAG_STAGES_H

#include "core/engine_state.h"

/* ---- stage.c ---- */

/* A stage of no job yet, with the next id. NULL: out of memory. */
struct trp_stage *trp_stage_new(struct trp_engine *e,
                                const struct trp_stage_spec *spec);
/* `s` needs `parent` in this way; its array of parents has room for the link. */
void trp_stage_link(struct trp_stage *s, struct trp_stage *parent, enum trp_edge edge);
/* Takes it out of its links to parents and frees it; not out of e->stages. */
void trp_stage_free(struct trp_engine *e, struct trp_stage *s);
/* No job uses it and nothing of it runs: it goes at the end of the step. */
void trp_stage_check_dead(struct trp_engine *e, struct trp_stage *s);
void trp_stages_free_dead(struct trp_engine *e);
/* When the next step begins. */
void trp_stages_free_told(struct trp_engine *e);
/* In a walk over all stages; visits are counted. */
static inline struct trp_stage *trp_stage_at(const struct trp_engine *e, uint32_t i)
{
    ++*e->visited;
    return e->stages[i];
}
struct trp_stage *trp_stage_find(const struct trp_engine *e, trp_stage_id id);

/* ---- stages.c ---- */

bool trp_stage_is_available(const struct trp_engine *e, const struct trp_stage *s);
/* Somebody needs it: it runs, or waits for what it needs. Takes effect at the end of
 * the step. */
void trp_stage_want(struct trp_engine *e, struct trp_stage *s);
void trp_stages_run_ready(struct trp_engine *e);
/* Answer to TRP_ACTION_STAGE_READY. */
int trp_stage_begin(struct trp_engine *e, struct trp_stage *s, uint32_t ntasks,
                    const struct trp_preferences *prefer, const uint8_t *done,
                    const struct trp_by *by, uint32_t nby, trp_error *err);
/* Gives a stage up: every job that uses it fails, or only what needs it does. */
void trp_stage_abort(struct trp_engine *e, struct trp_stage *s, int code, uint32_t task,
                     const char *text);
/* It has given up in a job that drains, and nothing of it is waited for: it ends. */
void trp_stage_gave_up(struct trp_engine *e, struct trp_stage *s);
/* Ends it if nothing is left to be done. */
void trp_stage_check_complete(struct trp_engine *e, struct trp_stage *s);
/* Answer to TRP_ACTION_STAGE_CHECK; `text`: why it fails, NULL: all is well. False: it was
 * not asked. */
bool trp_stage_was_checked(struct trp_engine *e, struct trp_stage *s, const char *text);
/* Marks it ended, kills what is left and tells it. Looks at no other stage. */
void trp_stage_tell_submitted(struct trp_engine *e, struct trp_stage *s);
void trp_stage_close(struct trp_engine *e, struct trp_stage *s,
                     enum trp_outcome outcome, int code, uint32_t task,
                     const char *text);
/* Out of its state, into another: the only place where a state changes. */
void trp_stage_to(struct trp_stage *s, enum trp_stage_state state);
void trp_class_give_up(struct trp_engine *e, struct trp_class *c, int code,
                       const char *text);

/* ---- task_links.c ---- */

/* The child of a link by value gets its tasks: which of the parent's, which has its own,
 * they wait for. TRP_EINVAL: what was told is not possible; TRP_ENOMEM. */
int trp_task_links_make(struct trp_stage_link *l, uint32_t ntasks,
                        const struct trp_by *told, trp_error *err);
/* What is over, or lost, of the parent has changed as a whole. */
void trp_task_links_count(struct trp_stage_link *l);
int trp_task_links_check(const struct trp_stage_link *l, trp_error *err); /* sanity.c */
/* Does the child's task wait for a task of the parent? */
bool trp_link_holds(const struct trp_stage_link *l, uint32_t task);
/* The parent's task that was lost and that the child's comes after; TRP_NONE: none was. */
uint32_t trp_link_lost(const struct trp_stage_link *l, uint32_t task);
/* The parent's task is done: those of the child that waited for it are let go. */
void trp_link_done(struct trp_engine *e, struct trp_stage_link *l, uint32_t task);
/* The parent's task is lost: pushes those of the child that come after it, each at the
 * first loss. False: out of memory. */
bool trp_link_lose(struct trp_stage_link *l, uint32_t task, struct trp_stack *ret);

/* ---- given_up.c ---- */

/* May `n` of its tasks be lost, without its ending at once? */
bool trp_stage_may_lose(const struct trp_engine *e, const struct trp_stage *s,
                        uint32_t n);
/* All are over: more were lost than it tolerates. */
bool trp_stage_lost_too_many(const struct trp_stage *s);
void trp_stage_fail_for_losses(struct trp_engine *e, struct trp_stage *s);
/* The words for that, and the task to blame when it is the only one, or TRP_NONE. */
uint32_t trp_stage_losses_text(const struct trp_stage *s, char *buf, size_t size);
/* It has ended: all that was not over of it is lost to its children. */
void trp_stage_lose_rest(struct trp_engine *e, struct trp_stage *s);
/* It gets its tasks: those whose parents' were lost are so too. Told when the attempt
 * is, which may end the stage. */
void trp_stage_inherit_losses(struct trp_engine *e, struct trp_stage *s);
void trp_stage_tell_inherited(struct trp_engine *e, struct trp_stage *s);

/* ---- failures.c ---- */

/* An indeterminate map stage is about to run again, whoever lost its outputs: so does what
 * was made of them. May end it, with all jobs that use it. */
void trp_stage_made_anew(struct trp_engine *e, struct trp_stage *m);
void trp_stages_resubmit(struct trp_engine *e); /* failed ones whose timer fired */

#endif
