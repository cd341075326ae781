/*
 * Which other map outputs of a host are gone or damaged, when one is.
 *
 * Those that can be opened are looked through here, those of other hosts by a block server
 * there: it answers for each, and none of their bytes travel.
 */
#include <stdlib.h>
#include <unistd.h>

#include "data/fetch.h"
#include "data/stream.h"

/* So many bytes are looked through: some seconds. */
#define CHECKED_BYTES (UINT64_C(4) << 30)
/* Outputs that are asked for at a time. */
enum { CHECKS = 64 };

int trp_block_file_check(const struct trp_block_file *f, const struct trp_output_id *id,
                         trp_error *err)
{
    struct trp_unpacker unpacker = {0};
    struct trp_bytes_source *bytes = trp_source_of_file(f->fd, 0);
    struct trp_stream *s =
        bytes ? trp_stream_of_parts(bytes, f->blocks,
                                    trp_parts_seed(id->shuffle, id->map, id->attempt),
                                    TRP_ANY_PARTITION, &unpacker)
              : NULL;
    if (!s)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int rc;
    do {
        s->at = s->end;
        rc = s->refill(s, err);
    } while (rc > 0);
    s->free(s);
    ZSTD_freeDCtx(unpacker.zstd);
    return rc;
}

static struct trp_output_id output_of(const struct trp_shuffle_read *r, uint32_t source)
{
    const struct trp_shuffle_source *s = &r->sources[source];
    return (struct trp_output_id){r->shuffle, s->map, s->attempt};
}

/* Is it there, and whole as far as it is looked at: all of it, where that is at most
 * *budget bytes, which are taken off; else its index? */
static bool is_whole(int folder, const struct trp_output_id *id, uint64_t *budget)
{
    struct trp_block_file f;
    trp_error err;
    int rc = trp_block_file_open(folder, id, &f, &err);
    if (rc == 0) {
        bool look = f.blocks <= *budget;
        *budget -= look ? f.blocks : 0;
        if (look)
            rc = trp_block_file_check(&f, id, &err);
        trp_block_file_close(&f);
    }
    return rc != TRP_ENOENT && rc != TRP_EPROTO; /* else it is not the file's fault */
}

static void look_here(const struct trp_shuffle_read *r, const uint32_t *of, uint32_t n,
                      const char *folder, bool *ret_bad)
{
    uint64_t budget = CHECKED_BYTES;
    trp_error err;
    int at = trp_block_folder_open(folder, &err);
    for (uint32_t i = 0; i < n && at != TRP_ESYSTEM; i++) {
        const struct trp_output_id id = output_of(r, of[i]);
        ret_bad[of[i]] = at < 0 || !is_whole(at, &id, &budget);
    }
    if (at >= 0)
        close(at);
}

/* Asks for some of them. False: no more of them are to be asked for. */
static bool check_some(const struct trp_shuffle_read *r, const uint32_t *of, uint32_t n,
                       const struct trp_data_host *host, uint64_t *budget,
                       bool *ret_bad)
{
    struct trp_fetch *f = calloc(n, sizeof *f);
    bool go_on = f != NULL;
    for (uint32_t i = 0; f && i < n; i++) {
        f[i].host = host;
        f[i].wanted = (struct trp_wanted){.id = output_of(r, of[i]),
                                          .partition = r->partition,
                                          .partitions = r->partitions,
                                          .offset = TRP_WANTED_CHECK};
        trp_fetch_begin(r->client, &f[i]);
    }
    for (uint32_t i = 0; f && i < n; i++) {
        go_on = go_on && trp_fetch_wait(r->client, &f[i], r->killed) == 0 &&
                f[i].answered && f[i].size <= *budget;
        if (go_on) {
            *budget -= f[i].size;
            ret_bad[of[i]] = f[i].result < 0;
        }
        trp_fetch_end(r->client, &f[i]);
    }
    free(f);
    return go_on;
}

static void look_there(const struct trp_shuffle_read *r, const uint32_t *of, uint32_t n,
                       const struct trp_data_host *host, bool *ret_bad)
{
    uint64_t budget = CHECKED_BYTES;
    for (uint32_t i = 0; i < n; i += CHECKS)
        if (!check_some(r, of + i, n - i < CHECKS ? n - i : CHECKS, host, &budget,
                        ret_bad))
            return;
}

void trp_shuffle_find_others(const struct trp_shuffle_read *read,
                             const struct trp_fetch_problem *problem, bool *ret_bad)
{
    if (problem->host >= read->nhosts)
        return;
    const struct trp_data_host *host = &read->hosts[problem->host];
    uint32_t n = 0, *of = malloc((read->nsources ? read->nsources : 1) * sizeof *of);
    for (uint32_t i = 0; of && i < read->nsources; i++)
        if (read->sources[i].host == problem->host &&
            read->sources[i].map != problem->map)
            of[n++] = i;
    if (of && host->here)
        look_here(read, of, n, host->folder ? host->folder : read->folder, ret_bad);
    else if (of && read->client)
        look_there(read, of, n, host, ret_bad);
    free(of);
}
