/*
 * Bytes as hexadecimal digits, and text in which %XX stands for what may not stand
 * there as it is.
 */
#ifndef TRP_CORE_BASE_ESCAPE_H
#define TRP_CORE_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Value of a digit, upper or lower case; -1: it is none. */
static inline int trp_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Value of two digits; -1: they are none. The second is read when the first is one. */
static inline int trp_hex_byte(const char *s)
{
    int high = trp_hex_digit(s[0]), low = high < 0 ? -1 : trp_hex_digit(s[1]);
    return low < 0 ? -1 : high * 16 + low;
}

/* Writes 2 × n digits in lower case and a NUL. */
static inline void trp_hex_put(const void *bytes, size_t n, char *to)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[from[i] >> 4];
        *to++ = digits[from[i] & 15];
    }
    *to = '\0';
}

/* Writes %XX for a byte, and a NUL. */
static inline void trp_escape(unsigned char c, char to[4])
{
    static const char digits[] = "0123456789ABCDEF";
    to[0] = '%';
    to[1] = digits[c >> 4];
    to[2] = digits[c & 15];
    to[3] = '\0';
}

/* Turns %XX into bytes, from `from` (n bytes) to `to`, which may be the same. How many
 * bytes it has then, no NUL behind them; -1: a % without two digits, or %00. */
static inline long trp_unescape(const char *from, size_t n, char *to)
{
    char *at = to;
    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)from[i];
        if (c == '%') {
            c = i + 2 < n ? trp_hex_byte(from + i + 1) : -1;
            if (c <= 0)
                return -1;
            i += 2;
        }
        *at++ = (char)c;
    }
    return at - to;
}

#endif
