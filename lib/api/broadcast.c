/*
 * On an executor, mappings stand in a table under one lock, which is held while one is
 * mapped and its hash is compared: tasks that want the same one wait for that instead
 * of doing it twice.
 *
 * All executors of a host map the same pages, so what is written into the file while a task
 * reads it is what the task reads. A task that has read such bytes has failed. That is
 * asked when it ends, by the times of the file, which cost one call; the hash is taken anew
 * only when they are others. A sealed copy in memory was rejected: one for each
 * executor takes their memory, and one for a host needs a process that outlives them.
 */
#include "api/broadcast.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/shared_file.h"
#include "core/base/array.h"
#include "data/host_copy.h"

static const char folder_name[] = "broadcasts";

/* ---- the driver's side ---- */

struct trp_broadcast trp_broadcast(trp_context *ctx, const void *data, size_t size)
{
    struct trp_broadcast none = {0};
    struct trp_broadcast_entry e = {.size = size};
    trp_error err;
    if (!ctx || (size && !data)) {
        trp_dataset_fail(ctx, TRP_EINVAL, "trp_broadcast: nothing given");
        return none;
    }
    if (!TRP_ARRAY_GROW(ctx->broadcasts, ctx->nbroadcasts, ctx->broadcasts_capacity)) {
        trp_dataset_fail(ctx, TRP_ENOMEM, "out of memory for a broadcast");
        return none;
    }
    e.id = ++ctx->last_broadcast;
    if (trp_shared_write(trp_context_shared(ctx), folder_name, e.id, data, size,
                         &e.hash, &err) < 0) {
        trp_dataset_fail(ctx, err.code, "trp_broadcast: %s", err.text);
        return none;
    }
    if (ctx->driver && size >= TRP_HOST_COPY_MIN)
        trp_driver_shares_files(ctx->driver);
    trp_context_enter(ctx); /* its loop puts the list */
    ctx->broadcasts[ctx->nbroadcasts++] = e;
    trp_context_leave(ctx);
    return (struct trp_broadcast){e.id};
}

void trp_broadcast_free(trp_context *ctx, struct trp_broadcast b)
{
    uint32_t i = 0;
    if (!ctx)
        return;
    while (i < ctx->nbroadcasts && ctx->broadcasts[i].id != b.id)
        i++;
    if (i == ctx->nbroadcasts)
        return;
    trp_context_enter(ctx);
    ctx->broadcasts[i] = ctx->broadcasts[--ctx->nbroadcasts];
    trp_context_leave(ctx);
    trp_shared_remove(trp_context_shared(ctx), folder_name, b.id);
}

void trp_broadcasts_free(trp_context *ctx)
{
    free(ctx->broadcasts);
}

/* ---- in a body ---- */

void trp_broadcasts_put(struct trp_buf *b, const trp_context *ctx)
{
    trp_put_u32(b, ctx->nbroadcasts);
    for (uint32_t i = 0; i < ctx->nbroadcasts; i++) {
        trp_put_u32(b, ctx->broadcasts[i].id);
        trp_put_u64(b, ctx->broadcasts[i].size);
        trp_put_u64(b, ctx->broadcasts[i].hash);
    }
}

bool trp_broadcasts_get(struct trp_view *v, struct trp_broadcast_entry **ret,
                        uint32_t *ret_n)
{
    uint32_t n = trp_get_count(v, 20);
    *ret_n = n;
    *ret = malloc((n ? n : 1) * sizeof(**ret));
    for (uint32_t i = 0; *ret && i < n; i++) {
        (*ret)[i].id = trp_get_u32(v);
        (*ret)[i].size = trp_get_u64(v);
        (*ret)[i].hash = trp_get_u64(v);
    }
    return *ret && !v->bad;
}

/* ---- an executor's side ---- */

static struct mapping {
    struct trp_broadcast_entry entry; /* id 0: free */
    const uint8_t *data;
    uint32_t users; /* tasks that have it */
    bool stale;     /* no stage can ask for it any more */
    bool damaged;   /* nobody is given it any more */
    char *path;
    bool copy; /* it is one on this host */
    struct trp_shared_look look;
} * mappings;
static uint32_t nmappings, mappings_capacity;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct trp_broadcast_entry *
find_entry(const struct trp_broadcast_entry *list, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i].id == id)
            return &list[i];
    return NULL;
}

static void unmap_unused(struct mapping *m)
{
    if (!m->entry.id || !(m->stale || m->damaged) || m->users)
        return;
    trp_shared_unmap(m->data, m->entry.size);
    if (m->copy)
        unlink(m->path); /* what others have mapped stays so */
    free(m->path);
    *m = (struct mapping){0};
}

void trp_broadcasts_keep(const struct trp_broadcast_entry *list, uint32_t n)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < nmappings; i++) {
        mappings[i].stale = !find_entry(list, n, mappings[i].entry.id);
        unmap_unused(&mappings[i]);
    }
    pthread_mutex_unlock(&lock);
}

/* Its place in the table; TRP_NONE with the error. `take_copy` is a path, or NULL. */
static uint32_t map_one(const char *folder, const struct trp_broadcast_entry *e,
                        char *take_copy, trp_error *err)
{
    uint32_t at = TRP_NONE;
    for (uint32_t i = 0; i < nmappings; i++) {
        if (mappings[i].entry.id == e->id && !mappings[i].damaged) {
            free(take_copy);
            return i;
        }
        if (!mappings[i].entry.id)
            at = i;
    }
    if (at == TRP_NONE) {
        if (!TRP_ARRAY_GROW(mappings, nmappings, mappings_capacity)) {
            free(take_copy);
            trp_error_set(err, TRP_ENOMEM, "out of memory for a broadcast");
            return TRP_NONE;
        }
        at = nmappings++;
        mappings[at] = (struct mapping){0};
    }
    const uint8_t *data;
    struct trp_shared_look look = trp_shared_look(take_copy);
    bool copy =
        take_copy && trp_shared_map_file(take_copy, e->size, e->hash, &data, err) == 0;
    char *path = copy ? take_copy : trp_shared_path(folder, folder_name, e->id);
    if (!copy) {
        free(take_copy);
        look = trp_shared_look(path);
    }
    if (!path ||
        (!copy && trp_shared_map_file(path, e->size, e->hash, &data, err) < 0)) {
        if (!path)
            trp_error_set(err, TRP_ENOMEM, "out of memory for a broadcast");
        free(path);
        return TRP_NONE;
    }
    mappings[at] = (struct mapping){
        .entry = *e, .data = data, .path = path, .copy = copy, .look = look};
    return at;
}

static bool is_mapped(uint32_t id)
{
    bool is = false;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < nmappings; i++)
        is |= mappings[i].entry.id == id && !mappings[i].damaged;
    pthread_mutex_unlock(&lock);
    return is;
}

const void *trp_broadcast_map(const struct trp_task_info *info, const char *folder,
                              const struct trp_broadcast_entry *list, uint32_t n,
                              uint32_t id, struct trp_broadcasts_held *held,
                              size_t *ret_size, trp_error *err)
{
    const struct trp_broadcast_entry *e = id ? find_entry(list, n, id) : NULL;
    const void *data = NULL;
    if (!e) {
        trp_error_set(err, TRP_ENOENT, "broadcast %u is gone, or never was", id);
        return NULL;
    }
    char *copy = info->apart && e->size >= TRP_HOST_COPY_MIN && !is_mapped(id)
                     ? trp_broadcast_copy(info, folder, folder_name, e)
                     : NULL;
    pthread_mutex_lock(&lock);
    uint32_t at = map_one(folder, e, copy, err), i = 0;
    while (i < held->n && held->places[i] != at)
        i++;
    bool has = i < held->n;
    if (at != TRP_NONE && !has &&
        !TRP_ARRAY_GROW(held->places, held->n, held->capacity))
        trp_error_set(err, TRP_ENOMEM, "out of memory for a broadcast");
    else if (at != TRP_NONE)
        data = mappings[at].data;
    if (data && !has) {
        held->places[held->n++] = at;
        mappings[at].users++;
    }
    pthread_mutex_unlock(&lock);
    *ret_size = e->size;
    return data;
}

bool trp_broadcasts_are_whole(const struct trp_broadcasts_held *held, char **ret_path)
{
    bool whole = true;
    if (held->n == 0)
        return true;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < held->n && whole; i++) {
        struct mapping *m = &mappings[held->places[i]];
        whole = !m->damaged && trp_shared_is_whole(m->path, m->data, m->entry.size,
                                                   m->entry.hash, &m->look);
        m->damaged = !whole;
        *ret_path = whole ? NULL : strdup(m->path);
    }
    pthread_mutex_unlock(&lock);
    return whole;
}

void trp_broadcasts_let_go(struct trp_broadcasts_held *held)
{
    if (held->n == 0)
        return;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < held->n; i++) {
        mappings[held->places[i]].users--;
        unmap_unused(&mappings[held->places[i]]);
    }
    pthread_mutex_unlock(&lock);
    held->n = 0;
}
