/*
 * The script goes through a pipe, so no file is left of it. stdout is passed on as it
 * comes, for --wait may last for days; stderr is kept until it is clear whether the job
 * was taken, so that a refusal is one line of ours with all of Slurm's reasons.
 */
#include "sbatch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "piped.h"

enum { SAID_MAX = 8192, JOB_MAX = 32 };

struct sbatch_run {
    int in, out, err; /* our ends; -1: closed */
    const char *script;
    size_t left;
    char said[SAID_MAX]; /* on stderr, until the job is taken */
    size_t nsaid;
    char line[256]; /* the line of stdout that has begun */
    size_t nline;
    bool taken;
    trp_sbatch_submitted submitted;
    void *context;
};

/* What Slurm says of jobs that it will never take here; anything else may pass. */
static const struct {
    const char *pattern;
    int code;
} reasons[] = {
    {"nrecognized option",             TRP_EINVAL},
    {"nvalid option",                  TRP_EINVAL},
    {"requires an argument",           TRP_EINVAL},
    {"nvalid numeric value",           TRP_EINVAL},
    {"nvalid --",                      TRP_EINVAL},
    {"nvalid time",                    TRP_EINVAL},
    {"nvalid partition",               TRP_ENEVER},
    {"nvalid account",                 TRP_ENEVER},
    {"nvalid qos",                     TRP_ENEVER},
    {"nvalid license",                 TRP_ENEVER},
    {"nvalid generic resource",        TRP_ENEVER},
    {"nvalid feature",                 TRP_ENEVER},
    {"nvalid node name",               TRP_ENEVER},
    {"eservation is invalid",          TRP_ENEVER},
    {"nvalid wckey",                   TRP_ENEVER},
    {"not available",                  TRP_ENEVER},
    {"not permitted",                  TRP_ENEVER},
    {"not in group",                   TRP_ENEVER},
    {"ccess denied",                   TRP_ENEVER},
    {"ccess/permission denied",        TRP_ENEVER},
    {"imit is invalid",                TRP_ENEVER},
    {"violates accounting/QOS policy", TRP_ENEVER},
    {"requested than permitted",       TRP_ENEVER},
    {"emory specification",            TRP_ENEVER},
    {"job_submit",                     TRP_ENEVER},
    {"cli_filter",                     TRP_ENEVER},
};

static int code_of(const char *said)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(said, reasons[i].pattern))
            return reasons[i].code;
    return TRP_ESYSTEM;
}

static int refusal(const struct sbatch_run *t, int status, trp_error *err)
{
    char text[SAID_MAX + 64], said[SAID_MAX];
    memcpy(said, t->said, t->nsaid);
    said[t->nsaid] = '\0';
    int code = code_of(said);
    trp_piped_words("sbatch", said, text, sizeof text);
    if (!*text)
        return trp_error_set(err, code, "sbatch ended with %d and said nothing",
                             status);
    return trp_error_set(err, code, "sbatch: %s", text);
}

/* "Submitted batch job 12", or with --parsable "12" and "12;cluster". */
static void take_line(struct sbatch_run *t)
{
    static const char front[] = "Submitted batch job ";
    char job[JOB_MAX];
    t->line[t->nline] = '\0';
    const char *p = t->line;
    if (strncmp(p, front, strlen(front)) == 0)
        p += strlen(front);
    size_t n = strspn(p, "0123456789");
    bool is_job = n > 0 && n < sizeof job && (!p[n] || strchr("; ", p[n]));
    t->nline = 0;
    if (!is_job || t->taken)
        return;
    t->taken = true;
    memcpy(job, p, n);
    job[n] = '\0';
    fflush(stdout);
    fwrite(t->said, 1, t->nsaid, stderr);
    t->nsaid = 0;
    t->submitted(t->context, job);
}

static void take_out(struct sbatch_run *t, const char *text, size_t size)
{
    fwrite(text, 1, size, stdout);
    fflush(stdout);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n')
            take_line(t);
        else if (t->nline + 1 < sizeof t->line)
            t->line[t->nline++] = text[i];
    }
}

static void take_err(struct sbatch_run *t, const char *text, size_t size)
{
    size_t room = sizeof t->said - 1 - t->nsaid;
    if (t->taken) {
        fwrite(text, 1, size, stderr);
        return;
    }
    size = size < room ? size : room;
    memcpy(t->said + t->nsaid, text, size);
    t->nsaid += size;
}

static void read_end(struct sbatch_run *t, int *fd,
                     void (*take)(struct sbatch_run *, const char *, size_t))
{
    char buf[4096];
    ssize_t n = read(*fd, buf, sizeof buf);
    if (n > 0)
        take(t, buf, (size_t)n);
    else if (n == 0 || errno != EINTR)
        trp_piped_close(fd);
}

static void write_script(struct sbatch_run *t)
{
    ssize_t n = write(t->in, t->script, t->left);
    if (n > 0) {
        t->script += n;
        t->left -= (size_t)n;
    }
    if (t->left == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
        trp_piped_close(&t->in);
}

static void pass_data(struct sbatch_run *t)
{
    while (t->out >= 0 || t->err >= 0) {
        struct pollfd v[] = {
            {t->in,  POLLOUT, 0},
            {t->out, POLLIN,  0},
            {t->err, POLLIN,  0}
        };
        if (poll(v, 3, -1) < 0)
            continue;
        if (v[0].revents)
            write_script(t);
        if (v[1].revents)
            read_end(t, &t->out, take_out);
        if (v[2].revents)
            read_end(t, &t->err, take_err);
    }
    trp_piped_close(&t->in);
}

/* sbatch with its three ends in pipes; ours are in `t`. */
static int spawn(char *const *argv, struct sbatch_run *t, pid_t *ret_pid)
{
    int ends[3], code = trp_piped_spawn(argv, NULL, ends, ret_pid);
    t->in = ends[0];
    t->out = ends[1];
    t->err = ends[2];
    if (code == 0)
        fcntl(t->in, F_SETFL, O_NONBLOCK);
    return code;
}

static int run(char *const *argv, struct sbatch_run *t, trp_error *err)
{
    pid_t pid;
    int code = spawn(argv, t, &pid);
    if (code == ENOENT)
        return trp_error_set(err, TRP_ESYSTEM,
                             "sbatch is not in PATH; call troupe submit where Slurm's "
                             "commands are");
    if (code)
        return trp_error_set(err, TRP_ESYSTEM, "sbatch cannot be started: %s",
                             strerror(code));
    pass_data(t);
    int ended = trp_piped_wait(pid);
    if (t->nline > 0)
        take_line(t);
    if (!t->taken && ended != 0)
        return refusal(t, ended, err);
    fwrite(t->said, 1, t->nsaid, stderr); /* where --test-only prints its answer */
    return ended;
}

int trp_sbatch(char *const *arguments, size_t narguments, const char *script,
               size_t size, trp_sbatch_submitted submitted, void *context,
               trp_error *err)
{
    static char name[] = "sbatch";
    struct sbatch_run t = {
        .script = script, .left = size, .submitted = submitted, .context = context};
    char **argv = calloc(narguments + 2, sizeof *argv);
    if (!argv)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    argv[0] = name;
    for (size_t i = 0; i < narguments; i++)
        argv[i + 1] = arguments[i];
    signal(SIGPIPE, SIG_IGN);
    int code = run(argv, &t, err);
    free(argv);
    return code;
}
