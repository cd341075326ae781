/* Distributions: drawing and reading. */
#include "sim/run/distribution.h"

#include <math.h>
#include <string.h>

#include "conf/wording.h"

static const double SCALE_MAX = 1e6, SIGMA_MAX = 10;

struct trp_distribution trp_distribution_constant(int64_t ns)
{
    return (struct trp_distribution){.kind = TRP_CONSTANT, .least = ns, .scale = 1};
}

/* ---- drawing ---- */

static double median_of(const struct trp_distribution *d)
{
    double middle = (double)d->least;
    return d->by_mean ? middle * exp(-d->sigma * d->sigma / 2) : middle;
}

static int64_t bounded(double ns)
{
    if (!(ns > 0))
        return 0;
    if (ns >= (double)TRP_SIM_TIME_MAX)
        return TRP_SIM_TIME_MAX;
    return (int64_t)(ns / 1000 + 0.5) * 1000;
}

int64_t trp_distribution_draw(const struct trp_distribution *d, struct trp_random *r)
{
    double least = (double)d->least;
    switch (d->kind) {
    case TRP_CONSTANT:
        return d->scale == 1 ? d->least : bounded(d->scale * least);
    case TRP_UNIFORM:
        return bounded(d->scale *
                       (least + trp_random_unit(r) * ((double)d->most - least)));
    case TRP_EXPONENTIAL:
        return bounded(d->scale * -log(trp_random_unit(r)) * least);
    case TRP_LOGNORMAL:
        return bounded(d->scale * median_of(d) * exp(d->sigma * trp_random_normal(r)));
    case TRP_EMPIRICAL:
        return bounded(d->scale * trp_empirical_draw(d->empirical, trp_random_unit(r)));
    }
    return 0;
}

int64_t trp_distribution_mean(const struct trp_distribution *d)
{
    double mean = (double)d->least;
    if (d->kind == TRP_UNIFORM)
        mean = (mean + (double)d->most) / 2;
    else if (d->kind == TRP_LOGNORMAL)
        mean = median_of(d) * exp(d->sigma * d->sigma / 2);
    else if (d->kind == TRP_EMPIRICAL)
        mean = trp_empirical_mean(d->empirical);
    return bounded(d->scale * mean);
}

/* ---- reading ---- */

bool trp_sim_time_read(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                       int64_t min, int64_t *ret_ns)
{
    trp_error why;
    int64_t ns = 0;
    char *text = trp_yaml_word(y, node, what);
    if (!text)
        return false;
    if (trp_time_parse(text, INT64_C(1000000000), &ns, &why) < 0)
        return trp_yaml_wrong(y, node->mark, "%s: %s", what, why.text);
    if (ns > TRP_SIM_TIME_MAX || ns < min)
        return trp_yaml_wrong(y, node->mark,
                              "%s is \"%s\"; write a time %s and at most 366d", what,
                              trp_show(text).text, min > 0 ? "above 0" : "from 0");
    *ret_ns = ns;
    return true;
}

/* The first of the keys that say which distribution it is; a second one is an error. */
static bool is_first(trp_yaml *y, const struct trp_yaml_node *key,
                     struct trp_distribution_reader *r)
{
    if (!r->kind) {
        r->kind = key->text;
        return true;
    }
    trp_yaml_wrong(y, key->mark, "%s beside %s; write one distribution", key->text,
                   r->kind);
    return false;
}

static void read_time(trp_yaml *y, const struct trp_yaml_node *key,
                      const struct trp_yaml_node *value, void *context)
{
    trp_sim_time_read(y, value, key->text, 0, context);
}

static void read_median(trp_yaml *y, const struct trp_yaml_node *key,
                        const struct trp_yaml_node *value, void *context)
{
    struct trp_distribution *d = context;
    d->by_mean = strcmp(key->text, "mean") == 0;
    d->most++;
    trp_sim_time_read(y, value, key->text, 0, &d->least);
}

static void read_sigma(trp_yaml *y, const struct trp_yaml_node *key,
                       const struct trp_yaml_node *value, void *context)
{
    struct trp_distribution *d = context;
    trp_yaml_number(y, value, key->text, 0, SIGMA_MAX, &d->sigma);
}

static void read_min(trp_yaml *y, const struct trp_yaml_node *key,
                     const struct trp_yaml_node *value, void *context)
{
    read_time(y, key, value, &((struct trp_distribution *)context)->least);
}

static void read_max(trp_yaml *y, const struct trp_yaml_node *key,
                     const struct trp_yaml_node *value, void *context)
{
    read_time(y, key, value, &((struct trp_distribution *)context)->most);
}

TRP_DISTRIBUTION_READER(trp_distribution_read_constant)
{
    struct trp_distribution_reader *r = context;
    if (is_first(y, key, r))
        trp_sim_time_read(y, value, key->text, 0, &r->d.least);
}

TRP_DISTRIBUTION_READER(trp_distribution_read_uniform)
{
    struct trp_distribution_reader *r = context;
    if (!is_first(y, key, r))
        return;
    r->d.kind = TRP_UNIFORM;
    TRP_YAML_MAPPING(y, value, "uniform", &r->d,
                     TRP_YAML_READ("min", read_min, .required = true),
                     TRP_YAML_READ("max", read_max, .required = true));
    if (r->d.least > r->d.most)
        trp_yaml_wrong(y, value->mark, "min of uniform is above its max");
}

TRP_DISTRIBUTION_READER(trp_distribution_read_exponential)
{
    struct trp_distribution_reader *r = context;
    if (!is_first(y, key, r))
        return;
    r->d.kind = TRP_EXPONENTIAL;
    TRP_YAML_MAPPING(y, value, "exponential", &r->d,
                     TRP_YAML_READ("mean", read_min, .required = true));
}

TRP_DISTRIBUTION_READER(trp_distribution_read_lognormal)
{
    struct trp_distribution_reader *r = context;
    if (!is_first(y, key, r))
        return;
    r->d.kind = TRP_LOGNORMAL;
    if (TRP_YAML_MAPPING(y, value, "lognormal", &r->d,
                         TRP_YAML_READ("median", read_median),
                         TRP_YAML_READ("mean", read_median),
                         TRP_YAML_READ("sigma", read_sigma, .required = true)) &&
        r->d.most != 1)
        trp_yaml_wrong(y, value->mark, "lognormal takes one of median and mean");
}

TRP_DISTRIBUTION_READER(trp_distribution_read_scale)
{
    struct trp_distribution_reader *r = context;
    trp_yaml_number(y, value, key->text, 0, SCALE_MAX, &r->d.scale);
}

TRP_DISTRIBUTION_READER(trp_distribution_read_events)
{
    struct trp_distribution_reader *r = context;
    if (!is_first(y, key, r))
        return;
    r->d.kind = TRP_EMPIRICAL;
    r->events = trp_yaml_word(y, value, key->text);
    r->events_mark = value->mark;
}

TRP_DISTRIBUTION_READER(trp_distribution_read_stage)
{
    struct trp_distribution_reader *r = context;
    r->stage = trp_yaml_word(y, value, key->text);
}

void trp_distribution_read(trp_yaml *y, const struct trp_yaml_node *node,
                           const char *what, struct trp_distribution *ret)
{
    struct trp_distribution_reader r = {.d = trp_distribution_constant(0)};
    if (node->kind == TRP_YAML_SCALAR)
        trp_sim_time_read(y, node, what, 0, &r.d.least);
    else if (TRP_YAML_MAPPING(y, node, what, &r, TRP_DISTRIBUTION_KEYS) && !r.kind)
        trp_yaml_wrong(y, node->mark,
                       "%s says no distribution; write a time, constant, uniform, "
                       "exponential or lognormal",
                       what);
    *ret = r.d;
}
