/*
 * From whom each host gets its copy of a file that all hosts read (data/host_copy.h).
 *
 * The first gets it from the file itself, at the *root*. Who has a copy gives it to
 * TRP_COPY_READERS others at a time, so the copies double from step to step, and the
 * root is read a few times, however many hosts there are. Who asks when all are busy is
 * told to ask again. A reader of which nothing is heard is forgotten after a while, and a
 * host whose copy could not be had twice is not named any more.
 *
 * Hosts are locations of map outputs, by their numbers. Knows no clock and no messages.
 */
#ifndef TRP_DRIVER_COPY_TREE_H
#define TRP_DRIVER_COPY_TREE_H

#include <stdbool.h>
#include <stdint.h>

enum { TRP_COPY_READERS = 2 };
#define TRP_COPY_ROOT UINT32_MAX
#define TRP_COPY_FORGOTTEN_NS INT64_C(60000000000)

typedef struct trp_copy_tree trp_copy_tree;

trp_copy_tree *trp_copy_tree_new(void); /* NULL: out of memory */
void trp_copy_tree_free(trp_copy_tree *t);

/* A location wants a file. 1: from *ret_from; 0: not now. TRP_ENOMEM. */
int trp_copy_tree_ask(trp_copy_tree *t, uint32_t file, uint32_t location, int64_t now,
                      uint32_t *ret_from);
/* It could not be had from there. */
void trp_copy_tree_failed(trp_copy_tree *t, uint32_t file, uint32_t location,
                          uint32_t from);
/* The location has it by now. */
void trp_copy_tree_has(trp_copy_tree *t, uint32_t file, uint32_t location);
/* Nobody serves it there: of any file. */
void trp_copy_tree_gone(trp_copy_tree *t, uint32_t location);

#endif
