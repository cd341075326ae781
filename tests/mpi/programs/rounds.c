/*
 * rounds N FOLDER [held]: N rounds of ranks along links, as PageRank has them, with a
 * checkpoint below the run's folder FOLDER every ten rounds. Each round's datasets are freed;
 * with "held" only the ranks of the last round are, and what they were made of through nested calls.
 * Prints "round R: RANKS ranks, FILES files, BYTES bytes" after the half of them and the last one:
 * map outputs that there are, and what this process has got by malloc; then "rank PAGE RANK" of
 * each.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

enum { PAGES = 60, PARTS = 2 };

TRP_FUNCTION(link_pages);
int link_pages(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t page = trp_get_i64(in, i);
        for (int64_t to = 1; to <= 2; to++)
            if (trp_emit_i64(out, &page, sizeof(page), (page * 7 + to) % PAGES) < 0)
                return -1;
    }
    return 0;
}

TRP_FUNCTION(first_ranks);
int first_ranks(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t page = trp_get_i64(in, i);
        if (trp_emit_f64(out, &page, sizeof(page), 1.0) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(spread);
int spread(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n, nr;
        const void *to = trp_left(in, i, &n), *rank = trp_right(in, i, &nr);
        if (trp_emit_f64(out, to, n, trp_as_f64(rank, nr) / 2) < 0)
            return -1;
    }
    return 0;
}

static trp_dataset *on(trp_dataset *made, trp_dataset *of)
{
    trp_dataset_free(of);
    return made;
}

/* A sanitizer's own malloc has another name for it. */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
static size_t bytes_held(void)
{
    return __sanitizer_get_current_allocated_bytes
               ? __sanitizer_get_current_allocated_bytes()
               : mallinfo2().uordblks;
}

static int files_in(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static trp_dataset *one_round(trp_dataset *links, trp_dataset *ranks, int held)
{
    if (held)
        return trp_persist(
            trp_reduce_by_key(trp_transform(trp_join(links, ranks, TRP_INNER, PARTS),
                                            spread, NULL, 0),
                              TRP_SUM_F64, PARTS),
            TRP_MEMORY_ONLY);
    trp_dataset *d = trp_join(links, ranks, TRP_INNER, PARTS);
    d = on(trp_transform(d, spread, NULL, 0), d);
    d = on(trp_reduce_by_key(d, TRP_SUM_F64, PARTS), d);
    return on(trp_persist(d, TRP_MEMORY_ONLY), d);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    char folder[4096], outputs[4096];
    uint64_t n;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc < 3)
        return 2;
    const int rounds = atoi(argv[1]), held = argc > 3;
    snprintf(outputs, sizeof(outputs), "%s/state/scratch/shuffle", argv[2]);
    trp_dataset *links =
        trp_persist(trp_transform(trp_range(ctx, 0, PAGES, PARTS), link_pages, NULL, 0),
                    TRP_MEMORY_ONLY);
    trp_dataset *ranks =
        trp_transform(trp_range(ctx, 0, PAGES, PARTS), first_ranks, NULL, 0);
    for (int i = 1; i <= rounds; i++) {
        trp_dataset *next = one_round(links, ranks, held);
        if (i % 10 == 0) {
            snprintf(folder, sizeof(folder), "%s/state/round-%d", argv[2], i);
            next = on(trp_checkpoint(next, folder), next);
        }
        if (trp_count(next, &n) < 0) {
            fprintf(stderr, "round %d: %s\n", i, trp_error_text(ctx));
            break;
        }
        trp_dataset_free(ranks);
        ranks = next;
        if (i == rounds / 2 || i == rounds)
            printf("round %d: %llu ranks, %d files, %zu bytes\n", i,
                   (unsigned long long)n, files_in(outputs), bytes_held());
    }
    trp_rows *rows = NULL;
    if (trp_collect(ranks, &rows) < 0)
        fprintf(stderr, "ranks: %s\n", trp_error_text(ctx));
    const trp_batch *b = rows ? trp_rows_batch(rows) : NULL;
    for (size_t i = 0; b && i < b->count; i++) {
        int64_t page;
        if (TRP_GET_KEY(b, i, &page) == 0)
            printf("rank %lld %.6f\n", (long long)page, trp_get_f64(b, i));
    }
    return trp_finalize(ctx);
}
