/*
 * Files in the folder of the run that all hosts see, for what is too large to travel in
 * a message: results of tasks, broadcasts. They appear whole, are known by their size
 * and their hash, and go with the run. A mapping shows what is written into its file later:
 * whoever reads one for long asks at the end whether it is still what it was.
 *
 *     trp_shared_write(folder, "results", 7, data, size, &hash, &err);   // one process
 *     trp_shared_map(folder, "results", 7, size, hash, &data, &err);     // another
 *     trp_shared_unmap(data, size);
 *     trp_shared_remove(folder, "results", 7);
 */
#ifndef TRP_API_SHARED_FILE_H
#define TRP_API_SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* The same in pieces. TRP_ESYSTEM with path and reason, TRP_ENOMEM. Each that was begun
 * is ended, which frees it: with `keep` it gets its name, else it goes. */
typedef struct trp_shared_writer trp_shared_writer;
int trp_shared_begin(const char *folder, const char *kind, uint64_t number,
                     trp_shared_writer **ret, trp_error *err);
int trp_shared_put(trp_shared_writer *w, const void *data, size_t size, trp_error *err);
uint64_t trp_shared_size(const trp_shared_writer *w); /* so far */
int trp_shared_end(trp_shared_writer *w, bool keep, uint64_t *ret_hash, trp_error *err);
/* Writes FOLDER/KIND/NUMBER; *ret_hash is the XXH3 of the bytes. TRP_ESYSTEM with path
 * and reason. */
int trp_shared_write(const char *folder, const char *kind, uint64_t number,
                     const void *data, size_t size, uint64_t *ret_hash, trp_error *err);
/* Its bytes, to be read only, at the beginning of a page. TRP_ESYSTEM with path and
 * reason, also when they are not those that were written. */
int trp_shared_map(const char *folder, const char *kind, uint64_t number, uint64_t size,
                   uint64_t hash, const uint8_t **ret_data, trp_error *err);
/* The same of a file elsewhere. */
int trp_shared_map_file(const char *path, uint64_t size, uint64_t hash,
                        const uint8_t **ret_data, trp_error *err);
/* How a file looks without a look into it; what is written into it changes that. */
struct trp_shared_look {
    uint64_t device, inode;
    int64_t mtime_ns, ctime_ns; /* 0: it cannot be looked at */
};
struct trp_shared_look trp_shared_look(const char *path);
/* Whether what is mapped of the file is still the bytes of that hash; *look, which was taken
 * before it was mapped, spares reading them. */
bool trp_shared_is_whole(const char *path, const uint8_t *data, uint64_t size,
                         uint64_t hash, struct trp_shared_look *look);
/* Its path, malloc'ed; NULL: out of memory. */
char *trp_shared_path(const char *folder, const char *kind, uint64_t number);
void trp_shared_unmap(const uint8_t *data, uint64_t size);
/* What is mapped stays so. */
void trp_shared_remove(const char *folder, const char *kind, uint64_t number);

#endif
