/* sent TASKS BYTES: each task is sent BYTES bytes of its own and sends them
 * back; all of them are compared. Prints "N bytes came back", and how much memory this
 * process had at its most. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "troupe.h"

TRP_FUNCTION(back);
int back(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const void *value = trp_value(in, i, &n);
        if (trp_emit(out, NULL, 0, value, n) < 0)
            return -1;
    }
    return 0;
}

/* No two tasks have the same bytes. */
static void fill(uint8_t *bytes, uint32_t tasks, uint32_t each)
{
    uint32_t x = 1;
    for (size_t i = 0; i < (size_t)tasks * each; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(x >> 24);
    }
}

static unsigned long peak_kib(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %lu", &kib) != 1)
        ;
    if (f)
        fclose(f);
    return kib;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_rows *rows;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    uint32_t tasks = argc > 1 ? (uint32_t)atoi(argv[1]) : 100;
    uint32_t each = argc > 2 ? (uint32_t)atoi(argv[2]) : 1000;
    uint8_t *bytes = malloc((size_t)tasks * each);
    if (!bytes)
        return 2;
    fill(bytes, tasks, each);
    trp_dataset *d = trp_array(ctx, bytes, tasks, each, tasks);
    if (trp_collect(trp_transform(d, back, NULL, 0), &rows) < 0) {
        fprintf(stderr, "sent: %s\n", trp_error_text(ctx));
        free(bytes);
        return trp_finalize(ctx);
    }
    const trp_batch *b = trp_rows_batch(rows);
    bool same = b->count == tasks && b->value_width == each &&
                memcmp(b->values, bytes, (size_t)tasks * each) == 0;
    if (same)
        printf("%zu bytes came back, %lu KiB at most\n", (size_t)tasks * each,
               peak_kib());
    else
        fprintf(stderr, "sent: other bytes came back\n");
    free(bytes);
    int status = trp_finalize(ctx);
    return same ? status : 1;
}
