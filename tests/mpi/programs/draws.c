/* draws collect|save|count FOLDER HOLD [marked]: each of four tasks draws a number and deals
 * it out to three. Each of these hands on what it got, as lines "TASK NUMBER": a result that
 * is made of one attempt of each task has four different ones. The first one waits behind
 * what it has read, with HOLD.here, for HOLD.go. With `marked` the numbers are said to be
 * others when they are drawn again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "troupe.h"

enum { DRAWERS = 4, READERS = 3 };

TRP_FUNCTION(draw);
int draw(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    uint64_t number;
    char line[64];
    (void)arg;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return 1;
    snprintf(line, sizeof(line), "%u %llx", trp_task_index(t),
             (unsigned long long)number);
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_text(out, NULL, 0, line) < 0)
            return -1;
    return 0;
}

TRP_FUNCTION(hold);
int hold(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char path[4096];
    int fd = -1;
    if (trp_task_index(t) == 0) {
        snprintf(path, sizeof(path), "%s.here", (const char *)arg);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        snprintf(path, sizeof(path), "%s.go", (const char *)arg);
    }
    while (fd >= 0 && access(path, F_OK) != 0)
        usleep(5000);
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const void *line = trp_value(in, i, &n);
        if (trp_emit(out, NULL, 0, line, n) < 0)
            return -1;
    }
    return 0;
}

static void print(const trp_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        size_t n;
        const char *line = trp_value(b, i, &n);
        printf("%.*s\n", (int)n, line);
    }
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_rows *rows = NULL;
    uint64_t count = 0;
    if (trp_init(&argc, &argv, &ctx) < 0 || argc < 4)
        return 2;
    trp_dataset *d = trp_range(ctx, 0, (int64_t)DRAWERS * READERS, DRAWERS);
    d = trp_transform(d, draw, NULL, 0);
    if (argc > 4)
        d = trp_indeterminate(d);
    d = trp_repartition(d, READERS);
    d = trp_transform(d, hold, argv[3], strlen(argv[3]) + 1);
    if (strcmp(argv[1], "save") == 0)
        trp_save(d, argv[2]);
    else if (strcmp(argv[1], "count") == 0 && trp_count(d, &count) == 0)
        printf("counted %llu\n", (unsigned long long)count);
    else if (trp_collect(d, &rows) == 0)
        print(trp_rows_batch(rows));
    trp_rows_free(rows);
    return trp_finalize(ctx);
}
