/*
 * What Slurm answered about a job, kept as text: `troupe run` asks once, and its own
 * checks and the driver read what it was told. Lines of line.h, the last one
 * "0 done rpcs=4".
 *
 *     trp_slurm_answer_ask(helper, 1234, &text, &err);
 *     trp_slurm_answer_read(text, &inventory, &rpcs, &err);
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_JOB_ANSWER_H
#define TRP_CLUSTER_SLURM_HELPER_JOB_ANSWER_H

#include "cluster/slurm/accounts/inventory.h"
#include "cluster/slurm/helper/helper.h"
#include "cluster/slurm/helper/node_offers.h"

/* The answers about job `job` and the racks, and with `gangs` about what srun can start
 * them by; free it. TRP_ESYSTEM, TRP_ENOENT. */
int trp_slurm_answer_ask(trp_slurm_helper *h, uint32_t job, bool gangs, char **ret_text,
                         trp_error *err);

/* The same of all nodes and partitions, whoever uses them now. */
int trp_slurm_answer_ask_offers(trp_slurm_helper *h, char **ret_text, trp_error *err);
/* … and what was answered, to be freed in any case. */
int trp_slurm_answer_offers(const char *text, struct trp_slurm_offers *ret,
                            trp_error *err);

/* Fills an inventory; `ret_rpcs` is what the asking took. Free with
 * trp_slurm_inventory_free, also after a failure. TRP_EPROTO: not such a text;
 * TRP_ENOENT: no job is in it; TRP_ESYSTEM: one that runs, without nodes. */
int trp_slurm_answer_read(const char *text, struct trp_slurm_inventory *ret,
                          uint64_t *ret_rpcs, trp_error *err);

/* Sets the racks of other nodes by what was told of them. */
int trp_slurm_answer_racks(const char *text, struct trp_slurm_inventory *i,
                           trp_error *err);

#endif
