/*
 * The free room of all nodes, for first fit: in a row of nodes, the first that has so
 * much of everything. A tree of maxima over the nodes; O(log nodes) a change, and a
 * search unless nodes have much of one thing and little of another.
 *
 *     uint32_t n = trp_node_tree_find(t, from, to, need);
 *     trp_node_tree_add(t, n, need, -1);
 */
#ifndef TRP_SIM_RUN_NODE_TREE_H
#define TRP_SIM_RUN_NODE_TREE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct trp_node_tree trp_node_tree;

/* `nodes` nodes with nothing of `dims` kinds. NULL: out of memory. */
trp_node_tree *trp_node_tree_new(uint32_t nodes, uint32_t dims);
void trp_node_tree_free(trp_node_tree *t);
/* What node `n` has free: `dims` amounts. */
const int64_t *trp_node_tree_available(const trp_node_tree *t, uint32_t n);
/* Adds `times` times `amounts`. */
void trp_node_tree_add(trp_node_tree *t, uint32_t n, const int64_t *amounts,
                       int64_t times);
/* A node that is closed is not found; its account continues. */
void trp_node_tree_close(trp_node_tree *t, uint32_t n, bool closed);
/* The first of nodes from … to - 1 that has at least `need`; TRP_NONE: none. */
uint32_t trp_node_tree_find(const trp_node_tree *t, uint32_t from, uint32_t to,
                            const int64_t *need);

#endif
