/*
 * The oracle's exclusion on failure: semantics 12.
 */
#include "oracle.h"

#include <assert.h>

static int host_of(const struct oracle *o, int executor)
{
    return o->setup->executors[executor].host;
}

/* ---- 12.1: inside a task set ---- */

static int tasks_failed_on(const struct oracle *o, int set, int executor)
{
    int n = 0;
    for (int t = 0; t < o->setup->sets[set].ntasks; t++)
        n += o->sets[set].tasks[t].failed_on[executor] > 0;
    return n;
}

void or_count_failure(struct oracle *o, int set, int task, int executor)
{
    const struct or_exclusion *c = &o->setup->exclusion;
    struct or_set *s = &o->sets[set];
    if (!c->on)
        return;
    s->tasks[task].failed_on[executor]++;
    s->tasks[task].failed_at[executor] = o->now;
    if (s->excluded_executor[executor] ||
        tasks_failed_on(o, set, executor) < c->set_per_executor)
        return;
    s->excluded_executor[executor] = true;
    int host = host_of(o, executor), n = 0;
    for (int x = 0; x < OR_EXECUTORS; x++)
        n += s->excluded_executor[x] && host_of(o, x) == host;
    if (n >= c->set_executors_per_host)
        s->excluded_host[host] = true;
}

bool or_set_excluded(const struct oracle *o, int set, int executor)
{
    return o->sets[set].excluded_executor[executor] ||
           o->sets[set].excluded_host[host_of(o, executor)];
}

bool or_task_excluded(const struct oracle *o, int set, int task, int executor)
{
    const struct or_exclusion *c = &o->setup->exclusion;
    const struct or_task *t = &o->sets[set].tasks[task];
    int on_host = 0;
    for (int x = 0; x < OR_EXECUTORS; x++)
        if (host_of(o, x) == host_of(o, executor))
            on_host += t->failed_on[x];
    return c->on && (t->failed_on[executor] >= c->task_per_executor ||
                     on_host >= c->task_per_host);
}

/* ---- 12.2: for the application ---- */

bool or_app_excluded(const struct oracle *o, int executor)
{
    return o->executors[executor].excluded_until >= 0 ||
           o->host_excluded_until[host_of(o, executor)] >= 0;
}

void oracle_tick(struct oracle *o)
{
    for (int x = 0; x < OR_EXECUTORS; x++)
        if (o->now > o->executors[x].excluded_until)
            o->executors[x].excluded_until = -1;
    for (int h = 0; h < OR_HOSTS; h++)
        if (o->now > o->host_excluded_until[h])
            o->host_excluded_until[h] = -1;
}

static void add_failures(struct oracle *o, int set, int executor)
{
    struct or_executor *x = &o->executors[executor];
    int kept = 0;
    for (int t = 0; t < o->setup->sets[set].ntasks; t++) {
        const struct or_task *task = &o->sets[set].tasks[t];
        assert(x->nfailures < 64);
        if (task->failed_on[executor])
            x->failure_expires[x->nfailures++] =
                task->failed_at[executor] + o->setup->exclusion.timeout;
    }
    for (int i = 0; i < x->nfailures; i++)
        if (x->failure_expires[i] >= o->now)
            x->failure_expires[kept++] = x->failure_expires[i];
    x->nfailures = kept;
}

void or_set_succeeded(struct oracle *o, int set)
{
    const struct or_exclusion *c = &o->setup->exclusion;
    for (int x = 0; c->on && x < OR_EXECUTORS; x++) {
        struct or_executor *e = &o->executors[x];
        if (!tasks_failed_on(o, set, x))
            continue;
        add_failures(o, set, x);
        if (e->nfailures < c->app_per_executor || e->excluded_until >= 0)
            continue;
        e->excluded_until = o->now + c->timeout;
        e->nfailures = 0;
        int host = host_of(o, x), n = 0;
        for (int y = 0; y < OR_EXECUTORS; y++)
            n += o->executors[y].excluded_until >= 0 && host_of(o, y) == host;
        if (n >= c->app_executors_per_host && o->host_excluded_until[host] < 0)
            o->host_excluded_until[host] = o->now + c->timeout;
    }
}

/* ---- 12.4 ---- */

bool or_completely_excluded(const struct oracle *o, int set, int task)
{
    bool any = false;
    for (int x = 0; x < OR_EXECUTORS; x++) {
        if (o->executors[x].state != OR_LIVE)
            continue;
        any = true;
        if (!or_app_excluded(o, x) && !or_set_excluded(o, set, x) &&
            !or_task_excluded(o, set, task, x))
            return false;
    }
    return any;
}
