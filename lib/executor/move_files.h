/*
 * Map outputs that are moved from a host's own folder to the run's, which all hosts see:
 * before the host goes, or since nobody comes there who would serve them.
 *
 * An executor does it while it lives, in a thread (`trp_mover`). Where none is left
 * `troupe-rank move` does it, a step of its own, with the run's folder, its identity, a
 * folder in which the host's may be ("": where it is by default) and the outputs as
 * words. It prints a line for each that is moved:
 *
 *     DATASET-MAP-ATTEMPT BYTES NANOSECONDS
 *
 * and "! TEXT" when it had to stop. What is not there is left out.
 */
#ifndef TRP_EXECUTOR_MOVE_FILES_H
#define TRP_EXECUTOR_MOVE_FILES_H

#include "core/base/error.h"
#include "wire/map_output.h"

enum { TRP_MOVE_WORD = 48 };

/* "DATASET-MAP-ATTEMPT", and back; false: it is none. */
void trp_move_word(const struct trp_move_output *m, char ret[TRP_MOVE_WORD]);
bool trp_move_read_word(const char *word, struct trp_move_output *ret);
/* A line of the step. 1: an output; 0: it had to stop, *ret_text (in `line`) says why;
 * TRP_EPROTO. */
int trp_moved_read_line(const char *line, struct trp_moved_output *ret,
                        const char **ret_text);

typedef struct trp_mover trp_mover;

struct trp_mover_config {
    const char *from;    /* copied, as all of it */
    const char *run_dir; /* of the run */
    const struct trp_move_output *outputs;
    uint32_t n;
    void (*news)(void *context); /* there is something to take; of its thread */
    void *context;
};

/* TRP_ENOMEM, TRP_ESYSTEM. */
int trp_mover_start(const struct trp_mover_config *config, trp_mover **ret,
                    trp_error *err);
/* A MOVED message of what was moved since the last call. 1: the last one; 0: there is
 * more to come, and `b` is empty when there is no news. Of one thread. */
int trp_mover_take(trp_mover *m, struct trp_buf *b);
/* Gives up what is not moved yet. NULL: nothing. */
void trp_mover_stop(trp_mover *m);

/* `troupe-rank move RUN_DIR ID PARENT OUTPUT…`; its exit status. */
int trp_move_main(int argc, char **argv);

#endif
