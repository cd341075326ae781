/*
 * Broadcasts: bytes that all tasks of a run may read, in a file each (shared_file.h).
 *
 * The driver's side writes and removes the files, and lists those that there are in the
 * body of every stage. An executor maps one when a task first asks for it, and for all
 * tasks; the executors of a host share its pages. Where hosts have
 * folders of their own, a large one is copied there once, from another host that has it
 * or from the file (data/host_copy.h), and the copy is mapped. It lets go of those that are not in
 * the list of a later stage as soon as no task has them any more.
 *
 * Threads: on an executor tasks of several threads may ask at once.
 */
#ifndef TRP_API_BROADCAST_H
#define TRP_API_BROADCAST_H

#include "api/api.h"

/* One that there is, as a stage knows it. */
struct trp_broadcast_entry {
    uint32_t id;
    uint64_t size, hash;
};

/* The list in the body of a stage. */
void trp_broadcasts_put(struct trp_buf *b, const trp_context *ctx);
/* Malloc'ed; false: broken, or out of memory. */
bool trp_broadcasts_get(struct trp_view *v, struct trp_broadcast_entry **ret,
                        uint32_t *ret_n);
/* A later stage's list: what is not in it may go. */
void trp_broadcasts_keep(const struct trp_broadcast_entry *list, uint32_t n);

/* Those that a task has; begins zeroed. */
struct trp_broadcasts_held {
    uint32_t *places;
    uint32_t n, capacity;
};
/* The bytes, which stay until trp_broadcasts_let_go. NULL with the error. */
const void *trp_broadcast_map(const struct trp_task_info *info, const char *folder,
                              const struct trp_broadcast_entry *list, uint32_t n,
                              uint32_t id, struct trp_broadcasts_held *held,
                              size_t *ret_size, trp_error *err);
/* broadcast_copy.c: makes sure that this host has its copy of FOLDER/KIND/ID. Its path,
 * malloc'ed; NULL: it cannot be had, and the file itself is to be read. */
char *trp_broadcast_copy(const struct trp_task_info *info, const char *folder,
                         const char *kind, const struct trp_broadcast_entry *e);
/* Whether what the task has read was what the driver had written; else *ret_path, to be freed,
 * is damaged, and nobody is given it any more. */
bool trp_broadcasts_are_whole(const struct trp_broadcasts_held *held, char **ret_path);
void trp_broadcasts_let_go(struct trp_broadcasts_held *held);

/* Of the driver, at the end. */
void trp_broadcasts_free(trp_context *ctx);

#endif
