/*
 * Lines are found by bisection. A column is counted on from the byte asked for last
 * when that is in the same line, since parsers ask from front to back: a file of one
 * long line costs its length once, not once a value.
 */
#include "conf/yaml_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/utf8.h"

/* Length of the UTF-8 character at `p`, 0 when it is not one or a control character
 * that YAML does not allow. */
static size_t character(const unsigned char *p, const unsigned char *end)
{
    if (p[0] < 0x20 && p[0] != '\t' && p[0] != '\n' && p[0] != '\r')
        return 0;
    return trp_utf8_length(p, (size_t)(end - p));
}

/* What a character adds to the signs that are counted, in halves. */
static uint32_t half_signs(unsigned char c)
{
    switch (c) {
    case '[':
    case ']':
    case '{':
    case '}':
    case ',':
    case ':':
    case '?':
        return 2;
    case '"':
    case '\'':
        return 1;
    default:
        return 0;
    }
}

static bool add_line(struct trp_yaml_text *t, size_t offset)
{
    if (!TRP_ARRAY_GROW(t->lines, t->nlines, t->capacity))
        return false;
    t->lines[t->nlines++] = offset;
    return true;
}

int trp_yaml_text_scan(struct trp_yaml_text *t, const char *data, size_t size,
                       size_t *ret_bad)
{
    const unsigned char *p = (const unsigned char *)data;
    uint32_t halves = 0;
    *t = (struct trp_yaml_text){.data = data, .size = size, .last_column = 1};
    if (!add_line(t, 0))
        return TRP_ENOMEM;
    for (size_t i = 0, n; i < size; i += n) {
        n = character(p + i, p + size);
        halves += half_signs(p[i]);
        if (n == 0 || halves > 2 * TRP_YAML_SIGNS) {
            *ret_bad = i;
            return n == 0 ? TRP_EINVAL : TRP_ELIMIT;
        }
        bool crlf = p[i] == '\r' && i + 1 < size && p[i + 1] == '\n';
        bool end_of_line = p[i] == '\n' || (p[i] == '\r' && !crlf);
        if (end_of_line && !add_line(t, i + 1))
            return TRP_ENOMEM;
    }
    return 0;
}

void trp_yaml_text_free(struct trp_yaml_text *t)
{
    free(t->lines);
    t->lines = NULL;
}

struct trp_mark trp_yaml_text_mark(struct trp_yaml_text *t, size_t offset)
{
    uint32_t low = 0, high = t->nlines;
    offset = offset < t->size ? offset : t->size;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (t->lines[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t column;
    if (low != t->last_line)
        column = 1 + (uint32_t)trp_utf8_count(t->data + t->lines[low],
                                              offset - t->lines[low]);
    else if (offset >= t->last)
        column = t->last_column +
                 (uint32_t)trp_utf8_count(t->data + t->last, offset - t->last);
    else
        column = t->last_column -
                 (uint32_t)trp_utf8_count(t->data + offset, t->last - offset);
    t->last = offset;
    t->last_line = low;
    t->last_column = column;
    return (struct trp_mark){.line = low + 1, .column = column};
}

size_t trp_yaml_text_offset(const struct trp_yaml_text *t, struct trp_mark at)
{
    if (at.line == 0 || at.line > t->nlines)
        return t->size;
    size_t i = t->lines[at.line - 1];
    for (uint32_t column = 1; i < t->size && column < at.column; column++)
        i += character((const unsigned char *)t->data + i,
                       (const unsigned char *)t->data + t->size);
    return i < t->size ? i : t->size;
}

size_t trp_yaml_text_block(const struct trp_yaml_text *t, size_t content, char sign)
{
    size_t begin = content > 0 ? content - 1 : 0; /* the end of the line above */
    while (begin > 0 && t->data[begin - 1] != '\n' && t->data[begin - 1] != '\r')
        begin--;
    for (size_t i = begin; i < content; i++) {
        const char *rest = t->data + i + 1;
        if (t->data[i] != sign)
            continue;
        rest += strspn(rest, "0123456789+-");
        rest += strspn(rest, " \t");
        if (strchr("#\r\n", *rest)) /* a comment or nothing behind it */
            return i;
    }
    return content;
}
