/*
 * A file's places stand in one array, the root first; a place knows from which of them it
 * reads. To ask is to look at all of them once: there are as many as hosts.
 */
#include "driver/copy_tree.h"

#include <stdlib.h>

#include "core/base/array.h"
#include "core/base/error.h"

enum { FAILURES = 2, ROOT = 0 };

struct place {
    uint32_t location;
    bool has;
    uint32_t failures; /* of others to get it from here */
    uint32_t readers;  /* counted when somebody asks */
    uint32_t from;     /* that it reads from; TRP_COPY_ROOT: none */
    uint32_t avoids;   /* where it could not be had last; the same */
    int64_t since;     /* that it reads */
};

struct file {
    uint32_t number;
    struct place *v;
    uint32_t n, capacity;
};

struct trp_copy_tree {
    struct file *v;
    uint32_t n, capacity;
};

trp_copy_tree *trp_copy_tree_new(void)
{
    return calloc(1, sizeof(trp_copy_tree));
}

void trp_copy_tree_free(trp_copy_tree *t)
{
    for (uint32_t i = 0; t && i < t->n; i++)
        free(t->v[i].v);
    free(t ? t->v : NULL);
    free(t);
}

static struct file *find_file(trp_copy_tree *t, uint32_t number)
{
    for (uint32_t i = t->n; i-- > 0;)
        if (t->v[i].number == number)
            return &t->v[i];
    return NULL;
}

/* Its index; TRP_COPY_ROOT: it has not asked. */
static uint32_t find_place(const struct file *f, uint32_t location)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->v[i].location == location)
            return i;
    return TRP_COPY_ROOT;
}

static struct place *add_place(struct file *f, uint32_t location)
{
    if (!TRP_ARRAY_GROW(f->v, f->n, f->capacity))
        return NULL;
    f->v[f->n] = (struct place){
        .location = location, .from = TRP_COPY_ROOT, .avoids = TRP_COPY_ROOT};
    return &f->v[f->n++];
}

static struct file *need_file(trp_copy_tree *t, uint32_t number)
{
    struct file *f = find_file(t, number);
    if (f)
        return f;
    if (!TRP_ARRAY_GROW(t->v, t->n, t->capacity))
        return NULL;
    f = &t->v[t->n];
    *f = (struct file){.number = number};
    struct place *root = add_place(f, TRP_COPY_ROOT);
    if (!root)
        return NULL;
    root->has = true;
    t->n++;
    return f;
}

static void count_readers(struct file *f, int64_t now)
{
    for (uint32_t i = 0; i < f->n; i++)
        f->v[i].readers = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        struct place *p = &f->v[i];
        if (p->from != TRP_COPY_ROOT && now - p->since > TRP_COPY_FORGOTTEN_NS)
            p->from = TRP_COPY_ROOT;
        if (p->from != TRP_COPY_ROOT)
            f->v[p->from].readers++;
    }
}

/* Who has it, with the fewest readers; of these the root last. */
static uint32_t best_for(const struct file *f, uint32_t asks)
{
    uint32_t best = TRP_COPY_ROOT;
    for (uint32_t k = 1; k <= f->n; k++) {
        const uint32_t i = k % f->n;
        const struct place *p = &f->v[i];
        if (p->has && i != asks && i != f->v[asks].avoids &&
            p->readers < TRP_COPY_READERS &&
            (best == TRP_COPY_ROOT || p->readers < f->v[best].readers))
            best = i;
    }
    return best;
}

int trp_copy_tree_ask(trp_copy_tree *t, uint32_t file, uint32_t location, int64_t now,
                      uint32_t *ret_from)
{
    struct file *f = need_file(t, file);
    if (!f)
        return TRP_ENOMEM;
    uint32_t asks = find_place(f, location);
    if (asks == TRP_COPY_ROOT) {
        asks = f->n;
        if (!add_place(f, location))
            return TRP_ENOMEM;
    }
    f->v[asks].from = TRP_COPY_ROOT;
    f->v[asks].has = false; /* it would not ask */
    count_readers(f, now);
    const uint32_t best = best_for(f, asks);
    if (best == TRP_COPY_ROOT)
        return 0;
    f->v[asks].from = best;
    f->v[asks].since = now;
    *ret_from = f->v[best].location;
    return 1;
}

void trp_copy_tree_failed(trp_copy_tree *t, uint32_t file, uint32_t location,
                          uint32_t from)
{
    struct file *f = find_file(t, file);
    const uint32_t asks = f ? find_place(f, location) : TRP_COPY_ROOT;
    const uint32_t bad = f ? find_place(f, from) : TRP_COPY_ROOT;
    if (asks == TRP_COPY_ROOT || bad == TRP_COPY_ROOT)
        return;
    f->v[asks].avoids = bad;
    if (bad != ROOT && ++f->v[bad].failures >= FAILURES)
        f->v[bad].has = false;
}

void trp_copy_tree_has(trp_copy_tree *t, uint32_t file, uint32_t location)
{
    struct file *f = find_file(t, file);
    const uint32_t i = f ? find_place(f, location) : TRP_COPY_ROOT;
    if (i == TRP_COPY_ROOT)
        return;
    f->v[i].has = f->v[i].failures < FAILURES;
    f->v[i].from = TRP_COPY_ROOT;
}

void trp_copy_tree_gone(trp_copy_tree *t, uint32_t location)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const uint32_t at = find_place(&t->v[i], location);
        if (at != TRP_COPY_ROOT) {
            t->v[i].v[at].has = false;
            t->v[i].v[at].from = TRP_COPY_ROOT;
        }
    }
}
