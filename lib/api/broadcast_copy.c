/*
 * A host's copy of a broadcast, as a task gets it: the first that needs it on its host
 * asks the driver from where, takes it, and tells the driver that others may take it
 * from here. Others of the host wait for it meanwhile. Whatever goes wrong, the file in
 * the run's folder is read in its place, as far as this host sees it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/broadcast.h"
#include "api/shared_file.h"
#include "core/base/time.h"
#include "data/host_copy.h"
#include "os/clock.h"
#include "wire/map_output.h"
#include "wire/message.h"

enum {
    SOURCES = 8,      /* that are tried */
    NAP_FIRST_MS = 5, /* when all are busy; then twice as long … */
    NAP_MS = 500,     /* … up to this */
    WAIT_MS = 60000,  /* in all */
};

struct making {
    const struct trp_task_info *info;
    const struct trp_broadcast_entry *entry;
    const char *file; /* in the run's folder */
    struct trp_host_copy copy;
};

/* 1: from *ret_from, *ret_endpoint (malloc'ed); 0: later, or nothing was asked for. */
static int ask_driver(const struct making *m, const struct trp_copy_ask *ask,
                      uint32_t *ret_from, char **ret_endpoint)
{
    struct trp_buf b = {0};
    struct trp_synced s;
    uint8_t *reply = NULL;
    size_t n = 0;
    trp_copy_ask_put(&b, ask);
    int rc = b.failed ? TRP_ENOMEM
                      : m->info->sync(m->info, TRP_SYNC_COPY, b.data, (uint32_t)b.size,
                                      &reply, &n);
    if (rc == 0)
        rc = trp_synced_get(reply, n, &s);
    if (rc == 0 && s.status == 0 && s.count == 1) {
        const uint8_t *message = trp_get_bytes(&s.counted, &n);
        rc = trp_copy_from_get(message, n, ret_from, ret_endpoint);
        rc = rc < 0 ? rc : 1;
    }
    trp_buf_free(&b);
    free(reply);
    return rc;
}

static bool nap(const struct making *m, int64_t ms)
{
    const struct timespec t = {.tv_nsec = ms * TRP_MS};
    nanosleep(&t, NULL);
    return !*m->info->killed;
}

/* Asks until there is a source. As ask_driver. */
static int find_source(const struct making *m, struct trp_copy_ask *ask,
                       uint32_t *ret_from, char **ret_endpoint)
{
    const int64_t until = trp_clock_ns() + WAIT_MS * TRP_MS;
    int64_t ms = NAP_FIRST_MS;
    int rc;
    while ((rc = ask_driver(m, ask, ret_from, ret_endpoint)) == 0 &&
           trp_clock_ns() < until && nap(m, ms)) {
        ask->failed = false;
        ms = ms < NAP_MS / 2 ? ms * 2 : NAP_MS;
    }
    return rc;
}

/* From one source after the other. */
static void take_copy(struct making *m)
{
    const volatile int *killed = m->info->killed;
    struct trp_copy_ask ask = {.number = m->entry->id, .hash = m->entry->hash};
    trp_error err = {0};
    for (int i = 0; i < SOURCES && !m->copy.good && !*killed; i++) {
        uint32_t from;
        char *endpoint = NULL;
        if (find_source(m, &ask, &from, &endpoint) <= 0)
            return;
        int rc = *endpoint ? trp_host_copy_fetch(&m->copy, m->info->client, endpoint,
                                                 killed, &err)
                           : trp_host_copy_read(&m->copy, m->file, &err);
        if (rc < 0 && rc != TRP_ECANCELLED)
            fprintf(stderr, "troupe: broadcast %u: %s\n", m->entry->id, err.text);
        ask.failed = rc < 0;
        ask.from = from;
        free(endpoint);
    }
}

char *trp_broadcast_copy(const struct trp_task_info *info, const char *folder,
                         const char *kind, const struct trp_broadcast_entry *e)
{
    const struct trp_host_copy_id id = {e->id, e->size, e->hash};
    char name[TRP_HOST_COPY_NAME], *path = NULL;
    char *file = trp_shared_path(folder, kind, e->id);
    struct making m = {.info = info, .entry = e, .file = file};
    trp_error err;
    int there =
        file ? trp_host_copy_begin(info->map_outputs, &id, info->killed, &m.copy, &err)
             : -1;
    if (there == 0) {
        take_copy(&m);
        bool good = m.copy.good;
        if (trp_host_copy_end(&m.copy, &err) == 0 && good) {
            const struct trp_copy_ask has = {
                .number = e->id, .hash = e->hash, .has = true};
            uint32_t from;
            char *none = NULL;
            there = 1;
            if (ask_driver(&m, &has, &from, &none) > 0)
                free(none);
        }
    }
    trp_host_copy_name(&id, name);
    if (there == 1 && asprintf(&path, "%s/%s", info->map_outputs, name) < 0)
        path = NULL;
    free(file);
    return path;
}
