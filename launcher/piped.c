#include "piped.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"

void trp_piped_close(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

int trp_piped_spawn(char *const *argv, char *const *env, int ret_ends[3],
                    pid_t *ret_pid)
{
    int ends[3][2] = {
        {-1, -1},
        {-1, -1},
        {-1, -1}
    };
    posix_spawn_file_actions_t actions;
    int code = 0;
    for (int i = 0; i < 3 && code == 0; i++)
        code = pipe2(ends[i], O_CLOEXEC) < 0 ? errno : 0;
    if (code == 0)
        code = posix_spawn_file_actions_init(&actions);
    if (code == 0) {
        for (int i = 0; i < 3; i++)
            posix_spawn_file_actions_adddup2(&actions, ends[i][i != 0], i);
        code =
            posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, env ? env : environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    for (int i = 0; i < 3; i++) {
        trp_piped_close(&ends[i][i != 0]);
        ret_ends[i] = ends[i][i == 0];
        if (code)
            trp_piped_close(&ret_ends[i]);
    }
    return code;
}

int trp_piped_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- hearing all that it says ---- */

static void take(FILE *to, int *end)
{
    char buf[65536];
    ssize_t n = read(*end, buf, sizeof buf);
    if (n > 0)
        fwrite(buf, 1, (size_t)n, to);
    else if (n == 0 || errno != EINTR)
        trp_piped_close(end);
}

/* False: there was more to come when the time was up. */
static bool listen_to(int ends[3], int limit_ms, FILE *out, FILE *err)
{
    int64_t end = trp_clock_ms() + limit_ms;
    trp_piped_close(&ends[0]);
    while (ends[1] >= 0 || ends[2] >= 0) {
        int64_t left = limit_ms < 0 ? -1 : end - trp_clock_ms();
        struct pollfd v[] = {
            {ends[1], POLLIN, 0},
            {ends[2], POLLIN, 0}
        };
        if (limit_ms >= 0 && left <= 0)
            break;
        if (poll(v, 2, (int)left) < 0)
            continue;
        if (v[0].revents)
            take(out, &ends[1]);
        if (v[1].revents)
            take(err, &ends[2]);
    }
    bool all = ends[1] < 0 && ends[2] < 0;
    trp_piped_close(&ends[1]);
    trp_piped_close(&ends[2]);
    return all;
}

int trp_piped_hear(int ends[3], pid_t pid, int limit_ms, struct trp_piped_said *ret)
{
    size_t size;
    int code = 0;
    *ret = (struct trp_piped_said){0};
    FILE *out = open_memstream(&ret->out, &size);
    FILE *err = open_memstream(&ret->err, &size);
    ret->late = !listen_to(ends, out && err ? limit_ms : 0, out, err);
    if (ret->late)
        kill(pid, SIGKILL);
    ret->status = trp_piped_wait(pid);
    if (!out || fclose(out) != 0)
        code = ENOMEM;
    if (!err || fclose(err) != 0)
        code = ENOMEM;
    if (code)
        trp_piped_said_free(ret);
    return code;
}

int trp_piped_run(char *const *argv, int limit_ms, struct trp_piped_said *ret)
{
    int ends[3];
    pid_t pid;
    int code = trp_piped_spawn(argv, NULL, ends, &pid);
    return code ? code : trp_piped_hear(ends, pid, limit_ms, ret);
}

void trp_piped_said_free(struct trp_piped_said *s)
{
    free(s->out);
    free(s->err);
}

void trp_piped_words(const char *program, char *said, char *ret_text, size_t size)
{
    const char *const fronts[] = {program, ": ", "error: ", "fatal: "};
    char *save = NULL;
    size_t n = 0;
    *ret_text = '\0';
    for (char *line = strtok_r(said, "\r\n", &save); line;
         line = strtok_r(NULL, "\r\n", &save)) {
        for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
            if (strncmp(line, fronts[i], strlen(fronts[i])) == 0)
                line += strlen(fronts[i]);
        if (*line && n < size)
            n += (size_t)snprintf(ret_text + n, size - n, "%s%s", n ? "; " : "", line);
    }
}
