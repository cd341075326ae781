/*
 * What is moved, by whom, and what comes of it.
 *
 * Only outputs that a stage reads which is not over, and of a dataset's only when that
 * is less work than to make them again (core/alloc/move_worth.h). What else is there goes
 * with its host, and is made again should a later job ask for it.
 *
 * A host goes when its node is drained, or when its job ends or is ended. Then the last
 * server of a location that hears of it moves what lies there, and what its tasks leave
 * from then on before it is let go. Where executors went for another reason (the next
 * stage has another shape) nothing is moved yet: others may come. The cluster asks for
 * what is needed before it gives a node back; and where outputs are read that nobody
 * serves, and nobody is about to come, it is asked to send a step.
 *
 * Readers that know the old place go on: while outputs are moved they wait, then
 * executors that stay serve them out of the run's folder under that place's number.
 *
 * Rejected: to hosts that stay. Each would be a further place to be lost, and what is
 * in the run's folder is opened by all.
 */
#include "driver/moving.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc/move_worth.h"
#include "core/base/array.h"
#include "core/base/time.h"
#include "driver/locations.h"
#include "executor/move_files.h"
#include "os/argv.h"
#include "os/clock.h"

#define PATIENCE_NS                                                                    \
    (30 * TRP_SECOND) /* of a move, beside four times what it should take */
#define BEFORE_END_NS                                                                  \
    (60 * TRP_SECOND)                /* of a job, or a quarter of what is left of it */
#define UNSERVED_NS (2 * TRP_SECOND) /* readers wait for longer */

enum { AT_ONCE = 8192 }; /* outputs, as words of a command */

struct list {
    struct trp_move_output *v;
    uint32_t n, cap;
    uint64_t bytes;
};

/* The location of its host's own; NULL: all hosts see its outputs, or it has none. */
static struct trp_driver_location *own_of(const trp_driver *d,
                                          const struct trp_executor_record *x)
{
    struct trp_driver_location *l =
        x->location == TRP_NONE ? NULL : &d->locations[x->location];
    return l && l->is.ino ? l : NULL;
}

/* Does anybody else serve it who stays? */
static bool is_served(const trp_driver *d, const struct trp_driver_location *l,
                      const struct trp_executor_record *but)
{
    for (uint32_t i = 0; i < l->nservers; i++) {
        const struct trp_executor_record *x = trp_record_of(d, l->servers[i]);
        if (x && x != but && !x->going)
            return true;
    }
    return false;
}

static void due_at(trp_driver *d, int64_t when)
{
    d->moving_due = trp_earlier(d->moving_due, when);
}

/* ---- what is needed -------------------------------------------------------------- */

/* Those of a dataset. */
static void find_of(const trp_driver *d, uint32_t dataset, uint32_t location,
                    struct list *list)
{
    const struct trp_driver_outputs *all = &d->outputs[dataset];
    const uint32_t first = list->n;
    uint64_t bytes = 0;
    int64_t made = 0;
    for (uint32_t i = 0; i < all->n && list->n < AT_ONCE; i++) {
        const struct trp_driver_output *o = &all->v[i];
        struct trp_input_view v;
        if (o->location != location + 1 ||
            trp_engine_input(d->engine, dataset, i, &v) < 0 ||
            v.attempt.n != o->attempt || !TRP_ARRAY_GROW(list->v, list->n, list->cap))
            continue;
        list->v[list->n++] = (struct trp_move_output){dataset, i, o->attempt};
        bytes += o->bytes;
        made += o->made_ns;
    }
    if (trp_moving_pays(bytes, made, d->moving_rate))
        list->bytes += bytes;
    else
        list->n = first;
}

static void find(const trp_driver *d, uint32_t location, struct list *list)
{
    for (uint32_t i = 0; i < d->noutputs; i++)
        if (d->outputs[i].n && trp_engine_awaits(d->engine, i))
            find_of(d, i, location, list);
}

/* ---- a move ---------------------------------------------------------------------- */

static int64_t patience(const trp_driver *d, const struct list *list)
{
    return PATIENCE_NS + 4 * trp_moving_takes(list->bytes, d->moving_rate);
}

static void begin(trp_driver *d, struct trp_driver_location *l, uint32_t mover,
                  int64_t patience_ns)
{
    l->moving = true;
    l->mover = mover;
    l->nmoved = 0;
    l->bytes = 0;
    l->took_ns = 0;
    l->move_due = d->now + patience_ns;
    due_at(d, l->move_due);
    trp_driver_location_changed(d, l);
}

/* False: there is nothing to be moved. */
static bool begin_by(trp_driver *d, const struct trp_executor_record *x)
{
    struct trp_driver_location *l = own_of(d, x);
    struct list list = {0};
    struct trp_buf b = {0};
    if (!l || l->moving || l->unmovable || d->over || d->stop ||
        x->state != TRP_RECORD_UP)
        return false;
    find(d, x->location, &list);
    bool some = list.n > 0;
    if (some) {
        trp_move_put(&b, list.v, list.n);
        some = trp_driver_send(d, x->id, &b) >= 0;
    }
    if (some)
        begin(d, l, x->id.n, patience(d, &list));
    free(list.v);
    return some;
}

/* Who reads outputs is told of their places again before its next task. */
static void forget_inputs(trp_driver *d)
{
    for (uint32_t i = 0; i < d->nstages; i++) {
        struct trp_driver_stage *s = d->stages[i];
        if (!s || !s->inputs.size)
            continue;
        s->inputs_of = UINT32_MAX;
        for (uint32_t k = 0; k < s->nsent; k++)
            if (s->sent[k])
                s->sent[k] = UINT32_MAX;
    }
}

static void tell(trp_driver *d, const struct trp_driver_location *l, const char *why)
{
    if (l->nmoved)
        trp_event_outputs_moved(d->log, l->is.host, l->nmoved, l->bytes, l->took_ns,
                                trp_driver_wall(d, d->now));
    if (*why)
        trp_driver_log(d, "warning",
                       "map outputs of %.100s, which goes, could not be moved to the "
                       "run's folder: %.200s. What is needed of them is made again",
                       l->is.host, why);
}

/* `why` it has failed; "": it has not. */
static void finish(trp_driver *d, struct trp_driver_location *l, const char *why)
{
    const uint32_t number = l->is.number;
    l->moving = false;
    l->move_due = INT64_MAX;
    l->moved |= l->nmoved > 0;
    l->unmovable |= *why || !l->nmoved;
    tell(d, l, why);
    if (l->nmoved)
        forget_inputs(d);
    trp_driver_location_changed(d, l);
    for (uint32_t i = 0; i < d->nrecords; i++) {
        struct trp_executor_record *x = d->records[i];
        if (!x || !x->held_back || x->location != number)
            continue;
        x->held_back = false;
        trp_record_release(d, x->id);
    }
}

/* An output has come to the run's folder. `l`: whence; NULL: from any of that host's,
 * by a step. */
static void take_moved(trp_driver *d, struct trp_driver_location *l, const char *host,
                       const struct trp_moved_output *m)
{
    struct trp_driver_output *o =
        m->is.dataset < d->noutputs && m->is.map < d->outputs[m->is.dataset].n
            ? &d->outputs[m->is.dataset].v[m->is.map]
            : NULL;
    const trp_attempt_id attempt = {m->is.attempt};
    struct trp_input_view v;
    if (!o || !o->location || o->attempt != attempt.n ||
        trp_engine_input(d->engine, m->is.dataset, m->is.map, &v) < 0 ||
        v.attempt.n != attempt.n)
        return; /* it was made again meanwhile */
    struct trp_driver_location *at = &d->locations[o->location - 1];
    if (!at->moving || (l ? at != l : strcmp(at->is.host, host) != 0))
        return;
    uint32_t to = trp_driver_shared_location(d);
    if (to == TRP_NONE)
        return;
    at = &d->locations[o->location - 1];
    at->nmoved++;
    at->bytes += m->bytes;
    at->took_ns += m->took_ns;
    d->moving_rate = trp_moving_rate(d->moving_rate, m->bytes, m->took_ns);
    o->location = to + 1;
    struct trp_event ev = {
        .kind = TRP_EVENT_OUTPUT_MOVED,
        .moved = {
                  .stage =
                trp_engine_blame(d->engine, m->is.dataset, m->is.map, attempt).stage,
                  .map = m->is.map,
                  .attempt = attempt,
                  .executor = {TRP_NONE}}
    };
    trp_driver_step(d, &ev);
}

/* ---- by executors ---------------------------------------------------------------- */

void trp_driver_going(trp_driver *d, struct trp_executor_record *x)
{
    const struct trp_driver_location *l = own_of(d, x);
    x->going = true;
    if (l && !is_served(d, l, x))
        begin_by(d, x);
}

void trp_driver_goes_at(trp_driver *d, struct trp_executor_record *x, int64_t end)
{
    x->goes_at = INT64_MAX;
    if (end == INT64_MAX)
        return;
    int64_t left = end - d->now;
    x->goes_at = end - (left / 4 < BEFORE_END_NS ? left / 4 : BEFORE_END_NS);
    due_at(d, x->goes_at);
}

bool trp_driver_holds_back(trp_driver *d, struct trp_executor_record *x)
{
    const struct trp_driver_location *l = own_of(d, x);
    if (!l || d->over || d->stop || x->state != TRP_RECORD_UP)
        return false;
    if (!(l->moving && l->mover == x->id.n) &&
        !(x->going && !is_served(d, l, x) && begin_by(d, x)))
        return false;
    x->held_back = true;
    return true;
}

int trp_driver_on_moved(trp_driver *d, struct trp_executor_record *x,
                        const uint8_t *data, size_t size)
{
    struct trp_driver_location *l = own_of(d, x);
    const uint32_t number = x->location;
    struct trp_moved_output m;
    struct trp_view v = trp_message_view(data, size, TRP_MSG_MOVED);
    bool last = false;
    char *text = NULL;
    int rc = l ? 0 : TRP_EPROTO;
    while (rc >= 0 && (rc = trp_moved_next(&v, &m, &last, &text)) > 0)
        if (d->locations[number].moving && d->locations[number].mover == x->id.n)
            take_moved(d, &d->locations[number], NULL, &m);
    l = l ? &d->locations[number] : NULL;
    if (last && l->moving && l->mover == x->id.n)
        finish(d, l, text);
    free(text);
    return rc;
}

void trp_driver_mover_lost(trp_driver *d, const struct trp_executor_record *x)
{
    struct trp_driver_location *l = own_of(d, x);
    if (l && l->moving && l->mover == x->id.n)
        finish(d, l, "the executor that did it is gone");
}

/* ---- by steps -------------------------------------------------------------------- */

static char **words_of(const struct list *list)
{
    char word[TRP_MOVE_WORD];
    struct trp_argv a = {0};
    for (uint32_t i = 0; i < list->n; i++) {
        trp_move_word(&list->v[i], word);
        trp_argv_add(&a, "%s", word);
    }
    return trp_argv_done(&a);
}

char **trp_driver_needed(void *context, const char *node, int64_t *ret_ns)
{
    trp_driver *d = context;
    struct list list = {0};
    d->now = trp_clock_ns();
    for (uint32_t i = 0; i < d->nlocations && !d->over && !d->stop; i++) {
        struct trp_driver_location *l = &d->locations[i];
        const uint32_t before = list.n;
        if (!l->is.ino || l->moving || l->unmovable || is_served(d, l, NULL) ||
            strcmp(l->is.host, node) != 0)
            continue;
        find(d, i, &list);
        if (list.n > before)
            begin(d, l, TRP_NONE, 2 * patience(d, &list)); /* the cluster says when */
    }
    char **words = list.n ? words_of(&list) : NULL;
    *ret_ns = patience(d, &list);
    free(list.v);
    return words;
}

void trp_driver_moved(void *context, const char *node, const char *line)
{
    trp_driver *d = context;
    struct trp_moved_output m;
    const char *text = "";
    d->now = trp_clock_ns();
    int rc = line ? trp_moved_read_line(line, &m, &text) : 0;
    if (rc > 0)
        take_moved(d, NULL, node, &m);
    if (rc != 0)
        return;
    for (uint32_t i = 0; i < d->nlocations; i++) {
        struct trp_driver_location *l = &d->locations[i];
        if (l->moving && l->mover == TRP_NONE && strcmp(l->is.host, node) == 0)
            finish(d, l, text);
    }
}

/* ---- in time --------------------------------------------------------------------- */

void trp_driver_awaits(trp_driver *d, uint32_t location)
{
    struct trp_driver_location *l = &d->locations[location];
    if (!l->is.ino || l->nservers || l->moving || l->unmovable ||
        l->move_due != INT64_MAX)
        return;
    l->move_due = d->now + UNSERVED_NS;
    due_at(d, l->move_due);
}

/* One that has its room there. */
static bool somebody_comes(const trp_driver *d, const char *host)
{
    for (uint32_t i = 0; i < d->nrecords; i++) {
        const struct trp_executor_record *x = d->records[i];
        if (x && x->state == TRP_RECORD_COMING && !x->released && x->host &&
            strcmp(x->host, host) == 0)
            return true;
    }
    return false;
}

static void look_at(trp_driver *d, struct trp_driver_location *l, int64_t now)
{
    if (now >= l->move_due && l->moving) {
        finish(d, l, "it took too long");
    } else if (now >= l->move_due && !l->nservers && somebody_comes(d, l->is.host)) {
        l->move_due = now + UNSERVED_NS;
    } else if (now >= l->move_due) {
        l->move_due = INT64_MAX;
        if (!l->nservers && !l->unmovable && d->cluster && d->cluster->ops->batch.move)
            d->cluster->ops->batch.move(d->cluster, l->is.host);
    }
    due_at(d, l->move_due);
}

void trp_driver_moving_late(trp_driver *d, int64_t now)
{
    if (now < d->moving_due)
        return;
    d->moving_due = INT64_MAX;
    for (uint32_t i = 0; i < d->nlocations; i++)
        look_at(d, &d->locations[i], now);
    for (uint32_t i = 0; i < d->nrecords; i++) {
        struct trp_executor_record *x = d->records[i];
        if (!x)
            continue;
        if (now >= x->goes_at) {
            x->goes_at = INT64_MAX;
            trp_driver_going(d, x);
        }
        due_at(d, x->goes_at);
    }
}
