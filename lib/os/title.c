/*
 * The name that ps shows: comm by prctl, and the command line by writing over the
 * memory where the kernel put argv, and environ right behind it. That memory is taken
 * over once: argv and environ are copied away first, so that nobody sees his arguments
 * change. The copies live as long as the process.
 *
 * Rejected: PR_SET_MM_ARG_START, which needs a capability on older kernels.
 */
#include "os/title.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char *area; /* NULL: only comm is set */
static size_t area_size;
/* Reachable, so that leak checkers know them: volatile, or they would not be kept. */
static char **volatile kept_environ, **volatile kept_argv;

/* Copies `n` strings; false when out of memory (nothing is changed then). */
static bool copy_strings(char **from, size_t n, char **to)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = strdup(from[i]);
        if (!to[i]) {
            while (i)
                free(to[--i]);
            return false;
        }
    }
    return true;
}

static size_t count(char **strings)
{
    size_t n = 0;
    while (strings && strings[n])
        n++;
    return n;
}

void trp_process_title_init(int argc, char **argv)
{
    if (area || argc < 1 || !argv || !argv[0])
        return;
    char *end = argv[0];
    for (int i = 0; i < argc && argv[i]; i++)
        if (argv[i] == end)
            end = argv[i] + strlen(argv[i]) + 1;
    size_t nenv = count(environ), contiguous = 0;
    while (contiguous < nenv && environ[contiguous] == end) {
        end = environ[contiguous] + strlen(environ[contiguous]) + 1;
        contiguous++;
    }
    char **env = calloc(nenv + 1, sizeof *env);
    char **args = calloc((size_t)argc + 1, sizeof *args);
    if (!env || !args || !copy_strings(environ, nenv, env)) {
        free(env);
        free(args);
        return;
    }
    if (!copy_strings(argv, (size_t)argc, args)) {
        for (size_t i = 0; i < nenv; i++)
            free(env[i]);
        free(env);
        free(args);
        return;
    }
    area = argv[0];
    area_size = (size_t)(end - area);
    memcpy(argv, args, (size_t)argc * sizeof *args);
    kept_argv = args;
    kept_environ = env;
    environ = env;
}

void trp_process_title(const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    prctl(PR_SET_NAME, text, 0, 0, 0);
    if (!area)
        return;
    size_t n = strlen(text);
    if (n >= area_size)
        n = area_size - 1;
    memcpy(area, text, n);
    memset(area + n, 0, area_size - n);
}
