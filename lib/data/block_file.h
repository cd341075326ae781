/*
 * A map output as a file: the blocks of its partitions in their order, each of parts
 * (data/parts.h), an index of the blocks that are not empty, and a footer of fixed
 * size. Internal to lib/data.
 *
 * The index is cut into groups of TRP_INDEX_GROUP partitions: of each block that is not
 * empty how many empty ones are before it in the group, and its size, as varints.
 * Behind it, for each group: u64 where its first block begins, u32 size of the group in
 * the index, u32 where that begins in it, u64 checksum. So to find a block is to read
 * the footer and these entries once, and then one group. The footer:
 *
 *     8 bytes TRP_BLOCK_FILE_MARK
 *     u32 shuffle, u32 map, u64 attempt, u32 partitions, u32 zero
 *     u64 bytes of blocks, u64 bytes of the index
 *     u64 checksum of the groups' entries and of the 48 bytes before it
 */
#ifndef TRP_DATA_BLOCK_FILE_H
#define TRP_DATA_BLOCK_FILE_H

#include "data/parts.h"

enum { TRP_INDEX_GROUP = 256, TRP_BLOCK_FOOTER = 56, TRP_BLOCK_NAME = 56 };
#define TRP_BLOCK_FILE_MARK "TRPSHUF1"

/* As `shuffle`: no map output, but a file that is one block, without an index
 * (data/host_copy.h). */
#define TRP_WHOLE_FILE UINT32_MAX

struct trp_output_id {
    uint32_t shuffle, map;
    uint64_t attempt;
};

void trp_block_file_name(const struct trp_output_id *id, char ret[TRP_BLOCK_NAME]);

/* Removes the map outputs of these datasets, in order of their numbers, from a folder;
 * nothing when it is not there. */
void trp_block_files_remove(const char *folder, const uint32_t *shuffles, uint32_t n);

/* ---- writing --------------------------------------------------------------------- */

/* Behind the blocks of `p`, which begin at the file's begin and have these sizes. */
int trp_block_file_finish(struct trp_parts_writer *p, const struct trp_output_id *id,
                          const uint64_t *sizes, uint32_t partitions, trp_error *err);

/* ---- reading --------------------------------------------------------------------- */

struct trp_index_group {
    uint64_t begin, checksum;
    uint32_t size, at;
};

struct trp_block_file {
    int fd;
    uint32_t partitions, ngroups;
    uint64_t blocks, index; /* their bytes */
    struct trp_index_group *groups;
};

struct trp_block_place {
    uint64_t begin, size;
};

/* Opens a folder of map outputs: its descriptor. As below. */
int trp_block_folder_open(const char *folder, trp_error *err);
/* Opens a map output; the text says what is wrong with it, not which it is. TRP_ENOENT:
 * there is none; TRP_EPROTO: it is damaged, or another one; TRP_ENOMEM. */
int trp_block_file_open(int folder, const struct trp_output_id *id,
                        struct trp_block_file *ret, trp_error *err);
/* Its descriptor alone, for who has read the rest before. As above. */
int trp_block_file_reopen(int folder, const struct trp_output_id *id, trp_error *err);
void trp_block_file_close(struct trp_block_file *f);
/* Where a block is; size 0: it is empty. TRP_EINVAL: no such partition; else as above.
 */
int trp_block_file_find(const struct trp_block_file *f, uint32_t partition,
                        struct trp_block_place *ret, trp_error *err);

/* block_check.c: looks through all blocks of `id`. TRP_EPROTO: they are damaged;
 * TRP_ENOMEM. */
int trp_block_file_check(const struct trp_block_file *f, const struct trp_output_id *id,
                         trp_error *err);

#endif
