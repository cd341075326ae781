/*
 * Blocks in a hash table by key and, those that are whole, in a list with the one used
 * last at its end. A block has references: the table's, its writer's, its readers', and
 * that of who moves it to the disk; the last one frees it. So dropping is only taking it
 * out of the table, whoever reads.
 *
 * One lock for all; nothing is read, written or freed on the disk while it is held. Who
 * moves a block marks it: nobody else moves it then, and where a reader came meanwhile
 * the memory stays, since it is being used.
 *
 * Memory that is counted is what chunks take, not what stands around them. It is taken
 * off when it is freed, not when its block is dropped: a reader may still hold it.
 */
#include "data/block_store.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>
#include <xxhash.h>

#include "core/base/array.h"
#include "data/block_disk.h"

struct chunk {
    uint8_t *data; /* NULL: on the disk */
    uint64_t at, checksum;
    size_t size;
};

struct block {
    struct trp_block_key key;
    UT_hash_handle hh;
    struct block *prev, *next; /* while it is in the table: the one used last is last */
    unsigned level;
    uint32_t refs, readers;
    bool there, moving;
    struct chunk *chunks;
    uint32_t n, capacity;
    uint64_t memory, disk;
};

struct trp_block_store {
    struct trp_block_disk disk;
    atomic_bool news;
    pthread_mutex_t lock;
    /* ---- `lock` */
    struct block *blocks, *oldest;
    uint64_t pool, used, borrowed;
    uint32_t *dropped; /* datasets, in order */
    uint32_t ndropped, dropped_capacity;
    struct trp_block_update *updates;
    uint32_t nupdates, updates_capacity;
    int problem;
};

struct trp_block_writer {
    trp_block_store *store;
    struct block *block;
    uint64_t attempt;
    bool keeps, to_disk;
};

struct trp_block_reader {
    trp_block_store *store;
    struct block *block;
    uint32_t next;
    uint8_t *buffer;
    size_t capacity;
};

trp_block_store *trp_block_store_new(int (*folder)(void *context), void *context)
{
    trp_block_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    trp_block_disk_init(&s->disk, folder, context);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void lock(trp_block_store *s)
{
    pthread_mutex_lock(&s->lock);
}

static void unlock(trp_block_store *s)
{
    pthread_mutex_unlock(&s->lock);
}

void trp_block_store_pool(trp_block_store *s, uint64_t bytes)
{
    lock(s);
    if (bytes > s->pool)
        s->pool = bytes;
    unlock(s);
}

/* ---- blocks (with the lock) ------------------------------------------------------ */

static struct block *find(trp_block_store *s, struct trp_block_key key)
{
    struct block *b;
    HASH_FIND(hh, s->blocks, &key, sizeof key, b);
    return b;
}

/* An update that memory is out for is lost: the driver then asks for a block that is
 * not there, or computes one that is. */
static void note_update(trp_block_store *s, const struct block *b, uint64_t attempt)
{
    atomic_store(&s->news, true);
    if (!TRP_ARRAY_GROW(s->updates, s->nupdates, s->updates_capacity))
        return;
    s->updates[s->nupdates++] =
        (struct trp_block_update){.key = b->key,
                                  .attempt = attempt,
                                  .there = b->there,
                                  .memory = b->there ? b->memory : 0,
                                  .disk = b->there ? b->disk : 0,
                                  .level = b->level};
}

static void note_problem(trp_block_store *s, int problem)
{
    s->problem = problem;
    atomic_store(&s->news, true);
}

/* Memory and extents of a block that nobody has any more. The lock is left meanwhile. */
static void block_free(trp_block_store *s, struct block *b)
{
    uint64_t memory = 0;
    unlock(s);
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->chunks[i].data)
            memory += b->chunks[i].size;
        else
            trp_block_disk_free(&s->disk, b->chunks[i].at, b->chunks[i].size);
        free(b->chunks[i].data);
    }
    free(b->chunks);
    free(b);
    lock(s);
    s->used -= memory;
}

static void leave_block(trp_block_store *s, struct block *b)
{
    if (--b->refs == 0)
        block_free(s, b);
}

/* Out of the table. */
static void take_out(trp_block_store *s, struct block *b, uint64_t attempt)
{
    b->there = false;
    HASH_DEL(s->blocks, b);
    DL_DELETE(s->oldest, b);
    note_update(s, b, attempt);
}

/* The same; who still has it keeps it. */
static void drop(trp_block_store *s, struct block *b, uint64_t attempt)
{
    if (!b->there)
        return;
    take_out(s, b, attempt);
    leave_block(s, b);
}

void trp_block_store_free(trp_block_store *s)
{
    if (!s)
        return;
    lock(s);
    while (s->oldest)
        drop(s, s->oldest, TRP_BLOCK_NO_ATTEMPT);
    unlock(s);
    trp_block_disk_close(&s->disk);
    pthread_mutex_destroy(&s->lock);
    free(s->dropped);
    free(s->updates);
    free(s);
}

/* ---- moving to the disk ---------------------------------------------------------- */

/* Writes a chunk; 0 or the errno. Without the lock. */
static int chunk_write(trp_block_store *s, const struct chunk *c, struct chunk *ret)
{
    *ret = (struct chunk){.size = c->size, .checksum = XXH3_64bits(c->data, c->size)};
    return trp_block_disk_write(&s->disk, c->data, c->size, &ret->at);
}

static void extents_free(trp_block_store *s, const struct chunk *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (v[i].size)
            trp_block_disk_free(&s->disk, v[i].at, v[i].size);
}

/* Writes the chunks of a block that are in memory, into v[]; of others v[] is zeroed.
 * Without the lock. */
static int copy_out(trp_block_store *s, const struct block *b, struct chunk *v)
{
    memset(v, 0, b->n * sizeof *v);
    for (uint32_t i = 0; i < b->n; i++) {
        int rc = b->chunks[i].data ? chunk_write(s, &b->chunks[i], &v[i]) : 0;
        if (rc == 0)
            continue;
        v[i].size = 0;
        extents_free(s, v, i);
        return rc;
    }
    return 0;
}

/* The block's chunks are those on the disk from now on. With the lock. */
static void switch_to(trp_block_store *s, struct block *b, const struct chunk *v)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (!b->chunks[i].data)
            continue;
        free(b->chunks[i].data);
        b->chunks[i] = v[i];
    }
    s->used -= b->memory;
    b->disk += b->memory;
    b->memory = 0;
}

/* Takes a block that nobody reads out of memory. With the lock, which it leaves. */
static void evict(trp_block_store *s, struct block *b, uint64_t attempt)
{
    struct chunk *v = NULL;
    int rc = ENOMEM;
    if (!(b->level & TRP_BLOCK_DISK)) {
        drop(s, b, attempt);
        return;
    }
    b->moving = true;
    b->refs++;
    unlock(s);
    v = malloc((b->n ? b->n : 1) * sizeof *v);
    if (v)
        rc = copy_out(s, b, v);
    lock(s);
    b->moving = false;
    bool moves = rc == 0 && b->there && !b->readers;
    if (moves) {
        switch_to(s, b, v);
        note_update(s, b, attempt);
    } else if (rc) {
        note_problem(s, rc);
        drop(s, b, attempt);
    }
    if (!moves && rc == 0) {
        unlock(s);
        extents_free(s, v, b->n);
        lock(s);
    }
    leave_block(s, b);
    free(v);
}

static bool may_go(const struct block *b, uint32_t for_dataset)
{
    return b->memory && !b->readers && !b->moving && b->key.dataset != for_dataset;
}

/* Makes blocks take no more than `most` bytes with `need` more of a dataset (UINT32_MAX:
 * of none). False: they cannot, and none was moved in vain but for what others did
 * meanwhile. With the lock, which it leaves. */
static bool make_room(trp_block_store *s, uint64_t need, uint64_t most,
                      uint32_t for_dataset, uint64_t attempt)
{
    while (s->used + need > most) {
        uint64_t can = 0;
        struct block *first = NULL;
        for (struct block *b = s->oldest; b && s->used - can + need > most;
             b = b->next) {
            if (!may_go(b, for_dataset))
                continue;
            first = first ? first : b;
            can += b->memory;
        }
        if (s->used - can + need > most)
            return false;
        evict(s, first, attempt);
    }
    return true;
}

/* ---- the pool -------------------------------------------------------------------- */

uint64_t trp_block_store_borrow(trp_block_store *s, uint64_t want, uint64_t least)
{
    lock(s);
    uint64_t others = s->borrowed + want, most = s->pool / 2;
    if (s->pool > others && s->pool - others > most)
        most = s->pool - others;
    /* As far as it goes: blocks that are read stay. */
    while (s->used > most &&
           make_room(s, 0, s->used - 1, UINT32_MAX, TRP_BLOCK_NO_ATTEMPT))
        ;
    uint64_t taken = s->used + s->borrowed;
    uint64_t got = s->pool > taken ? s->pool - taken : 0;
    if (got > want)
        got = want;
    if (got < least)
        got = least;
    s->borrowed += got;
    unlock(s);
    return got;
}

void trp_block_store_repay(trp_block_store *s, uint64_t bytes)
{
    lock(s);
    assert(s->borrowed >= bytes);
    s->borrowed -= bytes;
    unlock(s);
}

static bool take_memory(trp_block_store *s, const struct trp_block_writer *w,
                        uint64_t size)
{
    uint64_t most = s->pool > s->borrowed ? s->pool - s->borrowed : 0;
    if (!make_room(s, size, most, w->block->key.dataset, w->attempt))
        return false;
    s->used += size;
    return true;
}

/* ---- keeping --------------------------------------------------------------------- */

static bool is_dropped(const trp_block_store *s, uint32_t dataset)
{
    uint32_t from = 0, to = s->ndropped;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (s->dropped[middle] < dataset)
            from = middle + 1;
        else
            to = middle;
    }
    return from < s->ndropped && s->dropped[from] == dataset;
}

trp_block_writer *trp_block_begin(trp_block_store *s, struct trp_block_key key,
                                  unsigned level, uint64_t attempt)
{
    lock(s);
    bool may = !find(s, key) && !is_dropped(s, key.dataset);
    unlock(s);
    trp_block_writer *w = may ? calloc(1, sizeof *w) : NULL;
    struct block *b = w ? calloc(1, sizeof *b) : NULL;
    if (!b) {
        free(w);
        return NULL;
    }
    b->key = key;
    b->level = level;
    b->refs = 1;
    *w = (trp_block_writer){.store = s,
                            .block = b,
                            .attempt = attempt,
                            .keeps = true,
                            .to_disk = !(level & TRP_BLOCK_MEMORY)};
    return w;
}

/* It will not be kept: what it has goes at once. */
static void give_up(trp_block_writer *w, int problem)
{
    trp_block_store *s = w->store;
    w->keeps = false;
    lock(s);
    if (problem)
        note_problem(s, problem);
    leave_block(s, w->block);
    unlock(s);
    w->block = NULL;
}

/* What it has so far goes to the disk, as will all that comes. Returns 0 or the errno. */
static int overflow(trp_block_writer *w)
{
    trp_block_store *s = w->store;
    struct block *b = w->block;
    struct chunk *v = malloc((b->n ? b->n : 1) * sizeof *v);
    int rc = v ? copy_out(s, b, v) : ENOMEM;
    if (rc == 0) {
        lock(s);
        switch_to(s, b, v);
        unlock(s);
    }
    free(v);
    w->to_disk = rc == 0;
    return rc;
}

/* 0 or the errno; ENOBUFS: there is no room, and it may not go to the disk. */
static int put(trp_block_writer *w, const struct chunk *c, struct chunk *ret)
{
    trp_block_store *s = w->store;
    bool fits = false;
    int rc = 0;
    *ret = *c;
    if (!w->to_disk) {
        lock(s);
        fits = take_memory(s, w, c->size);
        unlock(s);
    }
    if (fits)
        return 0;
    if (!(w->block->level & TRP_BLOCK_DISK))
        return ENOBUFS;
    if (!w->to_disk)
        rc = overflow(w);
    return rc ? rc : chunk_write(s, c, ret);
}

bool trp_block_put(trp_block_writer *w, uint8_t *take_chunk, size_t size)
{
    const struct chunk c = {.data = take_chunk, .size = size};
    struct chunk kept;
    assert(size > 0);
    if (!w->keeps) {
        free(take_chunk);
        return false;
    }
    struct block *b = w->block;
    int rc = TRP_ARRAY_GROW(b->chunks, b->n, b->capacity) ? put(w, &c, &kept) : ENOMEM;
    if (rc) {
        free(take_chunk);
        give_up(w, rc == ENOBUFS || rc == ENOMEM ? 0 : rc);
        return false;
    }
    b->chunks[b->n++] = kept;
    if (kept.data) {
        b->memory += size;
    } else {
        b->disk += size;
        free(take_chunk);
    }
    return true;
}

void trp_block_written(const trp_block_writer *w, uint64_t *ret_memory,
                       uint64_t *ret_disk)
{
    *ret_memory = w->keeps ? w->block->memory : 0;
    *ret_disk = w->keeps ? w->block->disk : 0;
}

void trp_block_end(trp_block_writer *w, bool whole)
{
    trp_block_store *s = w->store;
    struct block *b = w->block;
    if (w->keeps) {
        lock(s);
        if (whole && !find(s, b->key) && !is_dropped(s, b->key.dataset)) {
            HASH_ADD(hh, s->blocks, key, sizeof b->key, b);
            b->there = find(s, b->key) == b;
        }
        if (b->there) {
            DL_APPEND(s->oldest, b);
            note_update(s, b, w->attempt);
        } else {
            leave_block(s, b);
        }
        unlock(s);
    }
    free(w);
}

void trp_block_drop(trp_block_store *s, uint32_t dataset)
{
    lock(s);
    if (!is_dropped(s, dataset) &&
        TRP_ARRAY_GROW(s->dropped, s->ndropped, s->dropped_capacity)) {
        uint32_t at = s->ndropped++;
        for (; at > 0 && s->dropped[at - 1] > dataset; at--)
            s->dropped[at] = s->dropped[at - 1];
        s->dropped[at] = dataset;
    }
    struct block *gone = NULL, *b, *next;
    DL_FOREACH_SAFE(s->oldest, b, next) {
        if (b->key.dataset != dataset)
            continue;
        take_out(s, b, TRP_BLOCK_NO_ATTEMPT);
        LL_PREPEND(gone, b);
    }
    LL_FOREACH_SAFE(gone, b, next) /* leaves the lock */
        leave_block(s, b);
    unlock(s);
}

/* ---- reading --------------------------------------------------------------------- */

/* Reads a chunk into the reader's buffer and checks it. */
static bool read_chunk(trp_block_reader *r, const struct chunk *c)
{
    if (c->size > r->capacity) {
        free(r->buffer);
        r->buffer = malloc(c->size);
        r->capacity = r->buffer ? c->size : 0;
    }
    return r->buffer &&
           trp_block_disk_read(&r->store->disk, c->at, r->buffer, c->size) &&
           XXH3_64bits(r->buffer, c->size) == c->checksum;
}

/* All that is on the disk is looked at before the first byte is handed out: who got
 * half of a block could not begin again. */
static bool is_whole(trp_block_reader *r)
{
    const struct block *b = r->block;
    for (uint32_t i = 0; b->disk && i < b->n; i++)
        if (!b->chunks[i].data && !read_chunk(r, &b->chunks[i]))
            return false;
    return true;
}

trp_block_reader *trp_block_open(trp_block_store *s, struct trp_block_key key)
{
    trp_block_reader *r = NULL;
    lock(s);
    struct block *b = find(s, key);
    if (b && (r = calloc(1, sizeof *r))) {
        DL_DELETE(s->oldest, b);
        DL_APPEND(s->oldest, b);
        b->refs++;
        b->readers++;
        *r = (trp_block_reader){.store = s, .block = b};
    }
    unlock(s);
    if (!r || is_whole(r))
        return r;
    lock(s);
    drop(s, b, TRP_BLOCK_NO_ATTEMPT);
    unlock(s);
    trp_block_close(r);
    return NULL;
}

int trp_block_next(trp_block_reader *r, const uint8_t **ret_data, size_t *ret_size)
{
    const struct block *b = r->block;
    if (r->next == b->n)
        return 0;
    const struct chunk *c = &b->chunks[r->next++];
    if (!c->data && !read_chunk(r, c))
        return -1;
    *ret_data = c->data ? c->data : r->buffer;
    *ret_size = c->size;
    return 1;
}

uint64_t trp_block_size(const trp_block_reader *r)
{
    return r->block->memory + r->block->disk;
}

void trp_block_close(trp_block_reader *r)
{
    if (!r)
        return;
    trp_block_store *s = r->store;
    lock(s);
    r->block->readers--;
    leave_block(s, r->block);
    unlock(s);
    free(r->buffer);
    free(r);
}

/* ---- what has become of blocks --------------------------------------------------- */

bool trp_block_store_news(trp_block_store *s)
{
    return atomic_load_explicit(&s->news, memory_order_relaxed) &&
           atomic_exchange(&s->news, false);
}

struct trp_block_update *trp_block_store_updates(trp_block_store *s, uint32_t *ret_n)
{
    lock(s);
    struct trp_block_update *v = s->nupdates ? s->updates : NULL;
    *ret_n = s->nupdates;
    if (v) {
        s->updates = NULL;
        s->nupdates = s->updates_capacity = 0;
    }
    unlock(s);
    return v;
}

int trp_block_store_problem(trp_block_store *s)
{
    lock(s);
    int problem = s->problem;
    s->problem = 0;
    unlock(s);
    return problem;
}

void trp_block_store_used(trp_block_store *s, uint64_t *ret_memory, uint64_t *ret_disk)
{
    lock(s);
    *ret_memory = s->used;
    unlock(s);
    pthread_mutex_lock(&s->disk.lock);
    *ret_disk = s->disk.live;
    pthread_mutex_unlock(&s->disk.lock);
}
