#include <ctype.h>
#include <stdio.h>
#include <troupe.h>

TRP_FUNCTION(words); /* lines in, a 1 for each word out; runs on executors */
int words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    for (size_t i = 0, size; i < in->count; i++) {
        const char *line = trp_value(in, i, &size);
        for (size_t k = 0, begin = 0; k <= size; k++)
            if (k == size || !isalpha((unsigned char)line[k])) {
                if (k > begin && trp_emit_i64(out, line + begin, k - begin, 1) < 0)
                    return -1;
                begin = k + 1;
            }
    }
    return (void)t, (void)arg, 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_profile *read, *sum;
    trp_rows *rows = NULL;
    if (trp_init(&argc, &argv, &ctx) < 0) /* an executor never comes back from here */
        return 2;
    trp_profile_from(ctx, "read", "cores=1 memory=200m", &read);
    trp_profile_from(ctx, "sum", "cores=2 memory=400m / cpus=1", &sum);
    trp_dataset *d = trp_text_files(ctx, argc > 1 ? argv[1] : "*.txt", 16);
    d = trp_with_resources(trp_transform(d, words, NULL, 0), read);
    d = trp_with_resources(trp_reduce_by_key(d, TRP_SUM_I64, 8), sum);
    if (trp_collect(trp_named(d, "sum"), &rows) < 0)
        fprintf(stderr, "wordcount: %s\n", trp_error_text(ctx));
    const trp_batch *b = rows ? trp_rows_batch(rows) : NULL;
    for (size_t i = 0, n; b && i < b->count; i++) {
        const char *word = trp_key(b, i, &n);
        printf("%.*s %lld\n", (int)n, word, (long long)trp_get_i64(b, i));
    }
    return trp_finalize(ctx);
}
