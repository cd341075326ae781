/*
 * Colours on a terminal.
 */
#ifndef TRP_OS_COLOUR_H
#define TRP_OS_COLOUR_H

enum trp_colour { TRP_COLOUR_NONE, TRP_COLOUR_GOOD, TRP_COLOUR_WARN, TRP_COLOUR_BAD };

/* What to write before text of that colour, and, with NONE, behind it. "": `fd` is no
 * terminal, or none that has colours (TERM=dumb), or NO_COLOR is set (no-color.org). */
const char *trp_colour(int fd, enum trp_colour colour);

#endif
