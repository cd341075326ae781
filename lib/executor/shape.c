/*
 * The shape of an executor as one line of text, for an environment variable:
 * "id=3;cores=2;…;run_dir=/home/x/a%3Bb". One table names the fields, so that writing
 * and reading cannot disagree. In values '%', ';', '=' and control characters are
 * written as %XX. All fields must be there, once, in any order; an unknown one is an
 * error, since both sides are the same build.
 */
#include "executor/executor.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"

enum kind { U32, I64, TEXT };

struct field {
    const char *name;
    enum kind kind;
    size_t offset, size;
};

#define FIELD(name, kind)                                                              \
    {                                                                                  \
#name, kind, offsetof(struct trp_executor_shape, name),                        \
            sizeof(((struct trp_executor_shape *)0)->name)                             \
    }

static const struct field fields[] = {
    FIELD(id, U32),
    FIELD(cores, U32),
    FIELD(slots, U32),
    FIELD(memory_mib, I64),
    FIELD(cpuset, TEXT),
    FIELD(cgroup, TEXT),
    FIELD(driver, TEXT),
    FIELD(secret_file, TEXT),
    FIELD(run_name, TEXT),
    FIELD(run_dir, TEXT),
    FIELD(run_id, TEXT),
    FIELD(scratch, TEXT),
    FIELD(network_timeout_ns, I64),
    FIELD(heartbeat_ns, I64),
    FIELD(in_cgroup, U32),
    FIELD(munge, U32),
    FIELD(sockets, U32),
    FIELD(mac, U32),
};
enum { NFIELDS = sizeof fields / sizeof fields[0] };

static bool plain(unsigned char c)
{
    return c > 0x20 && c != 0x7f && c != '%' && c != ';' && c != '=';
}

static void put_text(FILE *out, const char *s)
{
    char escaped[4];
    for (; *s; s++) {
        trp_escape((unsigned char)*s, escaped);
        if (plain((unsigned char)*s))
            fputc(*s, out);
        else
            fputs(escaped, out);
    }
}

char *trp_shape_put(const struct trp_executor_shape *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < NFIELDS; i++) {
        const char *at = (const char *)s + fields[i].offset;
        fprintf(out, "%s%s=", i ? ";" : "", fields[i].name);
        if (fields[i].kind == U32)
            fprintf(out, "%u", *(const uint32_t *)(const void *)at);
        else if (fields[i].kind == I64)
            fprintf(out, "%lld", (long long)*(const int64_t *)(const void *)at);
        else
            put_text(out, at);
    }
    bool bad = ferror(out);
    if (fclose(out) != 0 || bad) {
        free(text);
        return NULL;
    }
    return text;
}

static int get_text(const char *from, size_t n, const struct field *f, char *to,
                    trp_error *err)
{
    char *text = malloc(n + 1);
    if (!text)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    long used = trp_unescape(from, n, text);
    int code = TRP_OK;
    if (used < 0)
        code = trp_error_set(err, TRP_EINVAL, "TROUPE_EXECUTOR: %s has a bad %% escape",
                             f->name);
    else if ((size_t)used >= f->size)
        code = trp_error_set(err, TRP_ELIMIT,
                             "TROUPE_EXECUTOR: %s is longer than %zu bytes", f->name,
                             f->size - 1);
    if (code == TRP_OK)
        *(char *)mempcpy(to, text, (size_t)used) = '\0';
    free(text);
    return code;
}

static int get_number(const char *from, size_t n, const struct field *f, char *to,
                      trp_error *err)
{
    char digits[24], *end;
    long long v = -1;
    if (n && n < sizeof digits) {
        memcpy(digits, from, n);
        digits[n] = '\0';
        errno = 0;
        v = strtoll(digits, &end, 10);
        if (errno || *end || digits[0] < '0' || digits[0] > '9')
            v = -1;
    }
    if (v < 0 || (f->kind == U32 && v > UINT32_MAX))
        return trp_error_set(err, TRP_EINVAL,
                             "TROUPE_EXECUTOR: %s is not a number in range", f->name);
    if (f->kind == U32)
        *(uint32_t *)(void *)to = (uint32_t)v;
    else
        *(int64_t *)(void *)to = v;
    return TRP_OK;
}

static int get_field(const char *at, size_t n, struct trp_executor_shape *s, bool *had,
                     trp_error *err)
{
    const char *equals = memchr(at, '=', n);
    size_t name = equals ? (size_t)(equals - at) : n;
    for (size_t i = 0; i < NFIELDS; i++) {
        const struct field *f = &fields[i];
        if (strlen(f->name) != name || memcmp(f->name, at, name) != 0 || !equals)
            continue;
        if (had[i])
            return trp_error_set(err, TRP_EINVAL, "TROUPE_EXECUTOR: %s is given twice",
                                 f->name);
        had[i] = true;
        char *to = (char *)s + f->offset;
        return f->kind == TEXT ? get_text(equals + 1, n - name - 1, f, to, err)
                               : get_number(equals + 1, n - name - 1, f, to, err);
    }
    return trp_error_set(err, TRP_EINVAL, "TROUPE_EXECUTOR: unknown field \"%.*s\"",
                         (int)(name < 64 ? name : 64), at);
}

int trp_shape_parse(const char *text, struct trp_executor_shape *ret, trp_error *err)
{
    struct trp_executor_shape *s = calloc(1, sizeof *s);
    bool had[NFIELDS] = {false};
    if (!s)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int r = TRP_OK;
    while (r == TRP_OK) {
        size_t n = strcspn(text, ";");
        r = get_field(text, n, s, had, err);
        if (!text[n])
            break;
        text += n + 1;
    }
    for (size_t i = 0; i < NFIELDS && r == TRP_OK; i++)
        if (!had[i])
            r = trp_error_set(err, TRP_EINVAL, "TROUPE_EXECUTOR: %s is missing",
                              fields[i].name);
    if (r == TRP_OK && (s->cores == 0 || s->slots == 0))
        r = trp_error_set(err, TRP_EINVAL,
                          "TROUPE_EXECUTOR: cores and slots must be at least 1");
    if (r == TRP_OK)
        *ret = *s;
    free(s);
    return r;
}
