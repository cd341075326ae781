/*
 * Sorts records that it makes, 100 bytes each, and looks whether they are sorted.
 *
 *     troupe run -- build/examples/sort --size 1000000 sorted
 *     troupe run -- build/examples/sort --size 1000000 --verify sorted
 *
 * A record is a line: a key of 10 letters, a tab, its number as 16 hexadecimal digits,
 * 72 letters more. All of it follows from --seed and the number.
 *
 * The verifier makes the records once more and sums up, for them and for the lines of
 * the files, how many there are and a hash of each. A line that was lost, doubled or
 * changed changes a sum; the sums would be those of other lines by accident only, and
 * not on purpose, since the hash has a key that is drawn when the verifier starts. That
 * each line comes after the one before, by key and number, is looked at for all files
 * as if they were one.
 */
#include <inttypes.h>
#include <sys/random.h>
#include <troupe.h>

#include "example.h"

enum { KEY = 10, NUMBER = 16, FILLER = 72, VALUE = NUMBER + FILLER };
enum { ORDERED = KEY + 1 + NUMBER }; /* so much of a line says where it belongs */

struct settings { /* goes with the functions to the executors */
    uint64_t seed, secret;
};

static void letters(char *at, size_t n, uint64_t *seed)
{
    for (uint64_t bits = 0, i = 0; i < n; i++, bits /= 26) {
        if (i % 10 == 0)
            bits = *seed = example_random(*seed, i);
        at[i] = (char)('A' + bits % 26);
    }
}

static void make_record(uint64_t seed, uint64_t number, char *key, char *value)
{
    char digits[NUMBER + 1];
    uint64_t state = example_random(seed, number);
    letters(key, KEY, &state);
    snprintf(digits, sizeof(digits), "%016" PRIx64, number);
    memcpy(value, digits, NUMBER);
    letters(value + NUMBER, FILLER, &state);
}

TRP_FUNCTION(make); /* numbers become records */
int make(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct settings *s = arg;
    char key[KEY], value[VALUE];
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        make_record(s->seed, (uint64_t)trp_get_i64(in, i), key, value);
        if (trp_emit(out, key, sizeof(key), value, sizeof(value)) < 0)
            return -1;
    }
    return 0;
}

/* What is known of a run of lines. */
struct summary {
    uint64_t lines, sum;
    bool sorted;
    char first[ORDERED], last[ORDERED];
};

static void add_line(struct summary *s, const char *line, size_t n, uint64_t secret)
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

static int emit_summary(trp_writer *out, const struct summary *s)
{
    return trp_emit(out, NULL, 0, s, sizeof(*s));
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
    return emit_summary(out, &s);
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
    return emit_summary(out, &s);
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
    return emit_summary(out, &s);
}

static int reduce(trp_dataset *d, struct summary *ret)
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

/* What is wrong with the files; NULL: nothing. */
static const char *verify(trp_context *ctx, const struct settings *s, int64_t size,
                          uint32_t parts, const char *dir)
{
    struct summary want, got;
    char pattern[4096];
    snprintf(pattern, sizeof(pattern), "%s/part-*", dir);
    trp_dataset *made = trp_range(ctx, 0, size, parts);
    trp_dataset *there = trp_text_files(ctx, pattern, parts);
    made = trp_transform(made, summarise_made, s, sizeof(*s));
    there = trp_transform(there, summarise, s, sizeof(*s));
    if (reduce(made, &want) < 0 || reduce(there, &got) < 0)
        return trp_error_text(ctx);
    printf("%" PRIu64 " records, %" PRIu64 " expected\n", got.lines, want.lines);
    return got.lines != want.lines ? "records are lost or doubled"
           : got.sum != want.sum   ? "they are not those that were made"
           : !got.sorted           ? "they are not sorted"
                                   : NULL;
}

static int sort(trp_context *ctx, const struct settings *s, int64_t size,
                uint32_t parts, const char *dir)
{
    trp_profile *small, *large;
    trp_profile_from(ctx, "make", "cores=2 memory=300m", &small);
    trp_profile_from(ctx, "sort", "cores=1 memory=400m", &large);
    trp_dataset *d = trp_range(ctx, 0, size, parts);
    d = trp_transform(d, make, s, sizeof(*s));
    d = trp_named(trp_with_resources(d, small), "make");
    d = trp_sort_by_key(d, TRP_BYTES, parts);
    return trp_save(trp_named(trp_with_resources(d, large), "sort"), dir);
}

int main(int argc, char **argv)
{
    struct settings set = {0};
    int64_t size = 100000, seed = 1, parts = 8;
    bool check = false;
    const struct example_option options[] = {
        {"--size", &size, NULL, NULL},
        {"--seed",    &seed, NULL, NULL},
        {"--partitions",        &parts, NULL, NULL},
        {"--verify",NULL, NULL, &check},
        {0   }
    };
    const char *usage = "sort [--size N] [--seed N] [--partitions N] [--verify] FOLDER";
    const char *dir = argv[example_options(argc, argv, options, 1, usage)];
    const char *wrong = NULL;
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    set.seed = (uint64_t)seed;
    if (getrandom(&set.secret, sizeof(set.secret), 0) < 0)
        wrong = "no random numbers here";
    else if (check)
        wrong = verify(ctx, &set, size, (uint32_t)parts, dir);
    else if (sort(ctx, &set, size, (uint32_t)parts, dir) < 0)
        wrong = trp_error_text(ctx);
    if (wrong)
        fprintf(stderr, "sort: %s\n", wrong);
    int status = trp_finalize(ctx);
    return status ? status : wrong != NULL;
}
