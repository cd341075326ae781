/*
 * A partition in a file of its own, for checkpoints: chunks of bytes, each under a
 * checksum (XXH3), between a head and an end. It is there whole or not at all: it is
 * written under a hidden name, and gets its own when it is closed.
 *
 *     trp_part_file_create(folder, partition, attempt, &w, &err);
 *     trp_part_file_put(w, chunk, size, &err);
 *     trp_part_file_end(w, &err);
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

/* Of a partition's hidden files (.part-00003.…, also of trp_save) all but `but` are
 * removed, so that none of them can be given its name any more. */
void trp_part_take_names(const char *folder, uint32_t partition, const char *but);
/* TRP_ESYSTEM, TRP_ELIMIT (a long path), TRP_ENOMEM. */
int trp_part_file_create(const char *folder, uint32_t partition, uint64_t attempt,
                         trp_part_writer **ret, trp_error *err);
/* Adds a chunk of 1 to TRP_PART_CHUNK_MAX bytes. TRP_ESYSTEM. */
int trp_part_file_put(trp_part_writer *w, const void *chunk, size_t size,
                      trp_error *err);
/* All is written; nothing can be added any more. TRP_ESYSTEM. */
int trp_part_file_end(trp_part_writer *w, trp_error *err);
const char *trp_part_file_hidden(const trp_part_writer *w); /* its path until then */
/* Frees the writer: with `keep`, after the end, the file gets its name, in place of one
 * that has it; else it goes. TRP_ESYSTEM. */
int trp_part_file_close(trp_part_writer *w, bool keep, trp_error *err);

/* TRP_ESYSTEM: it is not there, or not such a file; TRP_ENOMEM. */
int trp_part_file_open(const char *folder, uint32_t partition, trp_part_reader **ret,
                       trp_error *err);
/* 1: a chunk, valid until the next call, aligned as malloc does; 0: that was all;
 * TRP_ESYSTEM: it is damaged, cut off or cannot be read; TRP_ENOMEM. */
int trp_part_file_next(trp_part_reader *r, const uint8_t **ret_data, size_t *ret_size,
                       trp_error *err);
void trp_part_file_free(trp_part_reader *r);

#endif
