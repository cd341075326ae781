/* commits save|checkpoint FOLDER: writes two partitions of 1000 lines "TASK ATTEMPT".
 *
 * HOLD is $COMMITS_HOLD. The first attempt of task 0 that is to give its part its name is
 * held up there: it writes its process and the two names to HOLD.here, and waits for HOLD.go. Task 1 ends when
 * HOLD.end is there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "troupe.h"

static void path_of(char *to, size_t size, const char *end)
{
    const char *hold = getenv("COMMITS_HOLD");
    snprintf(to, size, "%s.%s", hold ? hold : "hold", end);
}

static void await(const char *end)
{
    char path[4096];
    path_of(path, sizeof(path), end);
    while (access(path, F_OK) != 0)
        usleep(5000);
}

static void note(const char *end, const char *text)
{
    char path[4096], hidden[4200];
    path_of(path, sizeof(path), end);
    snprintf(hidden, sizeof(hidden), "%s.new", path);
    FILE *f = fopen(hidden, "w");
    if (f) {
        fprintf(f, "%s\n", text);
        fclose(f);
        renameat(AT_FDCWD, hidden, AT_FDCWD, path);
    }
}

/* In place of the C library's: libtroupe calls this one. */
__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    char path[4096], words[9000];
    const char *name = strrchr(to, '/');
    path_of(path, sizeof(path), "taken");
    if (!name || strcmp(name, "/part-00000") != 0 || mkdir(path, 0700) != 0)
        return renameat(AT_FDCWD, from, AT_FDCWD, to);
    snprintf(words, sizeof(words), "%d %s %s", (int)getpid(), from, to);
    note("here", words);
    await("go");
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

TRP_FUNCTION(lines);
int lines(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char line[64];
    (void)arg;
    int n =
        snprintf(line, sizeof(line), "%u %u", trp_task_index(t), trp_task_attempt(t));
    if (trp_task_index(t) == 1)
        await("end");
    for (size_t i = 0; i < in->count; i++)
        if (trp_emit_text(out, NULL, 0, line) < 0)
            return -1;
    return n > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 2000, 2), lines, NULL, 0);
    if (strcmp(argv[1], "save") == 0) {
        trp_save(d, argv[2]);
    } else {
        trp_rows *rows = NULL;
        d = trp_checkpoint(d, argv[2]);
        if (trp_collect(d, &rows) == 0)
            for (size_t i = 0; i < trp_rows_batch(rows)->count; i++)
                printf("%.*s\n", (int)strlen("0 0"),
                       (const char *)trp_value(trp_rows_batch(rows), i, NULL));
        trp_rows_free(rows);
    }
    return trp_finalize(ctx);
}
