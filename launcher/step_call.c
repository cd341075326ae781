/*
 * srun is told the job and the node; all that a job's environment would tell it is left
 * out, since `troupe` may have been called in another one. The step that asks is
 * `troupe-rank ask`, which reads requests on stdin and ends with it.
 */
#include "step_call.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/run_spec.h"
#include "os/clock.h"
#include "piped.h"

enum {
    WAIT_MS = 20000, /* for srun to start a step, and its answer */
    END_MS = 2000,   /* for srun to end by SIGTERM */
    LOOK_MS = 10
};

/* The node's name in Slurm, where `troupe` was told it; else its host's. */
static const char *node_of(const struct trp_run_spec *s, const char *host)
{
    static const char name[] = "SLURMD_NODENAME=";
    for (uint32_t i = 0; i < s->nenviron; i++)
        if (strncmp(s->environ[i], name, strlen(name)) == 0)
            return s->environ[i] + strlen(name);
    return host;
}

/* Ours but for what a job or a step has put there. */
static char **make_environ(void)
{
    size_t n = 0, to = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + 1, sizeof *env);
    for (size_t i = 0; env && i < n; i++)
        if (strncmp(environ[i], "SLURM_CONF=", 11) == 0 ||
            (strncmp(environ[i], "SLURM", 5) != 0 &&
             strncmp(environ[i], "PMI", 3) != 0))
            env[to++] = environ[i];
    return env;
}

enum { WORDS = 5 }; /* of what a step runs, at most */

/* A step of the job that runs `words`. */
static int start(const struct trp_run_spec *s, const char *host,
                 char *const words[WORDS], struct trp_step_call *c, trp_error *err)
{
    static char srun[] = "srun", overlap[] = "--overlap", one[] = "--ntasks=1",
                nodes[] = "--nodes=1", quiet[] = "--quiet", chdir[] = "--chdir=/",
                no_kill[] = "--kill-on-bad-exit=0", name[] = "--job-name=troupe-ask",
                stdin_of[] = "--input=all";
    char job[40], *node = NULL;
    char **env = make_environ();
    int why = ENOMEM;
    snprintf(job, sizeof job, "--jobid=%u", s->batch_job);
    if (asprintf(&node, "--nodelist=%s", node_of(s, host)) < 0)
        node = NULL;
    if (env && node) {
        char *argv[] = {srun,     job,      node,     overlap,  nodes, one,
                        quiet,    chdir,    no_kill,  stdin_of, name,  words[0],
                        words[1], words[2], words[3], words[4], NULL};
        why = trp_piped_spawn(argv, env, c->ends, &c->pid);
    }
    free(env);
    free(node);
    if (!why) {
        signal(SIGPIPE, SIG_IGN);
        return 0;
    }
    c->pid = 0;
    return trp_error_set(err, TRP_ESYSTEM, "srun cannot be started here: %s",
                         strerror(why));
}

/* How the run was started, which says in which job. */
static int load_spec(const char *run_dir, struct trp_run_spec **ret, trp_error *err)
{
    int code = trp_run_spec_load(run_dir, ret, err);
    if (code < 0 || (*ret)->batch_job)
        return code;
    trp_run_spec_free(*ret);
    *ret = NULL;
    return trp_error_set(err, TRP_ENOENT, "the run is in no Slurm job");
}

int trp_step_open(const char *run_dir, const char *host, struct trp_step_call *ret,
                  trp_error *err)
{
    static char ask[] = "ask";
    struct trp_run_spec *s = NULL;
    *ret = (struct trp_step_call){
        .ends = {-1, -1, -1}
    };
    int code = load_spec(run_dir, &s, err);
    if (code < 0)
        return code;
    char *words[WORDS] = {strdup(s->rank_program), ask, strdup(run_dir)};
    code = words[0] && words[2] ? start(s, host, words, ret, err)
                                : trp_error_set(err, TRP_ENOMEM, "out of memory");
    free(words[0]);
    free(words[2]);
    trp_run_spec_free(s);
    return code;
}

#define GONE "gone" /* said where no `troupe` has the number any more */

/* What became of the signal that a step was to send. */
static int hear_signal(struct trp_step_call *c, uint32_t job, trp_error *err)
{
    struct trp_piped_said said;
    char words[512];
    int code = trp_piped_hear(c->ends, c->pid, WAIT_MS, &said);
    c->pid = 0;
    if (code)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (said.late) {
        code = trp_error_set(err, TRP_EWAIT,
                             "a step of its job has not answered for %d s; "
                             "scancel %u ends the job",
                             WAIT_MS / 1000, job);
    } else if (said.status != 0) {
        trp_piped_words("srun", said.err, words, sizeof words);
        code =
            trp_error_set(err, TRP_ESYSTEM,
                          "no step of its job reaches it%s%s; scancel %u ends the job",
                          *words ? ": " : "", words, job);
    } else if (strncmp(said.out, GONE, strlen(GONE)) == 0) {
        code = trp_error_set(err, TRP_ESTATE, "its troupe is gone");
    }
    trp_piped_said_free(&said);
    return code;
}

int trp_step_signal(const char *run_dir, const char *host, int pid, int signal_number,
                    trp_error *err)
{
    static char sh[] = "/bin/sh", c[] = "-c",
                script[] = "case $(cat /proc/$0/comm 2>/dev/null) in troupe*) kill -s "
                           "\"$1\" \"$0\" ;; *) echo " GONE " ;; esac";
    char process[16], number[16];
    char *words[WORDS] = {sh, c, script, process, number};
    struct trp_step_call step = {
        .ends = {-1, -1, -1}
    };
    struct trp_run_spec *s = NULL;
    int code = load_spec(run_dir, &s, err);
    if (code < 0)
        return code;
    snprintf(process, sizeof process, "%d", pid);
    snprintf(number, sizeof number, "%d", signal_number);
    code = start(s, host, words, &step, err);
    if (code == 0)
        code = hear_signal(&step, s->batch_job, err);
    trp_step_close(&step);
    trp_run_spec_free(s);
    return code;
}

/* A line of its stdout, without the newline; else what srun said. */
static int read_line(const struct trp_step_call *c, struct trp_buf *b, int64_t until)
{
    char piece[4096];
    while (!b->failed && b->size < TRP_ASK_ANSWER_MAX) {
        struct pollfd p = {.fd = c->ends[1], .events = POLLIN};
        int64_t left = (until - trp_clock_ns()) / 1000000;
        if (left <= 0 || poll(&p, 1, (int)left) == 0)
            return TRP_EWAIT;
        ssize_t n = read(c->ends[1], piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return TRP_ENOENT;
        trp_put_raw(b, piece, (size_t)n);
        if (piece[n - 1] == '\n')
            return b->failed ? TRP_ENOMEM : 0;
    }
    return b->failed ? TRP_ENOMEM : TRP_ELIMIT;
}

static int no_answer(const struct trp_step_call *c, int code, trp_error *err)
{
    char said[1024] = "", words[512] = "";
    if (code == TRP_EWAIT)
        return trp_error_set(err, code, "a step of its job has not answered for %d s",
                             WAIT_MS / 1000);
    if (code != TRP_ENOENT)
        return trp_error_set(err, code, "a step of its job gives no whole answer");
    fcntl(c->ends[2], F_SETFL, O_NONBLOCK);
    ssize_t n = read(c->ends[2], said, sizeof said - 1);
    said[n > 0 ? n : 0] = '\0';
    trp_piped_words("srun", said, words, sizeof words);
    return trp_error_set(err, code, "no step of its job can be had%s%s",
                         *words ? ": " : "", words);
}

int trp_step_ask(struct trp_step_call *c, const struct trp_ask *q, char **ret_answer,
                 trp_error *err)
{
    static const char nobody[] = "{\"nobody\":";
    struct trp_buf request = {0}, answer = {0};
    int64_t until = trp_clock_ns() + WAIT_MS * INT64_C(1000000);
    int code = 0;
    trp_ask_put(&request, q);
    if (request.failed || write(c->ends[0], request.data, request.size) < 0)
        code = TRP_ENOENT;
    if (code == 0)
        code = read_line(c, &answer, until);
    *ret_answer = code == 0 ? strndup((char *)answer.data, answer.size - 1) : NULL;
    trp_buf_free(&request);
    trp_buf_free(&answer);
    if (code < 0)
        return no_answer(c, code, err);
    if (!*ret_answer)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (strncmp(*ret_answer, nobody, strlen(nobody)) != 0)
        return 0;
    free(*ret_answer);
    *ret_answer = NULL;
    return trp_error_set(err, TRP_ENOENT, "it does not answer there");
}

/* An srun whose slurmctld does not answer hears no SIGTERM. */
void trp_step_close(struct trp_step_call *c)
{
    for (int i = 0; i < 3; i++)
        trp_piped_close(&c->ends[i]);
    if (c->pid > 0) {
        int64_t until = trp_clock_ms() + END_MS;
        kill(c->pid, SIGTERM);
        while (waitpid(c->pid, NULL, WNOHANG) == 0) {
            if (trp_clock_ms() > until)
                kill(c->pid, SIGKILL);
            poll(NULL, 0, LOOK_MS);
        }
    }
    c->pid = 0;
}
