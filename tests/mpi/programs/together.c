/* together TASKS [plain|fail]: a barrier stage whose tasks wait for each other and tell
 * each other who they are. Each emits what all said; prints "TASKS tasks said: 0 1 …".
 * With `plain` the stage is no barrier stage; with `fail` task 1 fails its first
 * attempt, so that all run again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

static int gather(trp_task *t, trp_writer *out)
{
    char mine[16], all[1024] = "";
    const trp_batch *said;
    int n = snprintf(mine, sizeof(mine), "%u", trp_task_index(t));
    if (trp_barrier_allgather(t, mine, (size_t)n, &said) < 0)
        return 3;
    for (size_t i = 0; i < said->count; i++) {
        size_t size, at = strlen(all);
        const char *text = trp_value(said, i, &size);
        snprintf(all + at, sizeof(all) - at, " %.*s", (int)size, text);
    }
    return trp_emit(out, NULL, 0, all, strlen(all)) < 0 ? 4 : 0;
}

TRP_FUNCTION(meet);
int meet(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)in;
    if (trp_barrier_wait(t) < 0)
        return 2;
    if (strcmp(arg, "fail") == 0 && trp_task_index(t) == 1) {
        FILE *f = fopen("failed", "wx");
        if (f) {
            fclose(f);
            trp_task_error(t, "not this time");
            return 9;
        }
    }
    return gather(t, out);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 2;
    const char *how = argc > 2 ? argv[2] : "";
    trp_dataset *d = trp_transform(trp_range(ctx, 0, n, n), meet, how, strlen(how) + 1);
    trp_rows *rows;
    if (strcmp(how, "plain") != 0)
        d = trp_barrier(d);
    if (trp_collect(d, &rows) < 0) {
        fprintf(stderr, "together: %s\n", trp_error_text(ctx));
        return trp_finalize(ctx);
    }
    const trp_batch *b = trp_rows_batch(rows);
    size_t size = 0, other;
    const char *first = b->count ? trp_value(b, 0, &size) : "";
    for (size_t i = 1; i < b->count; i++) {
        const char *text = trp_value(b, i, &other);
        if (other != size || memcmp(text, first, size) != 0) {
            fprintf(stderr, "together: task %zu heard something else\n", i);
            trp_finalize(ctx);
            return 1;
        }
    }
    printf("%zu tasks said:%.*s\n", b->count, (int)size, first);
    return trp_finalize(ctx);
}
