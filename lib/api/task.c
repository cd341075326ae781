/*
 * What a function may ask of its task. All but resources is a look into what the
 * executor passed. A task's resources are text lines ("gpu=0,1\n"); they are copied
 * once, when first asked for, so that names and addresses can be handed out as strings
 * that live as long as the task, and searched each time: a task has one or two.
 */
#include "api/flow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t trp_task_index(const trp_task *t)
{
    return t->info->task;
}

uint32_t trp_task_attempt(const trp_task *t)
{
    return t->info->number;
}

uint32_t trp_task_stage(const trp_task *t)
{
    return t->info->stage;
}

uint32_t trp_task_cpus(const trp_task *t)
{
    return t->info->cpus;
}

uint32_t trp_task_executor(const trp_task *t)
{
    return t->info->executor;
}

const char *trp_task_host(const trp_task *t)
{
    return t->info->host ? t->info->host : "";
}

int trp_task_killed(const trp_task *t)
{
    return t->info->killed && *t->info->killed != 0;
}

bool trp_task_has_failed(const trp_task *t)
{
    return t && t->ret->error[0];
}

void trp_task_error(trp_task *t, const char *fmt, ...)
{
    va_list ap;
    if (!t)
        return;
    va_start(ap, fmt);
    vsnprintf(t->ret->error, sizeof(t->ret->error), fmt, ap);
    va_end(ap);
    for (char *s = t->ret->error; *s; s++)
        if (*s == '\n')
            *s = ' ';
}

void trp_task_forget(trp_task *t)
{
    free(*t->resources);
    *t->resources = NULL;
}

/* Lines become strings, one after the other, the last one empty. */
static const char *resource_lines(const trp_task *t)
{
    if (*t->resources || !t->info->resources)
        return *t->resources;
    size_t n = strlen(t->info->resources);
    char *copy = malloc(n + 2);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < n; i++)
        copy[i] = strchr("\n=,", t->info->resources[i]) ? '\0' : t->info->resources[i];
    copy[n] = copy[n + 1] = '\0';
    *t->resources = copy;
    return copy;
}

uint32_t trp_task_resource(const trp_task *t, const char *resource,
                           const char **addresses, uint32_t cap)
{
    const char *copy = resource_lines(t);
    if (!copy || !resource)
        return 0;
    size_t wanted = strlen(resource);
    for (const char *line = t->info->resources; *line;) {
        const char *end = strchrnul(line, '\n');
        size_t name = strcspn(line, "=\n");
        if (name == wanted && memcmp(line, resource, wanted) == 0 &&
            line + name < end) {
            uint32_t n = 0;
            for (const char *a = line + name + 1; a < end;
                 a += strcspn(a, ",\n") + 1, n++)
                if (n < cap && addresses)
                    addresses[n] = copy + (a - t->info->resources);
            return n;
        }
        line = *end ? end + 1 : end;
    }
    return 0;
}

const void *trp_broadcast_get(trp_task *t, struct trp_broadcast b, size_t *ret_size)
{
    const struct trp_chain *c = t ? t->flow->chain : NULL;
    trp_error err;
    size_t size;
    if (!c)
        return NULL;
    const void *data =
        trp_broadcast_map(t->info, c->shared, c->broadcasts, c->nbroadcasts, b.id,
                          &t->flow->broadcasts, &size, &err);
    if (!data)
        trp_task_error(t, "%s", err.text);
    else if (ret_size)
        *ret_size = size;
    return data;
}

/* ---- barrier ---- */

/* One sync; 0, or the error, whose text is kept for the attempt. */
static int sync_all(trp_task *t, enum trp_sync_kind kind, const void *message,
                    uint32_t size, trp_writer *ret)
{
    uint8_t *reply = NULL;
    size_t n = 0;
    struct trp_synced s;
    int rc = t->info->sync(t->info, kind, message, size, &reply, &n);
    if (rc == 0)
        rc = trp_synced_get(reply, n, &s);
    if (rc == 0 && s.status < 0) {
        rc = s.status;
        trp_task_error(t, "%.*s", (int)s.text_size, (const char *)s.text);
    }
    for (uint32_t i = 0; rc == 0 && ret && i < s.count; i++) {
        size_t bytes;
        const uint8_t *m = trp_get_bytes(&s.counted, &bytes);
        if (trp_emit(ret, NULL, 0, m, bytes) < 0)
            rc = TRP_ENOMEM;
    }
    free(reply);
    return rc;
}

int trp_barrier_wait(trp_task *t)
{
    return sync_all(t, TRP_SYNC_BARRIER, NULL, 0, NULL);
}

int trp_barrier_allgather(trp_task *t, const void *message, size_t size,
                          const trp_batch **ret_messages)
{
    if (size > TRP_GATHER_MAX) {
        trp_task_error(t, "a message of %zu bytes; allGather takes %u", size,
                       (unsigned)TRP_GATHER_MAX);
        return TRP_ELIMIT;
    }
    trp_writer_reset(t->gathered);
    int rc = sync_all(t, TRP_SYNC_ALL_GATHER, message, (uint32_t)size, t->gathered);
    if (rc < 0)
        return rc;
    t->messages = trp_writer_batch(t->gathered);
    *ret_messages = &t->messages;
    return 0;
}
