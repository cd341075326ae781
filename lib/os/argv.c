#include "os/argv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/array.h"

void trp_argv_add(struct trp_argv *a, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (!text || a->failed || !TRP_ARRAY_RESERVE(a->v, a->cap, (uint64_t)a->n + 2)) {
        free(text);
        a->failed = true;
        return;
    }
    a->v[a->n++] = text;
    a->v[a->n] = NULL;
}

char **trp_argv_done(struct trp_argv *a)
{
    if (a->failed || !TRP_ARRAY_GROW(a->v, a->n, a->cap)) {
        trp_argv_free(a->v);
        return NULL;
    }
    a->v[a->n] = NULL;
    return a->v;
}

void trp_argv_free(char **argv)
{
    for (char **at = argv; at && *at; at++)
        free(*at);
    free(argv);
}
