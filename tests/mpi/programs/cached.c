/*
 * cached MODE LEVEL CALLS [WAIT]: three rounds over the numbers below CACHED_NUMBERS
 * (800000) in 8 partitions, kept at LEVEL (memory, disk, both). The function that makes
 * them writes "PARTITION EXECUTOR" to CALLS for each partition. Prints the number and
 * the sum of what is kept, a line a round.
 *
 *     plain      the numbers are kept
 *     wide       their sums by the last three digits are, behind a shuffle
 *     unpersist  as plain, but no longer kept from the second round on
 *     beside     as plain, asked for beside an empty one, two partitions a task
 *     shapes     as plain, with an action in another shape between the rounds
 *     checkpoint the numbers come from lines of the file "numbers", and are written to the
 *                folder LEVEL
 *
 * With WAIT, a name, it waits for WAIT.1 and WAIT.2 to be there after those rounds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "troupe.h"

enum { PARTS = 8, ROUNDS = 3 };

static int note_call(const trp_task *t, const char *file)
{
    char line[64];
    int n = snprintf(line, sizeof(line), "%u %u\n", trp_task_index(t),
                     trp_task_executor(t));
    int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
    int ok = fd >= 0 && write(fd, line, (size_t)n) == n;
    if (fd >= 0)
        close(fd);
    return ok;
}

TRP_FUNCTION(made);
int made(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    for (size_t i = 0; i < in->count; i++) {
        int64_t v = trp_get_i64(in, i), key = v % 1000;
        if (v % 100000 == 0 && !note_call(t, arg))
            return 1;
        if (v % 100000 == 0)
            usleep(50000); /* so that all executors get some */
        if (trp_emit_i64(out, &key, sizeof(key), v) < 0)
            return 1;
    }
    return 0;
}

TRP_FUNCTION(parsed);
int parsed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        char text[32] = "";
        size_t n;
        const void *line = trp_value(in, i, &n);
        memcpy(text, line, n < sizeof(text) ? n : 0);
        if (trp_emit_i64(out, NULL, 0, atoll(text)) < 0)
            return 1;
    }
    return 0;
}

TRP_COMBINE(add);
int add(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    int64_t x, y;
    (void)arg;
    if (na != sizeof(x) || nb != sizeof(y))
        return 1;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return trp_emit_i64(out, NULL, 0, x + y);
}

static int shown(trp_dataset *d, const char *round)
{
    uint64_t n;
    void *sum = NULL;
    size_t size;
    int64_t value = 0;
    if (trp_count(d, &n) < 0 || trp_reduce(d, add, NULL, 0, &sum, &size) < 0)
        return -1;
    if (sum)
        memcpy(&value, sum, sizeof(value));
    free(sum);
    printf("%s: %llu %lld\n", round, (unsigned long long)n, (long long)value);
    fflush(stdout);
    return 0;
}

static void wait_for(const char *name, int round)
{
    char file[300];
    snprintf(file, sizeof(file), "%s.%d", name, round);
    while (access(file, F_OK) != 0)
        usleep(10000);
}

static trp_dataset *in_shape(trp_context *ctx, trp_dataset *d, const char *name,
                             const char *text)
{
    trp_profile *p;
    if (trp_profile_from(ctx, name, text, &p) < 0)
        return NULL;
    return trp_with_resources(d, p);
}

static int rounds(trp_context *ctx, const char *mode, trp_dataset *d, const char *wait)
{
    trp_dataset *other = NULL, *asked = d;
    trp_dataset *none = trp_persist(trp_range(ctx, 0, 0, PARTS), TRP_MEMORY_ONLY);
    if (strcmp(mode, "shapes") == 0)
        other =
            in_shape(ctx, trp_range(ctx, 0, 100, 4), "other", "cores=1 memory=128m");
    for (int i = 1; i <= ROUNDS; i++) {
        char name[32];
        uint64_t n;
        snprintf(name, sizeof(name), "round %d", i);
        if (strcmp(mode, "beside") == 0)
            asked = trp_coalesce(trp_union(d, none), PARTS);
        if (shown(asked, name) < 0)
            return -1;
        if (i == 1 && strcmp(mode, "unpersist") == 0 && trp_unpersist(d) < 0)
            return -1;
        if (other && trp_count(other, &n) < 0)
            return -1;
        if (wait && i < ROUNDS)
            wait_for(wait, i);
    }
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc < 4) {
        fprintf(stderr, "usage: cached MODE LEVEL CALLS [WAIT]\n");
        return 2;
    }
    int written = strcmp(argv[1], "checkpoint") == 0;
    enum trp_storage level = strcmp(argv[2], "memory") == 0 ? TRP_MEMORY_ONLY
                             : strcmp(argv[2], "disk") == 0 ? TRP_DISK_ONLY
                                                            : TRP_MEMORY_AND_DISK;
    const char *numbers = getenv("CACHED_NUMBERS");
    trp_dataset *d = trp_range(ctx, 0, numbers ? atoll(numbers) : 800000, PARTS);
    if (written)
        d = trp_transform(trp_text_files(ctx, "numbers", PARTS), parsed, NULL, 0);
    d = trp_transform(d, made, argv[3], strlen(argv[3]) + 1);
    if (strcmp(argv[1], "wide") == 0)
        d = trp_reduce_by_key(d, TRP_SUM_I64, PARTS);
    d = written ? trp_checkpoint(d, argv[2]) : trp_persist(d, level);
    d = trp_named(d, "kept");
    if (rounds(ctx, argv[1], d, argc > 4 ? argv[4] : NULL) < 0)
        fprintf(stderr, "cached: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
