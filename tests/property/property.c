/*
 * The property tests' program.
 *
 *     property [options] SUBJECT [N [FIRST]]   N random streams, seeds FIRST .. (TAP)
 *     property [options] SUBJECT =SEED         the stream of one seed
 *     property [options] FILE…                 streams that were written down (TAP)
 *
 *     --explain   tells what happens, step by step
 *     --full      does not make a failing stream shorter
 *     --write     only writes the stream of =SEED to stdout
 *     --jobs N    so many processes at once
 *     --break K   pretends that three steps of kind K in a stream break an invariant
 *     --tap       (accepted: TAP is what is printed anyway)
 *
 * Exit status 0: every invariant held; 1: one did not; 2: wrong call.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner.h"

enum { BATCH = 500 }; /* streams a child */

static struct {
    bool explain, full, write;
    uint32_t jobs;
} options = {.jobs = 1};

static void usage(void)
{
    fprintf(stderr, "usage: property [--explain] [--full] [--write] [--jobs N] "
                    "engine|data|reserve|oracle [N [FIRST] | =SEED]\n"
                    "       property [--explain] FILE...\n");
    exit(2);
}

static void print_as_comment(FILE *f)
{
    char line[2048];
    rewind(f);
    while (fgets(line, sizeof(line), f))
        printf("# %s", line);
}

/* Prints what broke, the short stream and how to run it again. */
static void report_failure(const struct stream *stream, const struct verdict *v,
                           const char *again)
{
    static struct stream s;
    struct verdict last = *v;
    char name[] = "/tmp/troupe-property-XXXXXX";
    s = *stream;
    printf("# broken: %s\n# %s\n# at step %u of %u; again: %s\n", v->broken, v->text,
           v->at, s.nsteps, again);
    if (!options.full) {
        uint32_t tries = reduce_stream(&s, v);
        run_stream(&s, NULL, false, &last);
        printf("# reduced to %u steps (%u tries): %s\n", s.nsteps, tries, last.text);
    }
    int fd = mkstemp(name);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w+"), *story = tmpfile();
    if (!f || !story)
        return;
    stream_write(&s, f);
    printf("# the stream, also in %s (property --explain %s):\n", name, name);
    print_as_comment(f);
    fclose(f);
    run_stream(&s, story, true, &last);
    printf("# what happens in it:\n");
    print_as_comment(story);
    fclose(story);
}

/* ---- many seeds ---- */

static bool run_part(const struct subject *subject, uint64_t first, uint64_t n)
{
    static struct stream s;
    char again[128];
    struct verdict v;
    uint64_t seed;
    for (uint64_t done = 0; done < n; done += BATCH) {
        uint64_t batch = n - done < BATCH ? n - done : BATCH;
        memset(&v, 0, sizeof(v));
        run_seeds(subject, first + done, batch, &v, &seed);
        if (!v.broken[0])
            continue;
        snprintf(again, sizeof(again), "property %s =%llu", subject->name,
                 (unsigned long long)seed);
        printf("# seed %llu\n", (unsigned long long)seed);
        stream_make(&s, subject, seed);
        report_failure(&s, &v, again);
        return false;
    }
    return true;
}

static bool run_many(const struct subject *subject, uint64_t first, uint64_t n)
{
    bool held = true;
    uint64_t share = (n + options.jobs - 1) / options.jobs;
    printf("# %llu streams of seeds %llu to %llu\n", (unsigned long long)n,
           (unsigned long long)first, (unsigned long long)(first + n - 1));
    if (options.jobs == 1)
        return run_part(subject, first, n);
    for (uint64_t at = 0; at < n; at += share) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0)
            return false;
        if (pid == 0) {
            bool ok = run_part(subject, first + at, n - at < share ? n - at : share);
            fflush(stdout);
            _exit(ok ? 0 : 1);
        }
    }
    for (int status; wait(&status) > 0;)
        held &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return held;
}

static int of_subject(const struct subject *subject, int argc, char **argv)
{
    static struct stream s;
    struct verdict v;
    if (argc > 0 && argv[0][0] == '=') {
        stream_make(&s, subject, strtoull(argv[0] + 1, NULL, 0));
        if (options.write) {
            stream_write(&s, stdout);
            return 0;
        }
        run_stream(&s, options.explain ? stdout : NULL, false, &v);
        if (v.broken[0] && !options.explain)
            report_failure(&s, &v, "the same command");
        printf("1..1\n%s 1 - %s\n", v.broken[0] ? "not ok" : "ok",
               v.broken[0] ? v.broken : "every invariant holds");
        return v.broken[0] ? 1 : 0;
    }
    uint64_t n = argc > 0 ? strtoull(argv[0], NULL, 0) : 1000;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    bool ok = run_many(subject, first, n);
    printf("1..1\n%s 1 - %s keeps every invariant in %llu random streams\n",
           ok ? "ok" : "not ok", subject->name, (unsigned long long)n);
    return ok ? 0 : 1;
}

/* ---- files ---- */

static int of_files(int argc, char **argv)
{
    static struct stream s;
    int bad = 0;
    printf("1..%d\n", argc);
    for (int i = 0; i < argc; i++) {
        struct verdict v;
        const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
        if (stream_read(&s, argv[i]) < 0)
            return 2;
        run_stream(&s, options.explain ? stdout : NULL, false, &v);
        if (v.broken[0])
            printf("# broken: %s\n# %s\n", v.broken, v.text);
        printf("%s %d - %s\n", v.broken[0] ? "not ok" : "ok", i + 1, name);
        bad += v.broken[0] != '\0';
    }
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (argc--, argv++; argc && strncmp(argv[0], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[0], "--explain") == 0)
            options.explain = true;
        else if (strcmp(argv[0], "--full") == 0)
            options.full = true;
        else if (strcmp(argv[0], "--write") == 0)
            options.write = true;
        else if (strcmp(argv[0], "--jobs") == 0 && argc > 1) {
            options.jobs = (uint32_t)atoi(argv[1]);
            argc--, argv++;
        } else if (strcmp(argv[0], "--break") == 0 && argc > 1) {
            runner_break = argv[1];
            argc--, argv++;
        } else if (strcmp(argv[0], "--tap") != 0)
            usage();
    }
    if (argc < 1 || options.jobs < 1)
        usage();
    const struct subject *subject = subject_by_name(argv[0]);
    return subject ? of_subject(subject, argc - 1, argv + 1) : of_files(argc, argv);
}
