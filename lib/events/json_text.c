/*
 * JSON text. A string is copied in runs of plain bytes; only what needs an escape is
 * looked at byte by byte. UTF-8 is checked as RFC 3629 says (no overlong forms, no
 * surrogates, nothing above U+10FFFF); each byte that is not part of a valid sequence
 * becomes one U+FFFD, so that a line can be read by every parser.
 */
#include "events/json_text.h"

#include <stdio.h>

#include "core/base/utf8.h"

void trp_json_comma(struct trp_buf *b)
{
    char last = b->size > 0 ? (char)b->data[b->size - 1] : '[';
    if (last != '[' && last != '{')
        TRP_JSON(b, ",");
}

static void escape(struct trp_buf *b, unsigned char c)
{
    switch (c) {
    case '"':
        TRP_JSON(b, "\\\"");
        return;
    case '\\':
        TRP_JSON(b, "\\\\");
        return;
    case '\n':
        TRP_JSON(b, "\\n");
        return;
    case '\t':
        TRP_JSON(b, "\\t");
        return;
    case '\r':
        TRP_JSON(b, "\\r");
        return;
    default:
        if (c >= 0x80) {
            TRP_JSON(b, "\xef\xbf\xbd"); /* U+FFFD */
            return;
        }
        static const char hex[] = "0123456789abcdef";
        char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        trp_put_raw(b, text, sizeof text);
    }
}

void trp_json_string(struct trp_buf *b, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t plain = 0; /* start of the run that is copied as it stands */
    TRP_JSON(b, "\"");
    for (size_t i = 0; i < n;) {
        size_t len = trp_utf8_length(p + i, n - i);
        if (len > 1 || (len == 1 && p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')) {
            i += len;
            continue;
        }
        trp_put_raw(b, s + plain, i - plain);
        escape(b, p[i]);
        plain = ++i;
    }
    trp_put_raw(b, s + plain, n - plain);
    TRP_JSON(b, "\"");
}

void trp_json_text(struct trp_buf *b, const char *s)
{
    trp_json_string(b, s ? s : "", s ? strlen(s) : 0);
}

void trp_json_int(struct trp_buf *b, int64_t v)
{
    char text[20]; /* "-9223372036854775808" */
    size_t at = sizeof text;
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        text[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (v < 0)
        text[--at] = '-';
    trp_put_raw(b, text + at, sizeof text - at);
}

void trp_json_quoted(struct trp_buf *b, int64_t v)
{
    TRP_JSON(b, "\"");
    trp_json_int(b, v);
    TRP_JSON(b, "\"");
}

void trp_json_bool(struct trp_buf *b, bool v)
{
    if (v)
        TRP_JSON(b, "true");
    else
        TRP_JSON(b, "false");
}

void trp_json_amount(struct trp_buf *b, trp_amount v)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%012lld", (long long)(v % TRP_ONE));
    size_t n = 12;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    trp_json_int(b, v / TRP_ONE);
    TRP_JSON(b, ".");
    trp_put_raw(b, digits, n);
}
