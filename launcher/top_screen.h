/*
 * The terminal of `troupe top`: its other screen, keys, size, and how it was before.
 *
 * Only sequences that all terminals of today know are written, and only lines that have
 * changed. What the terminal does not take (a slow connection) is never waited for: a new
 * frame is left out until the last one was taken.
 *
 *     trp_screen_open(&s, &err); trp_screen_on(&s);
 *     trp_screen_show(&s, lines, n);   … poll(s.out, POLLOUT) while trp_screen_busy(&s)
 *     trp_screen_off(&s); trp_screen_close(&s);
 */
#ifndef TRP_LAUNCHER_TOP_SCREEN_H
#define TRP_LAUNCHER_TOP_SCREEN_H

#include <stdbool.h>
#include <termios.h>

#include "core/base/bytes.h"
#include "core/base/error.h"

/* Keys that are not characters. */
enum trp_key {
    TRP_KEY_NONE = 0,
    TRP_KEY_UP = 1000,
    TRP_KEY_DOWN,
    TRP_KEY_PAGE_UP,
    TRP_KEY_PAGE_DOWN,
    TRP_KEY_HOME,
    TRP_KEY_END,
};

struct trp_screen {
    int in, out; /* `out` never blocks */
    struct termios was;
    bool on;
    int rows, columns;
    char **shown; /* what each row has; NULL: not known */
    int nshown;
    struct trp_buf pending; /* … of which so much was taken: */
    size_t taken;
    int sequence; /* of a key: so far; 0: none */
    int number;
};

/* TRP_EINVAL: stdin or stdout is no terminal, or none that has a cursor. */
int trp_screen_open(struct trp_screen *ret, trp_error *err);
void trp_screen_close(struct trp_screen *s);
/* Takes the terminal; its size is looked at, and all is to be drawn anew. */
void trp_screen_on(struct trp_screen *s);
/* Takes it once more, when somebody else may have had it meanwhile. */
void trp_screen_again(struct trp_screen *s);
/* Gives it back as it was; waits a second at most for one that takes nothing. */
void trp_screen_off(struct trp_screen *s);
/* The size may have changed. */
void trp_screen_resized(struct trp_screen *s);
/* Draws these rows, from the first on; other rows are blank. */
void trp_screen_show(struct trp_screen *s, char *const *lines, int n);
bool trp_screen_busy(const struct trp_screen *s);
void trp_screen_flush(struct trp_screen *s);
/* What a byte of stdin completes: a character, or an enum trp_key. */
int trp_screen_key(struct trp_screen *s, unsigned char byte);

#endif
