/*
 * The states of trp_partitions on a task's path.
 *
 * A state belongs to a partition of its node, and a task with several members has several
 * partitions of a node below a coalesced one, but one of a node above it. So states
 * are known by how far they are from the end of the path, where all members of a task are
 * alike, and a state ends when the next member is not of its partition.
 *
 * They are begun from the end of the path to its source, since what one emits goes to
 * those behind it, and end in the order of records. What failed on its way
 * ends too, with no writer.
 */
#include <stdlib.h>
#include <string.h>

#include "api/flow.h"

struct trp_partition_state {
    const struct trp_chain_node *node; /* NULL: there is none */
    void *state;
    struct trp_maker by;
};

static const struct trp_chain_node *node_at(const struct trp_flow *f, uint32_t position)
{
    const uint32_t at = f->steps[position].node;
    const struct trp_chain_node *n = at == TRP_NONE ? NULL : &f->chain->nodes[at];
    return n && n->kind == TRP_NODE_PARTITIONS ? n : NULL;
}

static struct trp_partition_state *state_at(const struct trp_flow *f, uint32_t position)
{
    return &f->states[f->nsteps - 1 - position];
}

/* A function that emits calls the next one from within. */
struct outer {
    struct trp_maker by;
    uint32_t at;
};

static struct outer enter(struct trp_flow *f, struct trp_maker by, uint32_t position)
{
    const struct outer outer = {f->task.by, f->at};
    f->task.by = by;
    f->at = position;
    return outer;
}

static void leave(struct trp_flow *f, struct outer outer)
{
    f->task.by = outer.by;
    f->at = outer.at;
}

static int begin(struct trp_flow *f, uint32_t position, const struct trp_chain_node *n)
{
    struct trp_partition_state *s = state_at(f, position);
    trp_writer *w = &f->writers[position].out;
    *s = (struct trp_partition_state){
        .node = n, .by = {n->maker, f->steps[position].partition}
    };
    if (!n->first)
        return 0;
    const struct outer outer = enter(f, s->by, position);
    int rc = n->first(&f->task, &s->state, w, n->arg);
    leave(f, outer);
    return trp_flow_returned(f, n->begin_name, rc, w);
}

int trp_flow_states_begin(struct trp_flow *f)
{
    int rc = 0;
    for (uint32_t i = f->nsteps; rc == 0 && i-- > 0;) {
        const struct trp_chain_node *n = node_at(f, i);
        if (!n)
            continue;
        if (!f->states && !(f->states = calloc(TRP_STEPS_MAX, sizeof(*f->states))))
            return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a chain");
        if (!state_at(f, i)->node)
            rc = begin(f, i, n);
    }
    return rc;
}

int trp_flow_state_batch(struct trp_flow *f, uint32_t position, const trp_batch *in)
{
    const struct trp_partition_state *s = state_at(f, position);
    trp_writer *w = &f->writers[position].out;
    const struct outer outer = enter(f, s->by, position);
    int rc = s->node->batch(&f->task, s->state, in, w, s->node->arg);
    leave(f, outer);
    return trp_flow_returned(f, s->node->name, rc, w);
}

static int end(struct trp_flow *f, struct trp_partition_state *s, uint32_t position,
               trp_writer *w)
{
    const struct trp_partition_state was = *s;
    *s = (struct trp_partition_state){0};
    if (!was.node->last)
        return 0;
    const struct outer outer = enter(f, was.by, position);
    int rc = was.node->last(&f->task, was.state, w, was.node->arg);
    leave(f, outer);
    return w ? trp_flow_returned(f, was.node->end_name, rc, w) : 0;
}

int trp_flow_state_end(struct trp_flow *f, uint32_t position)
{
    if (!node_at(f, position) || !state_at(f, position)->node ||
        f->steps[position].above < trp_members_shared(&f->members))
        return 0;
    return end(f, state_at(f, position), position, &f->writers[position].out);
}

void trp_flow_states_drop(struct trp_flow *f)
{
    for (uint32_t i = 0; f->states && i < TRP_STEPS_MAX; i++)
        if (f->states[i].node)
            end(f, &f->states[i], 0, NULL);
}
