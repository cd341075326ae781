/*
 * Executors and classes. A class keeps a ring of its executors that have free cores: a
 * round starts at the ring's head and leaves the head where the next one should start,
 * so executors take turns (semantics, difference 3) and no launch looks at an executor
 * that is full. A second ring holds those with a queue, from which an idle executor
 * takes work.
 */
#include <string.h>
#include <utlist.h>

#include "core/engine_state.h"

struct trp_class *trp_class_of(struct trp_engine *e, trp_profile_id profile)
{
    if (profile.n < e->nclasses && e->classes[profile.n])
        return e->classes[profile.n];
    if (!TRP_ARRAY_GROW(e->classes, profile.n, e->classes_cap))
        return NULL;
    while (e->nclasses <= profile.n)
        e->classes[e->nclasses++] = NULL;
    struct trp_class *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->profile = profile;
    c->fit = c->share = UINT32_MAX;
    c->copying.apart.n = TRP_NONE;
    c->keep_due = INT64_MAX;
    c->waits_since = INT64_MAX;
    trp_caps_cost(&e->caps, trp_profiles_get(e->profiles, profile), c->cost);
    c->backoff = e->config.retry_first_ns;
    if (!trp_ramp_class(e, c)) {
        free(c);
        return NULL;
    }
    return e->classes[profile.n] = c;
}

static void count_in(struct trp_engine *e, struct trp_bits *b,
                     const struct trp_executor *x)
{
    if (trp_bits_put(b, x->id.n) < 0)
        e->out_of_memory = true;
}

struct trp_executor *trp_executor_new_as(struct trp_engine *e, struct trp_class *c,
                                         uint32_t number)
{
    struct trp_executor *x = calloc(1, sizeof(*x));
    if (!x) {
        e->out_of_memory = true;
        return NULL;
    }
    x->id.n = number;
    x->class = c->profile.n;
    x->shape = c->profile;
    x->state = TRP_EXECUTOR_REQUESTED;
    x->running = x->queue_first = x->queue_last = TRP_NONE;
    x->decommissioned_ns = x->ends_ns = INT64_MAX;
    x->asked_ns = e->now;
    e->executors[number] = x;
    count_in(e, &c->requested, x);
    count_in(e, &c->inside, x);
    e->requested++;
    trp_supply_asked(e, x);
    return x;
}

struct trp_executor *trp_executor_new(struct trp_engine *e, struct trp_class *c)
{
    if (!TRP_ARRAY_GROW(e->executors, e->nexecutors, e->executors_cap)) {
        e->out_of_memory = true;
        return NULL;
    }
    struct trp_executor *x = trp_executor_new_as(e, c, e->nexecutors);
    e->nexecutors += x != NULL;
    return x;
}

struct trp_executor *trp_executor_find(const struct trp_engine *e, trp_executor_id id)
{
    return id.n < e->nexecutors ? e->executors[id.n] : NULL;
}

static void leave_free(struct trp_class *c, struct trp_executor *x)
{
    /* By hand: with FAIR pools CDL_DELETE2 costs a task 20 instructions more. */
    struct trp_executor *next = x->free_next == x ? NULL : x->free_next;
    x->free_next->free_prev = x->free_prev;
    x->free_prev->free_next = x->free_next;
    if (c->free == x)
        c->free = next;
    x->free_next = NULL;
    c->nfree--;
}

/* In the free ring exactly while it is live, not excluded, and has a free core. */
void trp_executor_set_free(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_class *c = e->classes[x->class];
    bool want = trp_executor_may_get(x) && x->cores_free > 0;
    bool is = x->free_next != NULL;
    if (want == is)
        return;
    if (want) {
        CDL_APPEND2(c->free, x, free_prev, free_next); /* the last whose turn comes */
        c->nfree++;
    } else {
        leave_free(c, x);
    }
}

static void queued_ring_update(struct trp_class *c, struct trp_executor *x)
{
    bool is = x->queued_next != NULL;
    if ((x->nqueued > 0) == is)
        return;
    if (!is) {
        CDL_APPEND2(c->queued, x, queued_prev, queued_next);
    } else {
        CDL_DELETE2(c->queued, x, queued_prev, queued_next);
        x->queued_next = NULL;
    }
}

/* One more or less that makes its host and rack places where tasks can run. */
static void count_place(struct trp_engine *e, const struct trp_executor *x, int by)
{
    struct trp_host *h = &e->hosts.hosts[x->host];
    struct trp_rack *r = h->rack.n == TRP_NONE ? NULL : &e->hosts.racks[h->rack.n];
    uint32_t edge = by > 0 ? 1 : 0; /* the first came, the last went */
    h->executors += (uint32_t)by;
    if (r)
        r->executors += (uint32_t)by;
    trp_task_sets_executor_changed(e, x, h->executors == edge,
                                   r && r->executors == edge, by);
}

static void requested_no_more(struct trp_engine *e, struct trp_executor *x)
{
    struct trp_class *c = e->classes[x->class];
    trp_bits_remove(&c->requested, x->id.n);
    trp_bits_remove(&c->inside, x->id.n);
    c->granted -= x->granted;
    x->granted = false;
    e->requested--;
}

int trp_executor_live(struct trp_engine *e, struct trp_executor *x,
                      const struct trp_event *added, trp_error *err)
{
    struct trp_class *c = e->classes[x->class];
    uint32_t host = trp_hosts_intern(&e->hosts, added->added.host, added->added.rack);
    trp_ledger *ledger = NULL;
    if (host == TRP_NONE)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a host");
    int rc =
        trp_ledger_new(added->added.resources, added->added.nresources, &ledger, err);
    if (rc < 0)
        return rc;
    x->ledger = ledger;
    x->host = host;
    x->cores = added->added.cores;
    if (!x->cores)
        x->cores = trp_profiles_get(e->profiles, x->shape)->cores;
    x->cores_free = x->cores;
    x->state = TRP_EXECUTOR_LIVE;
    x->came = true;
    requested_no_more(e, x);
    c->live++;
    c->came++;
    count_in(e, &c->idle, x);
    e->live++;
    trp_supply_live(e, x);
    trp_exclusion_executor_came(e, x);
    trp_executor_set_free(e, x);
    count_place(e, x, 1);
    return 0;
}

/* No longer among the live ones. */
static void leave_live(struct trp_engine *e, struct trp_executor *x,
                       enum trp_executor_state state)
{
    struct trp_class *c = e->classes[x->class];
    trp_ahead_no_more(e, x);
    if (x->state == TRP_EXECUTOR_REQUESTED) {
        requested_no_more(e, x);
    } else if (x->state == TRP_EXECUTOR_LIVE) {
        c->live--;
        if (!x->nrunning)
            trp_bits_remove(&c->idle, x->id.n);
        c->yielding -= x->yields;
        e->nyielding -= x->yields;
        x->yields = false;
        trp_supply_leaving(e, x);
    }
    e->leaving -= x->came && x->state == TRP_EXECUTOR_RELEASING;
    x->state = state;
    e->leaving += x->came && x->state == TRP_EXECUTOR_RELEASING;
    trp_executor_set_free(e, x);
}

/* Nothing is offered to it any more. What runs there continues. */
void trp_executor_retire(struct trp_engine *e, struct trp_executor *x)
{
    leave_live(e, x, TRP_EXECUTOR_RELEASING);
}

/* The same, and it makes no locality level any more. */
void trp_executor_drain(struct trp_engine *e, struct trp_executor *x)
{
    leave_live(e, x, TRP_EXECUTOR_DECOMMISSIONED);
    x->decommissioned_ns = e->now;
    count_place(e, x, -1);
}

/* Out of all lists and counts; its attempts must be gone. Frees it. */
void trp_executor_remove(struct trp_engine *e, struct trp_executor *x)
{
    trp_executor_retire(e, x);
    if (x->came) {
        e->live--;
        e->leaving--;
        if (x->decommissioned_ns == INT64_MAX)
            count_place(e, x, -1);
        else
            trp_task_sets_executor_changed(e, x, false, false, 0);
    }
    trp_supply_gone(e, x);
    trp_executor_unforce(e, x);
    e->executors[x->id.n] = NULL;
    e->any_dirty = true;
    trp_ledger_free(x->ledger);
    free(x);
}

void trp_executor_relabel(struct trp_engine *e, struct trp_executor *x,
                          struct trp_class *to)
{
    struct trp_class *from = e->classes[x->class];
    if (x->free_next)
        leave_free(from, x);
    from->live--;
    trp_bits_remove(&from->idle, x->id.n);
    trp_ahead_no_more(e, x);
    x->class = to->profile.n;
    x->stranger = 0;
    to->live++;
    to->came++;
    count_in(e, &to->idle, x);
    trp_supply_moved(e, x, from);
    trp_executor_set_free(e, x);
}

static void list_push(struct trp_engine *e, uint32_t *head, uint32_t slot)
{
    struct trp_attempt *a = &e->attempts.v[slot];
    a->prev = TRP_NONE;
    a->next = *head;
    if (*head != TRP_NONE)
        e->attempts.v[*head].prev = slot;
    *head = slot;
}

/* Puts an attempt on its executor: running (its cores and grants are taken already) or
 * at the end of the queue. */
void trp_executor_attach(struct trp_engine *e, struct trp_executor *x, uint32_t slot,
                         bool queued)
{
    struct trp_class *c = e->classes[x->class];
    struct trp_attempt *a = &e->attempts.v[slot];
    a->executor = x->id.n;
    if (!queued) {
        a->state = TRP_ATTEMPT_RUNNING;
        list_push(e, &x->running, slot);
        if (x->nrunning++ == 0) {
            x->one_set = a->set;
            trp_bits_remove(&c->idle, x->id.n); /* a queued one may take over */
            trp_supply_busy(e, x);
        } else if (x->one_set != a->set) {
            x->one_set = NULL;
        }
        return;
    }
    a->state = TRP_ATTEMPT_QUEUED;
    a->next = TRP_NONE;
    a->prev = x->queue_last;
    if (x->queue_last == TRP_NONE)
        x->queue_first = slot;
    else
        e->attempts.v[x->queue_last].next = slot;
    x->queue_last = slot;
    x->nqueued++;
    c->nqueued++;
    queued_ring_update(c, x);
}

/* Takes an attempt off its executor's lists. What it held is not given back. */
void trp_executor_detach(struct trp_engine *e, struct trp_executor *x, uint32_t slot)
{
    struct trp_class *c = e->classes[x->class];
    struct trp_attempt *a = &e->attempts.v[slot];
    bool queued = a->state == TRP_ATTEMPT_QUEUED;
    uint32_t *first = queued ? &x->queue_first : &x->running;
    if (a->prev == TRP_NONE)
        *first = a->next;
    else
        e->attempts.v[a->prev].next = a->next;
    if (a->next != TRP_NONE)
        e->attempts.v[a->next].prev = a->prev;
    else if (queued)
        x->queue_last = a->prev;
    if (queued) {
        x->nqueued--;
        c->nqueued--;
        queued_ring_update(c, x);
        return;
    }
    if (--x->nrunning)
        return;
    x->one_set = NULL;
    trp_supply_idle(e, x);
    if (x->state == TRP_EXECUTOR_LIVE)
        count_in(e, &c->idle, x);
}
