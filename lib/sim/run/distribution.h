/*
 * Distributions of times, as cluster and durations files write them:
 *
 *     20s                                   constant
 *     {constant: 20s}
 *     {uniform: {min: 10s, max: 30s}}
 *     {exponential: {mean: 20s}}
 *     {lognormal: {median: 20s, sigma: 0.5}}    or mean instead of median
 *     {events: RUN/events.jsonl, stage: NAME, scale: 1.5}      durations files only
 *
 * `scale` multiplies any of them. Times are from 0 to TRP_SIM_TIME_MAX; what is drawn
 * beyond is cut to it. What is drawn is rounded to microseconds, so that the last bits
 * of floating point do not show.
 */
#ifndef TRP_SIM_RUN_DISTRIBUTION_H
#define TRP_SIM_RUN_DISTRIBUTION_H

#include "conf/yaml.h"
#include "sim/run/empirical.h"
#include "sim/run/random.h"

/* A year, in ns. */
#define TRP_SIM_TIME_MAX (INT64_C(366) * 24 * 3600 * 1000000000)

enum trp_distribution_kind {
    TRP_CONSTANT,
    TRP_UNIFORM,
    TRP_EXPONENTIAL,
    TRP_LOGNORMAL,
    TRP_EMPIRICAL,
};

struct trp_distribution {
    enum trp_distribution_kind kind;
    int64_t least; /* ns: constant, min, mean, median */
    int64_t most;  /* ns: max of uniform */
    double sigma;
    double scale;
    bool by_mean;                          /* lognormal: `least` is the mean */
    const struct trp_empirical *empirical; /* borrowed */
};

struct trp_distribution trp_distribution_constant(int64_t ns);
/* ns, from 0 to TRP_SIM_TIME_MAX. */
int64_t trp_distribution_draw(const struct trp_distribution *d, struct trp_random *r);
int64_t trp_distribution_mean(const struct trp_distribution *d);

/* ---- reading ---- */

/* A time from `min` to TRP_SIM_TIME_MAX; a bare number counts in seconds. */
bool trp_sim_time_read(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                       int64_t min, int64_t *ret_ns);

/* What a distribution's keys are read into. The struct that a mapping with further keys
 * is read into has it as its first member. */
struct trp_distribution_reader {
    struct trp_distribution d;
    const char *kind;           /* the key that says which one; NULL: none yet */
    const char *events, *stage; /* kept text; NULL: not written */
    struct trp_mark events_mark;
};
#define TRP_DISTRIBUTION_READER(name)                                                  \
    void name(trp_yaml *y, const struct trp_yaml_node *key,                            \
              const struct trp_yaml_node *value, void *context)
TRP_DISTRIBUTION_READER(trp_distribution_read_constant);
TRP_DISTRIBUTION_READER(trp_distribution_read_uniform);
TRP_DISTRIBUTION_READER(trp_distribution_read_exponential);
TRP_DISTRIBUTION_READER(trp_distribution_read_lognormal);
TRP_DISTRIBUTION_READER(trp_distribution_read_scale);
TRP_DISTRIBUTION_READER(trp_distribution_read_events);
TRP_DISTRIBUTION_READER(trp_distribution_read_stage);
/* The keys of any mapping that holds a distribution. */
/* clang-format off */
#define TRP_DISTRIBUTION_KEYS                                                          \
    TRP_YAML_READ("constant", trp_distribution_read_constant),                         \
    TRP_YAML_READ("uniform", trp_distribution_read_uniform),                           \
    TRP_YAML_READ("exponential", trp_distribution_read_exponential),                   \
    TRP_YAML_READ("lognormal", trp_distribution_read_lognormal),                       \
    TRP_YAML_READ("scale", trp_distribution_read_scale)
/* clang-format on */

/* A whole distribution, without `events`. */
void trp_distribution_read(trp_yaml *y, const struct trp_yaml_node *node,
                           const char *what, struct trp_distribution *ret);

#endif
