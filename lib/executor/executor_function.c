/*
 * Functions: on the loop's own thread when they are short, else on task threads.
 *
 * A short function (known from earlier tasks of the same function: mean below 50 us)
 * runs between leaving and taking back the baton: two atomics and one clock a task, no
 * wake-up, no lock, no allocation. When it turns out to be long, the standby thread
 * robs the baton after 2–4 ms and the loop goes on there; the robbed thread hands its
 * result back like a task thread and becomes the standby. With several ready tasks that
 * are not trivially short (10 us, about what a wake-up costs), the others go to task
 * threads meanwhile. After 32 tasks or 100 us the loop looks at its messages again.
 *
 * Task threads are made when first needed, one a slot at most; they wait on a condition
 * variable. Results come back over a lock-free list; an eventfd wakes a sleeping loop.
 *
 * Ends are recorded by the loop alone, in one order, by which the driver knows
 * who has which place (semantics, difference 16).
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/time.h"
#include "executor/executor_internal.h"
#include "os/clock.h"

enum { SHORT_NS = 50000, WAKE_NS = 10000, TURN_TASKS = 32, TURN_NS = 100000 };
enum { MEAN_WEIGHT = 8, END_MARGIN = 65536, FILES = 65536 };

static int64_t thread_cpu_ns(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_THREAD, &u) != 0)
        return 0;
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * TRP_SECOND +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * INT64_C(1000);
}

/* ---- one task -------------------------------------------------------------------- */

static void run_task(trp_executor *e, struct trp_function_thread *self,
                     struct trp_function_result *ret)
{
    const struct trp_task_entry *t = &self->task;
    const struct trp_stage_message *m = &t->stage->message;
    struct trp_task_info info = {
        .attempt = t->attempt,
        .stage = m->stage.n,
        .stage_attempt = trp_stage_attempt_of(m, t->number),
        .task = t->task,
        .ntasks = m->ntasks,
        .number = t->number,
        .cpus = m->task_cpus,
        .executor = e->shape.id,
        .host = e->host,
        .resources = t->resources ? t->resources : "",
        .killed = &self->killed,
        .records = &self->records,
        .memory = m->memory,
        .blocks = e->blocks,
        .inputs = t->inputs,
        .sync = trp_sync_call,
        .sync_context = self,
    };
    trp_executor_files_info(e, &info);
    trp_function_result_clear(ret);
    trp_crash_running(t->attempt);
    e->runner->run(t->stage->function, &info, t->extra, t->extra_size, ret);
    trp_crash_idle();
}

static void begin_task(struct trp_function_thread *self, const struct trp_task_entry *t,
                       int64_t now)
{
    int64_t timeout = t->stage->message.timeout_ns;
    int64_t often = t->stage->message.records_ns;
    self->task = *t;
    self->started_ns = now;
    self->deadline_ns = timeout > 0 ? now + timeout : INT64_MAX;
    self->records_due = often > 0 ? now + often : INT64_MAX;
    self->cause = TRP_END_SUCCESS;
    self->sync_epoch = 0;
    __atomic_store_n(&self->killed, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&self->records, 0, __ATOMIC_RELAXED);
    self->busy = true;
}

static void learn(struct trp_estimate *m, int64_t duration_ns)
{
    if (m->mean_ns == 0)
        m->mean_ns = duration_ns > 0 ? duration_ns : 1;
    else
        m->mean_ns += (duration_ns - m->mean_ns) / MEAN_WEIGHT;
}

/* Records how a function ended, and frees its result. */
static void record(trp_executor *e, struct trp_task_entry *t,
                   struct trp_function_result *r, int64_t duration_ns, int64_t cpu_ns,
                   uint8_t cause)
{
    struct trp_end end = {
        .attempt = t->attempt,
        .status = cause != TRP_END_SUCCESS       ? cause
                  : r->status && r->fetch.failed ? TRP_END_FETCH
                  : r->status && r->denied       ? TRP_END_DENIED
                  : r->status && r->mistake      ? TRP_END_MISTAKE
                  : r->status                    ? TRP_END_EXIT
                                                 : TRP_END_SUCCESS,
        .duration_ns = duration_ns,
        .cpu_ns = cpu_ns,
        .records_in = r->records_in,
        .records_out = r->records_out,
        .bytes_in = r->bytes_in,
        .bytes_out = r->bytes_out,
        .has_data = r->has_data,
    };
    struct rusage used;
    if (r->has_data) {
        end.data = r->data;
        if (getrusage(RUSAGE_SELF, &used) == 0)
            end.peak_kib = used.ru_maxrss; /* of all that the executor has run so far */
    }
    if (end.status == TRP_END_SUCCESS &&
        r->result_size > TRP_MESSAGE_MAX - END_MARGIN) {
        strcpy(r->error, "the result of a task is larger than 1 GiB");
        r->status = TRP_ELIMIT;
        end.status = TRP_END_EXIT;
    }
    if (end.status == TRP_END_SUCCESS) {
        end.extra = r->result;
        end.extra_size = r->result_size;
        end.added = r->added;
        end.nadded = r->nadded;
        end.in_file = r->in_file;
        end.file = r->file;
    } else if (end.status == TRP_END_EXIT || end.status == TRP_END_MISTAKE) {
        end.code = r->status;
        end.extra = (const uint8_t *)r->error;
        end.extra_size = (uint32_t)strnlen(r->error, sizeof r->error);
    }
    struct trp_buf b = {0};
    if (end.status == TRP_END_FETCH) {
        trp_fetch_end_put(&b, &(struct trp_fetch_end){.dataset = r->fetch.dataset,
                                                      .map = r->fetch.map,
                                                      .attempt = {r->fetch.attempt},
                                                      .location = r->fetch.location,
                                                      .more = r->fetch.more,
                                                      .nmore = r->fetch.nmore,
                                                      .text = r->error,
                                                      .size = (uint32_t)strnlen(
                                                          r->error, sizeof r->error)});
        end.extra = b.data;
        end.extra_size = (uint32_t)b.size;
    }
    learn(t->stage->estimate, duration_ns);
    trp_executor_record(e, t, &end);
    trp_buf_free(&b);
    free(r->fetch.more);
    free(r->added);
    free(r->result);
}

/* ---- on other threads ------------------------------------------------------------ */

void trp_functions_wake(trp_executor *e)
{
    if (atomic_exchange(&e->sleeping, 0)) {
        uint64_t one = 1;
        ssize_t n = write(e->wake, &one, sizeof one);
        (void)n; /* fails only when it is readable anyway */
    }
}

/* Puts a finished task on the list. */
static void hand_back(trp_executor *e, struct trp_finished *f)
{
    f->next = atomic_load(&e->finished);
    while (!atomic_compare_exchange_weak(&e->finished, &f->next, f))
        ;
    trp_functions_wake(e);
}

/* What the thread ran is over: it is nobody's to kill any more. */
static void end_task(struct trp_function_thread *self, struct trp_finished *f)
{
    trp_executor *e = self->executor;
    pthread_mutex_lock(&e->lock);
    self->busy = false;
    f->task = self->task;
    f->cause = self->cause;
    if (e->spawner)
        trp_spawner_function(e->spawner, f->task.attempt, self->tid, false);
    pthread_mutex_unlock(&e->lock);
}

static void run_apart(struct trp_function_thread *self, struct trp_finished *f)
{
    trp_executor *e = self->executor;
    int64_t cpu = thread_cpu_ns();
    if (e->spawner)
        trp_spawner_function(e->spawner, self->task.attempt, self->tid, true);
    run_task(e, self, &f->result);
    f->duration_ns = trp_clock_ns() - self->started_ns;
    f->cpu_ns = thread_cpu_ns() - cpu;
    end_task(self, f);
    hand_back(e, f);
}

static void *task_thread(void *context)
{
    struct trp_function_thread *self = context;
    trp_executor *e = self->executor;
    self->tid = gettid();
    trp_crash_thread();
    pthread_mutex_lock(&e->lock);
    while (!atomic_load(&e->ending)) {
        struct trp_task_entry t;
        if (!trp_task_ring_pop(&e->handover, &t)) {
            e->idle++;
            pthread_cond_wait(&e->work, &e->lock);
            e->idle--;
            continue;
        }
        begin_task(self, &t, trp_clock_ns());
        bool limited = self->deadline_ns != INT64_MAX || self->records_due != INT64_MAX;
        pthread_mutex_unlock(&e->lock);
        if (limited) /* the loop may sleep longer than that */
            trp_functions_wake(e);
        struct trp_finished *f = malloc(sizeof *f);
        if (!f)
            abort(); /* the driver is told of a crash of this very task */
        run_apart(self, f);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static int start_thread(struct trp_function_thread *t, void *(*body)(void *))
{
    t->started = pthread_create(&t->thread, NULL, body, t) == 0;
    return t->started ? TRP_OK : TRP_ESYSTEM;
}

/* Gives a task to a task thread, a new one if none is idle. */
static void hand_over(trp_executor *e, const struct trp_task_entry *t)
{
    pthread_mutex_lock(&e->lock);
    bool kept = trp_task_ring_push(&e->handover, t);
    bool more = e->idle < e->handover.count;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    if (!kept) {
        trp_executor_fail(e, "out of memory");
        return;
    }
    e->handed++;
    bool any = false;
    for (uint32_t i = 0; more && i < e->shape.slots; i++) {
        any = any || e->threads[i].started;
        if (e->threads[i].started)
            continue;
        e->threads[i].executor = e;
        if (start_thread(&e->threads[i], task_thread) < 0 && !any)
            trp_executor_fail(e, "cannot start a thread");
        break;
    }
}

uint32_t trp_functions_collect(trp_executor *e)
{
    if (!atomic_load_explicit(&e->finished, memory_order_relaxed))
        return 0;
    struct trp_finished *f = atomic_exchange(&e->finished, NULL), *in_order = NULL;
    uint32_t n = 0;
    while (f) {
        struct trp_finished *next = f->next;
        f->next = in_order;
        in_order = f;
        f = next;
    }
    while ((f = in_order)) {
        in_order = f->next;
        e->handed--;
        n++;
        record(e, &f->task, &f->result, f->duration_ns, f->cpu_ns, f->cause);
        free(f);
    }
    return n;
}

/* ---- on the loop's thread -------------------------------------------------------- */

/* Another thread was robbed of the baton: what it runs is now like a task thread's. */
void trp_functions_adopt(trp_executor *e)
{
    struct trp_function_thread *t = e->away;
    if (!t)
        return;
    e->away = NULL;
    e->handed++;
    pthread_mutex_lock(&e->lock);
    if (t->busy && e->spawner)
        trp_spawner_function(e->spawner, t->task.attempt, t->tid, true);
    pthread_mutex_unlock(&e->lock);
}

static void robbed(struct trp_function_thread *self,
                   const struct trp_function_result *result)
{
    struct trp_finished *f = malloc(sizeof *f);
    if (!f)
        abort();
    f->result = *result;
    f->duration_ns = trp_clock_ns() - self->started_ns;
    f->cpu_ns = 0;
    end_task(self, f);
    hand_back(self->executor, f);
}

static void *standby_thread(void *context)
{
    struct trp_function_thread *self = context;
    self->tid = gettid();
    trp_crash_thread();
    trp_functions_loop(self);
    return NULL;
}

/* Made when the first short function comes: many executors run none. */
static bool has_standby(trp_executor *e)
{
    if (!e->standby_started) {
        e->standby_started = true;
        e->loop[1].executor = e;
        start_thread(&e->loop[1], standby_thread);
    }
    return atomic_load_explicit(&e->standby, memory_order_relaxed) > 0;
}

static bool runs_here(trp_executor *e, const struct trp_task_entry *t)
{
    int64_t mean = t->stage->estimate->mean_ns;
    if (mean == 0 || mean >= SHORT_NS || !has_standby(e))
        return false;
    return mean < WAKE_NS || e->ready.count == 0;
}

static void refuse(trp_executor *e, struct trp_task_entry *t)
{
    struct trp_end end = {
        .attempt = t->attempt,
        .status = TRP_END_MISTAKE, /* every executor runs the same program */
        .extra = (const uint8_t *)t->stage->failure,
        .extra_size = (uint32_t)strlen(t->stage->failure),
    };
    trp_executor_record(e, t, &end);
}

int trp_functions_run(trp_executor *e, struct trp_function_thread *self)
{
    if (e->ready.count == 0)
        return 0;
    struct trp_function_result result;
    struct trp_task_entry t;
    int64_t begin = trp_clock_ns(), now = begin;
    int n = 0;
    while (n < TURN_TASKS && now - begin < TURN_NS &&
           trp_task_ring_pop(&e->ready, &t)) {
        n++;
        if (t.stage->failure) {
            refuse(e, &t);
            continue;
        }
        if (!runs_here(e, &t)) {
            hand_over(e, &t);
            continue;
        }
        begin_task(self, &t, now);
        e->away = self;
        trp_baton_leave_shortly(e->baton);
        run_task(e, self, &result);
        if (!trp_baton_return(e->baton)) {
            robbed(self, &result);
            return -1;
        }
        e->away = NULL;
        self->busy = false;
        int64_t end = trp_clock_ns();
        record(e, &t, &result, end - now, end - now, TRP_END_SUCCESS);
        now = end;
    }
    return n;
}

void trp_functions_loop(struct trp_function_thread *self)
{
    trp_executor *e = self->executor;
    for (bool over = false; !over;) {
        atomic_fetch_add(&e->standby, 1);
        trp_baton_take(e->baton);
        atomic_fetch_sub(&e->standby, 1);
        over = trp_executor_loop(e, self);
    }
    trp_executor_finish(e);
    trp_baton_give(e->baton);
}

/* Each task of a wide operation has some dozens of map outputs open, and an executor
 * may have dozens of tasks. Commands are started by others, who keep the old limit. */
static void allow_many_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= FILES)
        return;
    files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
    setrlimit(RLIMIT_NOFILE, &files);
}

void trp_functions_prepare(trp_executor *e)
{
    if (e->prepared)
        return;
    e->prepared = true;
    allow_many_files();
    signal(SIGXFSZ, SIG_IGN); /* else a file above its limit would end all tasks here */
}

/* ---- killing and timeouts -------------------------------------------------------- */

/* The i-th thread that may run a function; NULL: no more. */
static struct trp_function_thread *thread_at(trp_executor *e, uint32_t i)
{
    if (i < 2)
        return &e->loop[i];
    return i - 2 < e->shape.slots ? &e->threads[i - 2] : NULL;
}

static void end_unrun(trp_executor *e, struct trp_task_entry *t)
{
    struct trp_end end = {.attempt = t->attempt, .status = TRP_END_KILLED};
    trp_executor_record(e, t, &end);
}

void trp_functions_kill(trp_executor *e, trp_attempt_id attempt)
{
    struct trp_task_entry t;
    struct trp_function_thread *thread;
    if (trp_task_ring_take(&e->ready, attempt, &t)) {
        end_unrun(e, &t);
        return;
    }
    pthread_mutex_lock(&e->lock);
    bool unrun = trp_task_ring_take(&e->handover, attempt, &t);
    for (uint32_t i = 0; !unrun && (thread = thread_at(e, i)); i++) {
        if (!thread->busy || thread->task.attempt.n != attempt.n)
            continue;
        __atomic_store_n(&thread->killed, 1, __ATOMIC_RELAXED);
        if (thread->cause == TRP_END_SUCCESS)
            thread->cause = TRP_END_KILLED;
        pthread_cond_broadcast(&e->synced);
    }
    pthread_mutex_unlock(&e->lock);
    if (unrun) {
        e->handed--;
        end_unrun(e, &t);
    }
}

int64_t trp_functions_next_timer(trp_executor *e)
{
    int64_t next = INT64_MAX;
    struct trp_function_thread *t;
    if (e->handed == 0)
        return next;
    pthread_mutex_lock(&e->lock);
    for (uint32_t i = 0; (t = thread_at(e, i)); i++) {
        if (t->busy && t->deadline_ns < next)
            next = t->deadline_ns;
        if (t->busy && t->records_due < next)
            next = t->records_due;
    }
    pthread_mutex_unlock(&e->lock);
    return next;
}

/* Tells the driver how many records functions have read, of those that are due. */
static void tell_records(trp_executor *e, int64_t now)
{
    struct trp_function_thread *t;
    struct trp_buf b = {0};
    pthread_mutex_lock(&e->lock);
    for (uint32_t i = 0; (t = thread_at(e, i)); i++) {
        if (!t->busy || now < t->records_due)
            continue;
        t->records_due = now + t->task.stage->message.records_ns;
        trp_records_put(&b, t->task.attempt,
                        __atomic_load_n(&t->records, __ATOMIC_RELAXED));
    }
    pthread_mutex_unlock(&e->lock);
    bool good = b.size == 0 ||
                (!b.failed &&
                 trp_channel_send(e->channel, TRP_DRIVER_PEER, b.data, b.size) >= 0);
    trp_buf_free(&b);
    if (!good)
        trp_executor_fail(e, "cannot send to the driver");
}

/* A function that was told and did not return: the process ends, and says for whom. */
static void end_process(trp_executor *e, trp_attempt_id culprit)
{
    struct trp_last_words last_words = {
        .said = true,
        .reason = TRP_LOSS_TIMEOUT,
        .has_culprit = true,
        .culprit = culprit,
    };
    if (e->spawner)
        trp_spawner_last_words(e->spawner, &last_words);
    e->last_words_said = true;
    trp_executor_fail(e, "a function ran over its timeout and did not return");
}

void trp_functions_timers(trp_executor *e, int64_t now)
{
    struct trp_function_thread *t;
    trp_attempt_id culprit = {0};
    bool stuck = false;
    pthread_mutex_lock(&e->lock);
    for (uint32_t i = 0; (t = thread_at(e, i)); i++) {
        if (!t->busy || now < t->deadline_ns)
            continue;
        if (t->cause == TRP_END_TIMEOUT) {
            stuck = true;
            culprit = t->task.attempt;
        }
        __atomic_store_n(&t->killed, 1, __ATOMIC_RELAXED);
        t->cause = TRP_END_TIMEOUT;
        t->deadline_ns = now + TRP_SECOND;
        pthread_cond_broadcast(&e->synced);
    }
    pthread_mutex_unlock(&e->lock);
    tell_records(e, now);
    if (stuck)
        end_process(e, culprit);
}

static bool tell_to_end(trp_executor *e)
{
    bool busy = false;
    struct trp_function_thread *t;
    pthread_mutex_lock(&e->lock);
    pthread_cond_broadcast(&e->work);
    for (uint32_t i = 0; (t = thread_at(e, i)); i++) {
        busy = busy || t->busy;
        __atomic_store_n(&t->killed, 1, __ATOMIC_RELAXED);
    }
    pthread_cond_broadcast(&e->synced);
    pthread_mutex_unlock(&e->lock);
    return busy;
}

bool trp_functions_stop(trp_executor *e, int grace_ms)
{
    bool busy = tell_to_end(e);
    for (int i = 0; busy && i < grace_ms; i++) {
        poll(NULL, 0, 1);
        busy = tell_to_end(e);
    }
    return !busy;
}

void trp_functions_join(trp_executor *e)
{
    struct trp_function_thread *t;
    for (uint32_t i = 1; (t = thread_at(e, i)); i++)
        if (t->started)
            pthread_join(t->thread, NULL);
    struct trp_finished *f = atomic_exchange(&e->finished, NULL);
    while (f) {
        struct trp_finished *next = f->next;
        trp_task_entry_free(&f->task);
        free(f->result.result);
        free(f);
        f = next;
    }
}
