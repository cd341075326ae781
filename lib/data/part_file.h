/*
 * A partition in a file of its own, for checkpoints: chunks of bytes, each under a
 * checksum (XXH3), between a head and an end. It is there whole or not at all: it is
 * written under a hidden name, and gets its own when it is closed; of several writers
 * the first one's stays, the others' goes.
 *
 *     trp_part_file_create(folder, partition, attempt, &w, &err);
 *     trp_part_file_put(w, chunk, size, &err);
 *     trp_part_file_close(w, true, &err);
 *
 *     trp_part_file_open(folder, partition, &r, &err);
 *     while ((rc = trp_part_file_next(r, &data, &size, &err)) > 0)
 *         …
 *     trp_part_file_free(r);
 *
 * Threads: one at a time for each.
 */
#ifndef TRP_DATA_PART_FILE_H
#define TRP_DATA_PART_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct trp_part_writer trp_part_writer;
typedef struct trp_part_reader trp_part_reader;

/* The largest chunk. */
#define TRP_PART_CHUNK_MAX (UINT32_C(1) << 30)

/* Whether a partition's file is there (whole or damaged). */
bool trp_part_file_there(const char *folder, uint32_t partition);
/* TRP_ESYSTEM, TRP_ELIMIT (a long path), TRP_ENOMEM. */
int trp_part_file_create(const char *folder, uint32_t partition, uint64_t attempt,
                         trp_part_writer **ret, trp_error *err);
/* Adds a chunk of 1 to TRP_PART_CHUNK_MAX bytes. TRP_ESYSTEM. */
int trp_part_file_put(trp_part_writer *w, const void *chunk, size_t size,
                      trp_error *err);
/* Ends and frees the writer: with `whole` the file gets its name, else it goes. That it
 * is there already is no failure. TRP_ESYSTEM. */
int trp_part_file_close(trp_part_writer *w, bool whole, trp_error *err);

/* TRP_ESYSTEM: it is not there, or not such a file; TRP_ENOMEM. */
int trp_part_file_open(const char *folder, uint32_t partition, trp_part_reader **ret,
                       trp_error *err);
/* 1: a chunk, valid until the next call, aligned as malloc does; 0: that was all;
 * TRP_ESYSTEM: it is damaged, cut off or cannot be read; TRP_ENOMEM. */
int trp_part_file_next(trp_part_reader *r, const uint8_t **ret_data, size_t *ret_size,
                       trp_error *err);
void trp_part_file_free(trp_part_reader *r);

#endif
