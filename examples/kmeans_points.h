/* The points that kmeans.c looks at. */
#ifndef KMEANS_POINTS_H
#define KMEANS_POINTS_H

#include <inttypes.h>
#include <troupe.h>

#include "example.h"

enum { WIDTH = 10000, HEAP = 1000 };

struct point {
    double x, y;
};

/* Whole numbers, so that their sums are exact, in as many heaps as there are clusters. */
static inline struct point point_of(uint64_t i, uint32_t heaps)
{
    const uint64_t heap = example_random(1, i) % heaps;
    return (struct point){
        (double)(example_random(2, heap) % WIDTH + example_random(3, i) % HEAP),
        (double)(example_random(4, heap) % WIDTH + example_random(5, i) % HEAP)};
}

/* The point in record i. */
static inline struct point get_point(const trp_batch *b, size_t i)
{
    struct point p;
    memcpy(&p, trp_value(b, i, NULL), sizeof(p));
    return p;
}

TRP_FUNCTION(points); /* numbers become number → point; arg: how many heaps */
int points(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        const int64_t number = trp_get_i64(in, i);
        struct point p = point_of((uint64_t)number, *(const uint32_t *)arg);
        if (trp_emit(out, &number, sizeof(number), &p, sizeof(p)) < 0)
            return -1;
    }
    return 0;
}

static inline int print_points(trp_dataset *d)
{
    trp_rows *rows;
    int rc = trp_collect(d, &rows);
    const trp_batch *b = rc == 0 ? trp_rows_batch(rows) : NULL;
    for (size_t i = 0; b && i < b->count; i++)
        printf("%.0f %.0f\n", get_point(b, i).x, get_point(b, i).y);
    return rc;
}

#endif
