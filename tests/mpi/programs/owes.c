/* owes STEP…: what fails on purpose, and what makes it good again. Ends with 0 whatever
 * trp_finalize returns; `exit` ends without it. Each error is printed.
 *   never     a profile `odd` that no machine has
 *   wrong     a profile `odd` that is impossible
 *   built     a profile `odd` that is fine, and a count in it
 *   saved     trp_save of dataset A into a folder that is there
 *   A, B      trp_count of dataset A, of dataset B
 *   clear     trp_error_clear */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

static trp_context *ctx;

static void told(int rc)
{
    if (rc < 0)
        fprintf(stderr, "owes: %s\n", trp_error_text(ctx));
}

static int odd(int64_t cores, const char *cpus, trp_profile **ret)
{
    int rc = trp_profile_new(ctx, "odd", ret);
    if (rc < 0)
        return rc;
    trp_profile_executor(*ret, "cores", cores);
    trp_profile_task_text(*ret, "cpus", cpus);
    return trp_profile_build(*ret);
}

static void step(const char *name, trp_dataset *a, trp_dataset *b)
{
    trp_profile *p = NULL;
    uint64_t n;
    if (!strcmp(name, "never"))
        told(odd(900000, "1", &p));
    else if (!strcmp(name, "wrong"))
        told(odd(1, "2", &p));
    else if (!strcmp(name, "built") && odd(1, "1", &p) == 0)
        told(trp_count(trp_with_resources(trp_range(ctx, 0, 2, 1), p), &n));
    else if (!strcmp(name, "saved"))
        told(trp_save(a, "."));
    else if (!strcmp(name, "A") || !strcmp(name, "B"))
        told(trp_count(*name == 'A' ? a : b, &n));
    else if (!strcmp(name, "clear"))
        trp_error_clear(ctx);
    else if (!strcmp(name, "exit"))
        exit(0);
    else
        told(-1);
}

int main(int argc, char **argv)
{
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 0;
    trp_dataset *a = trp_range(ctx, 0, 10, 1), *b = trp_range(ctx, 0, 10, 1);
    for (int i = 1; i < argc; i++)
        step(argv[i], a, b);
    trp_finalize(ctx);
    return 0;
}
