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

char *trp_path_plain(const char *base, const char *path)
{
    char *full = trp_path_join(base, path);
    char *plain = full ? malloc(strlen(full) + 2) : NULL, *to = plain;
    for (const char *at = full; plain && *at;) {
        size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.') {
            while (to > plain && *--to != '/')
                ;
        } else if (n && !(n == 1 && at[0] == '.')) {
            *to++ = '/';
            memcpy(to, at, n);
            to += n;
        }
        at += n + (at[n] == '/');
    }
    if (plain)
        *to = '\0';
    free(full);
    return plain;
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
