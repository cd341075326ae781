/*
 * text-rank TOP OUT RANKING LINKS… — an MPI program: which manual pages and licences
 * are the most important, by PageRank over the references between texts ("FROM\tTO"
 * lines).
 *
 * A text belongs to the rank that the hash of its name says. Each rank reads its share
 * of the files and sends every link to the rank its source belongs to. A rank then
 * knows all links out of its texts; the texts they lead to, its *targets*, belong to
 * all ranks. It tells each rank once, in a fixed order, which of that rank's texts it
 * has as targets. After that a round is: what flows to each target is added up here,
 * the sums go to the targets' ranks in that order (MPI_Alltoallv of doubles), each rank
 * adds up what came for its texts. What flows into texts without links is spread over
 * all (MPI_Allreduce), as is the difference to the last round, which ends it.
 *
 * Rank 0 writes the TOP manual pages and the TOP licences to OUT,
 * "NAME\tSHARE\tREFERRED TO BY", and to stdout "TEXTS\tLINKS\tRANKS\tROUNDS".
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "words.h"

enum { TOP_MAX = 1000, ROUNDS_MAX = 200 };
static const double damping = 0.85, precise = 1e-9;

/* A growing list of strings, one behind the other with their zeros. */
struct strings {
    char *data;
    size_t size, capacity;
};

/* Numbers or bytes for each rank, as MPI_Alltoallv wants them. */
struct spread {
    int *counts, *offsets;
    int total;
};

struct graph {
    int rank, ranks;
    struct words texts;   /* that belong to this rank */
    struct words targets; /* of the links out of them; `last` is the text's rank */
    uint32_t *from, *to;  /* link i leads from text to target */
    size_t links;
    double *links_out;       /* of each text */
    uint32_t *target_order;  /* targets by rank: what is sent */
    struct spread send;      /* sums for targets */
    struct spread receive;   /* sums for texts */
    uint32_t *received_text; /* which text each received sum is for */
    double *out, *in;        /* buffers of an exchange */
};

static void *need(void *p)
{
    if (!p)
        text_fail("out of memory");
    return p;
}

static void *zeros(size_t n, size_t size)
{
    return need(calloc(n ? n : 1, size));
}

static void put(struct strings *s, const char *text)
{
    size_t n = strlen(text) + 1;
    while (s->size + n > s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 4096;
        s->data = need(realloc(s->data, s->capacity));
    }
    memcpy(s->data + s->size, text, n);
    s->size += n;
}

static int owner(const struct graph *g, const char *text)
{
    return (int)(words_hash(text) / 7 % (uint32_t)g->ranks);
}

static void spread_offsets(struct spread *s, int ranks)
{
    long long total = 0;
    for (int r = 0; r < ranks; r++) {
        s->offsets[r] = (int)total;
        total += s->counts[r];
        if (total > INT_MAX)
            text_fail("too many links for %d ranks", ranks);
    }
    s->total = (int)total;
}

static struct spread spread_new(int ranks)
{
    return (struct spread){.counts = zeros((size_t)ranks, sizeof(int)),
                           .offsets = zeros((size_t)ranks, sizeof(int))};
}

static void spread_free(struct spread *s)
{
    free(s->counts);
    free(s->offsets);
}

/* Sends lists[r] to each rank r and frees them; returns what came, with `ret_from`
 * saying how many bytes from whom. */
static char *exchange_strings(const struct graph *g, struct strings *lists,
                              struct spread *ret_from)
{
    struct spread send = spread_new(g->ranks);
    *ret_from = spread_new(g->ranks);
    for (int r = 0; r < g->ranks; r++) {
        if (lists[r].size > INT_MAX)
            text_fail("too many links for %d ranks", g->ranks);
        send.counts[r] = (int)lists[r].size;
    }
    spread_offsets(&send, g->ranks);
    MPI_Alltoall(send.counts, 1, MPI_INT, ret_from->counts, 1, MPI_INT, MPI_COMM_WORLD);
    spread_offsets(ret_from, g->ranks);
    char *all = zeros((size_t)send.total, 1);
    char *came = zeros((size_t)ret_from->total, 1);
    for (int r = 0; r < g->ranks; r++) {
        if (lists[r].size)
            memcpy(all + send.offsets[r], lists[r].data, lists[r].size);
        free(lists[r].data);
    }
    MPI_Alltoallv(all, send.counts, send.offsets, MPI_CHAR, came, ret_from->counts,
                  ret_from->offsets, MPI_CHAR, MPI_COMM_WORLD);
    free(all);
    spread_free(&send);
    return came;
}

/* ---- the graph ---- */

/* Its index, after it was added when it is new. */
static uint32_t index_of(struct words *w, const char *text)
{
    const struct word *word = words_get(w, text); /* may move w->all */
    return (uint32_t)(word - w->all);
}

static void read_links(const struct graph *g, const char *path, struct strings *lists)
{
    FILE *f = text_open(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    while ((n = getline(&line, &capacity, f)) > 0) {
        char *tab = strchr(line, '\t');
        if (!tab)
            text_fail("%s: not a list of links", path);
        *tab = '\0';
        tab[1 + strcspn(tab + 1, "\n")] = '\0';
        put(&lists[owner(g, line)], line);
        put(&lists[owner(g, line)], tab + 1);
    }
    free(line);
    fclose(f);
}

static void take_links(struct graph *g, const char *came, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += came[i] == '\0';
    g->links = n / 2;
    g->from = zeros(g->links, sizeof(*g->from));
    g->to = zeros(g->links, sizeof(*g->to));
    const char *p = came;
    for (size_t i = 0; i < g->links; i++) {
        g->from[i] = index_of(&g->texts, p);
        p += strlen(p) + 1;
        g->to[i] = index_of(&g->targets, p);
        g->targets.all[g->to[i]].last = (uint32_t)owner(g, p);
        p += strlen(p) + 1;
    }
}

/* Settles who sends which sums in which order. */
static void meet_targets(struct graph *g)
{
    struct strings *lists = zeros((size_t)g->ranks, sizeof(*lists));
    g->send = spread_new(g->ranks);
    for (size_t t = 0; t < g->targets.n; t++) {
        put(&lists[g->targets.all[t].last], g->targets.all[t].text);
        g->send.counts[g->targets.all[t].last]++;
    }
    spread_offsets(&g->send, g->ranks);
    g->target_order = zeros(g->targets.n, sizeof(*g->target_order));
    int *at = zeros((size_t)g->ranks, sizeof(*at));
    for (size_t t = 0; t < g->targets.n; t++) {
        uint32_t r = g->targets.all[t].last;
        g->target_order[g->send.offsets[r] + at[r]++] = (uint32_t)t;
    }
    free(at);

    struct spread bytes;
    char *came = exchange_strings(g, lists, &bytes);
    free(lists);
    g->receive = spread_new(g->ranks);
    MPI_Alltoall(g->send.counts, 1, MPI_INT, g->receive.counts, 1, MPI_INT,
                 MPI_COMM_WORLD);
    spread_offsets(&g->receive, g->ranks);
    g->received_text = zeros((size_t)g->receive.total, sizeof(*g->received_text));
    const char *p = came;
    for (int i = 0; i < g->receive.total; i++, p += strlen(p) + 1)
        g->received_text[i] = index_of(&g->texts, p);
    free(came);
    spread_free(&bytes);
    g->out = zeros(g->targets.n, sizeof(double));
    g->in = zeros((size_t)g->receive.total, sizeof(double));
}

static void graph_read(struct graph *g, char **files, int nfiles)
{
    struct strings *lists = zeros((size_t)g->ranks, sizeof(*lists));
    struct spread from;
    for (int i = g->rank; i < nfiles; i += g->ranks)
        read_links(g, files[i], lists);
    char *came = exchange_strings(g, lists, &from);
    free(lists);
    take_links(g, came, (size_t)from.total);
    free(came);
    spread_free(&from);
    meet_targets(g);
    g->links_out = zeros(g->texts.n, sizeof(double));
    for (size_t i = 0; i < g->links; i++)
        g->links_out[g->from[i]]++;
}

static void graph_free(struct graph *g)
{
    words_free(&g->texts);
    words_free(&g->targets);
    spread_free(&g->send);
    spread_free(&g->receive);
    free(g->from);
    free(g->to);
    free(g->links_out);
    free(g->target_order);
    free(g->received_text);
    free(g->out);
    free(g->in);
}

/* ---- rounds ---- */

/* What flows along all links into each text of this rank; flow[t] along each link out
 * of text t. */
static void flow_in(struct graph *g, const double *flow, double *ret_in)
{
    double *sums = zeros(g->targets.n, sizeof(*sums));
    for (size_t i = 0; i < g->links; i++)
        sums[g->to[i]] += flow[g->from[i]];
    for (size_t k = 0; k < g->targets.n; k++)
        g->out[k] = sums[g->target_order[k]];
    free(sums);
    MPI_Alltoallv(g->out, g->send.counts, g->send.offsets, MPI_DOUBLE, g->in,
                  g->receive.counts, g->receive.offsets, MPI_DOUBLE, MPI_COMM_WORLD);
    memset(ret_in, 0, g->texts.n * sizeof(*ret_in));
    for (int i = 0; i < g->receive.total; i++)
        ret_in[g->received_text[i]] += g->in[i];
}

static double sum_of(double mine)
{
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Fills share[] of each text; returns how many rounds it took. */
static int rank_texts(struct graph *g, double ntexts, double *share)
{
    double *flow = zeros(g->texts.n, sizeof(*flow));
    double *in = zeros(g->texts.n, sizeof(*in));
    int round = 0;
    for (size_t t = 0; t < g->texts.n; t++)
        share[t] = 1 / ntexts;
    for (double change = 1; ntexts > 0 && change > precise && round < ROUNDS_MAX;
         round++) {
        double lost = 0, moved = 0;
        for (size_t t = 0; t < g->texts.n; t++) {
            flow[t] = g->links_out[t] > 0 ? share[t] / g->links_out[t] : 0;
            lost += g->links_out[t] > 0 ? 0 : share[t];
        }
        flow_in(g, flow, in);
        double rest = ((1 - damping) + damping * sum_of(lost)) / ntexts;
        for (size_t t = 0; t < g->texts.n; t++) {
            double next = rest + damping * in[t];
            moved += fabs(next - share[t]);
            share[t] = next;
        }
        change = sum_of(moved);
    }
    free(flow);
    free(in);
    return round;
}

/* ---- the result ---- */

struct entry {
    double share, references;
    char name[TEXT_NAME_MAX];
};

static int larger_share(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->share != y->share)
        return x->share < y->share ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The `top` texts of one kind over all ranks, on rank 0. */
static void write_top(const struct graph *g, enum text_kind kind, const double *share,
                      const double *references, int top, FILE *f)
{
    struct entry *mine = zeros(g->texts.n + (size_t)top, sizeof(*mine));
    size_t n = 0;
    for (size_t t = 0; t < g->texts.n; t++) {
        if (text_kind_of(g->texts.all[t].text) != kind || references[t] < 1)
            continue;
        mine[n] = (struct entry){.share = share[t], .references = references[t]};
        snprintf(mine[n++].name, TEXT_NAME_MAX, "%s", g->texts.all[t].text);
    }
    qsort(mine, n, sizeof(*mine), larger_share);
    struct entry *all =
        zeros(g->rank == 0 ? (size_t)top * (size_t)g->ranks : 0, sizeof(*all));
    int bytes = top * (int)sizeof(*mine);
    MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (g->rank == 0)
        qsort(all, (size_t)top * (size_t)g->ranks, sizeof(*all), larger_share);
    for (int i = 0; g->rank == 0 && i < top && all[i].share > 0; i++)
        fprintf(f, "%s\t%.8f\t%.0f\n", all[i].name, all[i].share, all[i].references);
    free(all);
    free(mine);
}

int main(int argc, char **argv)
{
    struct graph g = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
    int top = argc > 4 ? atoi(argv[1]) : 0;
    if (top < 1 || top > TOP_MAX)
        text_fail("usage: text-rank TOP OUT RANKING LINKS…, with TOP 1 to %d", TOP_MAX);
    graph_read(&g, argv + 4, argc - 4);

    double ntexts = sum_of((double)g.texts.n), links = sum_of((double)g.links);
    double *share = zeros(g.texts.n, sizeof(*share));
    double *references = zeros(g.texts.n, sizeof(*references));
    double *ones = zeros(g.texts.n, sizeof(*ones));
    for (size_t t = 0; t < g.texts.n; t++)
        ones[t] = 1;
    flow_in(&g, ones, references);
    int rounds = rank_texts(&g, ntexts, share);

    FILE *f = g.rank == 0 ? text_open(argv[2], "we") : NULL;
    write_top(&g, TEXT_MANUAL, share, references, top, f);
    write_top(&g, TEXT_LICENCE, share, references, top, f);
    if (f) {
        text_close(f, argv[2]);
        f = text_open(argv[3], "we");
        fprintf(f, "%.0f\t%.0f\t%d\t%d\n", ntexts, links, g.ranks, rounds);
        text_close(f, argv[3]);
    }
    free(share);
    free(references);
    free(ones);
    graph_free(&g);
    MPI_Finalize();
    return 0;
}
