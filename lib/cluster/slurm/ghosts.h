/*
 * Nodes that Slurm says are taken though the books say they are free, and ghosts: steps
 * of this run whose sruns are gone, and that Slurm lists all the same.
 *
 * After slurmctld was away it counts steps that ended meanwhile until their nodes have
 * told it, and after a crash for as long as nobody ends them. A step that it refuses
 * for want of room is believed for that node: nothing new there until the steps of the
 * job were compared with those that this run has ended, by their numbers. A ghost is
 * cancelled; a node without one is used again.
 */
#ifndef TRP_CLUSTER_SLURM_GHOSTS_H
#define TRP_CLUSTER_SLURM_GHOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct trp_slurm;
struct trp_slurm_executor;
struct trp_slurm_request;

enum { TRP_SLURM_STEPS_KEPT = 4096 };

struct trp_slurm_ghosts {
    uv_timer_t timer;
    uint64_t pause_ms; /* before the next comparison */
    bool asked;        /* an answer is awaited, of this part: */
    uint32_t part;
    bool *haunted; /* by node, in the present answer; room for so many: */
    uint32_t room;
    uint32_t cancelled; /* the last step of it that was */
    struct {
        uint32_t job, step;
    } over[TRP_SLURM_STEPS_KEPT]; /* a ring: the last steps whose sruns are gone */
    uint64_t nover;
};

void trp_slurm_ghosts_open(struct trp_slurm *s);
/* Closes the timer; the rest is freed with the cluster. */
void trp_slurm_ghosts_close(struct trp_slurm *s);

/* The srun of one that is placed was refused, not for good, or is gone without a word:
 * nothing new on its nodes until that was looked into. */
void trp_slurm_ghosts_refused(struct trp_slurm *s, const struct trp_slurm_request *r,
                              const char *words);
/* Slurm has started it: what it says of nodes is true again. */
void trp_slurm_ghosts_started(struct trp_slurm *s);
/* Its srun is gone, and so is its step to be. */
void trp_slurm_ghosts_over(const struct trp_slurm_executor *e);

#endif
