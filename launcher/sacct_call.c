/*
 * sacct is called once, for all jobs by their numbers, without a shell. Only its times
 * are asked for in another form; whatever else SACCT_* or the locale say, the columns
 * are those of --format.
 */
#include "sacct_call.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "piped.h"

struct heard {
    char *text;
    size_t size;
    FILE *to;
};

static bool open_heard(struct heard *h)
{
    h->to = open_memstream(&h->text, &h->size);
    return h->to;
}

static void hear(struct heard *h, int *fd)
{
    char buf[65536];
    ssize_t n = read(*fd, buf, sizeof buf);
    if (n > 0)
        fwrite(buf, 1, (size_t)n, h->to);
    else if (n == 0 || errno != EINTR)
        trp_piped_close(fd);
}

static void listen_to(int ends[3], struct heard *out, struct heard *err)
{
    trp_piped_close(&ends[0]);
    while (ends[1] >= 0 || ends[2] >= 0) {
        struct pollfd v[] = {
            {ends[1], POLLIN, 0},
            {ends[2], POLLIN, 0}
        };
        if (poll(v, 2, -1) < 0)
            continue;
        if (v[0].revents)
            hear(out, &ends[1]);
        if (v[1].revents)
            hear(err, &ends[2]);
    }
    fflush(out->to);
    fflush(err->to);
}

static int failed(const struct heard *said, int status, trp_error *err)
{
    char text[TRP_ERROR_TEXT];
    trp_piped_words("sacct", said->text, text, sizeof text);
    if (!*text)
        return trp_error_set(err, TRP_ESYSTEM, "sacct ended with %d and said nothing",
                             status);
    return trp_error_set(err, TRP_ESYSTEM, "sacct: %s", text);
}

static int call(char *const *argv, char *const *env, struct heard *out,
                struct heard *said, trp_error *err)
{
    int ends[3];
    pid_t pid;
    int code = trp_piped_spawn(argv, env, ends, &pid);
    if (code == ENOENT)
        return trp_error_set(err, TRP_ESYSTEM,
                             "sacct is not in PATH; call troupe report --sacct where "
                             "Slurm's commands are");
    if (code)
        return trp_error_set(err, TRP_ESYSTEM, "sacct cannot be started: %s",
                             strerror(code));
    listen_to(ends, out, said);
    int status = trp_piped_wait(pid);
    return status ? failed(said, status, err) : 0;
}

static char *jobs_of(const struct trp_run_records *runs)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fputs("--jobs=", f);
    for (uint32_t i = 0, n = 0; i < runs->n; i++)
        for (uint32_t k = 0; k < runs->v[i]->njobs; k++)
            fprintf(f, "%s%u", n++ ? "," : "", runs->v[i]->jobs[k].id);
    return fclose(f) == 0 ? text : NULL;
}

/* Ours, with times as seconds since 1970. */
static char **make_environ(void)
{
    static const char time[] = "SLURM_TIME_FORMAT=";
    size_t n = 0, to = 0;
    while (environ[n])
        n++;
    char **env = calloc(n + 2, sizeof *env);
    if (!env)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], time, strlen(time)) != 0)
            env[to++] = environ[i];
    static char seconds[] = "SLURM_TIME_FORMAT=%s";
    env[to] = seconds;
    return env;
}

int trp_sacct_call(const struct trp_run_records *runs, struct trp_sacct *ret,
                   trp_error *err)
{
    static char program[] = "sacct", parsable[] = "--parsable2",
                header[] = "--noheader", plain[] = "--noconvert",
                all[] = "--duplicates", format[] = "--format=" TRP_SACCT_FORMAT;
    char *jobs = jobs_of(runs), **env = make_environ();
    char *argv[] = {program, parsable, header, plain, all, format, jobs, NULL};
    struct heard out = {0}, said = {0};
    trp_error why;
    int code = TRP_ENOMEM;
    if (jobs && env && open_heard(&out) && open_heard(&said))
        code = call(argv, env, &out, &said, err);
    else
        trp_error_set(err, code, "out of memory");
    if (code == 0 && trp_sacct_parse(out.text, ret, &why) < 0)
        code = trp_error_set(err, TRP_ESYSTEM, "%s", why.text);
    if (out.to)
        fclose(out.to);
    if (said.to)
        fclose(said.to);
    free(out.text);
    free(said.text);
    free(jobs);
    free(env);
    return code;
}
