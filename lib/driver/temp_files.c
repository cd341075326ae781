/*
 * Temp files.
 *
 * Of each stage with such files: what each task has made of them, 120 bytes a file. Of each
 * stage that needs some: which of its tasks are done, where that is enough to let a task's
 * files go. Whether a file may go is asked when something has ended, of what stands
 * directly before that; there is no count that could be wrong.
 *
 * Files are removed by a thread, since a parallel file system may take a millisecond for each
 * and the driver has to answer meanwhile. Whose a file is is looked up before, by the caller's
 * thread; whether it is as it was recorded, right before it goes.
 */
#include "driver/temp_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/ids.h"
#include "driver/leftovers.h"
#include "driver/temp_users.h"
#include "os/thread.h"

struct stage {
    struct trp_outputs *held; /* by task */
    uint32_t nheld;
    struct trp_outputs whole;
    uint8_t *done; /* its tasks that are done … */
    uint32_t ndone;
    bool over;       /* … or all are */
    uint32_t *above; /* stages whose files it needs */
    uint32_t nabove;
    uint32_t removed; /* the thread's */
};

struct batch {
    uint32_t stage;
    struct trp_outputs files;
    struct batch *next;
};

struct trp_temp_files {
    const trp_pipeline *p;
    const trp_task_files *files;
    const struct trp_temp_users *users;
    struct stage *stage;
    uint32_t *above;

    pthread_t thread;
    bool started;
    atomic_bool stop;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t more;
    struct batch *first, **last;
    uint32_t left;
    struct trp_leftovers leftovers; /* the thread's until it has ended */
};

/* ---- the thread ---- */

static void remove_batch(trp_temp_files *t, struct batch *b)
{
    struct trp_outputs one = {.capacity = 1};
    uint32_t before = t->leftovers.removed;
    for (uint32_t i = b->files.n; i-- > 0 && !atomic_load(&t->stop);) {
        one.v = &b->files.v[i]; /* what is in a folder stands behind it */
        one.n = 1;
        trp_leftovers_remove(&t->leftovers, &one);
    }
    t->stage[b->stage].removed += t->leftovers.removed - before;
    trp_outputs_free(&b->files);
    free(b);
}

static void *work(void *context)
{
    trp_temp_files *t = context;
    pthread_mutex_lock(&t->lock);
    while (!atomic_load(&t->stop)) {
        struct batch *b = t->first;
        if (!b) {
            pthread_cond_wait(&t->more, &t->lock);
            continue;
        }
        uint32_t n = b->files.n;
        t->first = b->next;
        if (!t->first)
            t->last = &t->first;
        pthread_mutex_unlock(&t->lock);
        remove_batch(t, b);
        pthread_mutex_lock(&t->lock);
        t->left -= n;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Empties the list. */
static void let_go(trp_temp_files *t, uint32_t stage, uint32_t task,
                   struct trp_outputs *take)
{
    struct batch *b = take->n ? calloc(1, sizeof *b) : NULL;
    if (b)
        b->stage = stage;
    for (uint32_t i = 0; b && i < take->n; i++) {
        struct trp_output *o = &take->v[i];
        if (!trp_task_files_is_of(t->files, stage, task, o->path))
            continue;
        if (trp_outputs_append(&b->files, o) == 0)
            o->path = NULL;
    }
    trp_outputs_free(take);
    if (b && b->files.n) {
        pthread_mutex_lock(&t->lock);
        t->left += b->files.n;
        *t->last = b;
        t->last = &b->next;
        pthread_cond_signal(&t->more);
        pthread_mutex_unlock(&t->lock);
    } else {
        free(b);
    }
}

/* ---- what may go ---- */

static bool is_done(const struct stage *s, uint32_t task)
{
    return s->over || (task < s->ndone && s->done[task]);
}

/* Whether all that needs the files of the task is done. */
static bool may_go(const trp_temp_files *t, uint32_t stage, uint32_t task)
{
    uint32_t from = t->users->first[stage], to = t->users->first[stage + 1];
    for (uint32_t k = from; k < to; k++) {
        const struct trp_temp_user *u = &t->users->v[k];
        if (!is_done(&t->stage[u->stage], u->by_task ? task : TRP_NONE))
            return false;
    }
    return to > from;
}

static void try_task(trp_temp_files *t, uint32_t stage, uint32_t task)
{
    struct stage *s = &t->stage[stage];
    struct trp_outputs *held = task == TRP_NONE  ? &s->whole
                               : task < s->nheld ? &s->held[task]
                                                 : NULL;
    if (held && held->n && may_go(t, stage, task))
        let_go(t, stage, task, held);
}

void trp_temp_files_done(trp_temp_files *t, uint32_t stage, uint32_t task)
{
    struct stage *s = t ? &t->stage[stage] : NULL;
    if (!s || !s->nabove || t->p->stages[stage].always)
        return;
    if (task == TRP_NONE)
        s->over = true;
    else if (TRP_ARRAY_RESERVE_ZEROED(s->done, s->ndone, (uint64_t)task + 1))
        s->done[task] = 1;
    for (uint32_t k = 0; k < s->nabove; k++) {
        uint32_t above = s->above[k];
        if (task != TRP_NONE) {
            try_task(t, above, task);
            continue;
        }
        for (uint32_t i = 0; i < t->stage[above].nheld; i++)
            try_task(t, above, i);
        try_task(t, above, TRP_NONE);
    }
}

/* Whether the file is in the folder that the link leads to. */
static bool is_by_link(const struct trp_output *link, const struct trp_output *o)
{
    size_t n = link ? strlen(link->path) : 0;
    return link && strncmp(o->path, link->path, n) == 0 && o->path[n] == '/';
}

void trp_temp_files_hold(trp_temp_files *t, uint32_t stage, uint32_t task,
                         const struct trp_outputs *files)
{
    struct trp_outputs some = {0}, *to = NULL;
    const struct trp_output *link = NULL;
    struct stage *s = t ? &t->stage[stage] : NULL;
    for (uint32_t i = 0; s && i < files->n; i++) {
        const struct trp_output *o = &files->v[i];
        struct trp_output own, copy = *o;
        if (!o->temp || o->stale || is_by_link(link, o))
            continue;
        if (o->size < 0 &&
            trp_output_measure(t->leftovers.base, o->path, false, &own) &&
            own.size >= 0)
            link = o;
        copy.path = strdup(o->path);
        if (copy.path)
            trp_outputs_append(&some, &copy);
    }
    if (some.n && task == TRP_NONE)
        to = &s->whole;
    else if (some.n && TRP_ARRAY_RESERVE_ZEROED(s->held, s->nheld, (uint64_t)task + 1))
        to = &s->held[task];
    if (!to) {
        trp_outputs_free(&some);
        return;
    }
    trp_outputs_free(to);
    *to = some;
    try_task(t, stage, task);
}

/* ---- all of it ---- */

/* Which stages' files each stage needs. */
static int make_above(trp_temp_files *t)
{
    uint32_t n = 0;
    t->above = calloc((size_t)t->users->n + 1, sizeof *t->above);
    if (!t->above)
        return TRP_ENOMEM;
    for (uint32_t k = 0; k < t->users->n; k++)
        t->stage[t->users->v[k].stage].nabove++;
    for (uint32_t i = 0; i < t->p->nstages; i++) {
        t->stage[i].above = t->above + n;
        n += t->stage[i].nabove;
        t->stage[i].nabove = 0;
    }
    for (uint32_t k = 0; k < t->users->n; k++) {
        struct stage *s = &t->stage[t->users->v[k].stage];
        s->above[s->nabove++] = t->users->v[k].maker;
    }
    return 0;
}

int trp_temp_files_new(const trp_pipeline *p, const struct trp_temp_users *users,
                       const char *base, const char *run_dir,
                       const trp_task_files *files, trp_temp_files **ret,
                       trp_error *err)
{
    bool any = false;
    *ret = NULL;
    for (uint32_t i = 0; i < p->nstages; i++)
        any = any || p->stages[i].temp_mark.line;
    if (!any)
        return 0;
    trp_temp_files *t = calloc(1, sizeof *t);
    struct stage *stage = calloc((size_t)p->nstages + 1, sizeof *stage);
    if (!t || !stage) {
        free(t);
        free(stage);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for temp files");
    }
    *t = (trp_temp_files){
        .p = p,
        .users = users,
        .files = files,
        .stage = stage,
        .leftovers = {.base = base, .run_dir = run_dir, .recorded = true},
    };
    t->last = &t->first;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->more, NULL);
    int r = make_above(t) < 0
                ? trp_error_set(err, TRP_ENOMEM, "out of memory for temp files")
                : 0;
    int rc = r == 0 ? trp_thread_start(&t->thread, work, t) : 0;
    if (rc)
        r = trp_error_set(err, TRP_ESYSTEM, "cannot make a thread: %s", strerror(rc));
    t->started = r == 0;
    if (r < 0) {
        trp_temp_files_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

uint32_t trp_temp_files_left(trp_temp_files *t)
{
    if (!t || !t->started)
        return 0;
    pthread_mutex_lock(&t->lock);
    uint32_t left = t->left;
    pthread_mutex_unlock(&t->lock);
    return left;
}

void trp_temp_files_stop(trp_temp_files *t)
{
    if (!t || !t->started)
        return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop, true);
    pthread_cond_signal(&t->more);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    t->started = false;
}

uint32_t trp_temp_files_removed(const trp_temp_files *t, uint32_t stage)
{
    return t ? t->stage[stage].removed : 0;
}

bool trp_temp_files_text(const trp_temp_files *t, char *buf, size_t size)
{
    const struct trp_leftovers *l = t ? &t->leftovers : NULL;
    char more[64] = "", stays[1400] = "";
    if (!l || (!l->removed && !l->stay))
        return false;
    if (l->stay > 1)
        snprintf(more, sizeof more, ", and %u more stay", l->stay - 1);
    if (l->stay)
        snprintf(stays, sizeof stays, "; %s stays: %s%s", l->first, l->why, more);
    snprintf(buf, size, "%u temp file%s removed%s", l->removed,
             l->removed == 1 ? " was" : "s were", stays);
    return true;
}

void trp_temp_files_free(trp_temp_files *t)
{
    if (!t)
        return;
    trp_temp_files_stop(t);
    for (struct batch *b = t->first, *next; b; b = next) {
        next = b->next;
        trp_outputs_free(&b->files);
        free(b);
    }
    for (uint32_t i = 0; i < t->p->nstages; i++) {
        struct stage *s = &t->stage[i];
        for (uint32_t k = 0; k < s->nheld; k++)
            trp_outputs_free(&s->held[k]);
        trp_outputs_free(&s->whole);
        free(s->held);
        free(s->done);
    }
    pthread_cond_destroy(&t->more);
    pthread_mutex_destroy(&t->lock);
    free(t->stage);
    free(t->above);
    free(t);
}
