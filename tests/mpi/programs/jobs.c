/*
 * jobs WHAT…: several jobs at once. Tasks that wait do so for a file that the test makes.
 *
 *   overlap        two jobs whose tasks wait for each other's, while main sleeps
 *   shares A B     counts in pools A and B, 24 tasks each, which take tickets (the file
 *                  `started`) and run until theirs was called (called.N, or all)
 *   cancel         two jobs over one sum, and one of them is cancelled while it is made
 *   inputs         the same; what is summed comes with the launches of the tasks
 *   stage          two jobs that need the stage "words", and one that does not
 *   fails          a job fails while another goes on
 *   shared         two jobs need one sum, and it fails
 *   left           jobs that nobody waits for: one fails, one runs
 *   many N         N jobs at once
 *   pool NAME      a count in that pool
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "troupe.h"

static void make(const char *name)
{
    FILE *f = fopen(name, "w");
    if (f)
        fclose(f);
}

static int wait_for(trp_task *t, const char *name)
{
    while (access(name, F_OK) != 0) {
        if (trp_task_killed(t))
            return 1;
        usleep(5000);
    }
    return 0;
}

/* arg "HERE GO": makes HERE, then waits for GO. */
TRP_FUNCTION(meets);
int meets(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char here[100], go[100];
    if (sscanf(arg, "%99s %99s", here, go) != 2)
        return 2;
    make(here);
    int64_t v = trp_get_i64(in, 0);
    return wait_for(t, go) || trp_emit_i64(out, NULL, 0, v) < 0;
}

TRP_FUNCTION(ticket);
int ticket(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char line[32], name[32];
    (void)in, (void)out;
    int fd = open("started", O_RDWR | O_APPEND | O_CREAT, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        return 2;
    int n = snprintf(line, sizeof(line), "%s\n", (const char *)arg);
    off_t lines = lseek(fd, 0, SEEK_END) / n; /* names have one length */
    if (write(fd, line, (size_t)n) != n)
        return 2;
    close(fd);
    snprintf(name, sizeof(name), "called.%jd", (intmax_t)lines + 1);
    while (access(name, F_OK) != 0 && access("all", F_OK) != 0) {
        if (trp_task_killed(t))
            return 1;
        usleep(5000);
    }
    return 0;
}

/* Partition 3 of its dataset waits for a file. */
TRP_FUNCTION(keyed);
int keyed(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    if (arg && trp_task_index(t) == 3) {
        make("summing");
        if (wait_for(t, arg))
            return 1;
    }
    for (size_t i = 0; i < in->count; i++) {
        int64_t v = trp_get_i64(in, i), k = v % 10;
        if (trp_emit_i64(out, &k, sizeof(k), v) < 0)
            return 1;
    }
    return 0;
}

TRP_FUNCTION(breaks);
int breaks(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)in, (void)out;
    if (arg && wait_for(t, arg))
        return 1;
    trp_task_error(t, "no good");
    return 9;
}

TRP_COMBINE(add);
int add(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    int64_t x, y;
    (void)na, (void)nb, (void)arg;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return trp_emit_i64(out, NULL, 0, x + y);
}

/* Says how a job ended. */
static int ends(trp_context *ctx, const char *what, trp_job *j)
{
    const void *result;
    size_t size;
    int64_t v = -1;
    int rc = trp_job_wait(j, &result, &size);
    if (rc == 0 && result && size == sizeof(v))
        memcpy(&v, result, sizeof(v));
    printf("%s: %d %" PRId64 "%s%s\n", what, rc, v, rc ? " " : "",
           rc ? trp_error_text(ctx) : "");
    fflush(stdout);
    if (trp_job_wait(j, NULL, NULL) != rc)
        printf("the second time it is another\n");
    return rc;
}

static trp_dataset *sums(trp_context *ctx, const char *file)
{
    trp_dataset *d = trp_range(ctx, 0, 1000, 4);
    d = trp_transform(d, keyed, file, file ? strlen(file) + 1 : 0);
    return trp_reduce_by_key(trp_named(d, "words"), TRP_SUM_I64, 2);
}

static void until(const char *name)
{
    while (access(name, F_OK) != 0)
        usleep(5000);
}

static void overlap(trp_context *ctx)
{
    static const char one[] = "a.here b.here", two[] = "b.here a.here";
    char arg[sizeof(one)] = "";
    trp_dataset *d = trp_range(ctx, 0, 2, 2);
    usleep(300000); /* nothing is due: the library sleeps for an hour */
    memcpy(arg, one, sizeof(one));
    trp_job *a = trp_count_async(trp_transform(d, meets, arg, sizeof(arg)), NULL);
    memcpy(arg, two, sizeof(two));
    trp_job *b =
        trp_reduce_async(trp_transform(d, meets, arg, sizeof(arg)), add, NULL, 0, NULL);
    memset(arg, 'x', sizeof(arg));
    until("b.here"); /* nobody waits in the library */
    sleep(1);
    printf("begun\n");
    ends(ctx, "b", b);
    ends(ctx, "a", a);
    trp_job *c = trp_collect_async(trp_range(ctx, 5, 9, 3), NULL);
    const void *rows = NULL;
    size_t n = 0;
    trp_job_wait(c, &rows, &n);
    printf("c: %zu, the last is %" PRId64 "\n", n,
           rows ? trp_get_i64((const trp_batch *)rows, n - 1) : -1);
    ends(ctx, "d", trp_save_async(trp_range(ctx, 0, 3, 2), "saved", NULL));
}

static void cancel(trp_context *ctx)
{
    trp_dataset *d = sums(ctx, "sum.go");
    trp_job *a = trp_count_async(d, NULL), *b = trp_collect_async(d, NULL);
    until("summing");
    printf("cancel: %d %d\n", trp_job_cancel(a), trp_job_cancel(a));
    ends(ctx, "a", a);
    trp_job_free(a);
    make("sum.go");
    ends(ctx, "b", b);
    printf("cancel: %d\n", trp_job_cancel(b));
    uint64_t n = 0;
    trp_count(d, &n);
    printf("n: %" PRIu64 "\n", n);
}

static void inputs(trp_context *ctx)
{
    static int64_t values[4000];
    for (int64_t i = 0; i < 4000; i++)
        values[i] = i;
    trp_dataset *d = trp_array(ctx, values, 4000, sizeof(*values), 400);
    d = trp_transform(d, keyed, "sum.go", 7);
    d = trp_reduce_by_key(trp_named(d, "words"), TRP_SUM_I64, 2);
    trp_job *a = trp_count_async(d, NULL), *b = trp_reduce_async(d, add, NULL, 0, NULL);
    until("summing");
    trp_job_cancel(a);
    ends(ctx, "a", a);
    trp_job_free(a);
    make("sum.go");
    ends(ctx, "b", b);
}

static void stage(trp_context *ctx)
{
    trp_dataset *d = sums(ctx, "sum.go");
    trp_job *a = trp_count_async(d, NULL), *b = trp_save_async(d, "sums", NULL);
    trp_job *c =
        trp_foreach_async(trp_range(ctx, 0, 1, 1), meets, "c.here c.go", 12, NULL);
    until("summing");
    printf("none: %d\n", trp_cancel_stage(ctx, "nothing"));
    printf("words: %d\n", trp_cancel_stage(ctx, "words"));
    ends(ctx, "a", a);
    ends(ctx, "b", b);
    make("c.go");
    ends(ctx, "c", c);
    printf("words: %d\n", trp_cancel_stage(ctx, "words"));
    trp_error_clear(ctx); /* nothing of that name is left, which was tried */
}

static void fails(trp_context *ctx)
{
    trp_dataset *bad = trp_named(trp_range(ctx, 0, 4, 2), "odd");
    trp_job *a =
        trp_foreach_async(trp_range(ctx, 0, 1, 1), meets, "a.here a.go", 12, NULL);
    trp_job *b = trp_foreach_async(bad, breaks, NULL, 0, NULL);
    ends(ctx, "b", b);
    make("a.go");
    ends(ctx, "a", a);
}

static void shared(trp_context *ctx)
{
    trp_dataset *d = trp_transform(trp_range(ctx, 0, 8, 2), breaks, "sum.go", 7);
    d = trp_reduce_by_key(trp_named(d, "words"), TRP_SUM_I64, 2);
    trp_job *a = trp_count_async(trp_named(d, "first"), NULL);
    trp_job *b = trp_collect_async(trp_named(d, "second"), NULL);
    make("sum.go");
    ends(ctx, "a", a);
    ends(ctx, "b", b);
}

static void left(trp_context *ctx)
{
    trp_foreach_async(trp_range(ctx, 0, 4, 2), breaks, NULL, 0, NULL);
    trp_foreach_async(trp_range(ctx, 0, 1, 1), meets, "a.here a.go", 12, NULL);
    until("a.here"); /* there is one slot, so the first job has failed by then */
}

static void many(trp_context *ctx, int n)
{
    trp_job **jobs = calloc((size_t)n, sizeof(*jobs));
    uint64_t wrong = 0;
    trp_dataset *d = sums(ctx, NULL);
    for (int i = 0; jobs && i < n; i++)
        jobs[i] = trp_count_async(i % 2 ? d : trp_range(ctx, 0, i, 3), NULL);
    for (int i = 0; jobs && i < n; i++) {
        const void *result = NULL;
        uint64_t count = 0;
        if (trp_job_wait(jobs[i], &result, NULL) == 0)
            memcpy(&count, result, sizeof(count));
        wrong += count != (i % 2 ? 10 : (uint64_t)i);
        trp_job_free(jobs[i]);
    }
    free(jobs);
    printf("wrong: %" PRIu64 "\n", wrong);
}

static void shares(trp_context *ctx, const char *a, const char *b)
{
    trp_dataset *d = trp_range(ctx, 0, 24, 24);
    trp_job *ja = trp_foreach_async(d, ticket, "a", 2, a);
    trp_job *jb = trp_foreach_async(d, ticket, "b", 2, b);
    ends(ctx, "a", ja);
    ends(ctx, "b", jb);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "overlap") == 0)
        overlap(ctx);
    else if (strcmp(what, "cancel") == 0)
        cancel(ctx);
    else if (strcmp(what, "inputs") == 0)
        inputs(ctx);
    else if (strcmp(what, "stage") == 0)
        stage(ctx);
    else if (strcmp(what, "fails") == 0)
        fails(ctx);
    else if (strcmp(what, "shared") == 0)
        shared(ctx);
    else if (strcmp(what, "left") == 0)
        left(ctx);
    else if (strcmp(what, "many") == 0 && argc > 2)
        many(ctx, atoi(argv[2]));
    else if (strcmp(what, "shares") == 0 && argc > 3)
        shares(ctx, argv[2], argv[3]);
    else if (strcmp(what, "pool") == 0 && argc > 2)
        ends(ctx, "a", trp_count_async(trp_range(ctx, 0, 5, 2), argv[2]));
    return trp_finalize(ctx);
}
