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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static char *area; /* NULL: only comm is set */
static size_t area_size;
/* The one block of all copies. It stays reachable, so that leak checkers know it:
 * volatile, or it would not be kept. */
static char **volatile kept;

/* Copies `n` strings to `text`, their addresses to `to`; returns where they end. */
static char *copy_strings(char **from, size_t n, char **to, char *text)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = text;
        text = stpcpy(text, from[i]) + 1;
    }
    return text;
}

static size_t count(char **strings)
{
    size_t n = 0;
    while (strings && strings[n])
        n++;
    return n;
}

static size_t length(char **strings, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(strings[i]) + 1;
    return bytes;
}

void trp_process_title_init(int argc, char **argv)
{
    if (area || argc < 1 || !argv || !argv[0])
        return;
    size_t nargs = count(argv), nenv = count(environ), contiguous = 0;
    char *end = argv[0];
    for (size_t i = 0; i < nargs; i++)
        if (argv[i] == end)
            end = argv[i] + strlen(argv[i]) + 1;
    while (contiguous < nenv && environ[contiguous] == end) {
        end = environ[contiguous] + strlen(environ[contiguous]) + 1;
        contiguous++;
    }
    char **block = malloc((nargs + nenv + 1) * sizeof *block + length(argv, nargs) +
                          length(environ, nenv));
    if (!block)
        return;
    char **env = block + nargs, *text = (char *)(env + nenv + 1);
    text = copy_strings(argv, nargs, block, text);
    copy_strings(environ, nenv, env, text);
    env[nenv] = NULL;
    area = argv[0];
    area_size = (size_t)(end - area);
    memcpy(argv, block, nargs * sizeof *argv);
    kept = block;
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
