/*
 * The end of a log, line by line. What mpirun has to say about a death comes after the
 * executor's own last words, between two lines of dashes, and says less than its exit
 * status: it is passed over. A log whose end has more than TAIL bytes after such a line
 * may show a line of mpirun's instead: this is for a message only.
 *
 * mpirun cannot be kept from saying it by its --quiet: that also hides that a program
 * could not be started.
 */
#include "os/log_tail.h"
#include "core/base/utf8.h"
#include "os/held.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TAIL = 8192, DASHES = 40 };

/* A line of `left` bytes at `at`, without its LF; its length in all in *ret_whole. */
static size_t line_at(const char *at, size_t left, size_t *ret_whole)
{
    const char *feed = memchr(at, '\n', left);
    size_t n = feed ? (size_t)(feed - at) : left;
    *ret_whole = n + (feed ? 1 : 0);
    return n;
}

static bool is_rule(const char *at, size_t n)
{
    size_t dashes = 0;
    while (dashes < n && at[dashes] == '-')
        dashes++;
    return dashes >= DASHES;
}

static bool is_blank(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)at[i] > ' ')
            return false;
    return true;
}

/* The last TAIL bytes, from the beginning of a line on. */
static size_t read_tail(const char *path, char *buf)
{
    int fd = trp_held_open(path, O_RDONLY, 0);
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
        size_t whole, n = line_at(at, left, &whole), blanks = 0;
        while (blanks < n && (unsigned char)at[blanks] <= ' ')
            blanks++;
        if (is_rule(at, n)) {
            mpirun = !mpirun;
        } else if (!mpirun && blanks < n) {
            last = at + blanks;
            length = n - blanks;
        }
        left -= whole;
        at += whole;
    }
    if (!last || length >= size)
        return false;
    memcpy(line, last, length);
    line[length] = '\0';
    trp_utf8_plain(line, ' ');
    return true;
}

/* Of a death that this line begins to tell of. */
static bool tells_of_a_death(const char *at, size_t n)
{
    static const char *const banners[] = {"Primary job  terminated", "mpirun noticed"};
    for (size_t i = 0; i < sizeof banners / sizeof *banners; i++)
        if (n >= strlen(banners[i]) && memcmp(at, banners[i], strlen(banners[i])) == 0)
            return true;
    return false;
}

/* How many of the last bytes are such blocks and nothing else. */
static size_t banners(const char *buf, size_t size)
{
    bool inside = false, first = false;
    size_t from = size;
    for (size_t at = 0, whole; at < size; at += whole) {
        size_t n = line_at(buf + at, size - at, &whole);
        if (is_rule(buf + at, n)) {
            inside = first = !inside;
            if (inside && from == size)
                from = at;
        } else if (first) {
            first = false;
            if (!tells_of_a_death(buf + at, n))
                from = size;
        } else if (!inside && !is_blank(buf + at, n)) {
            from = size;
        }
    }
    return size - from;
}

void trp_log_drop_banners(const char *path)
{
    char buf[TAIL];
    size_t n = banners(buf, read_tail(path, buf));
    int fd = n ? trp_held_open(path, O_WRONLY | O_NOFOLLOW, 0) : -1;
    struct stat st;
    if (fd < 0)
        return;
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (!regular || ftruncate(fd, st.st_size - (off_t)n) < 0) {
        close(fd); /* they stay */
        return;
    }
    close(fd);
}
