/*
 * `route:`: which partition and what else of Slurm's a request goes to.
 *
 * A comparison becomes the interval of whole numbers that hold it, so that matching is
 * two comparisons and the search for rules that are never reached (site_shadow.c) is
 * arithmetic on boxes.
 */
#include <string.h>

#include "conf/scalars.h"
#include "conf/site_load.h"
#include "conf/wording.h"

/* Longest first: "<" begins "<=". */
static const struct {
    const char *sign;
    int least, most; /* what is added to the number; NO_BOUND: that side is open */
} comparisons[] = {
#define NO_BOUND 9
    {">=", 0,        NO_BOUND},
      {"<=", NO_BOUND, 0       },
      {">",  1,        NO_BOUND},
    {"<",  NO_BOUND, -1      },
      {"=",  0,        0       },
      {"",   0,        0       },
};

/* The number of a comparison: of memory also with a unit. */
static bool read_number(const char *subject, const char *text, int64_t *ret)
{
    text += strspn(text, " ");
    if (strcmp(subject, "memory") == 0)
        return trp_memory_parse(text, ret, NULL) == 0;
    return *text != '-' && *text != '+' && trp_whole_parse(text, ret) &&
           *ret <= TRP_EXECUTOR_AMOUNT_MAX;
}

static bool read_comparison(const char *text, struct trp_site_condition *c)
{
    size_t i = 0;
    int64_t n;
    while (strncmp(text, comparisons[i].sign, strlen(comparisons[i].sign)) != 0)
        i++;
    if (!read_number(c->subject, text + strlen(comparisons[i].sign), &n))
        return false;
    c->least = comparisons[i].least == NO_BOUND ? 0 : n + comparisons[i].least;
    c->most = comparisons[i].most == NO_BOUND ? INT64_MAX : n + comparisons[i].most;
    return true;
}

static void read_condition(trp_yaml *y, const struct trp_yaml_node *key,
                           struct trp_site_route *r)
{
    struct trp_site_condition *c = &r->when[r->nwhen];
    if (!trp_site_is_resource(y, key))
        return;
    c->subject = trp_yaml_text(y, key, "a condition");
    const char *text = trp_yaml_word(y, key->next, key->text);
    c->mark = key->next->mark;
    if (!c->subject || !text)
        return;
    if (read_comparison(text, c))
        r->nwhen++;
    else
        trp_yaml_wrong(y, c->mark,
                       "\"%s\" is not a condition; write a comparison with a number "
                       "such as \">0\", \">=4\", \"<16\" or \"2\"%s",
                       trp_show(text).text,
                       strcmp(c->subject, "memory") ? "" : ", or \">=64g\"");
}

static TRP_YAML_READER(read_when)
{
    struct trp_site_route *r = context;
    if (!trp_yaml_is_mapping(y, value, "when") || value->count == 0)
        return;
    r->when = trp_yaml_alloc(y, value->count, sizeof(*r->when));
    if (!r->when)
        return;
    for (key = value->first; key; key = key->next->next)
        read_condition(y, key, r);
}

TRP_YAML_READER(trp_site_read_routes)
{
    static const struct trp_yaml_key keys[] = {
        TRP_YAML_READ("when", read_when),
        TRP_YAML_INTO("partition", slurm_word, struct trp_site_route, partition,
                      .value_mark = offsetof(struct trp_site_route, partition_mark)),
        TRP_YAML_INTO("qos", slurm_word, struct trp_site_route, qos),
        TRP_YAML_INTO("account", slurm_word, struct trp_site_route, account),
        TRP_YAML_INTO("constraint", slurm_word, struct trp_site_route, constraint,
                      .value_mark = offsetof(struct trp_site_route, constraint_mark)),
        TRP_YAML_INTO("reservation", slurm_word, struct trp_site_route, reservation),
    };
    trp_site *s = context;
    s->routes_mark = key->mark;
    if (!trp_yaml_is_list(y, value, "route") || value->count == 0)
        return;
    if (!trp_yaml_is_bounded(y, value, "routes", TRP_SITE_ROUTES))
        return;
    s->routes = trp_yaml_alloc(y, value->count, sizeof(*s->routes));
    if (!s->routes)
        return;
    for (const struct trp_yaml_node *item = value->first; item; item = item->next) {
        struct trp_site_route *r = &s->routes[s->nroutes++];
        r->mark = item->mark;
        trp_yaml_mapping(y, item, "a route", keys, TRP_YAML_COUNT(keys), r);
    }
}

static void check_condition(trp_yaml *y, const trp_site *s,
                            const struct trp_site_condition *c)
{
    struct trp_nearest near = trp_nearest_of(c->subject);
    const struct trp_site_resource *r = trp_site_resource(s, c->subject);
    bool known = !strcmp(c->subject, "cores") || !strcmp(c->subject, "memory") ||
                 (r && r->target);
    if (known || !trp_yaml_would_tell(y, c->mark))
        return;
    trp_nearest_try(&near, "cores");
    trp_nearest_try(&near, "memory");
    for (uint32_t i = 0; i < s->nresources; i++)
        trp_nearest_try(&near, s->resources[i].name);
    trp_yaml_wrong(
        y, c->mark,
        "\"%s\" is neither cores nor memory nor a resource with slurm: under "
        "resources:%s",
        c->subject, near.best ? trp_did_you_mean(&near).text : "; add it there");
}

void trp_site_check_routes(trp_yaml *y, const trp_site *s)
{
    for (uint32_t i = 0; i < s->nroutes; i++) {
        for (uint32_t k = 0; k < s->routes[i].nwhen; k++)
            check_condition(y, s, &s->routes[i].when[k]);
    }
}
