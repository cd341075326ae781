/*
 * Layer `resources`: the ledger of one executor's addresses (semantics, section 4).
 */
#include <string.h>

#include "conf/wording.h"
#include "core/profile/ledger.h"
#include "sim/scenario/layer.h"

struct resources {
    trp_sim_case *c;
    trp_ledger *ledger;
    bool pack;
    json_t *assigned; /* by the last step; NULL: it was no `take` */
};

static int open_layer(void *state, trp_error *err)
{
    struct resources *s = state;
    const struct trp_yaml_node *node = trp_sim_top(s->c, "addresses");
    struct trp_resource_addresses *v = NULL;
    uint32_t n = 0;
    if (node && !trp_sim_read_resources(s->c, node, &v, &n))
        return TRP_EINVAL;
    s->pack = !strcmp(
        trp_options_text(trp_sim_options(s->c), "task.resource.placement"), "pack");
    return trp_ledger_new(v, n, &s->ledger, err);
}

static void begin(void *state)
{
    struct resources *s = state;
    json_decref(s->assigned);
    s->assigned = NULL;
}

static void close_layer(void *state)
{
    struct resources *s = state;
    begin(s);
    trp_ledger_free(s->ledger);
}

/* The resource of which a task wants most. */
static const char *most_wanted(const struct trp_resource_profile *p)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i < p->ncustom; i++)
        if (p->custom[i].task > p->custom[most].task)
            most = i;
    return p->custom[most].name;
}

/* What a task of a profile with these requests gets. */
static int step_take(struct resources *s, const struct trp_yaml_node *value,
                     trp_error *err)
{
    struct trp_profile_builder b;
    struct trp_resource_profile p = {0};
    struct trp_grant grants[TRP_TASK_ADDRESSES_MAX];
    trp_profile_builder_init(&b, "take");
    if (!trp_sim_read_requests(s->c, NULL, value, &b))
        return TRP_EINVAL;
    if (b.cpus >= 0)
        return trp_sim_wrong(s->c, value->mark,
                             "cpus have no addresses; write a custom resource");
    memcpy(p.custom, b.custom, sizeof(p.custom));
    p.ncustom = b.ncustom;
    int n = trp_ledger_propose(s->ledger, &p, s->pack, grants, TRP_TASK_ADDRESSES_MAX);
    if (n == TRP_EWAIT) {
        s->assigned = json_string("none");
        return 0;
    }
    if (n < 0)
        return trp_error_set(err, n, "a task gets at most %d addresses, %s among them",
                             TRP_TASK_ADDRESSES_MAX, most_wanted(&p));
    int code = trp_ledger_take(s->ledger, grants, (uint32_t)n);
    if (code < 0)
        return trp_error_set(err, code, "the proposed addresses of %s cannot be taken",
                             most_wanted(&p));
    s->assigned = trp_sim_json_grants(s->ledger, grants, (uint32_t)n);
    return 0;
}

/* The index of an address, TRP_NONE. */
static uint32_t find_address(const trp_ledger *b, const char *name, const char *address,
                             uint32_t *ret_resource)
{
    uint32_t r = 0, a = 0;
    while (r < trp_ledger_resources(b) &&
           strcmp(trp_ledger_resource_name(b, r), name) != 0)
        r++;
    while (a < trp_ledger_addresses(b, r) &&
           strcmp(trp_ledger_address(b, r, a), address) != 0)
        a++;
    *ret_resource = r;
    return a < trp_ledger_addresses(b, r) ? a : TRP_NONE;
}

/* One address with its amount, as grants (`gpu: 2` was two whole addresses). */
static int add_grant(struct resources *s, const struct trp_yaml_node *resource,
                     const struct trp_yaml_node *address, struct trp_grant *v,
                     uint32_t *n)
{
    uint32_t r;
    trp_amount amount;
    uint32_t a = find_address(s->ledger, resource->text, address->text, &r);
    if (a == TRP_NONE)
        return trp_sim_refuse(s->c, address->mark, "%s has no address \"%s\"",
                              trp_show(resource->text).text,
                              trp_show(address->text).text);
    if (!trp_sim_amount(s->c, address->next, address->text, &amount))
        return TRP_EINVAL;
    if (amount > TRP_ONE)
        return trp_sim_refuse(s->c, address->next->mark,
                              "an address of %s holds at most 1, not %s",
                              resource->text, address->next->text);
    if (*n == TRP_TASK_ADDRESSES_MAX)
        return trp_sim_refuse(s->c, address->mark,
                              "more than %d addresses at once, of %s the last",
                              TRP_TASK_ADDRESSES_MAX, resource->text);
    v[(*n)++] = (struct trp_grant){(uint16_t)r, (uint16_t)a, amount};
    return 0;
}

/* One by one, to know which is refused; all or none. */
static int give_all(trp_ledger *b, const struct trp_grant *v, uint32_t n,
                    trp_error *err)
{
    uint32_t done = 0;
    while (done < n && trp_ledger_give(b, &v[done], 1) == 0)
        done++;
    if (done == n)
        return 0;
    trp_ledger_take(b, v, done);
    return trp_error_set(err, TRP_ESTATE,
                         "more is given back than was taken: address %s of %s would "
                         "have more than 1",
                         trp_ledger_address(b, v[done].resource, v[done].address),
                         trp_ledger_resource_name(b, v[done].resource));
}

static int step_give(struct resources *s, const struct trp_yaml_node *value,
                     trp_error *err)
{
    struct trp_grant grants[TRP_TASK_ADDRESSES_MAX];
    const struct trp_yaml_node *r, *a;
    uint32_t n = 0, count;
    if (!trp_sim_map(s->c, value, "give", TRP_SIM_EXPECTED, &r, &count))
        return TRP_EINVAL;
    for (; r; r = r->next->next) {
        if (!trp_sim_map(s->c, r->next, r->text, TRP_SIM_EXPECTED, &a, &count))
            return TRP_EINVAL;
        for (; a; a = a->next->next) {
            int code = add_grant(s, r, a, grants, &n);
            if (code < 0)
                return code;
        }
    }
    return give_all(s->ledger, grants, n, err);
}

static int step(void *state, const char *action, const struct trp_yaml_node *value,
                int64_t now_ns, trp_error *err)
{
    struct resources *s = state;
    (void)now_ns;
    if (!strcmp(action, "give"))
        return step_give(s, value, err);
    int code = step_take(s, value, err);
    if (code == 0)
        trp_sim_tell(s->c, "assigned", json_incref(s->assigned));
    return code;
}

static json_t *left(const trp_ledger *b)
{
    json_t *all = json_object();
    for (uint32_t r = 0; r < trp_ledger_resources(b); r++) {
        json_t *one = json_object();
        for (uint32_t a = 0; a < trp_ledger_addresses(b, r); a++)
            json_object_set_new(one, trp_ledger_address(b, r, a),
                                trp_sim_json_amount(trp_ledger_left(b, r, a)));
        json_object_set_new(all, trp_ledger_resource_name(b, r), one);
    }
    return all;
}

static json_t *state(void *layer, const char *key, const struct trp_yaml_node *wanted)
{
    struct resources *s = layer;
    (void)wanted;
    return !strcmp(key, "left") ? left(s->ledger) : json_incref(s->assigned);
}

const struct trp_sim_layer trp_sim_layer_resources = {
    .names = "resources",
    .keys = "addresses",
    .actions = "take give",
    .happened = "",
    .states = "assigned left",
    .ordered = "assigned",
    .whole = "",
    .size = sizeof(struct resources),
    .open = open_layer,
    .close = close_layer,
    .begin = begin,
    .step = step,
    .state = state,
};
