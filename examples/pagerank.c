/*
 * PageRank over a graph that it makes.
 *
 *     troupe run -- build/examples/pagerank                       # the best ten pages
 *     troupe run -- build/examples/pagerank --size 100000 --rounds 20 --top 3
 *
 * Page i links to up to 8 others, more often to those with low numbers. In each round a
 * page shares its rank out to those that it links to; then its rank is 0.15 and 0.85 of
 * what it was given. --links prints the graph instead, a line for each link.
 */
#include <inttypes.h>
#include <troupe.h>

#include "example.h"

enum { LINKS = 8, PARTS = 8 };

TRP_FUNCTION(links); /* page → the pages that it links to; arg: how many pages */
int links(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const uint64_t pages = *(const uint64_t *)arg;
    int64_t to[LINKS];
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        int64_t page = trp_get_i64(in, i);
        uint64_t n = example_random(0, (uint64_t)page) % (LINKS + 1);
        for (uint64_t k = 0; k < n; k++) {
            uint64_t below = 1 + example_random(k + 1, (uint64_t)page) % pages;
            to[k] = (int64_t)(example_random(k + 100, (uint64_t)page) % below);
        }
        if (trp_emit(out, &page, sizeof(page), to, n * sizeof(*to)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(first_rank); /* page → 1 */
int first_rank(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        int64_t page = trp_get_i64(in, i);
        if (trp_emit_f64(out, &page, sizeof(page), 1) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(share); /* page → (its links, its rank) becomes page → a share, for each */
int share(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0, size, nrank, npage; i < in->count; i++) {
        const char *to = trp_left(in, i, &size);
        const void *rank = trp_right(in, i, &nrank), *page = trp_key(in, i, &npage);
        const double part = size ? trp_as_f64(rank, nrank) * sizeof(int64_t) / size : 0;
        if (trp_emit_f64(out, page, npage, 0) < 0) /* nobody is left out */
            return -1;
        for (size_t k = 0; k < size; k += sizeof(int64_t))
            if (trp_emit_f64(out, to + k, sizeof(int64_t), part) < 0)
                return -1;
    }
    return 0;
}

TRP_FUNCTION(damp); /* page → the sum of its shares becomes page → its rank */
int damp(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0, n; i < in->count; i++) {
        const void *page = trp_key(in, i, &n);
        if (trp_emit_f64(out, page, n, 0.15 + 0.85 * trp_get_f64(in, i)) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(by_rank); /* page → rank becomes rank → page */
int by_rank(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        double rank = trp_get_f64(in, i);
        if (trp_emit_i64(out, &rank, sizeof(rank), trp_get_key_i64(in, i)) < 0)
            return -1;
    }
    return 0;
}

static void print_link(const trp_batch *b, size_t i)
{
    size_t n;
    const char *to = trp_value(b, i, &n);
    for (size_t k = 0; k < n; k += sizeof(int64_t))
        printf("%" PRId64 " %" PRId64 "\n", trp_get_key_i64(b, i),
               trp_as_i64(to + k, sizeof(int64_t)));
}

int main(int argc, char **argv)
{
    int64_t pages = 1000, rounds = 10, top = 10;
    bool print_links = false;
    const struct example_option options[] = {
        {"--size",   &pages,  NULL, NULL        },
        {"--rounds", &rounds, NULL, NULL        },
        {"--top",    &top,    NULL, NULL        },
        {"--links",  NULL,    NULL, &print_links},
        {NULL,       NULL,    NULL, NULL        }
    };
    trp_context *ctx;
    trp_profile *shape;
    trp_rows *rows = NULL;
    example_options(argc, argv, options, 0,
                    "pagerank [--size N] [--rounds N] [--top N] [--links]");
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_profile_from(ctx, "rank", "cores=2 memory=500m", &shape);

    trp_dataset *numbers = trp_range(ctx, 0, pages, PARTS);
    trp_dataset *graph = trp_map(numbers, links, &pages, sizeof(pages));
    graph = trp_named(trp_with_resources(graph, shape), "links");
    graph = trp_persist(graph, TRP_MEMORY_AND_DISK); /* each round needs it */
    trp_dataset *ranks = trp_map(numbers, first_rank, NULL, 0);
    ranks = trp_with_resources(ranks, shape);
    for (int64_t i = 0; i < rounds; i++) {
        trp_dataset *d = trp_join(graph, ranks, TRP_INNER, PARTS);
        d = trp_named(trp_transform(d, share, NULL, 0), "share");
        d = trp_reduce_by_key(trp_with_resources(d, shape), TRP_SUM_F64, PARTS);
        d = trp_named(trp_map(d, damp, NULL, 0), "sum");
        ranks = trp_with_resources(d, shape);
    }
    ranks = trp_with_resources(trp_map(ranks, by_rank, NULL, 0), shape);
    ranks = trp_sort_by_key(ranks, TRP_F64 | TRP_DESCENDING, 1);
    ranks = trp_with_resources(trp_named(ranks, "best"), shape);
    if (trp_collect(print_links ? graph : ranks, &rows) < 0)
        fprintf(stderr, "pagerank: %s\n", trp_error_text(ctx));
    const trp_batch *b = rows ? trp_rows_batch(rows) : NULL;
    for (size_t i = 0; b && i < b->count; i++)
        if (print_links)
            print_link(b, i);
        else if (i < (size_t)top)
            printf("%" PRId64 " %.9f\n", trp_get_i64(b, i), trp_get_key_f64(b, i));
    return trp_finalize(ctx);
}
