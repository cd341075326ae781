/*
 * What is no printable character is shown as "?": control characters of both sets, bytes
 * that are no UTF-8, characters without a shape (they would turn text around, or hide in
 * it), and all but ASCII where the terminal takes no more.
 */
#include "top_line.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "events/bar.h"

enum { ROOM = TRP_TOP_COLUMNS + 64 }; /* bytes kept for blanks and what ends a line */

struct range {
    uint32_t first, last;
};

static const struct range wide[] = {
    {0x1100,  0x115f },
    {0x231a,  0x231b },
    {0x23e9,  0x23ec },
    {0x2e80,  0x303e },
    {0x3041,  0x33ff },
    {0x3400,  0x4dbf },
    {0x4e00,  0x9fff },
    {0xa000,  0xa4cf },
    {0xa960,  0xa97c },
    {0xac00,  0xd7a3 },
    {0xf900,  0xfaff },
    {0xfe30,  0xfe6f },
    {0xff00,  0xff60 },
    {0xffe0,  0xffe6 },
    {0x16fe0, 0x18cff},
    {0x1b000, 0x1b2ff},
    {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff},
    {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};
static const struct range combining[] = {
    {0x0300,  0x036f },
    {0x0483,  0x0489 },
    {0x0591,  0x05bd },
    {0x0610,  0x061a },
    {0x064b,  0x065f },
    {0x0900,  0x0902 },
    {0x0e34,  0x0e3a },
    {0x0e47,  0x0e4e },
    {0x1ab0,  0x1aff },
    {0x1dc0,  0x1dff },
    {0x20d0,  0x20ff },
    {0xfe00,  0xfe0f },
    {0xfe20,  0xfe2f },
    {0xe0100, 0xe01ef},
};
static const struct range shapeless[] = {
    {0x0000,  0x001f  },
    {0x007f,  0x009f  },
    {0x00ad,  0x00ad  },
    {0x061c,  0x061c  },
    {0x180b,  0x180e  },
    {0x200b,  0x200f  },
    {0x2028,  0x202e  },
    {0x2060,  0x206f  },
    {0xe000,  0xf8ff  },
    {0xfeff,  0xfeff  },
    {0xfff0,  0xfffb  },
    {0xe0000, 0xe007f },
    {0xf0000, 0x10ffff},
};

#define IN(table, c) is_in(table, sizeof(table) / sizeof *(table), c)
static bool is_in(const struct range *table, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= table[i].first && c <= table[i].last)
            return true;
    return false;
}

/* One character of a text. */
struct glyph {
    const char *bytes; /* as it is shown */
    size_t n, taken;   /* bytes of it; of the text */
    int columns;
};

static uint32_t decode(const char *s, size_t n)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)s[0] & masks[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    return c;
}

static struct glyph glyph_of(const char *text, bool utf8)
{
    size_t n = trp_utf8_length(text, strnlen(text, 4));
    struct glyph unknown = {"?", 1, n ? n : 1, 1};
    if (!n || (n > 1 && !utf8))
        return unknown;
    uint32_t c = decode(text, n);
    if (IN(shapeless, c))
        return unknown;
    return (struct glyph){text, n, n, IN(combining, c) ? 0 : IN(wide, c) ? 2 : 1};
}

int trp_top_columns(const char *text, bool utf8)
{
    int columns = 0;
    while (*text) {
        struct glyph g = glyph_of(text, utf8);
        columns += g.columns;
        text += g.taken;
    }
    return columns;
}

/* Bytes that go into so many columns. */
static size_t fitting(const char *text, int columns, bool utf8)
{
    size_t n = 0;
    while (text[n]) {
        struct glyph g = glyph_of(text + n, utf8);
        columns -= g.columns;
        if (columns < 0)
            break;
        n += g.taken;
    }
    return n;
}

size_t trp_top_wrap(const char *text, int columns, bool utf8)
{
    size_t most = fitting(text, columns > 2 ? columns : 2, utf8);
    if (!text[most] || text[most] == ' ')
        return most;
    for (size_t i = most; i-- > 1;)
        if (text[i] == ' ')
            return i;
    return most;
}

/* ---- lines ---- */

void trp_top_line_begin(struct trp_top_line *l, int columns, bool utf8)
{
    l->n = 0;
    l->used = 0;
    l->columns = columns < TRP_TOP_COLUMNS ? columns : TRP_TOP_COLUMNS;
    l->utf8 = utf8;
    l->text[0] = '\0';
}

static void put_bytes(struct trp_top_line *l, const char *bytes, size_t n)
{
    if (l->n + n >= sizeof l->text)
        return;
    memcpy(l->text + l->n, bytes, n);
    l->n += n;
    l->text[l->n] = '\0';
}

static void blanks(struct trp_top_line *l, int n)
{
    for (; n > 0 && l->used < l->columns; n--, l->used++)
        put_bytes(l, " ", 1);
}

/* Glyphs of a text up to so many columns. */
static void glyphs(struct trp_top_line *l, const char *text, int columns)
{
    while (*text) {
        struct glyph g = glyph_of(text, l->utf8);
        if (g.columns > columns || l->n + g.n + ROOM >= sizeof l->text)
            return;
        put_bytes(l, g.bytes, g.n);
        columns -= g.columns;
        l->used += g.columns;
        text += g.taken;
    }
}

void trp_top_line_put(struct trp_top_line *l, const char *text, int width,
                      enum trp_align align)
{
    int room = l->columns - l->used, has = trp_top_columns(text, l->utf8);
    if (width < 0)
        width = has;
    if (width > room)
        width = room;
    if (has > width) {
        int until = l->used + width;
        glyphs(l, text, width - 1);
        if (l->used < until)
            put_bytes(l, l->utf8 ? "…" : "~", l->utf8 ? 3 : 1);
        l->used += l->used < until;
        blanks(l, until - l->used);
        return;
    }
    if (align == TRP_RIGHT)
        blanks(l, width - has);
    glyphs(l, text, has);
    if (align == TRP_LEFT)
        blanks(l, width - has);
}

void trp_top_line_printf(struct trp_top_line *l, const char *fmt, ...)
{
    char text[TRP_TOP_COLUMNS * 4];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    trp_top_line_put(l, text, -1, TRP_LEFT);
}

void trp_top_line_bar(struct trp_top_line *l, long long done, long long all, int width)
{
    char bar[TRP_BAR_SIZE(TRP_TOP_COLUMNS)];
    if (width > l->columns - l->used)
        width = l->columns - l->used;
    if (width < 3)
        return;
    trp_bar(l->utf8, done > 0 ? (uint64_t)done : 0, all > 0 ? (uint64_t)all : 0,
            width - 2, bar);
    trp_top_line_put(l, "[", 1, TRP_LEFT);
    trp_top_line_put(l, bar, width - 2, TRP_LEFT);
    trp_top_line_put(l, "]", 1, TRP_LEFT);
}

void trp_top_line_look(struct trp_top_line *l, enum trp_look look,
                       enum trp_colour colour)
{
    static const char *const codes[] = {[TRP_LOOK_PLAIN] = "\033[0m",
                                        [TRP_LOOK_BOLD] = "\033[0;1m",
                                        [TRP_LOOK_REVERSE] = "\033[0;7m"};
    put_bytes(l, codes[look], strlen(codes[look]));
    if (colour != TRP_COLOUR_NONE) {
        const char *code = trp_colour(1, colour);
        put_bytes(l, code, strlen(code));
    }
}

char *trp_top_line_end(struct trp_top_line *l)
{
    blanks(l, l->columns - l->used);
    trp_top_line_look(l, TRP_LOOK_PLAIN, TRP_COLOUR_NONE);
    return l->text;
}
