/*
 * UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. A
 * character counts as one column.
 */
#ifndef TRP_CORE_BASE_UTF8_H
#define TRP_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `s`, of which `n` > 0 bytes are left; 0: it is none. */
static inline size_t trp_utf8_length(const void *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : length;
}

/* Bytes of the printable character at `s`, which ends in a NUL; 0: it is none, as are
 * control characters of both sets (C1 is U+0080 to U+009F). */
static inline size_t trp_utf8_printable(const char *s)
{
    const unsigned char *c = (const unsigned char *)s;
    if (c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0))
        return 0;
    size_t n = 1;
    while (n < 4 && s[n])
        n++;
    return trp_utf8_length(s, n);
}

/* Puts `instead` in the place of each byte that is of no printable character. */
static inline void trp_utf8_plain(char *text, char instead)
{
    for (size_t n; *text; text += n ? n : 1) {
        n = trp_utf8_printable(text);
        if (!n)
            *text = instead;
    }
}

/* Whether a byte continues the character before it. */
static inline bool trp_utf8_goes_on(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Characters that begin in `n` bytes. */
static inline size_t trp_utf8_count(const char *text, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += !trp_utf8_goes_on(text[i]);
    return count;
}

/* Bytes of the first `count` characters of a string; of all, when there are fewer. */
static inline size_t trp_utf8_bytes(const char *text, size_t count)
{
    size_t n = 0;
    for (; text[n]; n++)
        if (!trp_utf8_goes_on(text[n]) && count-- == 0)
            break;
    return n;
}

#endif
