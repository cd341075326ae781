/*
 * How many words the licences have that are on every Debian machine.
 *
 *     troupe run -- ./first
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <troupe.h>

/* Runs on executors: a batch of lines in, the number of their words out. */
TRP_FUNCTION(count_words);
int count_words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    int64_t words = 0;
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t size;
        const unsigned char *line = trp_value(in, i, &size);
        for (size_t k = 0; k < size; k++)
            words += !isspace(line[k]) && (k == 0 || isspace(line[k - 1]));
    }
    return trp_emit(out, NULL, 0, &words, sizeof(words));
}

/* Two numbers become one: in each task, then over tasks on the driver. */
TRP_COMBINE(add);
int add(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    int64_t x, y;
    (void)na, (void)nb, (void)arg;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    x += y;
    return trp_emit(out, NULL, 0, &x, sizeof(x));
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_profile *shape;
    void *words = NULL;
    size_t size;
    if (trp_init(&argc, &argv, &ctx) < 0) /* an executor never comes back from here */
        return 2;

    trp_profile_new(ctx, "read", &shape);
    trp_profile_executor(shape, "cores", 2);
    trp_profile_executor_text(shape, "memory", "256m");
    trp_profile_task(shape, "cpus", 1);
    if (trp_profile_build(shape) == 0) {
        trp_dataset *d = trp_text_files(ctx, "/usr/share/common-licenses/*", 8);
        d = trp_with_resources(trp_transform(d, count_words, NULL, 0), shape);
        trp_reduce(d, add, NULL, 0, &words, &size);
    }
    if (words)
        printf("%lld words\n", (long long)trp_as_i64(words, size));
    else
        fprintf(stderr, "first: %s\n", trp_error_text(ctx));
    free(words);
    return trp_finalize(ctx);
}
