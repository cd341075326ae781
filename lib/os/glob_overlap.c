/*
 * Both patterns are cut into units: one character, any character but a slash, a run of
 * these, or a run of any. Whether some path matches both from a pair of units on is
 * filled in from the ends of both: a run matches nothing more, or takes one more unit of
 * the other. Cost: the product of their lengths.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/glob.h"

enum unit_kind { ONE, ANY, RUN, DEEP }; /* ANY: but a slash, as RUN */

struct unit {
    enum unit_kind kind;
    char c; /* of ONE */
};

static const char *end_of_set(const char *at)
{
    const char *from = at + 1 + (at[1] == '!' || at[1] == '^');
    const char *end = *from ? strchr(from + 1, ']') : NULL;
    return end;
}

/* Room for one more than the text has bytes; returns how many there are. */
static size_t cut(const char *text, struct unit *ret)
{
    size_t n = 0;
    while (!strncmp(text, "./", 2))
        text += 2;
    for (; *text; text++) {
        struct unit u = {ONE, *text};
        const char *end = *text == '[' ? end_of_set(text) : NULL;
        if (*text == '*') {
            u.kind = text[1] == '*' ? DEEP : RUN;
            text += text[1] == '*';
            if (u.kind == DEEP && text[1] == '/') /* also no folder at all */
                text++;
        } else if (*text == '?' || end) {
            u.kind = ANY;
            text = end ? end : text;
        } else if (*text == '\\' && text[1]) {
            u.c = *++text;
        } else if (*text == '/' && text[1] == '/') {
            continue;
        }
        ret[n++] = u;
    }
    return n;
}

static bool is_run(const struct unit *u)
{
    return u->kind >= RUN;
}

/* Whether a run may go over a unit. */
static bool takes(const struct unit *run, const struct unit *u)
{
    return run->kind == DEEP || is_run(u) || u->kind == ANY || u->c != '/';
}

static bool agree(const struct unit *a, const struct unit *b)
{
    if (a->kind == ONE && b->kind == ONE)
        return a->c == b->c;
    return takes(a->kind == ONE ? b : a, a->kind == ONE ? a : b);
}

bool trp_glob_overlap(const char *a, const char *b)
{
    size_t size = strlen(b) + 1;
    struct unit *of_a = calloc(strlen(a) + 1, sizeof *of_a);
    struct unit *of_b = calloc(size, sizeof *of_b);
    bool *rows =
        calloc(2 * size, sizeof *rows); /* from a unit of `a` on, and the next */
    bool found = true;                  /* without memory */
    if (of_a && of_b && rows) {
        size_t na = cut(a, of_a), nb = cut(b, of_b);
        for (size_t i = na + 1; i-- > 0;) {
            bool *row = rows + i % 2 * size;
            const bool *next = rows + (i + 1) % 2 * size;
            for (size_t k = nb + 1; k-- > 0;) {
                const struct unit *x = i < na ? &of_a[i] : NULL;
                const struct unit *y = k < nb ? &of_b[k] : NULL;
                row[k] =
                    (!x && !y) ||
                    (x && is_run(x) && (next[k] || (y && takes(x, y) && row[k + 1]))) ||
                    (y && is_run(y) && (row[k + 1] || (x && takes(y, x) && next[k]))) ||
                    (x && y && !is_run(x) && !is_run(y) && agree(x, y) && next[k + 1]);
            }
        }
        found = rows[0];
    }
    free(of_a);
    free(of_b);
    free(rows);
    return found;
}
