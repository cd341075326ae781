/*
 * Map outputs as the driver passes them on: what it learns of jobs that are told as
 * datasets, the INPUTS message of a stage's attempt, what ends of map tasks and of
 * readers say. Where outputs are and what is lost is the engine's to know.
 *
 * Internal to lib/driver.
 */
#ifndef TRP_DRIVER_MAP_OUTPUTS_H
#define TRP_DRIVER_MAP_OUTPUTS_H

#include "driver/driver_state.h"

/* Gives a record to each stage that the engine made for a job of datasets since. */
void trp_driver_learn_stages(trp_driver *d);

/* The INPUTS message of the stage's present attempt; NULL, with no text: it reads no
 * map outputs; NULL with err->code: out of memory. */
const struct trp_buf *trp_driver_inputs(trp_driver *d, struct trp_driver_stage *s,
                                        trp_error *err);

/* Takes out of an end what it says of map outputs: sizes, or the one that could not be
 * read. `end->extra` is then what is left of it: a result, or the text. False: garbled.
 */
bool trp_driver_take_outputs(trp_driver *d, struct trp_end *end,
                             struct trp_task_end *ret);
/* Frees what `ret` was given. */
void trp_driver_outputs_done(struct trp_task_end *ended);

#endif
