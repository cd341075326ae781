/*
 * The executor's loop: messages in, work started, ends out, sleep.
 *
 * A turn takes what arrived (driver, spawner, threads), runs short functions, sends one
 * ENDS message. When a turn did nothing: while only the driver can bring work, it is
 * polled for a while (os/spin.h); while commands or functions on other threads run, the
 * processor is theirs and the loop sleeps at once. Asleep it is in one poll: the
 * channel's descriptor, the spawner's, an eventfd, and the next timer; idle there is
 * none but the heartbeat's.
 *
 * Queue ahead (places.h). Recording a function's end and letting the head of its
 * stage's queue take over what it had is one step (trp_executor_record). For commands
 * the spawner does it, so that the next one starts without two wake-ups between: they
 * pass through here, launches one way and ends the other.
 *
 * A broken message from the driver ends the process: both are the same build, so it is
 * no peer of ours.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/array.h"

#include "core/base/time.h"
#include "executor/executor_internal.h"
#include "os/clock.h"
#include "wire/blocks.h"

enum { ENDS_FLUSH = 16 * 1024 };

trp_executor *trp_the_executor;

void trp_executor_fail(trp_executor *e, const char *fmt, ...)
{
    if (atomic_exchange(&e->ending, true))
        return;
    char text[TRP_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "troupe: executor %u: %s\n", e->shape.id, text);
    e->status = trp_error_exit_status(TRP_ESYSTEM);
}

/* ---- ends ------------------------------------------------------------------------ */

/* Why the disk took no more, to be told once; 0: there is nothing to tell. */
static int problem_of_blocks(trp_executor *e)
{
    int problem = trp_block_store_problem(e->blocks);
    if (!problem || e->blocks_told)
        return 0;
    e->blocks_told = true;
    fprintf(stderr,
            "troupe: executor %u: kept partitions cannot be written to %s: %s\n",
            e->shape.id, e->shape.scratch[0] ? e->shape.scratch : "the disk",
            strerror(problem));
    return problem;
}

/* What has become of kept partitions is told before the ends of who did it. */
static void send_blocks(trp_executor *e)
{
    uint32_t n = 0;
    struct trp_block_update *v;
    struct trp_buf b = {0};
    if (!trp_block_store_news(e->blocks))
        return;
    const int problem = problem_of_blocks(e);
    v = trp_block_store_updates(e->blocks, &n);
    if (!v && !problem)
        return;
    trp_blocks_begin(&b, (uint32_t)problem, n);
    for (uint32_t i = 0; i < n; i++)
        trp_block_state_put(&b,
                            &(struct trp_block_state){.dataset = v[i].key.dataset,
                                                      .partition = v[i].key.partition,
                                                      .attempt = {v[i].attempt},
                                                      .there = v[i].there,
                                                      .level = (uint8_t)v[i].level,
                                                      .memory = v[i].memory,
                                                      .disk = v[i].disk});
    if (b.failed || trp_channel_send(e->channel, TRP_DRIVER_PEER, b.data, b.size) < 0)
        trp_executor_fail(e, "cannot tell the driver what is kept");
    trp_buf_free(&b);
    free(v);
}

static void send_ends(trp_executor *e)
{
    send_blocks(e);
    if (e->ends.size == 0)
        return;
    trp_batch_finish(&e->ends);
    if (e->ends.failed ||
        trp_channel_send(e->channel, TRP_DRIVER_PEER, e->ends.data, e->ends.size) < 0)
        trp_executor_fail(e, "cannot send ends to the driver");
    trp_buf_clear(&e->ends);
}

static void put_end(trp_executor *e, const struct trp_end *end)
{
    if (e->ends.size + end->extra_size > ENDS_FLUSH)
        send_ends(e);
    if (e->ends.size == 0)
        trp_ends_begin(&e->ends);
    trp_ends_put(&e->ends, end);
    e->ends_made++;
}

/* Makes a task formally running. */
static void begin(trp_executor *e, const struct trp_task_entry *t)
{
    t->stage->running++;
    struct trp_task_entry own = *t;
    own.inputs = t->stage->inputs;
    if (own.inputs)
        own.inputs->users++;
    if (!trp_task_ring_push(&e->ready, &own))
        trp_executor_fail(e, "out of memory");
}

void trp_executor_record(trp_executor *e, struct trp_task_entry *take_task,
                         const struct trp_end *end)
{
    struct trp_executor_stage *s = take_task->stage;
    struct trp_task_entry head;
    put_end(e, end);
    s->running--;
    int r = trp_places_end(&s->places, e->ends_made, &take_task->resources, &head);
    if (r > 0)
        begin(e, &head);
    else if (r < 0)
        trp_executor_fail(e, "out of memory");
    trp_task_entry_free(take_task);
    if (s->forgotten)
        trp_executor_stage_settle(e, s);
}

void trp_executor_lose_spawner(trp_executor *e)
{
    if (atomic_exchange(&e->ending, true))
        return;
    e->spawner_lost = true;
    e->status = trp_error_exit_status(TRP_ESYSTEM);
    send_ends(e);
}

/* ---- tasks ----------------------------------------------------------------------- */

/* A command goes to the spawner as it came, which keeps the places of commands. Only
 * the number of ends that the driver had seen is turned into how many of them were the
 * spawner's. */
static void pass_command(trp_executor *e, struct trp_launch *l)
{
    uint32_t heard = 0;
    while (heard < e->nunheard && (int32_t)(e->unheard[heard] - l->seen) <= 0)
        heard++;
    if (heard) {
        e->nunheard -= heard;
        memmove(e->unheard, e->unheard + heard, e->nunheard * sizeof *e->unheard);
    }
    l->seen = e->relayed - e->nunheard;
    struct trp_spawn spawn = {.launch = l};
    e->commands++;
    if (trp_spawner_start(e->spawner, &spawn) < 0)
        trp_executor_lose_spawner(e);
}

/* A task's share in the message's bytes: the message is copied when the first task
 * needs some of it. */
static bool keep_extra(struct trp_task_entry *t, const struct trp_launch *l,
                       const uint8_t *message, size_t size, struct trp_bytes **copy)
{
    if (l->extra_size == 0)
        return true;
    if (!*copy) {
        *copy = malloc(sizeof **copy + size);
        if (!*copy)
            return false;
        (*copy)->users = 1;
        memcpy((*copy)->data, message, size);
    }
    (*copy)->users++;
    t->bytes = *copy;
    t->extra = (*copy)->data + (l->extra - message);
    t->extra_size = l->extra_size;
    return true;
}

static bool take_launch(trp_executor *e, struct trp_launch *l, const uint8_t *message,
                        size_t size, struct trp_bytes **copy)
{
    struct trp_task_entry t = {
        .attempt = l->attempt,
        .task = l->task,
        .number = l->number,
        .has_item = l->has_item,
    };
    t.stage = trp_executor_stage_find(e, l->stage.n);
    if (t.stage && t.stage->message.work == TRP_WORK_COMMAND && !t.stage->failure) {
        pass_command(e, l);
        return true;
    }
    if (!t.stage || !keep_extra(&t, l, message, size, copy))
        return false;
    if (l->resources_size) {
        t.resources = strndup((const char *)l->resources, l->resources_size);
        if (!t.resources)
            return false;
    }
    int r = trp_places_launch(&t.stage->places, l->seen, l->queued, &t);
    if (r > 0)
        begin(e, &t);
    return r >= 0;
}

static bool take_launches(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_view v;
    struct trp_launch l;
    struct trp_bytes *copy = NULL;
    uint32_t count;
    int r = trp_launch_open(message, size, &v, &count);
    while (r >= 0 && (r = trp_launch_next(&v, &l)) > 0)
        if (!take_launch(e, &l, message, size, &copy))
            r = TRP_EPROTO;
    if (copy && --copy->users == 0)
        free(copy);
    return r == 0;
}

static void kill_attempt(trp_executor *e, trp_attempt_id attempt,
                         enum trp_kill_mode mode)
{
    bool recall = mode == TRP_KILL_RECALL;
    struct trp_executor_stage *s, *next;
    struct trp_task_entry t;
    HASH_ITER(hh, e->stages, s, next) {
        if (!trp_task_ring_take(&s->places.queued, attempt, &t))
            continue;
        struct trp_end end = {
            .attempt = attempt,
            .status = recall ? TRP_END_RECALLED : TRP_END_KILLED,
        };
        put_end(e, &end);
        trp_task_entry_free(&t);
        return;
    }
    /* It ignores an attempt that is none of its. */
    if (e->commands > 0 && recall)
        trp_spawner_recall(e->spawner, attempt);
    else if (e->commands > 0)
        trp_spawner_kill(e->spawner, attempt, mode == TRP_KILL_SOFT);
    if (!recall)
        trp_functions_kill(e, attempt);
}

/* ---- the driver ------------------------------------------------------------------ */

static bool take_message(trp_executor *e, const uint8_t *data, size_t size)
{
    trp_attempt_id attempt;
    enum trp_kill_mode mode;
    uint32_t number;
    switch (trp_message_kind_of(data, size)) {
    case TRP_MSG_STAGE:
        return trp_executor_stage_add(e, data, size) == TRP_OK;
    case TRP_MSG_LAUNCH:
        return take_launches(e, data, size);
    case TRP_MSG_KILL:
        if (trp_kill_get(data, size, &attempt, &mode) < 0)
            return false;
        kill_attempt(e, attempt, mode);
        return true;
    case TRP_MSG_FORGET:
        if (trp_number_get(data, size, TRP_MSG_FORGET, &number) < 0)
            return false;
        trp_executor_stage_forget(e, number);
        return true;
    case TRP_MSG_SHUTDOWN:
        if (trp_shutdown_get(data, size, &e->run_over) < 0)
            return false;
        atomic_store(&e->ending, true);
        return true;
    case TRP_MSG_SYNCED:
        return trp_syncs_answer(e, data, size);
    case TRP_MSG_UNPERSIST:
        if (trp_number_get(data, size, TRP_MSG_UNPERSIST, &number) < 0)
            return false;
        trp_block_drop(e->blocks, number);
        return true;
    case TRP_MSG_INPUTS:
        return trp_executor_inputs(e, data, size) == TRP_OK;
    case TRP_MSG_FILES:
        return trp_executor_files_order(e, data, size) == TRP_OK;
    case TRP_MSG_SERVERS:
        return trp_executor_servers(e, data, size) == TRP_OK;
    case TRP_MSG_MOVE:
        return trp_executor_move(e, data, size) == TRP_OK;
    case TRP_MSG_DROP:
        return trp_executor_drop(e, data, size) == TRP_OK;
    case TRP_MSG_ENDS:
    case TRP_MSG_SYNC:
    case TRP_MSG_RECORDS:
    case TRP_MSG_LOCATION:
    case TRP_MSG_BLOCKS:
    case TRP_MSG_MOVED:
        break;
    }
    return false;
}

static void on_message(void *context, uint32_t peer, const uint8_t *data, size_t size)
{
    (void)context;
    (void)peer;
    trp_executor *e = trp_the_executor;
    if (!atomic_load(&e->ending) && !take_message(e, data, size))
        trp_executor_fail(e,
                          "a message of %zu bytes from the driver cannot be used "
                          "(broken, or out of memory)",
                          size);
}

static void on_down(void *context, uint32_t peer,
                    const struct trp_last_words *last_words)
{
    (void)context;
    (void)peer;
    trp_executor *e = trp_the_executor;
    e->driver_gone = true;
    if (last_words->garbled)
        trp_executor_fail(e, "what came on the connection is not what the driver sent");
    else if (last_words->reason == TRP_LOSS_HEARTBEAT)
        trp_executor_fail(e, "nothing was heard of the driver for %.3g s",
                          (double)e->shape.network_timeout_ns / TRP_SECOND);
    else
        trp_executor_fail(
            e, "its connection to the driver closed: that one died, or was cut off");
}

void trp_executor_handler(struct trp_channel_handler *ret)
{
    *ret = (struct trp_channel_handler){.message = on_message, .down = on_down};
}

/* ---- the loop -------------------------------------------------------------------- */

/* Notes the number of an end of the spawner that was just put. */
static bool note_unheard(trp_executor *e)
{
    if (!TRP_ARRAY_GROW(e->unheard, e->nunheard, e->unheard_capacity))
        return false;
    e->unheard[e->nunheard++] = e->ends_made;
    e->relayed++;
    return true;
}

static uint32_t take_spawner_ends(trp_executor *e)
{
    struct trp_end end;
    uint32_t n = 0;
    int r;
    while ((r = trp_spawner_next(e->spawner, &end)) > 0) {
        n++;
        e->commands--;
        put_end(e, &end);
        if (!note_unheard(e))
            trp_executor_fail(e, "out of memory");
    }
    if (r < 0)
        trp_executor_lose_spawner(e);
    return n;
}

/* When the spawner is to be looked at; only while it has work. */
static int64_t next_look(const trp_executor *e)
{
    return e->commands > 0 ? trp_spawner_next_look(e->spawner) : INT64_MAX;
}

static void wait_for_work(trp_executor *e, int64_t now)
{
    /* This turn may have heard that there is nothing to wait for any more. */
    if (atomic_load(&e->ending) || !trp_channel_sleep(e->channel))
        return;
    atomic_store(&e->sleeping, 1); /* a deadline that begins from here on wakes it */
    int64_t until =
        trp_earlier(trp_channel_next_timer(e->channel), trp_functions_next_timer(e));
    until = trp_earlier(until, next_look(e));
    int64_t left = until > now ? until - now : 0;
    struct timespec wait = {.tv_sec = left / TRP_SECOND, .tv_nsec = left % TRP_SECOND};
    struct pollfd p[] = {
        {.fd = trp_channel_fd(e->channel),                   .events = POLLIN},
        {.fd = e->wake,                                      .events = POLLIN},
        {.fd = e->spawner ? trp_spawner_fd(e->spawner) : -1, .events = POLLIN},
    };
    if (!atomic_load(&e->finished) && !atomic_load(&e->syncs_unsent) &&
        !atomic_load(&e->moved))
        ppoll(p, 3, until == INT64_MAX ? NULL : &wait, NULL);
    atomic_store(&e->sleeping, 0);
    if (p[1].revents) {
        uint64_t count;
        ssize_t n = read(e->wake, &count, sizeof count);
        (void)n; /* only empties it */
    }
    if (p[2].revents)
        take_spawner_ends(e);
    e->active_ns = trp_clock_ns();
}

/* What the driver sent in one go goes to the spawner in one, too. */
static int progress(trp_executor *e, int64_t now)
{
    if (e->spawner)
        trp_spawner_hold(e->spawner);
    int did = trp_channel_progress(e->channel, now);
    if (e->spawner && trp_spawner_release(e->spawner) < 0)
        trp_executor_lose_spawner(e);
    return did;
}

bool trp_executor_loop(trp_executor *e, struct trp_function_thread *self)
{
    trp_functions_adopt(e);
    while (!atomic_load(&e->ending)) {
        int64_t now = trp_clock_ns();
        int did = progress(e, now);
        if (e->commands > 0)
            did += (int)take_spawner_ends(e);
        if (now >= next_look(e) && trp_spawner_look(e->spawner, now) < 0)
            trp_executor_lose_spawner(e);
        did += (int)trp_functions_collect(e);
        if (e->handed > 0)
            trp_functions_timers(e, now);
        if (atomic_load_explicit(&e->syncs_unsent, memory_order_relaxed))
            trp_syncs_send(e);
        if (atomic_load_explicit(&e->moved, memory_order_relaxed))
            trp_executor_tell_moved(e);
        int ran = trp_functions_run(e, self);
        if (ran < 0)
            return false;
        send_ends(e);
        if (did + ran > 0) {
            e->active_ns = now;
            trp_spin_came(&e->spin);
        } else if (e->commands > 0 || e->handed > 0 ||
                   !trp_spin_on(&e->spin, now - e->active_ns))
            wait_for_work(e, now);
    }
    return true;
}
