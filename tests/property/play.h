/*
 * What the subjects that play events against invariants share: a world (tests/world)
 * whose breaking is the verdict on a stream, and the invariants that both hold.
 */
#ifndef TESTS_PROPERTY_PLAY_H
#define TESTS_PROPERTY_PLAY_H

#include "stream.h"
#include "world/world.h"

struct play {
    struct world world; /* stands first */
    struct verdict *verdict;
    int64_t memory_before;
};

/* The hook `broken` of every play. */
void play_broken(struct world *w, const char *what, const char *text);
/* The hook `executor`: as many are asked for as the configuration allows, and those of a
 * fixed set stay. */
void play_executor(struct world *w, const struct trp_action *a);

/* A world over `profiles`, whose owner it becomes. */
void play_open(struct play *p, const struct trp_engine_config *config,
               trp_profiles *profiles, const struct world_hooks *hooks,
               struct verdict *verdict, FILE *explain);
/* Everything is over. What may stay: names and numbers, the highest marks of queues,
 * and `further` bytes. */
void play_check_memory(struct play *p, int64_t further);
/* An executor that nobody asked for comes up on a host. */
void play_appear(struct world *w, trp_profile_id profile, const char *host);
/* One that was told to go goes, or its request does. */
void play_gone(struct world *w, uint32_t which);
/* The steps of a stream, one after the other, and what `each` does behind each. */
void play_steps(struct play *p, const struct stream *s,
                void (*step)(struct play *p, const struct step *s),
                void (*each)(struct play *p));
/* The last line of the story; the hash of all actions. */
uint64_t play_close(struct play *p);

#endif
