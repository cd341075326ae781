/*
 * k-means: points in a plane, parted into clusters around centres.
 *
 *     troupe run -- build/examples/kmeans
 *     troupe run -- build/examples/kmeans --size 1000000 --clusters 5 --rounds 20
 *     troupe run -- build/examples/kmeans --fine 'cores=2 memory=1g gpu=1 / gpu=1'
 *
 * The first half of the rounds looks at every tenth point, in small executors (--rough);
 * the others look at all points, in the shape that --fine says. What tasks found is
 * summed up in a third shape. So the shapes change from round to round, and the
 * executors with them; points are made anew each time, since what executors keep goes
 * with them. Prints a line for each centre: x, y, how many points it has.
 * --points prints the points instead.
 */
#include "kmeans_points.h"

enum { CLUSTERS_MAX = 64, PARTS = 8 };

struct centres { /* goes with assign to the executors */
    uint32_t n;
    struct point at[CLUSTERS_MAX];
};

struct sum { /* what the points of one cluster come to */
    double x, y;
    int64_t points;
};

TRP_FUNCTION(tenth); /* keeps every tenth point */
int tenth(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        const int32_t keep = trp_get_key_i64(in, i) % 10 == 0;
        if (trp_emit(out, NULL, 0, &keep, sizeof(keep)) < 0)
            return -1;
    }
    return 0;
}

static uint32_t nearest(const struct centres *c, struct point p)
{
    uint32_t best = 0;
    double least = 0;
    for (uint32_t k = 0; k < c->n; k++) {
        const double dx = p.x - c->at[k].x, dy = p.y - c->at[k].y;
        const double far = dx * dx + dy * dy;
        if (k == 0 || far < least) {
            least = far;
            best = k;
        }
    }
    return best;
}

TRP_FUNCTION(assign); /* a batch of points becomes cluster → sum */
int assign(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct centres *c = arg;
    struct sum sums[CLUSTERS_MAX] = {0};
    (void)t;
    for (size_t i = 0; i < in->count; i++) {
        struct point p = get_point(in, i);
        struct sum *of = &sums[nearest(c, p)];
        of->x += p.x;
        of->y += p.y;
        of->points++;
    }
    for (int64_t k = 0; k < c->n; k++)
        if (trp_emit(out, &k, sizeof(k), &sums[k], sizeof(*sums)) < 0)
            return -1;
    return 0;
}

TRP_COMBINE(add);
int add(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
        const void *arg)
{
    struct sum s, more;
    (void)na, (void)nb, (void)arg;
    memcpy(&s, a, sizeof(s));
    memcpy(&more, b, sizeof(more));
    s.x += more.x;
    s.y += more.y;
    s.points += more.points;
    return trp_emit(out, NULL, 0, &s, sizeof(s));
}

/* One round: moves the centres to the middle of their points, which it counts. */
static int move(trp_dataset *d, struct centres *c, trp_profile *look, trp_profile *sum,
                int64_t *counts)
{
    trp_rows *rows;
    d = trp_transform(d, assign, c, sizeof(*c));
    d = trp_named(trp_with_resources(d, look), "assign");
    d = trp_combine_by_key(d, add, NULL, 0, 1);
    d = trp_named(trp_with_resources(d, sum), "update");
    int rc = trp_collect(d, &rows);
    if (rc < 0)
        return rc;
    const trp_batch *b = trp_rows_batch(rows);
    for (size_t i = 0; i < b->count; i++) {
        struct sum s;
        const int64_t k = trp_get_key_i64(b, i);
        memcpy(&s, trp_value(b, i, NULL), sizeof(s));
        counts[k] = s.points;
        if (s.points > 0)
            c->at[k] = (struct point){s.x / (double)s.points, s.y / (double)s.points};
    }
    trp_rows_free(rows);
    return 0;
}

int main(int argc, char **argv)
{
    const char *rough = "cores=1 memory=200m", *fine = "cores=2 memory=300m";
    int64_t size = 100000, clusters = 3, rounds = 10, counts[CLUSTERS_MAX] = {0};
    bool print = false;
    const struct example_option options[] = {
        {"--size",     &size,     NULL,   NULL  },
        {"--clusters", &clusters, NULL,   NULL  },
        {"--rounds",   &rounds,   NULL,   NULL  },
        {"--rough",    NULL,      &rough, NULL  },
        {"--fine",     NULL,      &fine,  NULL  },
        {"--points",   NULL,      NULL,   &print},
        {NULL,         NULL,      NULL,   NULL  }
    };
    trp_context *ctx;
    trp_profile *small, *large, *sum;
    struct centres c = {0};
    example_options(argc, argv, options, 0, "kmeans [OPTION VALUE]… [--points]");
    if (clusters < 1 || clusters > CLUSTERS_MAX) {
        fprintf(stderr, "kmeans: --clusters is 1 to %d\n", CLUSTERS_MAX);
        return 2;
    }
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_profile_from(ctx, "rough", rough, &small);
    trp_profile_from(ctx, "fine", fine, &large);
    trp_profile_from(ctx, "update", "cores=2 memory=500m / cpus=2", &sum);

    c.n = (uint32_t)clusters;
    for (uint32_t k = 0; k < c.n; k++) /* they begin at points */
        c.at[k] = point_of(k, c.n);
    trp_dataset *all =
        trp_map(trp_range(ctx, 0, size, PARTS), points, &c.n, sizeof(c.n));
    trp_dataset *some = trp_filter(all, tenth, NULL, 0);
    int rc = print ? print_points(all) : 0;
    for (int64_t i = 0; rc == 0 && !print && i < rounds; i++)
        rc = i < rounds / 2 ? move(some, &c, small, sum, counts)
                            : move(all, &c, large, sum, counts);
    if (rc < 0)
        fprintf(stderr, "kmeans: %s\n", trp_error_text(ctx));
    for (uint32_t k = 0; rc == 0 && !print && k < c.n; k++)
        printf("%.6f %.6f %" PRId64 "\n", c.at[k].x, c.at[k].y, counts[k]);
    return trp_finalize(ctx);
}
