/* wordcount PATTERN [PARTITIONS]: prints "lines N words N bytes N" of the files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

struct totals {
    uint64_t lines, words, bytes;
};

TRP_FUNCTION(count_words);
int count_words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    struct totals sum = {.lines = in->count};
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const char *line = trp_value(in, i, &n);
        int inside = 0;
        for (size_t k = 0; k < n; k++) {
            int space = strchr(" \t\r\v\f", line[k]) != NULL && line[k] != '\0';
            sum.words += !space && !inside;
            inside = !space;
        }
        sum.bytes += n + 1;
    }
    return trp_emit(out, NULL, 0, &sum, sizeof(sum));
}

TRP_COMBINE(add);
int add(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    (void)arg;
    struct totals x, y;
    if (na != sizeof(x) || nb != sizeof(y))
        return 1;
    memcpy(&x, a, na);
    memcpy(&y, b, nb);
    x.lines += y.lines;
    x.words += y.words;
    x.bytes += y.bytes;
    return trp_emit(out, NULL, 0, &x, sizeof(x));
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc < 2) {
        fprintf(stderr, "usage: wordcount PATTERN [PARTITIONS]\n");
        return 2;
    }
    uint32_t parts = argc > 2 ? (uint32_t)atoi(argv[2]) : 8;
    trp_dataset *d = trp_text_files(ctx, argv[1], parts);
    void *value;
    size_t size;
    if (trp_reduce(trp_transform(d, count_words, NULL, 0), add, NULL, 0, &value,
                   &size) < 0) {
        fprintf(stderr, "wordcount: %s\n", trp_error_text(ctx));
        return trp_finalize(ctx);
    }
    struct totals all = {0};
    if (value)
        memcpy(&all, value, sizeof(all));
    free(value);
    printf("lines %llu words %llu bytes %llu\n", (unsigned long long)all.lines,
           (unsigned long long)all.words, (unsigned long long)all.bytes);
    return trp_finalize(ctx);
}
