/*
 * One line on a terminal, made from left to right of cells that are as wide as they are
 * told to be, whatever is in them: names may be any text, and none of it moves the cursor
 * or changes colours. Columns are counted as terminals do: wide characters are two,
 * combining ones none.
 *
 *     struct trp_top_line l;
 *     trp_top_line_begin(&l, columns, utf8);
 *     trp_top_line_put(&l, name, 20, TRP_LEFT);
 *     trp_top_line_end(&l); … l.text
 */
#ifndef TRP_LAUNCHER_TOP_LINE_H
#define TRP_LAUNCHER_TOP_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "os/colour.h"

enum { TRP_TOP_COLUMNS = 500, TRP_TOP_BYTES = TRP_TOP_COLUMNS * 4 + 1024 };

enum trp_align { TRP_LEFT, TRP_RIGHT };

struct trp_top_line {
    char text[TRP_TOP_BYTES];
    size_t n;
    int columns, used;
    bool utf8;
};

void trp_top_line_begin(struct trp_top_line *l, int columns, bool utf8);
/* Text in so many columns, cut with an ellipsis where it is too long; `width` < 0: as
 * many as it has. What the line has no room for is left out. */
void trp_top_line_put(struct trp_top_line *l, const char *text, int width,
                      enum trp_align align);
void trp_top_line_printf(struct trp_top_line *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A bar in brackets, so many columns in all. */
void trp_top_line_bar(struct trp_top_line *l, long long done, long long all, int width);
/* What follows looks so. Colours only where they are wanted (os/colour.h). */
enum trp_look { TRP_LOOK_PLAIN, TRP_LOOK_BOLD, TRP_LOOK_REVERSE };
void trp_top_line_look(struct trp_top_line *l, enum trp_look look,
                       enum trp_colour colour);
/* Blanks up to the last column, plain again behind. Returns the text. */
char *trp_top_line_end(struct trp_top_line *l);

/* Columns of a text when it is shown. */
int trp_top_columns(const char *text, bool utf8);
/* Bytes of `text` that go into so many columns, up to a blank where there is one. */
size_t trp_top_wrap(const char *text, int columns, bool utf8);

#endif
