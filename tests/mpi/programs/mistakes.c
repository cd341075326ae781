/* mistakes WHAT: a program that is wrong in a way that no retry mends. `map`: the
 * function of task 1 emits two records for one; `filter`: nothing for one; `key`: some
 * records with a key and some without; `combine`: no value; `barrier`: as map, in a
 * barrier stage. Adds a line to ./attempts for each attempt of task 1. */
#include <stdio.h>
#include <string.h>

#include "troupe.h"

TRP_FUNCTION(wrong);
int wrong(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const char *what = arg;
    size_t times = trp_task_index(t) != 1 ? 1 : strcmp(what, "filter") == 0 ? 0 : 2;
    int32_t keep = 1;
    FILE *f = times != 1 ? fopen("attempts", "a") : NULL;
    if (f) {
        fprintf(f, "%u\n", trp_task_attempt(t));
        fclose(f);
    }
    for (size_t i = 0; i < in->count; i++)
        for (size_t k = 0; k < times; k++) {
            const char *key = k && strcmp(what, "key") == 0 ? "k" : NULL;
            if (trp_emit(out, key, key ? 1 : 0, &keep, sizeof(keep)) < 0)
                return -1;
        }
    return 0;
}

TRP_COMBINE(nothing);
int nothing(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
            const void *arg)
{
    (void)a, (void)na, (void)b, (void)nb, (void)out, (void)arg;
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    const char *what = argc > 1 ? argv[1] : "map";
    trp_dataset *d = trp_range(ctx, 0, 20, 4);
    uint64_t n;
    void *value;
    size_t size;
    int rc;
    if (strcmp(what, "barrier") == 0)
        d = trp_barrier(d);
    if (strcmp(what, "combine") == 0)
        rc = trp_reduce(d, nothing, NULL, 0, &value, &size);
    else if (strcmp(what, "filter") == 0)
        rc = trp_count(trp_filter(d, wrong, what, strlen(what) + 1), &n);
    else if (strcmp(what, "key") == 0)
        rc = trp_count(trp_transform(d, wrong, what, strlen(what) + 1), &n);
    else
        rc = trp_count(trp_map(d, wrong, what, strlen(what) + 1), &n);
    if (rc < 0)
        fprintf(stderr, "mistakes: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
