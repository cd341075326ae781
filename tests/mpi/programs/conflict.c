/* conflict: two explicit profiles in one stage. Prints "count N" when
 * scheduler.resource.profileMergeConflicts allows it, else the error. */
#include <stdio.h>

#include "troupe.h"

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_profile *p, *q;
    trp_profile_new(ctx, "one", &p);
    trp_profile_executor(p, "cores", 1);
    trp_profile_executor_text(p, "memory", "512m");
    trp_profile_new(ctx, "other", &q);
    trp_profile_executor(q, "cores", 2);
    trp_profile_executor_text(q, "memory", "256m");
    if (trp_profile_build(p) < 0 || trp_profile_build(q) < 0) {
        fprintf(stderr, "conflict: %s\n", trp_error_text(ctx));
        trp_finalize(ctx);
        return 3;
    }
    trp_dataset *a = trp_with_resources(trp_range(ctx, 0, 50, 2), p);
    trp_dataset *b = trp_with_resources(trp_range(ctx, 50, 100, 2), q);
    uint64_t n;
    if (trp_count(trp_union(a, b), &n) < 0)
        fprintf(stderr, "conflict: %s\n", trp_error_text(ctx));
    else
        printf("count %llu\n", (unsigned long long)n);
    return trp_finalize(ctx);
}
