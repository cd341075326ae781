/* Lists of lines, one a kind; the line about the rest is made anew with each line that
 * is left out. */
#include "driver/end_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool trp_end_lines_room(const struct trp_end_lines *l, enum trp_end_line_kind kind)
{
    return l->n[kind] < TRP_END_LINES_SHOWN;
}

static void tell_rest(struct trp_end_lines *l)
{
    static const struct {
        const char *what, *verb;
    } nouns[TRP_END_KINDS] = {
        [TRP_END_STAGE_LOST] = {"stage", "with such tasks"},
        [TRP_END_TASK_FAILED] = {"task",  "failed"         },
        [TRP_END_TASK_SKIPPED] = {"task",  "skipped"        },
        [TRP_END_STAGE_SKIPPED] = {"stage", "skipped"        },
        [TRP_END_LAST] = {"stage", "failed"         },
    };
    char text[TRP_END_KINDS * 48] = "";
    size_t at = 0;
    for (int k = 0; k < TRP_END_KINDS; k++) {
        uint32_t n = l->n[k] - l->lines[k].n;
        if (nouns[k].what && n)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%u more %s%s %s",
                                   at ? ", " : "", n, nouns[k].what, n == 1 ? "" : "s",
                                   nouns[k].verb);
    }
    trp_strings_free(&l->lines[TRP_END_REST]);
    trp_strings_format(&l->lines[TRP_END_REST],
                       "and %s: troupe report --json %s has all of them, %s/logs their "
                       "logs",
                       text, l->shown, l->shown);
}

void trp_end_line_add(struct trp_end_lines *l, enum trp_end_line_kind kind,
                      const char *fmt, ...)
{
    bool room = trp_end_lines_room(l, kind);
    char *line = NULL;
    va_list args;
    l->n[kind]++;
    if (!room) {
        tell_rest(l);
        return;
    }
    va_start(args, fmt);
    if (vasprintf(&line, fmt, args) < 0)
        line = NULL;
    va_end(args);
    trp_strings_take(&l->lines[kind], line);
}

const char *trp_end_line(const struct trp_end_lines *l, uint32_t i)
{
    for (int k = 0; k < TRP_END_KINDS; k++) {
        if (i < l->lines[k].n)
            return l->lines[k].v[i];
        i -= l->lines[k].n;
    }
    return NULL;
}

void trp_end_lines_free(struct trp_end_lines *l)
{
    for (int k = 0; k < TRP_END_KINDS; k++)
        trp_strings_free(&l->lines[k]);
}
