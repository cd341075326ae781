/*
 * `out` is opened anew, so that O_NONBLOCK is this process's alone: the shell has stdout,
 * too. Where that is not allowed (after su) stdout itself is written to.
 *
 * Lines may fill the last column: the terminal is told not to go on in the next row.
 */
#include "top_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/time.h"
#include "os/clock.h"

enum {
    ROWS_MAX = 1000,
    COLUMNS_MAX = 1000,
    OFF_WAIT_MS = 1000,
};

/* The other screen, no cursor, no next row; and back. */
static const char enter[] = "\033[?1049h\033[?25l\033[?7l\033[0m\033[2J\033[H";
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

/* ---- what is written ---- */

bool trp_screen_busy(const struct trp_screen *s)
{
    return s->taken < s->pending.size;
}

void trp_screen_flush(struct trp_screen *s)
{
    while (trp_screen_busy(s)) {
        ssize_t n =
            write(s->out, s->pending.data + s->taken, s->pending.size - s->taken);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) /* nobody is there: poll on stdin tells */
            break;
        s->taken += (size_t)n;
    }
    trp_buf_clear(&s->pending);
    s->pending.failed = false;
    s->taken = 0;
}

static void put(struct trp_screen *s, const char *text)
{
    trp_put_raw(&s->pending, text, strlen(text));
}

/* For at most so long. */
static void finish(struct trp_screen *s, int wait_ms)
{
    int64_t until = trp_clock_ns() + wait_ms * TRP_MS;
    trp_screen_flush(s);
    while (trp_screen_busy(s) && trp_clock_ns() < until) {
        struct pollfd p = {.fd = s->out, .events = POLLOUT};
        poll(&p, 1, 50);
        trp_screen_flush(s);
    }
}

static void forget(struct trp_screen *s)
{
    for (int i = 0; i < s->nshown; i++)
        free(s->shown[i]);
    free(s->shown);
    s->shown = NULL;
    s->nshown = 0;
}

static void put_row(struct trp_screen *s, int row, const char *line)
{
    char at[32];
    if (s->shown[row] && strcmp(s->shown[row], line) == 0)
        return;
    free(s->shown[row]);
    s->shown[row] = strdup(line);
    snprintf(at, sizeof at, "\033[%d;1H", row + 1);
    put(s, at);
    put(s, line);
}

void trp_screen_show(struct trp_screen *s, char *const *lines, int n)
{
    char blank[COLUMNS_MAX + 1];
    if (!s->on || trp_screen_busy(s))
        return;
    if (!s->shown) {
        s->shown = calloc((size_t)s->rows, sizeof *s->shown);
        s->nshown = s->shown ? s->rows : 0;
        put(s, "\033[0m\033[2J");
    }
    memset(blank, ' ', (size_t)s->columns);
    blank[s->columns] = '\0';
    for (int i = 0; i < s->nshown; i++)
        put_row(s, i, i < n ? lines[i] : blank);
    if (s->pending.failed) {
        trp_buf_clear(&s->pending);
        s->pending.failed = false;
        forget(s);
    }
    trp_screen_flush(s);
}

/* ---- the terminal ---- */

void trp_screen_resized(struct trp_screen *s)
{
    struct winsize w = {0};
    if (ioctl(s->out, TIOCGWINSZ, &w) < 0 || !w.ws_row || !w.ws_col)
        w = (struct winsize){.ws_row = 24, .ws_col = 80};
    s->rows = w.ws_row < ROWS_MAX ? w.ws_row : ROWS_MAX;
    s->columns = w.ws_col < COLUMNS_MAX ? w.ws_col : COLUMNS_MAX;
    forget(s);
}

int trp_screen_open(struct trp_screen *ret, trp_error *err)
{
    const char *term = getenv("TERM");
    *ret = (struct trp_screen){.in = STDIN_FILENO, .out = STDOUT_FILENO};
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return trp_error_set(err, TRP_EINVAL,
                             "top needs a terminal; troupe status shows a run once, "
                             "--json prints a document a line");
    if (!term || !*term || strcmp(term, "dumb") == 0 ||
        tcgetattr(ret->in, &ret->was) < 0)
        return trp_error_set(err, TRP_EINVAL,
                             "this terminal (TERM=%s) has no cursor that could be "
                             "moved; troupe status shows a run once",
                             term ? term : "");
    int out = open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (out >= 0)
        ret->out = out;
    return 0;
}

void trp_screen_close(struct trp_screen *s)
{
    if (s->out != STDOUT_FILENO)
        close(s->out);
    trp_buf_free(&s->pending);
    forget(s);
}

static void take(struct trp_screen *s)
{
    struct termios raw = s->was;
    /* Signals are left to the keys that make them. Ctrl-S must not stop what is shown. */
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(s->in, TCSADRAIN, &raw);
    s->sequence = 0;
    trp_screen_resized(s);
    put(s, enter);
    trp_screen_flush(s);
}

void trp_screen_on(struct trp_screen *s)
{
    if (s->on || tcgetattr(s->in, &s->was) < 0)
        return;
    s->on = true;
    take(s);
}

void trp_screen_again(struct trp_screen *s)
{
    if (s->on)
        take(s);
}

void trp_screen_off(struct trp_screen *s)
{
    if (!s->on)
        return;
    finish(s, OFF_WAIT_MS / 2);
    put(s, leave);
    finish(s, OFF_WAIT_MS / 2);
    trp_buf_clear(&s->pending);
    s->taken = 0;
    if (tcgetpgrp(s->in) == getpgrp()) /* else the shell has it again already */
        tcsetattr(s->in, TCSANOW, &s->was);
    s->on = false;
}

/* ---- keys ---- */

enum { ESCAPE = 1, BRACKET, LETTER_O };

static int key_of_number(int number)
{
    switch (number) {
    case 1:
    case 7:
        return TRP_KEY_HOME;
    case 4:
    case 8:
        return TRP_KEY_END;
    case 5:
        return TRP_KEY_PAGE_UP;
    case 6:
        return TRP_KEY_PAGE_DOWN;
    default:
        return TRP_KEY_NONE;
    }
}

static int key_of_letter(unsigned char letter)
{
    switch (letter) {
    case 'A':
        return TRP_KEY_UP;
    case 'B':
        return TRP_KEY_DOWN;
    case 'H':
        return TRP_KEY_HOME;
    case 'F':
        return TRP_KEY_END;
    default:
        return TRP_KEY_NONE;
    }
}

/* Behind ESC [: digits and what separates them, then a final byte. */
static int in_brackets(struct trp_screen *s, unsigned char byte)
{
    if (byte >= '0' && byte <= '9') {
        s->number = s->number < 100 ? s->number * 10 + (byte - '0') : s->number;
        return TRP_KEY_NONE;
    }
    if (byte >= 0x20 && byte < 0x40)
        return TRP_KEY_NONE;
    s->sequence = 0;
    return byte == '~' ? key_of_number(s->number) : key_of_letter(byte);
}

int trp_screen_key(struct trp_screen *s, unsigned char byte)
{
    int was = s->sequence;
    if (byte == '\033') {
        s->sequence = ESCAPE;
        s->number = 0;
        return TRP_KEY_NONE;
    }
    if (was == BRACKET)
        return in_brackets(s, byte);
    s->sequence = 0;
    if (was == ESCAPE && (byte == '[' || byte == 'O')) {
        s->sequence = byte == '[' ? BRACKET : LETTER_O;
        return TRP_KEY_NONE;
    }
    return was == LETTER_O ? key_of_letter(byte) : byte;
}
