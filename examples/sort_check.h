/*
 * Looks whether files are those that sort.c writes, by one value that describes all of
 * them (trp_reduce).
 *
 * The records are made once more. Of them, and of the lines of the files, it is summed
 * up how many there are and a hash of each. A line that was lost, doubled or changed
 * changes a sum; the sums would be those of other lines by accident only, and not on
 * purpose, since the hash has a key that is drawn when this starts. That each line comes
 * after the one before, by key and number, is looked at for all files as if they were
 * one.
 */
#ifndef SORT_CHECK_H
#define SORT_CHECK_H

#include <sys/random.h>

#include "sort_records.h"

enum { ORDERED = KEY + 1 + NUMBER }; /* so much of a line says where it belongs */

struct settings { /* goes with the functions to the executors */
    uint64_t seed, secret;
};

/* What is known of a run of lines. */
struct summary {
    uint64_t lines, sum;
    bool sorted;
    char first[ORDERED], last[ORDERED];
};

static inline void add_line(struct summary *s, const char *line, size_t n,
                            uint64_t secret)
{
    char place[ORDERED] = {0};
    memcpy(place, line, n < ORDERED ? n : ORDERED);
    if (s->lines == 0)
        memcpy(s->first, place, ORDERED);
    else if (memcmp(s->last, place, ORDERED) >= 0)
        s->sorted = false;
    memcpy(s->last, place, ORDERED);
    uint64_t hash = secret ^ n;
    for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
        uint64_t piece = 0;
        memcpy(&piece, line + i, n - i < sizeof(piece) ? n - i : sizeof(piece));
        hash = example_random(hash, piece);
    }
    s->lines++;
    s->sum += hash;
}

TRP_FUNCTION(summarise); /* of each batch of lines */
int summarise(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct settings *set = arg;
    struct summary s = {.sorted = true};
    (void)t;
    for (size_t i = 0, n; i < in->count; i++) {
        const char *line = trp_value(in, i, &n);
        add_line(&s, line, n, set->secret);
    }
    return trp_emit(out, NULL, 0, &s, sizeof(s));
}

TRP_FUNCTION(summarise_made); /* of the lines that numbers should have become */
int summarise_made(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct settings *set = arg;
    struct summary s = {.sorted = true};
    char line[KEY + 1 + VALUE];
    (void)t;
    line[KEY] = '\t';
    for (size_t i = 0; i < in->count; i++) {
        make_record(set->seed, (uint64_t)trp_get_i64(in, i), line, line + KEY + 1);
        add_line(&s, line, sizeof(line), set->secret);
    }
    return trp_emit(out, NULL, 0, &s, sizeof(s));
}

TRP_COMBINE(together); /* two runs, of which one follows the other, become one */
int together(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
             const void *arg)
{
    struct summary s, next;
    (void)na, (void)nb, (void)arg;
    memcpy(&s, a, sizeof(s));
    memcpy(&next, b, sizeof(next));
    s.sorted = s.sorted && next.sorted && memcmp(s.last, next.first, ORDERED) < 0;
    memcpy(s.last, next.last, ORDERED);
    s.lines += next.lines;
    s.sum += next.sum;
    return trp_emit(out, NULL, 0, &s, sizeof(s));
}

static inline int reduce(trp_dataset *d, struct summary *ret)
{
    void *value = NULL;
    size_t n;
    int rc = trp_reduce(d, together, NULL, 0, &value, &n);
    *ret = (struct summary){.sorted = true};
    if (rc == 0 && value)
        memcpy(ret, value, sizeof(*ret));
    free(value);
    return rc;
}

/* Prints how many records are in the files, and what is wrong with them, if anything is:
 * then false. */
static inline bool check_sorted(trp_context *ctx, const char *dir, uint64_t seed,
                                int64_t size, uint32_t parts)
{
    struct settings s = {.seed = seed};
    struct summary want = {0}, got = {0};
    char pattern[4096];
    const char *wrong = NULL;
    snprintf(pattern, sizeof(pattern), "%s/part-*", dir);
    trp_dataset *made = trp_range(ctx, 0, size, parts);
    trp_dataset *there = trp_text_files(ctx, pattern, parts);
    if (getrandom(&s.secret, sizeof(s.secret), 0) < 0)
        wrong = "no random numbers here";
    else if (reduce(trp_transform(made, summarise_made, &s, sizeof(s)), &want) < 0 ||
             reduce(trp_transform(there, summarise, &s, sizeof(s)), &got) < 0)
        wrong = trp_error_text(ctx);
    else
        printf("%" PRIu64 " records, %" PRIu64 " expected\n", got.lines, want.lines);
    if (!wrong)
        wrong = got.lines != want.lines ? "records are lost or doubled"
                : got.sum != want.sum   ? "they are not those that were made"
                : !got.sorted           ? "they are not sorted"
                                        : NULL;
    if (wrong)
        fprintf(stderr, "sort: %s\n", wrong);
    return !wrong;
}

#endif
