/*
 * A queue and the thread that empties it, first come first served, so that what is said of
 * a stage last is written last.
 *
 * A file counts only if it has the size and time that were recorded when its task ended,
 * before and after it is read: what is written in between by others has no sum.
 *
 * One thread, which gives way to the driver's loop (nice): hashing is faster than any one
 * file is read. Rejected: hashing where the task ran, before its end is reported. That
 * would read from a warm cache on as many nodes as there are, but each end would wait for
 * it, with a slot held, and patterns of a stage are the driver's all the same.
 *
 * Teardown: the thread, then what is left of the queue.
 */
#include "driver/file_sums.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/bytes.h"
#include "os/thread.h"

enum { NICE = 10, QUEUE_MAX = 1 << 20 };

struct job {
    struct job *next;
    char *stage; /* NULL: of a task */
    uint32_t task;
    struct trp_print id;
    struct trp_outputs outputs, inputs;
};

struct trp_file_sums {
    const char *base;
    trp_done_log *log;
    pthread_t thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more;
    struct job *first, **last;
    uint32_t left; /* with the one in hand */
    atomic_bool stop;
};

static void free_job(struct job *j)
{
    free(j->stage);
    trp_outputs_free(&j->outputs);
    trp_outputs_free(&j->inputs);
    free(j);
}

struct trp_print trp_file_sums_of(const struct trp_outputs *files)
{
    struct trp_buf b = {0};
    struct trp_print none = {0, 0};
    bool known = true;
    trp_put_u8(&b, 1);
    for (uint32_t i = 0; i < files->n; i++) {
        const struct trp_output *o = &files->v[i];
        known = known && (o->size < 0 || o->sum.high || o->sum.low);
        trp_put_text(&b, o->path);
        trp_put_u64(&b, o->sum.high);
        trp_put_u64(&b, o->sum.low);
    }
    struct trp_print print = known && !b.failed ? trp_print_of(b.data, b.size) : none;
    trp_buf_free(&b);
    return print;
}

static bool sum_all(trp_file_sums *s, struct trp_outputs *files)
{
    bool any = false;
    for (uint32_t i = 0; i < files->n && !atomic_load(&s->stop); i++)
        any |= trp_output_sum(&files->v[i], s->base, true, &s->stop);
    return any && !atomic_load(&s->stop);
}

static void do_job(trp_file_sums *s, struct job *j)
{
    bool outputs = sum_all(s, &j->outputs), inputs = sum_all(s, &j->inputs);
    if (atomic_load(&s->stop) || !(outputs || inputs))
        return;
    if (j->stage)
        trp_done_log_stage(s->log, j->stage, &j->outputs);
    else
        trp_done_log_sums(s->log, j->task, j->id,
                          inputs ? trp_file_sums_of(&j->inputs)
                                 : (struct trp_print){0, 0},
                          &j->outputs);
}

static void *work(void *context)
{
    trp_file_sums *s = context;
    setpriority(PRIO_PROCESS, 0, NICE); /* Linux: of this thread */
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->stop)) {
        struct job *j = s->first;
        if (!j) {
            pthread_cond_wait(&s->more, &s->lock);
            continue;
        }
        s->first = j->next;
        if (!s->first)
            s->last = &s->first;
        pthread_mutex_unlock(&s->lock);
        do_job(s, j);
        free_job(j);
        pthread_mutex_lock(&s->lock);
        s->left--;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int trp_file_sums_open(const char *base, trp_done_log *log, trp_file_sums **ret,
                       trp_error *err)
{
    trp_file_sums *s = calloc(1, sizeof *s);
    if (!s)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for contents of files");
    s->base = base;
    s->log = log;
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    int rc = trp_thread_start(&s->thread, work, s);
    if (rc) {
        pthread_cond_destroy(&s->more);
        pthread_mutex_destroy(&s->lock);
        free(s);
        return trp_error_set(err, TRP_ESYSTEM, "cannot make a thread: %s",
                             strerror(rc));
    }
    *ret = s;
    return 0;
}

/* Owns `take_job`; NULL: out of memory, and its files have no sums. */
static void add(trp_file_sums *s, struct job *take_job)
{
    pthread_mutex_lock(&s->lock);
    bool room = take_job && s->left < QUEUE_MAX;
    if (room) {
        *s->last = take_job;
        s->last = &take_job->next;
        s->left++;
        pthread_cond_signal(&s->more);
    }
    pthread_mutex_unlock(&s->lock);
    if (take_job && !room)
        free_job(take_job);
}

static struct job *new_job(struct trp_outputs *take_outputs,
                           struct trp_outputs *take_inputs)
{
    static const struct trp_outputs none;
    struct job *j = calloc(1, sizeof *j);
    if (j) {
        j->outputs = *take_outputs;
        j->inputs = take_inputs ? *take_inputs : none;
    } else {
        trp_outputs_free(take_outputs);
        if (take_inputs)
            trp_outputs_free(take_inputs);
    }
    *take_outputs = none;
    if (take_inputs)
        *take_inputs = none;
    return j;
}

void trp_file_sums_task(trp_file_sums *s, uint32_t task, struct trp_print id,
                        struct trp_outputs *take_outputs,
                        struct trp_outputs *take_inputs)
{
    struct job *j = new_job(take_outputs, take_inputs);
    if (j) {
        j->task = task;
        j->id = id;
    }
    add(s, j);
}

void trp_file_sums_stage(trp_file_sums *s, const char *stage,
                         struct trp_outputs *take_outputs)
{
    struct job *j = new_job(take_outputs, NULL);
    if (j && !(j->stage = strdup(stage))) {
        free_job(j);
        j = NULL;
    }
    add(s, j);
}

uint32_t trp_file_sums_left(trp_file_sums *s)
{
    pthread_mutex_lock(&s->lock);
    uint32_t left = s->left;
    pthread_mutex_unlock(&s->lock);
    return left;
}

void trp_file_sums_close(trp_file_sums *s)
{
    struct job *j, *next;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stop, true);
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    for (j = s->first; j; j = next) {
        next = j->next;
        free_job(j);
    }
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
