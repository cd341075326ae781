#include "data/region.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#include "data/shuffle.h"

enum { SIZE_MIN = 1 << 20, HUGE_PAGE = 2 << 20, KEPT_MAX = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trp_region kept[KEPT_MAX];
static size_t nkept;
static bool keeping;

/* The largest of a kind that is kept, if there is one. */
static bool take_kept(struct trp_region *r)
{
    size_t best = SIZE_MAX;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < nkept; i++)
        if (kept[i].kind == r->kind &&
            (best == SIZE_MAX || kept[i].size > kept[best].size))
            best = i;
    if (best != SIZE_MAX) {
        *r = kept[best];
        kept[best] = kept[--nkept];
    }
    pthread_mutex_unlock(&lock);
    return best != SIZE_MAX;
}

bool trp_region_grow(struct trp_region *r, size_t need)
{
    if (!r->p && need > 0)
        take_kept(r);
    if (need <= r->size)
        return true;
    size_t size = r->size ? r->size : SIZE_MIN;
    while (size < need)
        size *= 2;
    void *p = r->p ? mremap(r->p, r->size, size, MREMAP_MAYMOVE)
                   : mmap(NULL, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
    if (size >= HUGE_PAGE)
        madvise(p, size, MADV_HUGEPAGE);
    r->p = p;
    r->size = size;
    return true;
}

void trp_region_free(struct trp_region *r)
{
    if (!r->p)
        return;
    pthread_mutex_lock(&lock);
    if (keeping && nkept < KEPT_MAX) {
        kept[nkept++] = *r;
        r->p = NULL;
        r->size = 0;
    }
    pthread_mutex_unlock(&lock);
    trp_region_unmap(r);
}

void trp_region_unmap(struct trp_region *r)
{
    if (r->p)
        munmap(r->p, r->size);
    r->p = NULL;
    r->size = 0;
}

void trp_shuffle_keep_memory(bool keep)
{
    if (__atomic_load_n(&keeping, __ATOMIC_RELAXED) == keep)
        return; /* each task says so */
    pthread_mutex_lock(&lock);
    __atomic_store_n(&keeping, keep, __ATOMIC_RELAXED);
    while (!keeping && nkept > 0)
        trp_region_unmap(&kept[--nkept]);
    pthread_mutex_unlock(&lock);
}
