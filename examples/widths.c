/*
 * Sorts files of records of one width, without anything between them, by their first bytes:
 * binary in, binary out.
 */
#include <troupe.h>

#include "example.h"

struct widths {
    int64_t width, key;
};

TRP_FUNCTION(keyed); /* the first bytes of each value become its key */
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct widths *w = arg;
    (void)t;
    for (size_t i = 0, size; i < in->count; i++) {
        const char *record = trp_value(in, i, &size);
        if (trp_emit(out, record, (size_t)w->key, record, size) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(plain); /* without a key: it is saved as it was */
int plain(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0, size; i < in->count; i++) {
        const void *record = trp_value(in, i, &size);
        if (trp_emit(out, NULL, 0, record, size) < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    struct widths w = {100, 10};
    const struct example_option options[] = {
        {"--width", &w.width, NULL, NULL},
        {"--key",     &w.key, NULL, NULL},
        {0        }
    };
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    int at = example_options(argc, argv, options, 2,
                             "widths [--width BYTES] [--key BYTES] FILES FOLDER");
    if (w.key < 1 || w.key > w.width || w.width > UINT32_MAX) {
        fprintf(stderr,
                "widths: a key has a byte or more, and no more than a record\n");
        trp_finalize(ctx);
        return 2;
    }
    trp_dataset *d = trp_binary_files(ctx, argv[at], (uint32_t)w.width, 8);
    d = trp_sort_by_key(trp_transform(d, keyed, &w, sizeof w), TRP_BYTES, 4);
    if (trp_save_binary(trp_transform(d, plain, NULL, 0), argv[at + 1]) < 0)
        fprintf(stderr, "widths: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
