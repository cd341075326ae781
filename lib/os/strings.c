/*
 * Lists of strings: an array that doubles. A list is freed as a whole; nothing is ever
 * taken out of one, so there is no more than this.
 */
#include "os/strings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

int trp_strings_take(struct trp_strings *s, char *take_text)
{
    if (!take_text)
        return TRP_ENOMEM;
    if (!TRP_ARRAY_RESERVE(s->v, s->capacity,
                           (uint64_t)s->n + 2)) { /* and the last NULL */
        free(take_text);
        return TRP_ENOMEM;
    }
    s->v[s->n++] = take_text;
    s->v[s->n] = NULL;
    return 0;
}

int trp_strings_add(struct trp_strings *s, const char *text)
{
    return trp_strings_take(s, strdup(text));
}

int trp_strings_format(struct trp_strings *s, const char *fmt, ...)
{
    char *text;
    va_list args;
    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    return trp_strings_take(s, n < 0 ? NULL : text);
}

void trp_strings_free(struct trp_strings *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct trp_strings){0};
}

char *trp_path_join(const char *base, const char *path)
{
    char *joined;
    if (!base || !*base || *path == '/')
        return strdup(path);
    return asprintf(&joined, "%s/%s", base, path) < 0 ? NULL : joined;
}

void trp_shell_word_print(const char *word, FILE *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-+=./,:@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    }
    fputc('\'', out);
}
