/*
 * Outputs are copied one after the other: several at once would only be in each other's
 * way on the disks. A copy that cannot be written ends it, since the next one could not
 * either; one that is gone or damaged does not.
 *
 * What is not moved in time is lost with its host, and made again by who needs it.
 */
#include "executor/move_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/output_copy.h"
#include "executor/scratch.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "os/thread.h"

/* ---- words ----------------------------------------------------------------------- */

void trp_move_word(const struct trp_move_output *m, char ret[TRP_MOVE_WORD])
{
    snprintf(ret, TRP_MOVE_WORD, "%" PRIu32 "-%" PRIu32 "-%" PRIu64, m->dataset, m->map,
             m->attempt);
}

/* As they are printed, and nothing behind. */
static bool is_same_word(const char *word, size_t n, const struct trp_move_output *m)
{
    char again[TRP_MOVE_WORD];
    trp_move_word(m, again);
    return strlen(again) == n && memcmp(again, word, n) == 0;
}

bool trp_move_read_word(const char *word, struct trp_move_output *ret)
{
    return sscanf(word, "%" SCNu32 "-%" SCNu32 "-%" SCNu64, &ret->dataset, &ret->map,
                  &ret->attempt) == 3 &&
           is_same_word(word, strlen(word), ret);
}

int trp_moved_read_line(const char *line, struct trp_moved_output *ret,
                        const char **ret_text)
{
    if (strncmp(line, "! ", 2) == 0) {
        *ret_text = line + 2;
        return 0;
    }
    int n = sscanf(line, "%" SCNu32 "-%" SCNu32 "-%" SCNu64 " %" SCNu64 " %" SCNd64,
                   &ret->is.dataset, &ret->is.map, &ret->is.attempt, &ret->bytes,
                   &ret->took_ns);
    return n == 5 && ret->took_ns >= 0 &&
                   is_same_word(line, strcspn(line, " "), &ret->is)
               ? 1
               : TRP_EPROTO;
}

/* ---- copying --------------------------------------------------------------------- */

struct trp_mover {
    char *from, *run_dir;
    struct trp_move_output *outputs;
    uint32_t n;
    volatile int killed;
    void (*told)(trp_mover *m, const struct trp_moved_output *moved);
    void (*news)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    struct trp_buf moved; /* a message that was begun; empty: there is no news */
    bool over;
    trp_error err;
};

static int open_folder(const char *path, trp_error *err)
{
    int fd = trp_held_open(path, O_RDONLY | O_DIRECTORY, 0);
    return fd >= 0 ? fd : trp_error_set(err, TRP_ESYSTEM, "%s: %m", path);
}

static int open_shared(const char *run_dir, trp_error *err)
{
    char path[TRP_RUN_FILES];
    int n = snprintf(path, sizeof path, "%s/state/scratch/shuffle", run_dir);
    if (n >= (int)sizeof path)
        return trp_error_set(err, TRP_ELIMIT, "%s: too long a path", run_dir);
    int rc = trp_folder_make(path, err);
    return rc < 0 ? rc : open_folder(path, err);
}

static int copy_all(trp_mover *m, const struct trp_output_copy *c, trp_error *err)
{
    for (uint32_t i = 0; i < m->n; i++) {
        struct trp_moved_output moved = {.is = m->outputs[i]};
        const struct trp_output_id id = {moved.is.dataset, moved.is.map,
                                         moved.is.attempt};
        int64_t begin = trp_clock_ns();
        int rc = trp_output_copy(c, &id, &moved.bytes, err);
        moved.took_ns = trp_clock_ns() - begin;
        if (rc == 0)
            m->told(m, &moved);
        else if (rc != TRP_ENOENT && rc != TRP_EPROTO)
            return rc;
    }
    return 0;
}

static int move_all(trp_mover *m, trp_error *err)
{
    struct trp_output_copy c = {.from = open_folder(m->from, err),
                                .killed = &m->killed};
    if (c.from < 0)
        return c.from;
    c.to = open_shared(m->run_dir, err);
    int rc = c.to < 0 ? c.to : copy_all(m, &c, err);
    if (c.to >= 0)
        close(c.to);
    close(c.from);
    return rc;
}

/* ---- an executor's thread -------------------------------------------------------- */

static void note(trp_mover *m, const struct trp_moved_output *moved)
{
    pthread_mutex_lock(&m->lock);
    if (!m->moved.size)
        trp_moved_begin(&m->moved);
    trp_moved_add(&m->moved, moved);
    pthread_mutex_unlock(&m->lock);
    m->news(m->context);
}

static void *run(void *arg)
{
    trp_mover *m = arg;
    trp_error err = {0};
    int rc = move_all(m, &err);
    pthread_mutex_lock(&m->lock);
    m->over = true;
    if (rc < 0)
        m->err = err;
    pthread_mutex_unlock(&m->lock);
    m->news(m->context);
    return NULL;
}

static void free_mover(trp_mover *m)
{
    pthread_mutex_destroy(&m->lock);
    trp_buf_free(&m->moved);
    free(m->outputs);
    free(m->from);
    free(m->run_dir);
    free(m);
}

int trp_mover_start(const struct trp_mover_config *config, trp_mover **ret,
                    trp_error *err)
{
    trp_mover *m = calloc(1, sizeof *m);
    if (!m)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    pthread_mutex_init(&m->lock, NULL);
    m->from = strdup(config->from);
    m->run_dir = strdup(config->run_dir);
    m->outputs = calloc((size_t)config->n + 1, sizeof *m->outputs);
    m->n = config->n;
    m->told = note;
    m->news = config->news;
    m->context = config->context;
    bool good = m->from && m->run_dir && m->outputs;
    if (good && m->n)
        memcpy(m->outputs, config->outputs, m->n * sizeof *m->outputs);
    int rc = good ? trp_thread_start(&m->thread, run, m) : ENOMEM;
    if (rc == 0) {
        *ret = m;
        return 0;
    }
    free_mover(m);
    return trp_error_set(err, rc == ENOMEM ? TRP_ENOMEM : TRP_ESYSTEM,
                         "map outputs cannot be moved: %s", strerror(rc));
}

int trp_mover_take(trp_mover *m, struct trp_buf *b)
{
    pthread_mutex_lock(&m->lock);
    bool last = m->over;
    if (last && !m->moved.size)
        trp_moved_begin(&m->moved);
    if (m->moved.size)
        trp_moved_finish(&m->moved, last, m->err.text);
    *b = m->moved;
    m->moved = (struct trp_buf){0};
    pthread_mutex_unlock(&m->lock);
    return last;
}

void trp_mover_stop(trp_mover *m)
{
    if (!m)
        return;
    m->killed = 1;
    pthread_join(m->thread, NULL);
    free_mover(m);
}

/* ---- a step ---------------------------------------------------------------------- */

static void print(trp_mover *m, const struct trp_moved_output *moved)
{
    char word[TRP_MOVE_WORD];
    trp_move_word(&moved->is, word);
    if (dprintf(STDOUT_FILENO, "%s %" PRIu64 " %" PRId64 "\n", word, moved->bytes,
                moved->took_ns) < 0)
        m->killed = 1; /* nobody hears it any more */
}

static int move_here(char **words, uint32_t n, const char *run_dir, const char *parent,
                     trp_error *err)
{
    struct trp_run_files files;
    char from[TRP_RUN_FILES + 16];
    trp_mover m = {.n = n, .told = print, .run_dir = (char *)(uintptr_t)run_dir};
    m.outputs = calloc((size_t)n + 1, sizeof *m.outputs);
    if (!m.outputs)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        if (!trp_move_read_word(words[i], &m.outputs[i]))
            rc = trp_error_set(err, TRP_EINVAL, "%s is no map output", words[i]);
    if (rc == 0)
        rc = trp_run_files_find(parent, trp_held_id(run_dir), &files, err);
    if (rc == 0) {
        snprintf(from, sizeof from, "%s/shuffle", files.path);
        m.from = from;
        rc = move_all(&m, err);
        trp_run_files_leave(&files, false);
    }
    free(m.outputs);
    return rc;
}

int trp_move_main(int argc, char **argv)
{
    trp_error err = {0};
    int rc = argc < 3 ? trp_error_set(&err, TRP_EINVAL, "too few arguments")
                      : trp_held_folder(argv[0], argv[1], &err);
    if (rc == 0) {
        rc = move_here(argv + 3, (uint32_t)argc - 3, argv[0], argv[2], &err);
        trp_held_leave(argv[0]);
    }
    if (rc < 0)
        dprintf(STDOUT_FILENO, "! %s\n", err.text);
    return rc < 0;
}
