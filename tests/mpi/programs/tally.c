/*
 * tally PATTERN DIR [WAIT]: saves "WORD\tCOUNT" for each word (of letters, made small)
 * of the files, by trp_reduce_by_key in 5 partitions, its two stages in profiles of two
 * shapes (with TALLY_PLAIN in the environment: in the default one; with TALLY_MS a map
 * task takes so many ms more; with TALLY_PARTS in so many partitions). With WAIT, a name,
 * the last map task writes its executor to WAIT.here and waits for WAIT.go.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "troupe.h"

enum { MAPS = 7, REDUCES = 5 };

static void wait_for(trp_task *t, const char *name)
{
    char file[300];
    snprintf(file, sizeof(file), "%s.here", name);
    FILE *f = fopen(file, "w");
    if (f) {
        fprintf(f, "%u\n", trp_task_executor(t));
        fclose(f);
    }
    snprintf(file, sizeof(file), "%s.go", name);
    while (access(file, F_OK) != 0 && !trp_task_killed(t))
        usleep(10000);
}

TRP_FUNCTION(split);
int split(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    static const int64_t one = 1;
    const char *ms = getenv("TALLY_MS");
    if (ms)
        usleep((useconds_t)(1000 * atoi(ms)));
    if (arg && trp_task_index(t) == MAPS - 1)
        wait_for(t, arg);
    for (size_t i = 0; i < in->count; i++) {
        char word[256];
        size_t n, at = 0;
        const unsigned char *line = trp_value(in, i, &n);
        for (size_t k = 0; k <= n; k++) {
            if (k < n && line[k] < 128 && isalpha(line[k])) {
                if (at < sizeof(word))
                    word[at++] = (char)tolower(line[k]);
                continue;
            }
            if (at && trp_emit(out, word, at, &one, sizeof(one)) < 0)
                return 1;
            at = 0;
        }
    }
    return 0;
}

TRP_FUNCTION(print);
int print(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        char text[32];
        int64_t count;
        size_t n, nk;
        memcpy(&count, trp_value(in, i, &n), sizeof(count));
        const void *key = trp_key(in, i, &nk);
        int size = snprintf(text, sizeof(text), "%lld", (long long)count);
        if (n != sizeof(count) || trp_emit(out, key, nk, text, (size_t)size) < 0)
            return 1;
    }
    return 0;
}

static trp_dataset *in_shape(trp_context *ctx, trp_dataset *d, const char *name,
                             int cores)
{
    trp_profile *p;
    if (getenv("TALLY_PLAIN"))
        return d;
    trp_profile_new(ctx, name, &p);
    trp_profile_executor(p, "cores", cores);
    trp_profile_executor_text(p, "memory", "256m");
    trp_profile_build(p);
    return trp_with_resources(d, p);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc < 3) {
        fprintf(stderr, "usage: tally PATTERN DIR [WAIT]\n");
        return 2;
    }
    const char *wait = argc > 3 ? argv[3] : NULL;
    trp_dataset *d = trp_text_files(ctx, argv[1], MAPS);
    d = trp_transform(d, split, wait, wait ? strlen(wait) + 1 : 0);
    d = in_shape(ctx, d, "split", 1);
    const char *parts = getenv("TALLY_PARTS");
    d = trp_reduce_by_key(d, TRP_SUM_I64, parts ? (uint32_t)atoi(parts) : REDUCES);
    d = trp_transform(d, print, NULL, 0);
    d = in_shape(ctx, d, "sum", 2);
    if (trp_save(d, argv[2]) < 0)
        fprintf(stderr, "tally: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
