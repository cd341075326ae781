/*
 * The life of an event log and its writer thread.
 *
 * The thread naps a quarter of a second at a time (the contract asks for a flush a
 * second; four wake-ups a second cost nothing that can be measured, and waking it for
 * each event would cost the loop a system call at the worst moment), then formats all
 * that lies in the ring and writes it. It runs at a lower priority than the run itself:
 * on a machine where every core is busy it is the log that has to become shorter, not
 * the run longer. With events.tasks=all the caller may wait for it, so there it does
 * not.
 *
 * On a full disk the thread tries again, after 50 ms, 100, … up to 1 s, for as long as
 * its owner says. Meanwhile tasks are summarised, or the caller waits, as when it is slow.
 * A failed write is remembered and nothing is written after it: a log with
 * a hole would lie. The ring goes on being emptied, so that nobody waits for ever.
 *
 * Teardown: close the ring, join the thread (which writes what is left), sync and close
 * the file, rename the link. trp_event_log_free does the first of these for a log that
 * was never ended, and then frees.
 */
#include "events/event_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "events/event_json.h"
#include "events/event_log_state.h"
#include "events/log_file.h"
#include "os/clock.h"
#include "os/thread.h"

enum {
    NAP_MS = 250,
    WRITE_BYTES = 256 << 10, /* written at once; more only for one longer line */
    WRITER_NICE = 5,
    PAUSE_NS = 50000000,      /* before a full disk is tried again … */
    PAUSE_MAX_NS = 800000000, /* … twice as long each time, up to this */
};

/* The first reason is kept. Any thread. */
static void break_log(struct trp_event_log *l, const trp_error *why)
{
    if (atomic_flag_test_and_set(&l->breaking))
        return;
    l->error = *why;
    atomic_store_explicit(&l->broken, true, memory_order_release);
}

void trp_event_log_out_of_memory(struct trp_event_log *l)
{
    trp_error why;
    trp_error_set(&why, TRP_ENOMEM, "cannot write %s: out of memory", l->file);
    break_log(l, &why);
}

bool trp_event_log_failed(const trp_event_log *l, trp_error *err)
{
    if (!atomic_load_explicit(&l->broken, memory_order_acquire))
        return false;
    if (err)
        *err = l->error;
    return true;
}

/* ---- writer thread ---- */

bool trp_event_log_waits(trp_event_log *l, trp_error *err)
{
    if (!atomic_load_explicit(&l->waits, memory_order_relaxed) ||
        !atomic_exchange(&l->waits, false))
        return false;
    *err = l->full;
    return true;
}

/* The first time is told. */
static void tell_full(struct trp_event_log *l, const trp_error *why)
{
    if (l->waited)
        return;
    l->waited = true;
    l->full = *why;
    atomic_store(&l->waits, true);
}

static void write_all(struct trp_event_log *l)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};
    trp_error why;
    int64_t until = 0;
    for (size_t at = 0, n; at < l->lines.size; at += n) {
        if (trp_log_file_write(l->fd, l->file, l->lines.data + at, l->lines.size - at,
                               &n, &why) == 0)
            continue;
        bool full = errno == ENOSPC || errno == EDQUOT;
        int64_t now = trp_clock_ns();
        until = until ? until : now + l->wait_ns;
        if (!full || now >= until) {
            break_log(l, &why);
            return;
        }
        tell_full(l, &why);
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < PAUSE_MAX_NS)
            pause.tv_nsec *= 2;
    }
}

static void write_lines(struct trp_event_log *l)
{
    if (l->lines.failed) {
        trp_event_log_out_of_memory(l);
        l->lines.failed = false;
    } else if (!trp_event_log_failed(l, NULL)) {
        write_all(l);
    }
    trp_buf_clear(&l->lines);
}

static void format(struct trp_event_log *l, struct trp_event_record *r)
{
    switch (r->kind) {
    case TRP_RECORD_TEXT:
        trp_put_raw(&l->lines, r->text.data, r->text.size);
        free(r->text.data);
        break;
    case TRP_RECORD_TASK_START:
        trp_line_task_start(&l->lines, &r->task);
        break;
    case TRP_RECORD_TASK_END:
        trp_line_task_end(&l->lines, &r->task);
        free(r->task.reason);
        free(r->task.data);
        free(r->task.fetch);
        free(r->task.accumulables);
        free(r->task.blocks);
        break;
    }
}

static void *write_log(void *arg)
{
    struct trp_event_log *l = arg;
    pthread_setname_np(pthread_self(), "troupe-events");
    if (l->tasks != TRP_EVENTS_ALL)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), WRITER_NICE);
    for (bool last = false; !last;) {
        /* Asked first: then all is in the ring. */
        last = trp_event_ring_closed(l->ring);
        struct trp_event_record *records;
        for (uint32_t n; (n = trp_event_ring_take(l->ring, &records)) > 0;) {
            for (uint32_t i = 0; i < n; i++) {
                format(l, &records[i]);
                if (l->lines.size >= WRITE_BYTES || l->lines.failed)
                    write_lines(l);
            }
            trp_event_ring_give_back(l->ring, n);
        }
        write_lines(l);
        if (!last)
            trp_event_ring_nap(l->ring, NAP_MS);
    }
    return NULL;
}

static int start_writer(struct trp_event_log *l, trp_error *err)
{
    int code = trp_thread_start(&l->writer, write_log, l);
    l->running = code == 0;
    return code == 0 ? 0
                     : trp_error_set(err, TRP_ESYSTEM,
                                     "cannot start the event log's thread: %s",
                                     strerror(code));
}

static void stop_writer(struct trp_event_log *l)
{
    if (!l->running)
        return;
    trp_event_ring_close(l->ring);
    pthread_join(l->writer, NULL);
    l->running = false;
}

/* ---- life ---- */

static struct trp_event_log *make(const struct trp_event_log_config *c)
{
    struct trp_event_log *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->fd = -1;
    l->tasks = c->tasks;
    l->wait_ns = c->wait_ns;
    atomic_flag_clear(&l->breaking);
    l->file = strdup(c->file);
    l->app_name = strdup(c->app_name);
    l->user = strdup(c->user ? c->user : "");
    l->history_dir = c->history_dir ? strdup(c->history_dir) : NULL;
    l->statistics = calloc(1, sizeof *l->statistics);
    l->ring = trp_event_ring_new();
    if (l->file && l->app_name && l->user && l->statistics && l->ring &&
        (!c->history_dir || l->history_dir))
        return l;
    trp_event_log_free(l);
    return NULL;
}

/* What earlier starts have left, before this one writes. */
static int begin_file(struct trp_event_log *l, const char *app_id, struct trp_buf *ends,
                      trp_error *err)
{
    int code = trp_log_file_open(l->file, err);
    if (code < 0)
        return code;
    l->fd = code;
    if (trp_log_past_read(l->file, &l->past, ends) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %s", l->file);
    l->first = l->past.next;
    if (!*l->past.app_id)
        snprintf(l->past.app_id, sizeof l->past.app_id, "%s", app_id);
    return l->history_dir
               ? trp_history_begin(l->history_dir, l->past.app_id, l->file, err)
               : 0;
}

int trp_event_log_new(const struct trp_event_log_config *config, trp_event_log **ret,
                      trp_error *err)
{
    struct trp_event_log *l = make(config);
    if (!l)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    struct trp_buf b = {0};
    int code = begin_file(l, config->app_id, &b, err);
    if (code == 0)
        code = start_writer(l, err);
    if (code < 0) {
        trp_buf_free(&b);
        trp_event_log_free(l);
        return code;
    }
    trp_line_log_start(&b);
    trp_event_log_put_lines(l, &b);
    *ret = l;
    return 0;
}

int trp_event_log_end(trp_event_log *l, int64_t at, int exit_code, trp_error *err)
{
    if (l->running) {
        trp_statistics_at(l->statistics, at);
        trp_statistics_settle(l->statistics);
        trp_event_log_flush_summaries(l, at);
        struct trp_buf b = {0};
        trp_line_application_end(&b, at, exit_code, &l->past);
        trp_event_log_put_lines(l, &b);
        stop_writer(l);
        trp_error why;
        if (trp_log_file_close(l->fd, l->file, &why) < 0)
            break_log(l, &why);
        l->fd = -1;
        if (l->history_dir && trp_history_end(l->history_dir, l->past.app_id, &why) < 0)
            break_log(l, &why);
    }
    return trp_event_log_failed(l, err) ? TRP_ESYSTEM : 0;
}

void trp_event_log_free(trp_event_log *l)
{
    if (!l)
        return;
    stop_writer(l);
    if (l->fd >= 0)
        close(l->fd);
    struct trp_log_host *h = l->hosts, *next;
    HASH_CLEAR(hh, l->hosts); /* the table; its elements are still chained */
    for (; h; h = next) {
        next = h->hh.next;
        free(h->json);
        free(h);
    }
    if (l->statistics)
        trp_statistics_free(l->statistics);
    free(l->statistics);
    trp_event_ring_free(l->ring);
    trp_buf_free(&l->lines);
    free(l->file);
    free(l->app_name);
    free(l->user);
    free(l->history_dir);
    free(l);
}

const struct trp_statistics *trp_event_log_statistics(const trp_event_log *l)
{
    return l->statistics;
}
