/* Tables as text. */
#include "driver/table_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/template.h"

static int wrong(const struct trp_table_rows *t, trp_error *err, const char *what)
{
    return trp_error_set(err, TRP_EINVAL, "line %zu %s", t->line, what);
}

/* The end of a value in quotes that begins at `at`; NULL: it has none. */
static char *quoted_end(char *at, const char *end)
{
    for (at++; (at = memchr(at, '"', (size_t)(end - at))); at += 2)
        if (at + 1 >= end || at[1] != '"')
            return at + 1;
    return NULL;
}

static bool ends_line(const char *at, const char *end)
{
    return at >= end || *at == '\n' || (*at == '\r' && at + 1 < end && at[1] == '\n');
}

/* The end of a value; NULL: it is not as it should be, and `err` says why. */
static char *value_end(const struct trp_table_rows *t, char *at, trp_error *err)
{
    char separator = t->csv ? ',' : '\t';
    if (t->csv && at < t->end && *at == '"') {
        at = quoted_end(at, t->end);
        if (!at)
            wrong(t, err, "has a quote that is not closed");
        else if (!ends_line(at, t->end) && *at != separator)
            return wrong(t, err, "has text behind a closing quote"), NULL;
        return at;
    }
    for (; !ends_line(at, t->end) && *at != separator; at++)
        if (t->csv && *at == '"')
            return wrong(t, err, "has a quote inside a value that has none around"),
                   NULL;
    return at;
}

/* Cuts a line that is not empty: 1, 0 at the end. */
static int cut(struct trp_table_rows *t, struct trp_text *ret, uint32_t *ret_cells,
               trp_error *err)
{
    char separator = t->csv ? ',' : '\t';
    while (t->at < t->end && ends_line(t->at, t->end)) {
        t->at += *t->at == '\r' ? 2 : 1;
        t->line++;
    }
    if (t->at >= t->end)
        return 0;
    char *from = t->at, *to = from;
    uint32_t n = 1;
    while ((to = value_end(t, to, err)) && !ends_line(to, t->end)) {
        to += *to == separator;
        n++;
    }
    if (!to)
        return TRP_EINVAL;
    if (memchr(from, '\0', (size_t)(to - from)))
        return wrong(t, err, "has a NUL byte, which no variable can hold");
    t->at = to >= t->end ? t->end : to + (*to == '\r' ? 2 : 1);
    for (const char *p = from; (p = memchr(p, '\n', (size_t)(to - p))); p++)
        t->line++; /* inside quotes */
    t->line++;
    *to = '\0';
    *ret = (struct trp_text){from, (size_t)(to - from)};
    *ret_cells = n;
    return 1;
}

bool trp_row_cell(const char **at, bool csv, struct trp_buf *b)
{
    const char *from = *at;
    if (!from)
        return false;
    if (csv && *from == '"') {
        for (from++; *from && (*from != '"' || from[1] == '"'); from++) {
            from += *from == '"';
            trp_put_u8(b, (uint8_t)*from);
        }
        from += *from == '"';
    } else {
        size_t n = strcspn(from, csv ? "," : "\t");
        trp_put_raw(b, from, n);
        from += n;
    }
    *at = *from ? from + 1 : NULL;
    return true;
}

/* ---- the header ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_names(const struct trp_table_rows *t, char **names, trp_error *err)
{
    char **sorted = calloc((size_t)t->ncells + 1, sizeof *sorted), name[80];
    int r = sorted ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < t->ncells && r == 0; i++) {
        size_t n = (size_t)snprintf(name, sizeof name, "col.%s", names[i]);
        sorted[i] = names[i];
        if (n >= sizeof name || !trp_template_is_name(name, n))
            r = trp_error_set(
                err, TRP_EINVAL,
                "line 1: \"%.60s\" is no name of a column; write letters, "
                "digits and '_', no digit first",
                names[i]);
    }
    if (r == 0)
        qsort(sorted, t->ncells, sizeof *sorted, by_text);
    for (uint32_t i = 1; i < t->ncells && r == 0; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            r = trp_error_set(err, TRP_EINVAL, "line 1 has the column %.60s twice",
                              sorted[i]);
    free(sorted);
    return r;
}

/* Makes the header's values NUL-terminated texts in its own place. */
static int take_names(const struct trp_table_rows *t, struct trp_text header,
                      char **names)
{
    struct trp_buf b = {0};
    const char *at = header.data;
    while (trp_row_cell(&at, t->csv, &b))
        trp_put_u8(&b, 0);
    if (b.failed) {
        trp_buf_free(&b);
        return TRP_ENOMEM;
    }
    memcpy(header.data, b.data, b.size); /* quotes and commas make room for the NULs */
    trp_buf_free(&b);
    char *name = header.data;
    for (uint32_t i = 0; i < t->ncells; i++, name += strlen(name) + 1)
        names[i] = name;
    return 0;
}

int trp_rows_open(struct trp_table_rows *t, char *data, size_t size, bool csv,
                  char ***ret_names, trp_error *err)
{
    bool marked = size >= 3 && memcmp(data, "\xEF\xBB\xBF", 3) == 0;
    struct trp_text header;
    *t = (struct trp_table_rows){
        .at = data + (marked ? 3 : 0),
        .end = data + size,
        .csv = csv,
        .line = 1,
    };
    int r = cut(t, &header, &t->ncells, err);
    if (r == 0)
        return trp_error_set(err, TRP_EINVAL, "has no header line");
    if (r > 0 && t->ncells > TRP_COLUMNS_MAX)
        return trp_error_set(err, TRP_ELIMIT,
                             "line 1 has %u columns, at most %d are "
                             "read",
                             t->ncells, TRP_COLUMNS_MAX);
    if (r < 0)
        return r;
    char **names = calloc((size_t)t->ncells + 1, sizeof *names);
    r = names ? take_names(t, header, names) : TRP_ENOMEM;
    if (r < 0)
        trp_error_set(err, r, "out of memory");
    else
        r = check_names(t, names, err);
    if (r < 0) {
        free(names);
        return r;
    }
    *ret_names = names;
    return 0;
}

int trp_rows_next(struct trp_table_rows *t, struct trp_text *ret, trp_error *err)
{
    uint32_t n = 0;
    int r = cut(t, ret, &n, err);
    if (r <= 0 || n == t->ncells)
        return r;
    return trp_error_set(err, TRP_EINVAL, "line %zu has %u value%s, the header has %u",
                         t->line - 1, n, n == 1 ? "" : "s", t->ncells);
}
