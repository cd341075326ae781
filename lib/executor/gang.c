/*
 * Gangs: one attempt whose ranks are started by mpirun.
 *
 * mpirun gets a small environment and a program of ours, troupe-rank. What the ranks
 * are to run (arguments, the whole environment of the task, folder, logs) lies in a
 * file, 0600, that only its path is told of: mpirun copies environments and arguments
 * about, into its own messages and through its own parsing, and a megabyte of them is
 * more than it takes. troupe-rank opens the rank's logs, adds what mpirun set for MPI,
 * and becomes the command, so that its exit status is mpirun's to see.
 *
 * Two files in the gang's folder tell what an exit status cannot: "started" (a rank
 * came that far; without it mpirun itself failed, which is the platform's fault) and
 * "failed" (why a rank could not become the command).
 *
 * mpirun's own files go to the gang's folder too, so that nothing is left in /tmp when
 * it has to be killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "executor/spawner_internal.h"

enum { SPEC_MAX = 64 << 20 };

static void folder_name(const struct trp_keeper *k, const struct trp_running *r,
                        char *buf, size_t size)
{
    snprintf(buf, size, "g%u", (unsigned)(r - k->running));
}

static int write_file(const char *path, const struct trp_buf *b)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    size_t done = 0;
    while (done < b->size) {
        ssize_t n = write(fd, b->data + done, b->size - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return close(fd) == 0 && done == b->size ? 0 : -1;
}

static void put_list(struct trp_buf *b, const char *const *list)
{
    uint32_t n = 0;
    while (list[n])
        n++;
    trp_put_u32(b, n);
    for (uint32_t i = 0; i < n; i++)
        trp_put_text(b, list[i]);
}

static int write_spec(const struct trp_running *r, const char *path,
                      const char *log_prefix, const char *const *env)
{
    struct trp_buf b = {0};
    const struct trp_command *c = &r->stage->command;
    trp_put_text(&b, log_prefix);
    trp_put_text(&b, c->cwd);
    trp_put_u32(&b, c->nargv);
    for (uint32_t i = 0; i < c->nargv; i++)
        trp_put_text(&b, c->argv[i]);
    put_list(&b, env);
    put_list(&b, (const char *const *)(uintptr_t)r->stage->program);
    int result = b.failed || write_file(path, &b) != 0 ? TRP_ESYSTEM : TRP_OK;
    trp_buf_free(&b);
    return result;
}

/* What mpirun is given of a task's environment: to be found, to find its libraries, to
 * be allowed to run, to be known as ours. */
static bool for_mpirun(const char *entry)
{
    static const char *const names[] = {
        "PATH=",
        "HOME=",
        "USER=",
        "LOGNAME=",
        "SHELL=",
        "LANG=",
        "LC_ALL=",
        "LD_LIBRARY_PATH=",
        "OPAL_PREFIX=",
        "OMPI_ALLOW_RUN_AS_ROOT=",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=",
        "TROUPE_TOKEN=",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* The strings lie one behind the other in g->text: begin, then four that follow. */
static void fill_argv(struct trp_gang_start *g, const char *ranks, const char *program,
                      const char *spec)
{
    const char *const all[] = {
        "mpirun", "-np",  ranks,    "--oversubscribe", "--bind-to", "none",
        "--mca",  "ras",  "^slurm", "--mca",           "plm",       "isolated",
        program,  "gang", spec,
    };
    _Static_assert(sizeof all <= sizeof g->argv - sizeof g->argv[0], "room for NULL");
    memcpy(g->argv, all, sizeof all);
}

static void fill_env(struct trp_gang_start *g, const char *const *env,
                     const char *tmpdir)
{
    enum { ROOM = sizeof g->env / sizeof g->env[0] };
    size_t n = 0;
    g->env[n++] = tmpdir;
    if (geteuid() == 0) {
        g->env[n++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
        g->env[n++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    }
    for (size_t i = 0; env[i] && n + 1 < ROOM; i++)
        if (for_mpirun(env[i]))
            g->env[n++] = env[i];
}

int trp_gang_prepare(struct trp_keeper *k, const struct trp_running *r, uint32_t ranks,
                     const char *program, const char *log_prefix,
                     const char *const *env, struct trp_gang_start *ret, trp_error *err)
{
    char name[32], text[3][4300];
    *ret = (struct trp_gang_start){0};
    folder_name(k, r, name, sizeof name);
    snprintf(text[0], sizeof text[0], "%u", ranks);
    snprintf(text[1], sizeof text[1], "%s/%s/spec", k->scratch_path, name);
    snprintf(text[2], sizeof text[2], "TMPDIR=%s/%s", k->scratch_path, name);
    size_t budget = SIZE_MAX;
    if (trp_tree_remove(k->scratch, name, &budget) != TRP_OK ||
        mkdirat(k->scratch, name, 0700) != 0 ||
        write_spec(r, text[1], log_prefix, env) != TRP_OK)
        return trp_error_set(err, TRP_ESYSTEM, "cannot write %s: %s", text[1],
                             strerror(errno));
    const char *at[4];
    size_t offset[4];
    for (int i = 0; i < 4; i++) {
        const char *s = i < 3 ? text[i] : program;
        offset[i] = ret->text.size;
        trp_put_raw(&ret->text, s, strlen(s) + 1);
    }
    if (ret->text.failed)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (int i = 0; i < 4; i++)
        at[i] = (const char *)ret->text.data + offset[i];
    fill_argv(ret, at[0], at[3], at[1]);
    fill_env(ret, env, at[2]);
    return TRP_OK;
}

void trp_gang_start_free(struct trp_gang_start *g)
{
    trp_buf_free(&g->text);
}

/* Reads a small file of the gang's folder; its length, or -1. */
static ssize_t read_note(const struct trp_keeper *k, const char *folder,
                         const char *note, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, note);
    int fd = openat(k->scratch, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

static void set_text(struct trp_end *end, uint8_t status, char *text)
{
    end->status = status;
    end->code = 0;
    end->extra = (const uint8_t *)text;
    end->extra_size = (uint32_t)strlen(text);
}

void trp_gang_finish(struct trp_keeper *k, const struct trp_running *r,
                     struct trp_end *end, char *text, size_t size)
{
    char name[32], note[8];
    folder_name(k, r, name, sizeof name);
    bool failed = end && end->status == TRP_END_EXIT;
    if (failed && read_note(k, name, "failed", text, size) > 0) {
        set_text(end, TRP_END_START, text);
    } else if (failed && read_note(k, name, "started", note, sizeof note) < 0) {
        snprintf(text, size,
                 "mpirun ended with exit status %d before any rank was started",
                 end->code);
        set_text(end, TRP_END_PLATFORM, text);
    } else if (failed && end->code > 128 && end->code < 128 + 32) {
        end->status = TRP_END_SIGNAL; /* that is how mpirun tells a rank's signal */
        end->code -= 128;
    }
    size_t budget = SIZE_MAX;
    trp_tree_remove(k->scratch, name, &budget);
}

/* ---- a rank ---------------------------------------------------------------------- */

struct rank {
    char *folder; /* of the specification */
    char *log_prefix, *cwd;
    char **argv, **env, **program;
};

/* Leaves the reason for the spawner; the first rank that fails tells. */
static int give_up(const struct rank *r, const char *what, const char *which)
{
    struct trp_buf b = {0};
    char path[4400], text[TRP_ERROR_TEXT];
    int n =
        snprintf(text, sizeof text, "cannot %s %s: %s", what, which, strerror(errno));
    trp_put_raw(&b, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
    snprintf(path, sizeof path, "%s/failed", r->folder);
    if (write_file(path, &b) != 0 && errno != EEXIST)
        fprintf(stderr, "troupe-rank: %s\n", text);
    trp_buf_free(&b);
    return 127;
}

static char **get_list(struct trp_view *v, uint32_t spare)
{
    uint32_t n = trp_get_count(v, 4);
    char **list = calloc((size_t)n + spare + 1, sizeof *list);
    for (uint32_t i = 0; list && i < n; i++)
        list[i] = trp_get_text(v);
    return list;
}

static bool read_spec(const char *path, struct trp_buf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;
    if (fd < 0)
        return false;
    while (n > 0 && b->size < SPEC_MAX) {
        uint8_t *to = trp_buf_reserve(b, 65536);
        n = to ? read(fd, to, 65536) : -1;
        b->size -= to ? 65536 - (size_t)(n > 0 ? n : 0) : 0;
    }
    close(fd);
    return n == 0;
}

static bool is_mpi(const char *entry)
{
    return strncmp(entry, "OMPI_", 5) == 0 || strncmp(entry, "PMIX_", 5) == 0 ||
           strncmp(entry, "PMI_", 4) == 0;
}

/* Puts what mpirun set for this rank in the place of what the task had of it. */
static bool add_mpi(struct rank *r, const char *rank, const char *ranks)
{
    size_t n = 0;
    for (size_t i = 0; r->env[i]; i++)
        if (!is_mpi(r->env[i]))
            r->env[n++] = r->env[i];
    for (char **e = environ; *e; e++)
        if (is_mpi(*e))
            r->env[n++] = *e;
    char *own[2] = {NULL, NULL};
    if (asprintf(&own[0], "TROUPE_RANK=%s", rank) < 0 ||
        asprintf(&own[1], "TROUPE_RANKS=%s", ranks) < 0)
        return false;
    r->env[n++] = own[0];
    r->env[n++] = own[1];
    r->env[n] = NULL;
    return true;
}

static int open_log(const struct rank *r, const char *rank, const char *suffix, int as)
{
    char path[4400];
    snprintf(path, sizeof path, "%s.%s.%s", r->log_prefix, rank, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || dup2(fd, as) < 0)
        return give_up(r, "open log", path);
    return 0;
}

static int become_command(struct rank *r, const char *rank)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/started", r->folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0)
        return give_up(r, "open", "/dev/null");
    if (open_log(r, rank, "out", 1) != 0 || open_log(r, rank, "err", 2) != 0)
        return 127;
    if (chdir(r->cwd) != 0)
        return give_up(r, "enter working folder", r->cwd);
    errno = trp_exec_first(r->program, r->argv, r->env);
    return give_up(r, "run", r->argv[0]);
}

int trp_gang_rank_main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    struct trp_buf b = {0};
    struct rank r = {0};
    if (argc != 3 || strcmp(argv[1], "gang") != 0 || !rank || !ranks) {
        fprintf(stderr, "troupe-rank: only troupe calls it, below mpirun\n");
        return 2;
    }
    char *slash = strrchr(argv[2], '/');
    r.folder = strndup(argv[2], slash ? (size_t)(slash - argv[2]) : 0);
    if (!r.folder || !read_spec(argv[2], &b)) {
        fprintf(stderr, "troupe-rank: cannot read %s: %s\n", argv[2], strerror(errno));
        return 127;
    }
    uint32_t own = 2;
    for (char **e = environ; *e; e++)
        own++;
    struct trp_view v = trp_view_of(b.data, b.size);
    r.log_prefix = trp_get_text(&v);
    r.cwd = trp_get_text(&v);
    r.argv = get_list(&v, 0);
    r.env = get_list(&v, own);
    r.program = get_list(&v, 0);
    if (!trp_view_end(&v) || !r.env || !r.program || !add_mpi(&r, rank, ranks)) {
        fprintf(stderr, "troupe-rank: %s is no specification of ours\n", argv[2]);
        return 127;
    }
    return become_command(&r, rank);
}
