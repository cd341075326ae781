/*
 * Gangs: one attempt whose ranks are started by mpirun, Open MPI's or MPICH's.
 *
 * It gets a small environment and a program of ours, troupe-rank. What the ranks
 * are to run (arguments, the whole environment of the task, folder, logs) lies in a
 * file, 0600, that only its path is told of: mpirun copies environments and arguments
 * about, into its own messages and through its own parsing, and a megabyte of them is
 * more than it takes. troupe-rank opens the rank's logs, adds what mpirun set for MPI,
 * and becomes the command, behind a process that ends as it does (gang_keep.c).
 *
 * Files in the gang's folder tell what an exit status cannot: "started" (a rank came
 * that far; without it mpirun itself failed, which is the platform's fault), "failed"
 * (why a rank could not become the command), "memory" (limit and peak, MiB, on the
 * node where one was killed first), in a Slurm step "used.RANK" (gang_used.c) and,
 * below mpirun, "ends" (of each rank a byte, as a shell tells how it ended).
 *
 * In a Slurm job it is srun instead of mpirun, on several nodes; the gang's folder is
 * then one that all of them see.
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
#include "executor/srun_refusal.h"
#include "os/held.h"
#include "os/tree.h"
#include "os/whole_file.h"

enum {
    SPEC_MAX = 64 << 20,
    STDERR_MAX = 4096,
    WRAPPER = 5, /* troupe-rank gang SPEC RUN_DIR RUN_ID */
};
static const char UNSEEN[] = "a run's folder must be on a file system that all nodes "
                             "share; call troupe run in a folder there";

static void folder_name(const struct trp_keeper *k, const struct trp_running *r,
                        char *buf, size_t size)
{
    snprintf(buf, size, "g%u", (unsigned)(r - k->running));
}

static int write_file(const char *path, const struct trp_buf *b)
{
    int fd = trp_held_open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return -1;
    int rc = trp_file_write(fd, b->data, b->size);
    return close(fd) == 0 ? rc : -1;
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
    const struct trp_command_stage *s = r->stage;
    trp_put_text(&b, log_prefix);
    trp_put_text(&b, s->cwd);
    put_list(&b, s->argv);
    put_list(&b, env);
    put_list(&b, (const char *const *)(uintptr_t)s->program);
    int result = b.failed || write_file(path, &b) != 0 ? TRP_ESYSTEM : TRP_OK;
    trp_buf_free(&b);
    return result;
}

/* What mpirun is given of a task's environment: to be found, to find its libraries, to
 * be allowed to run, to be known as ours. */
static bool for_mpirun(const char *entry)
{
    /* clang-format off */
    static const char *const names[] = {
        "PATH=", "HOME=", "USER=", "LOGNAME=", "SHELL=", "LANG=", "LC_ALL=",
        "LD_LIBRARY_PATH=", "SLURM_CONF=", "OPAL_PREFIX=", "OMPI_ALLOW_RUN_AS_ROOT=",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=", "TROUPE_TOKEN="
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void fill_argv(struct trp_gang_start *g, const struct trp_gang_call *call,
                      const char *const wrapper[WRAPPER])
{
    const size_t n = call->nlauncher;
    _Static_assert(TRP_LAUNCHER_WORDS + WRAPPER < sizeof g->argv / sizeof *g->argv,
                   "room for NULL");
    for (size_t i = 0; i < n; i++)
        g->argv[i] = call->launcher[i];
    memcpy(g->argv + n, wrapper, WRAPPER * sizeof *wrapper);
}

static void fill_env(struct trp_gang_start *g, const char *const *env,
                     const char *tmpdir)
{
    enum { ROOM = sizeof g->env / sizeof g->env[0] };
    size_t n = 0;
    bool home = false;
    g->env[n++] = tmpdir;
    if (geteuid() == 0) {
        g->env[n++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
        g->env[n++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    }
    for (size_t i = 0; env[i] && n + 2 < ROOM; i++)
        if (for_mpirun(env[i])) {
            home |= strncmp(env[i], "HOME=", 5) == 0;
            g->env[n++] = env[i];
        }
    if (!home) /* Open MPI 5 does not begin without one */
        g->env[n++] = "HOME=/";
}

/* Where the launcher's own words go: srun's to stderr, those of MPICH's mpirun to
 * stdout. */
static bool link_stderr(const struct trp_keeper *k, const char *folder,
                        const char *log_prefix, bool by_srun)
{
    char from[64], to[4400];
    snprintf(from, sizeof from, "%s/stderr", folder);
    snprintf(to, sizeof to, "%s.%s", log_prefix, by_srun ? "err" : "out");
    return symlinkat(to, k->scratch, from) == 0;
}

int trp_gang_prepare(struct trp_keeper *k, const struct trp_running *r,
                     const struct trp_gang_call *call, const char *log_prefix,
                     const char *const *env, struct trp_gang_start *ret, trp_error *err)
{
    char name[32], spec[4300], tmpdir[4300];
    *ret = (struct trp_gang_start){0};
    folder_name(k, r, name, sizeof name);
    snprintf(spec, sizeof spec, "%s/%s/spec", k->scratch_path, name);
    snprintf(tmpdir, sizeof tmpdir, "TMPDIR=%s/%s", k->scratch_path, name);
    size_t budget = SIZE_MAX;
    if (trp_tree_remove(k->scratch, name, &budget) != TRP_OK ||
        mkdirat(k->scratch, name, 0700) != 0 ||
        write_spec(r, spec, log_prefix, env) != TRP_OK ||
        !link_stderr(k, name, log_prefix, call->by_srun))
        return trp_error_set(err, TRP_ESYSTEM, "cannot write %s: %m", spec);
    enum { TEXTS = 5 };
    const char *const all[TEXTS] = {spec, tmpdir, call->program, k->config.run_dir,
                                    trp_held_id(k->config.run_dir)};
    const char *at[TEXTS];
    size_t offset[TEXTS];
    for (int i = 0; i < TEXTS; i++) {
        offset[i] = ret->text.size;
        trp_put_raw(&ret->text, all[i], strlen(all[i]) + 1);
    }
    if (ret->text.failed)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (int i = 0; i < TEXTS; i++)
        at[i] = (const char *)ret->text.data + offset[i];
    fill_argv(ret, call, (const char *[WRAPPER]){at[2], "gang", at[0], at[3], at[4]});
    fill_env(ret, env, at[1]);
    return TRP_OK;
}

/* Reads a small file of the gang's folder; its length, or -1. */
static ssize_t read_note(const struct trp_keeper *k, const char *folder,
                         const char *note, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, note);
    return trp_file_begin(k->scratch, path, O_NOFOLLOW, text, size);
}

static void set_text(struct trp_end *end, uint8_t status, char *text)
{
    end->status = status;
    end->code = 0;
    end->extra = (const uint8_t *)text;
    end->extra_size = (uint32_t)strlen(text);
}

/* What the launcher and, before their logs are open, the ranks have said. */
static void load_stderr(const struct trp_keeper *k, const char *folder,
                        char text[STDERR_MAX])
{
    char path[64], to[4400];
    snprintf(path, sizeof path, "%s/stderr", folder);
    ssize_t n = readlinkat(k->scratch, path, to, sizeof to - 1);
    to[n > 0 ? n : 0] = '\0';
    int fd = trp_held_open(to, O_RDONLY, 0);
    n = fd < 0 ? -1 : read(fd, text, STDERR_MAX - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

/* MPICH's mpirun ends with the number of the signal that a rank died by, as if it had
 * exited so; that of MPICH 4.2.1 now and then with 0, or with the signal by which it
 * has ended the others; that of Open MPI 6 now and then with 255. The processes in
 * front of the ranks know better; one that told nothing was killed. */
static void read_ends(const struct trp_keeper *k, const char *folder, uint32_t ranks,
                      struct trp_end *end)
{
    char path[64];
    uint8_t ends[1024], first = 0;
    uint32_t well = 0;
    ssize_t n;
    snprintf(path, sizeof path, "%s/ends", folder);
    int fd = openat(k->scratch, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    while (!first && (n = read(fd, ends, sizeof ends)) > 0)
        for (ssize_t i = 0; i < n && !first; i++) {
            first = ends[i];
            well += !first;
        }
    close(fd);
    if (!first && (end->status == TRP_END_EXIT || well == ranks))
        return;
    end->status = TRP_END_EXIT;
    end->code = first ? first : 128 + SIGKILL;
}

/* srun's status is the highest of all ranks; the first that failed is in its words:
 * "srun: error: node2: task 3: Exited with exit code 5". */
static void read_first_end(const char *text, struct trp_end *end)
{
    const char *at = strstr(text, ": task"), *how = at ? strstr(at + 2, ": ") : NULL;
    if (!how)
        return;
    how += 2;
    int code;
    if (sscanf(how, "Exited with exit code %d", &code) == 1)
        end->code = code;
    else if (strncmp(how, "Out Of Memory", 13) == 0)
        end->status = TRP_END_MEMORY;
    for (int signal = 1; signal < 32; signal++) {
        const char *name = strsignal(signal);
        if (strncmp(how, name, strlen(name)) == 0)
            end->code = 128 + signal;
    }
}

/* What a rank's keeper (cluster/slurm/steps/rank_keep.c) has told of its node. */
static void read_memory(const struct trp_keeper *k, const char *folder,
                        struct trp_end *end)
{
    char text[64];
    long long limit, peak;
    end->code = SIGKILL;
    if (read_note(k, folder, "memory", text, sizeof text) <= 0 ||
        sscanf(text, "%lld %lld", &limit, &peak) != 2)
        return;
    end->limit_mib = limit;
    end->peak_kib = peak * 1024;
}

/* A rank that does not see the run's folder: its own sentence. */
static bool is_unseen(const char *said, char *text, size_t size)
{
    const char *at = strstr(said, UNSEEN);
    while (at && at > said && at[-1] != '\n')
        at--;
    if (!at)
        return false;
    at += strncmp(at, "troupe-rank: ", 13) == 0 ? 13 : 0;
    snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

/* srun has said `said`; NULL: it was mpirun. */
static void not_started(struct trp_end *end, const char *said, char *text, size_t size)
{
    char complaint[300] = "";
    enum trp_srun_refusal refusal = trp_srun_refusal(said ? said : "");
    if (said)
        trp_srun_complaint(said, complaint, sizeof complaint);
    if (refusal == TRP_SRUN_NOT_NOW || refusal == TRP_SRUN_TOO_OFTEN) {
        snprintf(text, size, "%s", complaint);
        set_text(end, TRP_END_RECALLED, text);
        return;
    }
    snprintf(text, size, "%s ended with exit status %d before any rank was started%s%s",
             said ? "srun" : "mpirun", end->code, *complaint ? ": " : "", complaint);
    set_text(end, TRP_END_PLATFORM, text);
}

bool trp_gang_has_begun(const struct trp_keeper *k, const struct trp_running *r)
{
    char name[32], note[8];
    folder_name(k, r, name, sizeof name);
    return read_note(k, name, "started", note, sizeof note) >= 0;
}

void trp_gang_finish(struct trp_keeper *k, const struct trp_running *r,
                     struct trp_end *end, char *text, size_t size)
{
    char name[32], note[8], said[STDERR_MAX] = "";
    folder_name(k, r, name, sizeof name);
    if (end && r->by_srun)
        trp_gang_add_used(k, name, end);
    else if (end && (end->status == TRP_END_SUCCESS || end->status == TRP_END_EXIT))
        read_ends(k, name, r->ranks, end);
    bool failed = end && end->status == TRP_END_EXIT;
    bool srun = failed && r->by_srun;
    if (failed)
        load_stderr(k, name, said);
    if (srun)
        read_first_end(said, end);
    if (srun && end->status == TRP_END_MEMORY)
        read_memory(k, name, end);
    if (failed && is_unseen(said, text, size)) {
        set_text(end, TRP_END_PLATFORM, text);
    } else if (srun && trp_srun_unreached(said, text, size)) {
        set_text(end, TRP_END_RECALLED, text);
    } else if (failed && read_note(k, name, "failed", text, size) > 0) {
        set_text(end, TRP_END_START, text);
    } else if (failed && read_note(k, name, "started", note, sizeof note) < 0) {
        not_started(end, srun ? said : NULL, text, size);
    } else if (failed && end->status == TRP_END_EXIT && end->code > 128 &&
               end->code < 128 + 32) {
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
    int n = snprintf(text, sizeof text, "cannot %s %s: %m", what, which);
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
    int fd = trp_held_open(path, O_RDONLY, 0);
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

/* What a launcher sets for a rank: Open MPI's, srun, MPICH's. */
static bool is_mpi(const char *entry)
{
    static const char *const prefixes[] = {
        "OMPI_", "PMIX_", "PMI_", "HYDI_", "MPI_LOCALNRANKS=", "MPI_LOCALRANKID="};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* What srun sets; a task's own SLURM_OVERLAP stays. */
static bool is_srun(const char *entry)
{
    return strncmp(entry, "SLURM_", 6) == 0 &&
           strncmp(entry, "SLURM_OVERLAP=", 14) != 0 &&
           strncmp(entry, "SLURM_HOSTFILE=", 15) != 0;
}

/* Number `index` of "0,1,2"; the number itself when there is no such list. */
static void put_address(FILE *to, const char *list, unsigned index)
{
    for (unsigned i = 0; list && *list && i < index; i++) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    if (list && *list)
        fprintf(to, "%.*s", (int)strcspn(list, ","), list);
    else
        fprintf(to, "%u", index);
}

/* "NAME=*VARIABLE:COUNT:EACH": which devices are a rank's own is only known here. Of
 * those in VARIABLE, in the order of the ranks of this node, COUNT for EACH ranks. */
static char *choose_devices(char *entry)
{
    char *equals = strchr(entry, '='), *text = NULL;
    char variable[128] = "";
    unsigned count, each, local;
    size_t size;
    const char *id = getenv("SLURM_LOCALID");
    if (!equals || equals[1] != '*' || !id)
        return entry;
    size_t n = strcspn(equals + 2, ":");
    if (n >= sizeof variable || sscanf(equals + 2 + n, ":%u:%u", &count, &each) != 2 ||
        each == 0)
        return entry;
    memcpy(variable, equals + 2, n);
    local = (unsigned)strtoul(id, NULL, 10) / each * count;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return entry;
    fprintf(f, "%.*s=", (int)(equals - entry), entry);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? "," : "", f);
        put_address(f, *variable ? getenv(variable) : NULL, local + i);
    }
    return fclose(f) == 0 ? text : entry;
}

/* Puts what mpirun or srun set for this rank in the place of what the task had of it.
 */
static bool add_mpi(struct rank *r, const char *rank, const char *ranks, bool srun)
{
    size_t n = 0;
    for (size_t i = 0; r->env[i]; i++)
        if (!is_mpi(r->env[i]) && !(srun && is_srun(r->env[i])))
            r->env[n++] = srun ? choose_devices(r->env[i]) : r->env[i];
    for (char **e = environ; *e; e++)
        if (is_mpi(*e) || (srun && is_srun(*e)))
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
    int fd = trp_log_open(path);
    if (fd < 0 || dup2(fd, as) < 0)
        return give_up(r, "open log", path);
    return 0;
}

static int become_command(struct rank *r, const char *rank)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/started", r->folder);
    int fd = trp_held_open(path, O_WRONLY | O_CREAT, 0600);
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

int trp_gang_rank_hold(char *const *argv, trp_error *err)
{
    char folder[4400];
    const char *slash = strrchr(argv[2], '/');
    snprintf(folder, sizeof folder, "%.*s", (int)(slash ? slash - argv[2] : 0),
             argv[2]);
    int code = *argv[3] ? trp_held_folder(argv[3], argv[4], err) : 0;
    return code < 0 ? code : trp_held_folder(folder, NULL, err);
}

/* Nothing of the run can be read here. */
static int say_unseen(const char *spec, const char *why)
{
    char host[256] = "?";
    gethostname(host, sizeof host - 1);
    fprintf(stderr, "troupe-rank: cannot read %s on %s (%s): %s\n", spec, host, why,
            UNSEEN);
    return 127;
}

int trp_gang_rank_main(int argc, char **argv)
{
    trp_error err;
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");
    bool srun = !rank && getenv("SLURM_PROCID");
    if (!rank) {
        rank = getenv(srun ? "SLURM_PROCID" : "PMI_RANK");
        ranks = getenv(srun ? "SLURM_NTASKS" : "PMI_SIZE");
    }
    struct trp_buf b = {0};
    struct rank r = {0};
    if (argc != WRAPPER || strcmp(argv[1], "gang") != 0 || !rank || !ranks) {
        fprintf(stderr, "troupe-rank: only troupe calls it, below mpirun or srun\n");
        return 2;
    }
    char *slash = strrchr(argv[2], '/');
    r.folder = strndup(argv[2], slash ? (size_t)(slash - argv[2]) : 0);
    if (trp_gang_rank_hold(argv, &err) < 0)
        return say_unseen(argv[2], err.text);
    if (!r.folder || !read_spec(argv[2], &b))
        return say_unseen(argv[2], strerror(errno));
    uint32_t own = 2;
    for (char **e = environ; *e; e++)
        own++;
    struct trp_view v = trp_view_of(b.data, b.size);
    r.log_prefix = trp_get_text(&v);
    r.cwd = trp_get_text(&v);
    r.argv = get_list(&v, 0);
    r.env = get_list(&v, own);
    r.program = get_list(&v, 0);
    if (!trp_view_end(&v) || !r.env || !r.program || !add_mpi(&r, rank, ranks, srun)) {
        fprintf(stderr, "troupe-rank: %s is no specification of ours\n", argv[2]);
        return 127;
    }
    return become_command(&r, rank);
}
