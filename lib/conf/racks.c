/*
 * A file's hosts are one sorted array of pairs; looking one up is a binary search.
 *
 * glibc's regular expressions double what {n} stands behind and go back for \1, so a
 * short pattern can take all memory or time. What makes that possible is refused: back
 * references, {n} behind a group or another repetition, numbers above 99, more groups
 * than the one.
 */
#include "conf/racks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/arena.h"
#include "conf/site.h"
#include "conf/wording.h"
#include "conf/yaml.h"
#include "core/base/array.h"
#include "os/whole_file.h"

enum { FILE_MAX = 64 << 20, RANGE_DIGITS = 9 };

struct entry {
    const char *host, *rack;
    struct trp_mark mark;
};

struct trp_racks {
    regex_t pattern;
    bool has_pattern;
    struct trp_conf_arena arena;
    struct entry *v;
    uint32_t n, capacity;
};

/* ---- patterns ---- */

/* Behind the bracket expression that begins at `p`; NULL: it does not end. */
static const char *skip_brackets(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    if (*p == ']')
        p++;
    while (*p && *p != ']') {
        const char *class =
            p[0] == '[' && p[1] && strchr(":.=", p[1]) ? strchr(p + 2, ']') : NULL;
        p = class ? class + 1 : p + 1;
    }
    return *p ? p + 1 : NULL;
}

/* "{2}", "{1,3}" with numbers below 100. */
static bool is_small_repetition(const char *p)
{
    size_t digits = strspn(p + 1, "0123456789"), more = 0;
    p += 1 + digits;
    if (*p == ',') {
        more = strspn(p + 1, "0123456789");
        p += 1 + more;
    }
    return digits >= 1 && digits <= 2 && more <= 2 && *p == '}';
}

/* What is wrong with its form, or NULL. */
static const char *pattern_fault(const char *p)
{
    uint32_t groups = 0, open = 0;
    bool repeatable = false; /* {n} may stand here */
    bool repeated = false;   /* behind *, +, ? or {n}: regcomp(3) copies copies */
    while (*p) {
        char c = *p;
        if (c == '[') {
            p = skip_brackets(p);
            if (!p)
                return "a bracket is not closed; write ]";
            repeatable = true;
            repeated = false;
            continue;
        }
        if (c == '\\' && isdigit((unsigned char)p[1]))
            return "a back reference (\\1) is not allowed; write what it stands for";
        if (c == '\\' && !p[1])
            return "it ends in \\; write \\\\ for that character";
        if (c == '{' && (!repeatable || !is_small_repetition(p)))
            return "{n} may stand behind one character only, with numbers up to 99; "
                   "write out what is repeated";
        if (repeated && strchr("*+?", c))
            return "two of * + ? {n} stand side by side; leave one";
        if (c == ')' && open == 0)
            return "it has a ) without its (; correct the brackets";
        groups += c == '(';
        open += c == '(' ? 1 : c == ')' ? -1U : 0;
        repeatable = c == '{' ? false : !strchr("()|*+?}^$", c);
        repeated = strchr("*+?{", c) != NULL;
        if (c == '{')
            p = strchr(p, '}');
        p += c == '\\' ? 2 : 1;
    }
    if (open)
        return "it has a ( without its ); correct the brackets";
    return groups == 1 ? NULL
                       : "it must have one group, whose text is the rack's name; "
                         "write it like r([0-9]+)n[0-9]+";
}

static int compile(const char *pattern, regex_t *ret, trp_error *err)
{
    char whole[TRP_RACKS_PATTERN_MAX + 16], why[128];
    if (strlen(pattern) > TRP_RACKS_PATTERN_MAX)
        return trp_error_set(err, TRP_EINVAL,
                             "the pattern is too long; write at most %d characters",
                             TRP_RACKS_PATTERN_MAX);
    const char *fault = pattern_fault(pattern);
    if (fault)
        return trp_error_set(err, TRP_EINVAL, "pattern \"%s\": %s",
                             trp_show(pattern).text, fault);
    snprintf(whole, sizeof(whole), "^(%s)$", pattern);
    int code = regcomp(ret, whole, REG_EXTENDED);
    if (code == REG_ESPACE)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a pattern");
    if (code) {
        regerror(code, ret, why, sizeof(why));
        return trp_error_set(err, TRP_EINVAL, "pattern \"%s\": %s; correct it",
                             trp_show(pattern).text, why);
    }
    return 0;
}

int trp_racks_check_pattern(const char *pattern, trp_error *err)
{
    regex_t compiled;
    int code = compile(pattern, &compiled, err);
    if (code == 0)
        regfree(&compiled);
    return code;
}

/* ---- files ---- */

struct reading {
    const char *file;
    trp_racks *r;
    const char *line; /* its begin, for columns */
    uint32_t number;
    trp_error *err;
};

static int wrong(struct reading *d, const char *at, const char *what)
{
    struct trp_mark mark = {.line = d->number, .column = (uint32_t)(at - d->line) + 1};
    return trp_error_at(d->err, TRP_EINVAL, d->file, mark, "%s", what);
}

static int add_host(struct reading *d, const char *at, const char *host,
                    const char *rack)
{
    trp_racks *r = d->r;
    if (r->n == TRP_RACKS_HOSTS)
        return wrong(d, at, "more than 1000000 hosts; use racks: {pattern: …}");
    char *copy = TRP_ARRAY_GROW(r->v, r->n, r->capacity)
                     ? trp_conf_arena_text(&r->arena, host, strlen(host))
                     : NULL;
    if (!copy)
        return trp_error_set(d->err, TRP_ENOMEM, "%s: out of memory", d->file);
    r->v[r->n++] = (struct entry){
        copy, rack, {.line = d->number, .column = (uint32_t)(at - d->line) + 1}
    };
    return 0;
}

/* A number of a range, of at most RANGE_DIGITS digits; NULL: none. */
static const char *read_number(const char *p, uint32_t *ret, int *ret_width)
{
    size_t n = strspn(p, "0123456789");
    if (n == 0 || n > RANGE_DIGITS)
        return NULL;
    *ret = (uint32_t)strtoul(p, NULL, 10);
    *ret_width = (int)n;
    return p + n;
}

/* "prefix[1-4,07]suffix", `bracket` at its '['. */
static int add_range(struct reading *d, const char *at, const char *name,
                     const char *bracket, const char *rack)
{
    static const char form[] = "not a list of hosts; write names like node[1-4,07]";
    const char *close = strchr(bracket, ']'), *p = bracket + 1;
    char host[TRP_RACKS_NAME_MAX + 1];
    if (!close || strpbrk(close + 1, "[]"))
        return wrong(d, at, form);
    do {
        uint32_t first = 0, last;
        int width, end_width;
        p = read_number(p, &first, &width);
        last = first;
        if (p && *p == '-')
            p = read_number(p + 1, &last, &end_width);
        if (!p || last < first || (*p != ',' && p != close))
            return wrong(d, at, form);
        for (uint32_t i = first; i <= last; i++) {
            int n = snprintf(host, sizeof(host), "%.*s%0*" PRIu32 "%s",
                             (int)(bracket - name), name, width, i, close + 1);
            if (n >= (int)sizeof(host))
                return wrong(d, at, "a host's name is too long; correct it");
            int code = add_host(d, at, host, rack);
            if (code < 0)
                return code;
        }
    } while (*p++ == ',');
    return 0;
}

/* One name of the list, from `at` to `end`. */
static int add_name(struct reading *d, const char *at, const char *end,
                    const char *rack)
{
    char name[TRP_RACKS_NAME_MAX + 1];
    size_t n = (size_t)(end - at);
    if (n == 0 || n > TRP_RACKS_NAME_MAX)
        return wrong(d, at, "not a host's name; write HOSTS RACK");
    memcpy(name, at, n);
    name[n] = '\0';
    const char *bracket = strchr(name, '[');
    if (!bracket && strchr(name, ']'))
        return wrong(d, at, "not a list of hosts; write names like node[1-4,07]");
    return bracket ? add_range(d, at, name, bracket, rack)
                   : add_host(d, at, name, rack);
}

static int add_hosts(struct reading *d, const char *p, const char *end,
                     const char *rack)
{
    bool inside = false;
    const char *begin = p;
    for (; p <= end; p++) {
        if (p < end && *p == '[')
            inside = true;
        if (p < end && *p == ']')
            inside = false;
        if (p < end && (*p != ',' || inside))
            continue;
        int code = add_name(d, begin, p, rack);
        if (code < 0)
            return code;
        begin = p + 1;
    }
    return 0;
}

static int read_line(struct reading *d, const char *end)
{
    static const char blanks[] = " \t\r";
    const char *p = d->line;
    const char *comment = memchr(p, '#', (size_t)(end - p));
    if (comment)
        end = comment;
    while (end > p && strchr(blanks, end[-1]))
        end--;
    while (p < end && strchr(blanks, *p))
        p++;
    if (p == end)
        return 0;
    const char *hosts = p;
    while (p < end && !strchr(blanks, *p))
        p++;
    const char *hosts_end = p;
    while (p < end && strchr(blanks, *p))
        p++;
    const char *rack = p;
    while (p < end && !strchr(blanks, *p))
        p++;
    while (p < end && strchr(blanks, *p))
        p++;
    if (rack == end || p != end)
        return wrong(d, rack == end ? hosts : p,
                     "a line has two words; write HOSTS RACK");
    if (end - rack > TRP_RACKS_NAME_MAX)
        return wrong(d, rack, "the rack's name is too long; shorten it");
    char *copy = trp_conf_arena_text(&d->r->arena, rack, (size_t)(end - rack));
    if (!copy)
        return trp_error_set(d->err, TRP_ENOMEM, "%s: out of memory", d->file);
    return add_hosts(d, hosts, hosts_end, copy);
}

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int c = strcmp(x->host, y->host);
    if (c)
        return c;
    return trp_mark_before(x->mark, y->mark) ? -1 : trp_mark_before(y->mark, x->mark);
}

static int check_doubles(struct reading *d)
{
    const trp_racks *r = d->r;
    for (size_t i = 1; i < r->n; i++) {
        const struct entry *a = &r->v[i - 1], *b = &r->v[i];
        if (!strcmp(a->host, b->host) && strcmp(a->rack, b->rack) != 0)
            return trp_error_at(d->err, TRP_EINVAL, d->file, b->mark,
                                "host %s is in rack %s and, by line %u, in rack %s; "
                                "write it once",
                                trp_show(b->host).text, trp_show(b->rack).text,
                                a->mark.line, trp_show(a->rack).text);
    }
    return 0;
}

static int new_racks(trp_racks **ret, trp_error *err)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory for the racks");
}

int trp_racks_parse(const char *file, const char *text, size_t size, trp_racks **ret,
                    trp_error *err)
{
    trp_racks *r;
    int code = new_racks(&r, err);
    if (code < 0)
        return code;
    struct reading d = {.file = file, .r = r, .err = err};
    const char *p = text, *end = text + size;
    while (p < end && code == 0) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *stop = newline ? newline : end;
        d.line = p;
        d.number++;
        code = memchr(p, '\0', (size_t)(stop - p))
                   ? wrong(&d, p, "not a text file; name one with lines HOSTS RACK")
                   : read_line(&d, stop);
        p = stop + 1;
    }
    if (code == 0 && r->n)
        qsort(r->v, r->n, sizeof(*r->v), compare);
    if (code == 0)
        code = check_doubles(&d);
    if (code == 0)
        *ret = r;
    else
        trp_racks_close(r);
    return code;
}

static int load_file(const trp_site *s, trp_racks **ret, trp_error *err)
{
    char *text = NULL;
    size_t size = 0;
    int fd = trp_file_open_regular(s->racks_text), code;
    int reason = fd < 0 ? errno : trp_file_read(fd, FILE_MAX, &text, &size);
    if (reason == ENOMEM)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory for the racks");
    else if (reason)
        code = trp_error_at(err, fd >= 0 && reason != EISDIR ? TRP_ESYSTEM : TRP_EINVAL,
                            s->file, s->racks_mark,
                            "racks: %s cannot be read: %s; name a file of lines HOSTS "
                            "RACK",
                            s->racks_text, strerror(reason));
    else if (size > FILE_MAX)
        code = trp_error_at(err, TRP_EINVAL, s->file, s->racks_mark,
                            "racks: %s is larger than %d MiB; use a pattern",
                            s->racks_text, FILE_MAX >> 20);
    else
        code = trp_racks_parse(s->racks_text, text, size, ret, err);
    if (fd >= 0)
        close(fd);
    free(text);
    return code;
}

/* ---- using them ---- */

int trp_racks_open(const struct trp_site *s, trp_racks **ret, trp_error *err)
{
    if (s->racks == TRP_SITE_RACKS_FILE)
        return load_file(s, ret, err);
    trp_racks *r;
    int code = new_racks(&r, err);
    if (code == 0 && s->racks == TRP_SITE_RACKS_PATTERN) {
        code = compile(s->racks_text, &r->pattern, err);
        r->has_pattern = code == 0;
    }
    if (code == 0)
        *ret = r;
    else
        trp_racks_close(r);
    return code;
}

void trp_racks_close(trp_racks *r)
{
    if (!r)
        return;
    if (r->has_pattern)
        regfree(&r->pattern);
    trp_conf_arena_free(&r->arena);
    free(r->v);
    free(r);
}

static bool look_up(const trp_racks *r, const char *host, char *buf, size_t size)
{
    regmatch_t match[3];
    size_t low = 0, high = r->n;
    if (r->has_pattern && regexec(&r->pattern, host, 3, match, 0) == 0 &&
        match[2].rm_so >= 0) {
        snprintf(buf, size, "%.*s", (int)(match[2].rm_eo - match[2].rm_so),
                 host + match[2].rm_so);
        return true;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = strcmp(r->v[middle].host, host);
        if (c == 0) {
            snprintf(buf, size, "%s", r->v[middle].rack);
            return true;
        }
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

const char *trp_racks_of(const trp_racks *r, const char *host, char *buf, size_t size)
{
    char name[TRP_RACKS_NAME_MAX + 1];
    size_t n = strcspn(host, ".");
    *buf = '\0';
    if (strlen(host) > TRP_RACKS_NAME_MAX || look_up(r, host, buf, size) || !host[n])
        return buf;
    memcpy(name, host, n);
    name[n] = '\0';
    look_up(r, name, buf, size);
    return buf;
}
