/*
 * Cells are kept until all are known; then widths are found, then rows printed. A
 * character counts as one column. Names are never cut: what cannot be seen whole cannot
 * be typed in again.
 */
#include "conf/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/utf8.h"

enum {
    GAP = 2,
    NARROWEST = 12, /* of columns whose cells are wrapped */
    NARROWEST_FIRST = 5,
    SHORT_NAME = 16, /* one that is longer may stand in a line of its own */
};

struct column {
    struct trp_table_column it;
    int natural, width;
};

struct trp_table {
    struct column *columns;
    size_t ncolumns;
    int narrowest; /* as far as the first column gives: short names stay in it */
    struct cell {
        char *text;
        bool message;
    } * cells; /* row by row, heads first */
    uint32_t n, capacity;
    bool failed; /* out of memory */
};

static int columns_of(const char *text)
{
    return (int)trp_utf8_count(text, strlen(text));
}

/* How much of `text` goes into a line of so many columns: up to a space, else behind
 * one of `also`, else as much as there is room for. */
static size_t line_of(const char *text, int columns, const char *also)
{
    size_t most = trp_utf8_bytes(text, (size_t)columns);
    if (!text[most] || text[most] == ' ')
        return most;
    for (size_t i = most; i-- > 1;)
        if (text[i] == ' ')
            return i;
    for (size_t i = most; i > 1; i--)
        if (strchr(also, text[i - 1]))
            return i;
    return most;
}

void trp_text_wrap(const char *text, const char *first, int indent, FILE *out)
{
    int room = TRP_TABLE_WIDTH - columns_of(first);
    fputs(first, out);
    for (;;) {
        size_t n = line_of(text, room, "");
        if (text[n] && text[n] != ' ') /* a word that is too long stays whole */
            n = strcspn(text, " ");
        fprintf(out, "%.*s\n", (int)n, text);
        text += n + strspn(text + n, " ");
        if (!*text)
            return;
        fprintf(out, "%*s", indent, "");
        room = TRP_TABLE_WIDTH - indent;
    }
}

/* ---- making ---- */

static void table_free(trp_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i].text);
    for (size_t c = 0; c < t->ncolumns; c++)
        free((char *)(uintptr_t)t->columns[c].it.group);
    free(t->cells);
    free(t->columns);
    free(t);
}

trp_table *trp_table_new(const struct trp_table_column *columns, size_t n)
{
    trp_table *t = calloc(1, sizeof *t);
    if (!t || !(t->columns = calloc(n, sizeof *t->columns))) {
        free(t);
        return NULL;
    }
    t->ncolumns = n;
    t->narrowest = NARROWEST_FIRST;
    for (size_t c = 0; c < n; c++) {
        t->columns[c].it = columns[c];
        t->columns[c].it.head = NULL; /* a cell */
        t->columns[c].it.group = columns[c].group ? strdup(columns[c].group) : NULL;
        t->failed |= columns[c].group && !t->columns[c].it.group;
        trp_table_cell(t, "%s", columns[c].head);
    }
    return t;
}

static void add_cell(trp_table *t, bool message, const char *fmt, va_list args)
{
    char *text = NULL;
    if (!t || t->failed)
        return;
    if (!TRP_ARRAY_GROW(t->cells, t->n, t->capacity) ||
        vasprintf(&text, fmt, args) < 0) {
        t->failed = true;
        return;
    }
    t->cells[t->n++] = (struct cell){text, message};
}

void trp_table_cell(trp_table *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_cell(t, false, fmt, args);
    va_end(args);
}

void trp_table_message(trp_table *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_cell(t, true, fmt, args);
    va_end(args);
}

/* ---- widths ---- */

/* Of columns that stand together a part has all. */
static size_t together(const trp_table *t, size_t c)
{
    return t->columns[c].it.group && c + 1 < t->ncolumns ? 2 : 1;
}

static void measure_columns(trp_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct column *c = &t->columns[i % t->ncolumns];
        int n = t->cells[i].message ? 0 : columns_of(t->cells[i].text);
        if (c == t->columns && n <= SHORT_NAME && n > t->narrowest)
            t->narrowest = n;
        c->natural = n > c->natural ? n : c->natural;
    }
    for (size_t c = 0; c < t->ncolumns; c++) {
        struct column *v = &t->columns[c];
        if (!v->it.group || together(t, c) == 1)
            continue;
        int lacks = columns_of(v->it.group) - (v->natural + GAP + v[1].natural);
        v->natural += lacks > 0 ? lacks : 0;
    }
}

/* The first column and those from `from` to `end` (exclusive), as wide as they are. */
static int width_of(const trp_table *t, size_t from, size_t end)
{
    int sum = t->columns[0].width;
    for (size_t c = from; c < end; c++)
        sum += GAP + t->columns[c].width;
    return sum;
}

/* Makes them fit, if they can. */
static bool fit(trp_table *t, size_t from, size_t end)
{
    for (size_t c = 0; c < t->ncolumns; c++)
        t->columns[c].width = t->columns[c].natural;
    while (width_of(t, from, end) > TRP_TABLE_WIDTH) {
        struct column *widest = NULL;
        for (size_t c = 0; c < end; c = c ? c + 1 : from) {
            struct column *v = &t->columns[c];
            bool gives = !v->it.right && v->width > (c ? NARROWEST : t->narrowest);
            if (gives && (!widest || v->width >= widest->width))
                widest = v;
        }
        if (!widest)
            return false;
        widest->width--;
    }
    return true;
}

/* Where a part that begins with column `from` ends. */
static size_t part_end(trp_table *t, size_t from)
{
    size_t end = from + together(t, from);
    if (fit(t, from, t->ncolumns))
        return t->ncolumns;
    while (end < t->ncolumns && !t->columns[end].it.part &&
           fit(t, from, end + together(t, end)))
        end += together(t, end);
    fit(t, from, end);
    return end;
}

/* ---- printing ---- */

/* Spaces are due only before text, so that no line ends with one. */
static void print_text(FILE *out, int *due, const char *text, size_t n, int pad,
                       bool right)
{
    int before = *due + (right ? pad : 0);
    if (n == 0) {
        *due += pad;
        return;
    }
    fprintf(out, "%*s%.*s", before, "", (int)n, text);
    *due = right ? 0 : pad;
}

/* One line of a row: what is left of its cells. */
static void print_line(const trp_table *t, const char **rest, const struct cell *cells,
                       size_t from, size_t end, FILE *out)
{
    int due = 0;
    for (size_t c = 0; c < end; c = c ? c + 1 : from) {
        const struct column *v = &t->columns[c];
        bool whole = cells[c].message;
        size_t n = whole ? strlen(rest[c]) : line_of(rest[c], v->width, ",-_./=");
        int columns = (int)trp_utf8_count(rest[c], n);
        int pad = whole ? 0 : v->width - columns;
        if (c)
            due += GAP;
        print_text(out, &due, rest[c], n, pad, v->it.right);
        rest[c] += n;
        rest[c] += strspn(rest[c], " ");
    }
    fputc('\n', out);
}

static bool any(const char **rest, size_t from, size_t end)
{
    for (size_t c = from; c < end; c++)
        if (*rest[c])
            return true;
    return false;
}

static void print_row(const trp_table *t, size_t row, size_t from, size_t end,
                      const char **rest, FILE *out)
{
    const struct cell *cells = t->cells + row * t->ncolumns;
    for (size_t c = 0; c < t->ncolumns; c++)
        rest[c] = cells[c].text;
    bool all = from == 1 && end == t->ncolumns;
    if (!all && !any(rest, from, end))
        return;
    if (columns_of(rest[0]) > t->columns[0].width) {
        fprintf(out, "%s\n", rest[0]);
        rest[0] = "";
    }
    while (*rest[0] || any(rest, from, end))
        print_line(t, rest, cells, from, end, out);
}

static void print_groups(const trp_table *t, size_t from, size_t end, FILE *out)
{
    int due = t->columns[0].width;
    bool some = false;
    for (size_t c = from; c < end; c++)
        some |= t->columns[c].it.group != NULL;
    for (size_t c = from; some && c < end; c += together(t, c)) {
        const struct column *v = &t->columns[c];
        int width = v->width + (together(t, c) > 1 ? GAP + v[1].width : 0);
        const char *name = v->it.group ? v->it.group : "";
        due += GAP;
        print_text(out, &due, name, strlen(name), width - columns_of(name), true);
    }
    if (some)
        fputc('\n', out);
}

int trp_table_print(trp_table *t, FILE *out, trp_error *err)
{
    const char **rest = t ? calloc(t->ncolumns, sizeof *rest) : NULL;
    bool failed = !t || t->failed || !rest;
    if (!failed)
        measure_columns(t);
    for (size_t from = 1, end; !failed && from < t->ncolumns; from = end) {
        end = part_end(t, from);
        if (from > 1)
            fputc('\n', out);
        print_groups(t, from, end, out);
        for (size_t row = 0; row < t->n / t->ncolumns; row++)
            print_row(t, row, from, end, rest, out);
    }
    free(rest);
    table_free(t);
    return failed ? trp_error_set(err, TRP_ENOMEM, "out of memory for a table") : 0;
}
