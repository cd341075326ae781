/*
 * What an attempt was to make: patterns of files, each of which is to match one that the
 * attempt has made or changed when it has ended well. Looked for here, on the node where it
 * ran, since it may take a shared file system a while until others see them.
 *
 * The patterns are made when it starts: its item is not kept until its end. What they match
 * then is kept: a file that has the same number, size and times afterwards is not its work.
 * Times of files go by ticks of the kernel's clock. A file that was changed in this very tick
 * could be changed once more without a trace, so the start waits until it is over.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "executor/spawner_internal.h"
#include "os/output_pattern.h"

bool trp_outputs_of_attempt(const struct trp_command *c,
                            const struct trp_task_values *v, char **ret, char *why,
                            size_t size)
{
    struct trp_buf b = {0};
    bool none = false;
    *ret = NULL;
    for (uint32_t i = 0; i < c->noutputs && !none && !b.failed; i++) {
        char *pattern = trp_output_expand(c->outputs[i], v, &none);
        if (pattern)
            trp_put_raw(&b, pattern, strlen(pattern) + 1);
        else if (none)
            snprintf(why, size, "its output %.200s names no file of this task",
                     c->outputs[i]);
        else
            b.failed = true;
        free(pattern);
    }
    if (c->noutputs)
        trp_put_u8(&b, 0);
    if (b.failed)
        snprintf(why, size, "out of memory");
    if (!none && !b.failed) {
        *ret = (char *)b.data;
        return true;
    }
    trp_buf_free(&b);
    return false;
}

/* Whether one of them was changed in the present tick of the clock that files have. */
static bool any_is_new(const struct trp_outputs *o)
{
    struct timespec now;
    if (!o->n || clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0)
        return false;
    int64_t ns = (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
    for (uint32_t i = 0; i < o->n; i++)
        if (o->v[i].ctime_ns >= ns)
            return true;
    return false;
}

void trp_outputs_before(struct trp_running *r)
{
    enum { TICK_MS = 10 };
    const char *base = r->stage->command.base;
    trp_outputs_free(&r->before);
    for (const char *p = r->outputs; p && *p; p += strlen(p) + 1)
        trp_outputs_match(&r->before, base, p, true, NULL);
    if (any_is_new(&r->before))
        poll(NULL, 0, TICK_MS);
    trp_outputs_sort(&r->before);
}

static bool is_made(const struct trp_outputs *now, const struct trp_outputs *before)
{
    for (uint32_t i = 0; i < now->n; i++) {
        const struct trp_output *was = trp_outputs_find(before, now->v[i].path);
        if (!was || !trp_output_is_same(was, &now->v[i]))
            return true;
    }
    return now->large != NULL;
}

/* Appends a pattern without what makes a character mean itself. */
static void add_plain(char *ret, size_t size, const char *pattern)
{
    size_t n = strlen(ret);
    for (const char *p = pattern; *p && n + 1 < size; p++) {
        p += p[0] == '\\' && p[1];
        ret[n++] = *p;
    }
    ret[n] = '\0';
}

/* As a message says it; "": it was made. */
static void why_not_made(const struct trp_running *r, const char *pattern, char *ret,
                         size_t size)
{
    struct trp_outputs now = {0};
    char name[200] = "";
    trp_outputs_match(&now, r->stage->command.base, pattern, true, NULL);
    add_plain(name, sizeof name, pattern);
    if (!now.n)
        snprintf(ret, size, "output %s was not made", name);
    else if (!is_made(&now, &r->before))
        snprintf(ret, size, TRP_OUTPUT_UNCHANGED, name, name);
    trp_outputs_free(&now);
}

void trp_outputs_missing(const struct trp_running *r, char *ret, size_t size)
{
    *ret = '\0';
    for (const char *p = r->outputs; *p && !*ret; p += strlen(p) + 1)
        why_not_made(r, p, ret, size);
}

void trp_outputs_forget(struct trp_running *r)
{
    free(r->outputs);
    r->outputs = NULL;
    trp_outputs_free(&r->before);
}
