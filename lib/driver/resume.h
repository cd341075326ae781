/*
 * Which stages and tasks of a pipeline are to run: --resume, --from, --until, --force.
 *
 * With --resume a task is done when stage, item, command, environment and the params that
 * the stage names are the same as when it succeeded, no stage above it runs again or has lost a task that was
 * done, and every file that matched `outputs` then is still there with the same size and
 * time, or contents, and so are those of `inputs`. A stage that is to run `always` does,
 * with all its tasks. A stage all of whose tasks are done does not run at all. With
 * `each`, a task asks only whether its own counterpart above runs again; with `by`, whether
 * one of those does that it waits for, and whether they are still the same.
 *
 * Where above a stage only such tasks run as never were done, a stage that waits for all of
 * them is decided *late*, when they have ended: it runs again if one of them succeeded.
 *
 * What is temp is not missed while nothing runs that needs it (temp_users.h). Else the tasks
 * that had made it run again, although they are done: what comes after them is as it was.
 *
 * --from S: the stages above S are taken as done. --until S: S and the stages above it,
 * no others. --force S: S and all stages below it run again.
 *
 * Command: run or argv, shell, prelude, wrap, ranks, cwd and patterns as written, with
 * ${NAME} filled in. Environment: `env:`, not that of `troupe`, which is another one each
 * day. A stage names a param by ${NAME}, by the word TROUPE_PARAM_NAME, or in `params`. The number of a task
 * counts where the stage's texts name TROUPE_TASK, how many there are where they name
 * TROUPE_TASKS; else a task is known by its item wherever in the list it stands. Of a table
 * with a key that is the key, and of its columns those count that the stage names, unless it
 * takes the row as a whole. A group is known by its value; of its rows count how many there
 * are and the columns that the stage names, or all where it names TROUPE_ROWS.
 */
#ifndef TRP_DRIVER_RESUME_H
#define TRP_DRIVER_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/options.h"
#include "conf/pipeline.h"
#include "core/profile/manager.h"
#include "driver/by.h"
#include "driver/done_log.h"
#include "driver/foreach.h"
#include "driver/temp_set.h"
#include "driver/temp_users.h"

struct trp_resume_request {
    const trp_pipeline *pipeline;
    const trp_options *options; /* NULL: the defaults */
    const char *cwd;            /* where relative paths begin */
    const char *from, *until;   /* NULL: not given */
    char *const *force;
    uint32_t nforce;
    const char
        *run_dir;      /* what stages worked on is kept there; NULL: it is not asked */
    trp_done_log *log; /* read; NULL: nothing is known, all runs */
    bool contents;     /* resume.check */
    const struct trp_temp_users *temp_users; /* NULL: nothing is temp */
    const trp_temp_set *temp_set;            /* NULL: nothing was */
};

/* What is temp of what a task has made. */
struct trp_temp_made {
    uint32_t task;
    struct trp_outputs files;
};

/* What is to happen with a stage. */
struct trp_stage_choice {
    bool runs;              /* has a task to run, or is late */
    bool late;              /* trp_resume_late says which of its tasks are done */
    struct trp_items items; /* when they were needed for the choice */
    uint8_t *done;          /* per task, or NULL: none is done */
    uint32_t ndone, nagain; /* nagain: were done, and are to be done again */
    bool complete;          /* all of its tasks are done */
    uint8_t
        *remade; /* per task, or NULL: was done, and runs to make again what is temp */
    uint32_t nremade,
        ngone; /* ngone: temp files that are gone and that nothing needs */
    struct trp_temp_made *made; /* of the tasks that are done */
    uint32_t nmade, made_capacity;
    struct trp_print print; /* of its command, environment and params */
    bool by_index, by_count;
    bool by_row;          /* its texts have the whole row of a table */
    bool by_rows;         /* … all rows of a group */
    struct trp_buf named; /* else the columns that they name, a NUL behind each */
    struct trp_by_tasks
        *by; /* what its tasks wait for, of each parent `by` a column, in
                              * their order; once its tasks are known */
    uint32_t nby;
    struct trp_print_parts parts;
    char why
        [320]; /* what was done is to be done again, because of this; "": nothing is */
};

/* Whether a value of the file or a stage names the param, by its place. */
bool trp_param_is_named(const trp_pipeline *p, uint32_t param);
/* What resume.check says. */
bool trp_resume_checks_contents(const trp_options *o);
/* Whether these leave a stage to run: TRP_EINVAL as below. */
int trp_resume_check(const trp_pipeline *p, const char *from, const char *until,
                     trp_error *err);
/* Chooses; *ret has an entry per stage of the pipeline. Writes to the log which records
 * count no more, before anything runs. TRP_EINVAL for a stage that does not exist and
 * when nothing is left between --from and --until. */
int trp_resume_choose(const struct trp_resume_request *q, struct trp_stage_choice **ret,
                      trp_error *err);
/* Is one of these late? Then what the log has is asked for later. */
bool trp_resume_any_late(const struct trp_stage_choice *v, uint32_t n);
/* Chooses for a late stage: its items and which of them are done, into choice[stage].
 * `choice` has the items, and `done`, of the stages above with `each` that are in the
 * job; `made`: a stage that it waits for as a whole, of which a task succeeded in this start,
 * or NULL. */
int trp_resume_late(const struct trp_resume_request *q, struct trp_stage_choice *choice,
                    uint32_t stage, const char *made, trp_error *err);
/* "2 tasks are done, 1 of 3 runs: its command changed". */
void trp_stage_choice_words(const struct trp_stage_choice *c, char *buf, size_t size);
/* "stage s: 3 tasks that were done are to run again: its command changed"; false: nothing
 * that was done is, and it says what runs. */
bool trp_stage_choice_text(const trp_pipeline *p, const struct trp_stage_choice *v,
                           uint32_t stage, char *buf, size_t size);
/* What is known of files that are temp. */
void trp_temp_made_free(struct trp_stage_choice *c);
void trp_stage_choices_free(struct trp_stage_choice *v, uint32_t n);

/* Appends the files that a task reads, as they are now; false: it names none. What cannot
 * be looked at is left out. *ret_unmatched is the first pattern that nothing matches,
 * malloc'ed, or NULL; `ret_unmatched` may be NULL. */
bool trp_task_inputs(const struct trp_pipeline_stage *s, const char *cwd,
                     const struct trp_task_values *v, struct trp_outputs *ret,
                     char **ret_unmatched);
/* Of their names, sizes and times; never 0. */
struct trp_print trp_inputs_print(const struct trp_outputs *files);

/* Finds what the tasks of a stage, `own`, wait for by columns: choice[stage].by. `choice` has
 * the items of the stages above; where it has not, they are evaluated and kept there. 0,
 * TRP_EINVAL with FILE:LINE:COL, TRP_ENOMEM. */
int trp_resume_links(const trp_pipeline *p, const char *cwd,
                     struct trp_stage_choice *choice, uint32_t stage,
                     const struct trp_items *own, trp_error *err);
void trp_resume_unlink(struct trp_stage_choice *c);

/* Which task it is, and what it runs. */
struct trp_print trp_task_id(const struct trp_stage_choice *c, const char *stage,
                             const struct trp_items *items,
                             const struct trp_task_values *v);
struct trp_print trp_task_print(const struct trp_stage_choice *c,
                                const struct trp_items *items,
                                const struct trp_task_values *v);

#endif
