/*
 * The driver's side of troupe-slurm: starts it, asks it, reads what it answers.
 *
 *     trp_slurm_helper_start("/usr/libexec/troupe/troupe-slurm", -1, &h, &err);
 *     trp_slurm_helper_ask(h, "racks", keep_rack, map, 30000, &err);
 *     trp_slurm_helper_stop(h, true);
 *
 * Asking waits; telling (trp_slurm_helper_tell) and calling (trp_slurm_helper_call) do
 * not: answers are read by trp_slurm_helper_read when the descriptor is readable. Those
 * that come while something is asked are given to whom they are for as well.
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_HELPER_H
#define TRP_CLUSTER_SLURM_HELPER_HELPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cluster/slurm/helper/line.h"

typedef struct trp_slurm_helper trp_slurm_helper;

/* A line that answers a call; not the last one. Below 0: stop, with this code. */
typedef int (*trp_slurm_answer)(void *context, const struct trp_slurm_line *line,
                                trp_error *err);

/* `log`: descriptor for its stderr, -1: ours. The helper leads a session of its own.
 * TRP_ESYSTEM when it cannot be started. */
int trp_slurm_helper_start(const char *program, int log, trp_slurm_helper **ret,
                           trp_error *err);
pid_t trp_slurm_helper_pid(const trp_slurm_helper *h);
int trp_slurm_helper_fd(const trp_slurm_helper *h);

/* Makes a call ("job job=7") and waits for its end, `limit_ms` at most. TRP_ENOENT:
 * Slurm knows no such job; TRP_ESYSTEM: it refused, in its own words, does not answer,
 * or the helper is gone. */
int trp_slurm_helper_ask(trp_slurm_helper *h, const char *call, trp_slurm_answer answer,
                         void *context, int limit_ms, trp_error *err);

/* How a call ended: `refusal` as in cluster/slurm/helper/line.h. */
struct trp_slurm_end {
    bool failed;
    int refusal;
    const char *text; /* Slurm's words */
};
typedef void (*trp_slurm_done)(void *context, const struct trp_slurm_end *end);
/* Makes a call whose answer comes later: its lines to `answer` (may be NULL), then
 * `done`. When it fails `done` is not called; when the helper goes neither. */
int trp_slurm_helper_call(trp_slurm_helper *h, const char *call,
                          trp_slurm_answer answer, trp_slurm_done done, void *context);

/* Makes a call whose answer nobody waits for. */
int trp_slurm_helper_tell(trp_slurm_helper *h, const char *call);
/* Reads what has been answered to such calls; a refusal is written to stderr. False:
 * the helper is gone. */
bool trp_slurm_helper_read(trp_slurm_helper *h);

/* RPCs that it has made, as far as it said. */
uint64_t trp_slurm_helper_rpcs(const trp_slurm_helper *h);

/* A job that it is to have ended when it is stopped, which is named when that takes
 * long; 0: there may be one. `alone`: nothing runs there that will end it. */
void trp_slurm_helper_expect(trp_slurm_helper *h, uint32_t job, bool alone);
/* With `bye` nothing is ended that was guarded, and what was told is done first. Waits
 * 1 s at most; when it may have jobs to end 60 s, or, when nobody else will end one, as
 * long as it takes, and says so on stderr. Returns how many RPCs it has made in all. */
uint64_t trp_slurm_helper_stop(trp_slurm_helper *h, bool bye);

#endif
