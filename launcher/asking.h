/*
 * Asking a run where it is (driver/ask.h), from wherever `troupe` was called: its driver
 * when that is on this host, or by a step of its Slurm job, else its event log.
 */
#ifndef TRP_LAUNCHER_ASKING_H
#define TRP_LAUNCHER_ASKING_H

#include <jansson.h>

#include "driver/ask.h"
#include "events/run_folder.h"
#include "step_call.h"

struct trp_asking {
    char *folder;              /* of the run */
    struct trp_run_view view;  /* as it was when it was found, or looked at again */
    struct trp_step_call step; /* once the driver was asked by one */
    int64_t log_ns;  /* how long it took to read its event log; 0: that was not done */
    int64_t step_at; /* no other step is asked for before, when one has failed; mono */
    char step_why[300]; /* … and why */
    char
        note[600]; /* why what is told is the log's and not its driver's; "": it is not,
                     * or the run has ended */
};

/* `run` NULL: the newest. TRP_EINVAL: there is no such run; TRP_ESYSTEM: it is another
 * user's. */
int trp_asking_find(const char *runs_dir, const char *run, struct trp_asking *ret,
                    trp_error *err);
/* Looks at it again: it may have ended since, or have been begun again. TRP_EINVAL. */
int trp_asking_again(struct trp_asking *a, trp_error *err);
void trp_asking_free(struct trp_asking *a);

/* What its driver answers. TRP_ENOENT: it has none that answers, and a->note says so.
 * TRP_EINVAL with its words: it refuses. */
int trp_asking_driver(struct trp_asking *a, const struct trp_ask *q, json_t **ret,
                      trp_error *err);
/* The status document: its driver's, or made of its event log. */
int trp_asking_status(struct trp_asking *a, json_t **ret, trp_error *err);

/* "troupe: " and the note on stderr, where there is one. */
void trp_asking_tell(const struct trp_asking *a);

/* Members of documents; "" and 0 where there is none. */
const char *trp_asking_text(const json_t *of, const char *key);
int64_t trp_asking_int(const json_t *of, const char *key);

/* "3.2 s", "12m05s", "3h04m". Returns buf. */
char *trp_asking_time(int64_t ms, char *buf, size_t size);

#endif
