/*
 * The end of a log, line by line. What mpirun has to say about a death comes after the
 * executor's own last words, between two lines of dashes, and says less than its exit
 * status: it is passed over. A log whose end has more than TAIL bytes after such a line
 * may show a line of mpirun's instead: this is for a message only.
 */
#include "cluster/local/log_tail.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { TAIL = 8192, DASHES = 40 };

/* The last TAIL bytes, from the beginning of a line on. */
static size_t read_tail(const char *path, char *buf)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    off_t end = lseek(fd, 0, SEEK_END), from = end > TAIL ? end - TAIL : 0;
    ssize_t n = end > 0 ? pread(fd, buf, TAIL, from) : 0;
    close(fd);
    const char *first = n > 0 && from > 0 ? memchr(buf, '\n', (size_t)n) : NULL;
    if (first) {
        n -= first + 1 - buf;
        memmove(buf, first + 1, (size_t)n);
    }
    return n > 0 ? (size_t)n : 0;
}

bool trp_log_last_line(const char *path, char *line, size_t size)
{
    char buf[TAIL];
    size_t left = read_tail(path, buf), length = 0;
    const char *last = NULL;
    bool mpirun = false;
    for (const char *at = buf; left > 0;) {
        const char *feed = memchr(at, '\n', left);
        size_t n = feed ? (size_t)(feed - at) : left, dashes = 0, blanks = 0;
        while (dashes < n && at[dashes] == '-')
            dashes++;
        while (blanks < n && (unsigned char)at[blanks] <= ' ')
            blanks++;
        if (dashes >= DASHES) {
            mpirun = !mpirun;
        } else if (!mpirun && blanks < n) {
            last = at + blanks;
            length = n - blanks;
        }
        n += feed ? 1 : 0;
        left -= n;
        at += n;
    }
    if (!last || length >= size)
        return false;
    memcpy(line, last, length);
    line[length] = '\0';
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return true;
}
