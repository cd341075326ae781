/*
 * Sorts records that it makes (sort_records.h), or looks whether that was done right
 * (sort_check.h).
 *
 *     troupe run -- build/examples/sort --size 1000000 sorted
 *     troupe run -- build/examples/sort --size 1000000 --verify sorted
 */
#include "sort_check.h"

TRP_FUNCTION(make); /* numbers become records; arg: the seed */
int make(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const uint64_t *seed = arg;
    char key[KEY], value[VALUE];
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        make_record(*seed, (uint64_t)trp_get_i64(in, i), key, value);
        if (trp_emit(out, key, sizeof(key), value, sizeof(value)) < 0)
            return -1;
    }
    return 0;
}

static bool sort(trp_context *ctx, const char *dir, uint64_t seed, int64_t size,
                 uint32_t parts)
{
    trp_profile *small, *large;
    trp_profile_from(ctx, "make", "cores=2 memory=300m", &small);
    trp_profile_from(ctx, "sort", "cores=1 memory=400m", &large);
    trp_dataset *d = trp_range(ctx, 0, size, parts);
    d = trp_transform(d, make, &seed, sizeof(seed));
    d = trp_named(trp_with_resources(d, small), "make");
    d = trp_sort_by_key(d, TRP_BYTES, parts);
    d = trp_named(trp_with_resources(d, large), "sort");
    if (trp_save(d, dir) == 0)
        return true;
    fprintf(stderr, "sort: %s\n", trp_error_text(ctx));
    return false;
}

int main(int argc, char **argv)
{
    int64_t size = 100000, seed = 1, parts = 8;
    bool verify = false;
    const struct example_option options[] = {
        {"--size",       &size,  NULL, NULL   },
        {"--seed",       &seed,  NULL, NULL   },
        {"--partitions", &parts, NULL, NULL   },
        {"--verify",     NULL,   NULL, &verify},
        {NULL,           NULL,   NULL, NULL   }
    };
    const char *usage = "sort [--size N] [--seed N] [--partitions N] [--verify] FOLDER";
    const char *dir = argv[example_options(argc, argv, options, 1, usage)];
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    bool good =
        (verify ? check_sorted : sort)(ctx, dir, (uint64_t)seed, size, (uint32_t)parts);
    int status = trp_finalize(ctx);
    return status ? status : !good;
}
