/*
 * Reading texts. A file is read whole by zlib, which takes plain files as they are.
 *
 * Troff is taken out of a manual page in place, line by line: the text can only get
 * shorter. What is needed here is words and references, not layout: escapes go away but
 * `\-`, a request's name goes away and its arguments stay, and the ways in which pages
 * write a reference (`.BR ls (1)`, `.Xr ls 1`, `.so man1/ls.1`) all become "ls(1)".
 */
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "text.h"

/* ---- names ---- */

/* "ls.1.gz" → "ls(1)" */
static bool page_name(const char *base, char name[TEXT_NAME_MAX])
{
    size_t n = strlen(base);
    if (n > 3 && strcmp(base + n - 3, ".gz") == 0)
        n -= 3;
    size_t dot = n;
    while (dot > 0 && base[dot - 1] != '.')
        dot--;
    if (dot < 2 || dot >= n || !isdigit((unsigned char)base[dot]) ||
        dot + 3 >= TEXT_NAME_MAX)
        return false;
    snprintf(name, TEXT_NAME_MAX, "%.*s(%c)", (int)(dot - 1), base, base[dot]);
    return true;
}

enum text_kind text_name_of(const char *path, char name[TEXT_NAME_MAX])
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path, *doc = strstr(path, "/doc/");
    if (strstr(path, "/man/man") && page_name(base, name))
        return TEXT_MANUAL;
    if (strstr(path, "/common-licenses/")) {
        snprintf(name, TEXT_NAME_MAX, "%.*s", TEXT_NAME_MAX - 1, base);
        return TEXT_LICENCE;
    }
    snprintf(name, TEXT_NAME_MAX, "%.*s", TEXT_NAME_MAX - 1, doc ? doc + 1 : path);
    return TEXT_OTHER;
}

enum text_kind text_kind_of(const char *name)
{
    size_t n = strlen(name);
    if (strchr(name, '/'))
        return TEXT_OTHER;
    return n > 3 && name[n - 1] == ')' ? TEXT_MANUAL : TEXT_LICENCE;
}

bool text_find(const char *root, const char *name, char *path, size_t size)
{
    if (text_kind_of(name) == TEXT_OTHER)
        return false;
    if (text_kind_of(name) == TEXT_LICENCE) {
        snprintf(path, size, "%s/common-licenses/%s", root, name);
        return access(path, R_OK) == 0;
    }
    char pattern[2 * TEXT_NAME_MAX];
    glob_t found;
    int n = (int)strlen(name) - 3; /* without "(1)" */
    if (strpbrk(name, "*?[\\"))
        return false;
    snprintf(pattern, sizeof(pattern), "/man/man%c/%.*s.%c*", name[n + 1], n, name,
             name[n + 1]);
    snprintf(path, size, "%s%s", root, pattern);
    if (glob(path, GLOB_NOSORT, NULL, &found) != 0)
        return false;
    snprintf(path, size, "%s", found.gl_pathv[0]);
    globfree(&found);
    return true;
}

/* ---- troff ---- */

/* Bytes of the escape at `p`, which is a backslash: \fB, \f(CW, \m[blue], \s-1, \(em,
 * \[em], \*(lq, … */
static size_t escape_size(const char *p, const char *end)
{
    size_t left = (size_t)(end - p), n = 1;
    if (left > n && strchr("fgkmnsFMVY*", p[n]))
        n++;
    if (left > n && p[n] == '[') {
        const char *close = memchr(p, ']', left);
        return close ? (size_t)(close - p) + 1 : left;
    }
    if (left > n && p[n] == '(')
        n += 3;
    else
        n += left > n && (p[n] == '+' || p[n] == '-') && n == 2 ? 2 : 1;
    return n < left ? n : left;
}

/* Does the request (behind its dot) have no text: a comment, a definition, …? */
static bool is_silent(const char *line, const char *end)
{
    static const char *const requests[] = {"\\\"", "de", "ds", "ie", "if", "el", "nr",
                                           "tr",   "TH", "Dd", "Dt", "ft", "ig"};
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
        if (end - line >= 2 && memcmp(line, requests[i], 2) == 0)
            return true;
    return false;
}

/* The word at *p, which moves behind it. */
static size_t next_argument(const char **p, const char *end, const char **ret)
{
    while (*p < end && **p == ' ')
        (*p)++;
    *ret = *p;
    while (*p < end && **p != ' ')
        (*p)++;
    return (size_t)(*p - *ret);
}

/* A request that is nothing but a reference: "Xr ls 1", "MR ls 1", "so man1/ls.1".
 * Writes it and says how many bytes; 0: it is none. */
static size_t reference_request(const char *line, const char *end, char *out)
{
    char name[TEXT_NAME_MAX], file[TEXT_NAME_MAX];
    const char *page, *section;
    if (end - line < 4 || line[2] != ' ')
        return 0;
    const char *p = line + 3;
    size_t n = next_argument(&p, end, &page), m = next_argument(&p, end, &section);
    if (memcmp(line, "so", 2) == 0) {
        const char *slash = memrchr(page, '/', n);
        const char *base = slash ? slash + 1 : page;
        snprintf(file, sizeof(file), "%.*s", (int)(page + n - base), base);
        if (!page_name(file, name) || strlen(name) > (size_t)(end - line))
            return 0;
        return (size_t)(stpcpy(out, name) - out);
    }
    if ((memcmp(line, "Xr", 2) != 0 && memcmp(line, "MR", 2) != 0) || n == 0 ||
        m == 0 || !isdigit((unsigned char)*section))
        return 0;
    char digit = *section;
    memmove(out, page, n);
    memcpy(out + n, (char[]){'(', digit, ')'}, 3); /* " 1" was at least as long */
    return n + 3;
}

static char *plain_line(const char *line, const char *end, char *out)
{
    bool request = line < end && (*line == '.' || *line == '\'');
    if (request) {
        for (line++; line < end && *line == ' ';)
            line++;
        if (is_silent(line, end))
            return out;
        size_t n = reference_request(line, end, out);
        if (n)
            return out + n;
        while (line < end && *line != ' ')
            line++;
    }
    while (line < end) {
        if (*line == '\\') {
            if (end - line > 1 && line[1] == '-')
                *out++ = '-';
            line += escape_size(line, end);
        } else if (request && *line == '"') {
            line++;
        } else if (request && *line == ' ' && end - line > 2 && line[1] == '(' &&
                   isdigit((unsigned char)line[2])) {
            line++; /* .BR ls (1) */
        } else {
            *out++ = *line++;
        }
    }
    return out;
}

static size_t plain(char *text, size_t size)
{
    const char *p = text, *end = text + size;
    char *out = text;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        const char *stop = lf ? lf : end;
        out = plain_line(p, stop, out);
        if (lf)
            *out++ = '\n';
        p = stop + 1;
    }
    return (size_t)(out - text);
}

/* ---- files ---- */

/* The bytes of a file: as text_read. */
static int read_bytes(gzFile file, char **ret_text, size_t *ret_size)
{
    size_t size = 0, capacity = 64 << 10;
    char *text = malloc(capacity);
    int n = 1;
    while (text && size < TEXT_SIZE_MAX) {
        if (size == capacity) {
            char *more = realloc(text, capacity *= 2);
            if (!more)
                free(text);
            text = more;
            continue;
        }
        n = gzread(file, text + size, (unsigned)(capacity - size));
        if (n <= 0)
            break;
        size += (size_t)n;
    }
    if (!text)
        return -1;
    if (n < 0 || size == 0 || memchr(text, '\0', size < 4096 ? size : 4096)) {
        free(text);
        return 0;
    }
    *ret_text = text;
    *ret_size = size;
    return 1;
}

int text_read(const char *path, char **ret_text, size_t *ret_size)
{
    char name[TEXT_NAME_MAX];
    gzFile file = gzopen(path, "rbe");
    if (!file)
        return errno == ENOMEM ? -1 : 0;
    int rc = read_bytes(file, ret_text, ret_size);
    gzclose(file);
    if (rc == 1 && text_name_of(path, name) == TEXT_MANUAL)
        *ret_size = plain(*ret_text, *ret_size);
    return rc;
}

/* ---- words and references ---- */

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

bool text_next_word(const char **at, const char *end, char word[TEXT_WORD_MAX + 1])
{
    const char *p = *at;
    for (;;) {
        size_t n = 0;
        while (p < end && !is_letter(*p))
            p++;
        if (p == end)
            break;
        for (; p < end && is_letter(*p); p++, n++)
            if (n < TEXT_WORD_MAX)
                word[n] = (char)tolower((unsigned char)*p);
        if (n < 2 || n > TEXT_WORD_MAX)
            continue;
        word[n] = '\0';
        *at = p;
        return true;
    }
    *at = end;
    return false;
}

static bool is_page_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.:+-@", c));
}

/* "ls(1)": the bracket is found first, then the name before it. */
static bool next_page(const char **at, const char *end, char name[TEXT_NAME_MAX])
{
    for (const char *p = *at; p < end; p++) {
        p = memchr(p, '(', (size_t)(end - p));
        if (!p)
            break;
        const char *from = p;
        while (from > *at && is_page_char(from[-1]))
            from--;
        while (from < p && !isalnum((unsigned char)*from) && *from != '_')
            from++;
        size_t n = (size_t)(p - from), tail = 2;
        if (n < 2 || n + 4 > TEXT_NAME_MAX || end - p < 3 || p[1] < '1' || p[1] > '9')
            continue;
        while (tail < 8 && p + tail < end && isalpha((unsigned char)p[tail]))
            tail++;
        if (p + tail >= end || p[tail] != ')')
            continue;
        snprintf(name, TEXT_NAME_MAX, "%.*s(%c)", (int)n, from, p[1]);
        *at = p + tail + 1;
        return true;
    }
    *at = end;
    return false;
}

static bool next_licence(const char **at, const char *end, char name[TEXT_NAME_MAX])
{
    static const char folder[] = "/usr/share/common-licenses/";
    const size_t size = sizeof(folder) - 1;
    for (;;) {
        const char *p = memmem(*at, (size_t)(end - *at), folder, size);
        size_t n = 0;
        if (!p)
            break;
        p += size;
        while (p + n < end && n + 1 < TEXT_NAME_MAX &&
               (isalnum((unsigned char)p[n]) || p[n] == '-' || p[n] == '.'))
            n++;
        *at = p + n;
        while (n && p[n - 1] == '.') /* the end of a sentence */
            n--;
        if (n == 0)
            continue;
        snprintf(name, TEXT_NAME_MAX, "%.*s", (int)n, p);
        return true;
    }
    *at = end;
    return false;
}

bool text_next_reference(enum text_kind kind, const char **at, const char *end,
                         char name[TEXT_NAME_MAX])
{
    return kind == TEXT_MANUAL ? next_page(at, end, name) : next_licence(at, end, name);
}

/* ---- ends ---- */

void text_fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *text_open(const char *path, const char *mode)
{
    FILE *f = fopen(path, mode);
    if (!f)
        text_fail("cannot open %s: %s", path, strerror(errno));
    return f;
}

void text_close(void *file, const char *path)
{
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad)
        text_fail("cannot write %s: %s", path, strerror(errno));
}
