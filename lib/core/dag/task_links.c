/*
 * Which tasks of a stage wait for which of a parent (after … each, after … by).
 *
 * With `each` it is the task of the same number, and nothing is kept. With `by` a task has
 * a value, and waits for those of the parent that have it too; a task of the parent may
 * have several. What is kept is by value: whose it is, both ways, how many of the parent's
 * tasks are not over, and the first that was lost. So a task waits for one value however
 * many tasks have it, the end of a task costs its values and the tasks that it lets go, and
 * the memory is that of the tasks and of their values, where pairs of tasks would be their
 * product. Rejected: a count a task, which each end of a parent's task would have to walk.
 */
#include <stdlib.h>

#include "core/engine_state.h"

/* All numbers are in one piece. */
struct trp_task_links {
    uint32_t nvalues, ntasks, nparents;
    uint32_t *value;               /* of each task of the child */
    uint32_t *first, *tasks;       /* of each value the child's tasks */
    uint32_t *above_first, *above; /* of each task of the parent its values */
    uint32_t *left;                /* of each value: the parent's that are not over */
    uint32_t *lost;                /* … its first that was lost; TRP_NONE: none was */
};

static int check(const struct trp_stage_link *l, uint32_t ntasks,
                 const struct trp_by *told)
{
    uint32_t at = 0;
    if (told->ntasks != ntasks || told->nvalues > ntasks)
        return TRP_EINVAL;
    for (uint32_t i = 0; i < ntasks; i++)
        if (told->values[i] >= told->nvalues)
            return TRP_EINVAL;
    for (uint32_t i = 0; i < told->nabove; i++) {
        if (told->above[i].task < at || told->above[i].task >= l->parent->ntasks ||
            told->above[i].value >= told->nvalues)
            return TRP_EINVAL;
        at = told->above[i].task;
    }
    return 0;
}

static struct trp_task_links *links_new(const struct trp_stage_link *l,
                                        const struct trp_by *told)
{
    size_t values = told->nvalues, tasks = told->ntasks, parents = l->parent->ntasks;
    size_t n = 2 * tasks + 3 * values + parents + told->nabove + 3;
    struct trp_task_links *k = calloc(1, sizeof(*k) + n * sizeof(uint32_t));
    if (!k)
        return NULL;
    k->nvalues = told->nvalues;
    k->ntasks = told->ntasks;
    k->nparents = l->parent->ntasks;
    k->value = (uint32_t *)(k + 1);
    k->tasks = k->value + tasks;
    k->left = k->tasks + tasks;
    k->lost = k->left + values;
    k->first = k->lost + values; /* one more, and one while it is counted */
    k->above_first = k->first + values + 2;
    k->above = k->above_first + parents + 1;
    return k;
}

/* Sorted by value, stable, in linear time: how many, two places up; summed; then put,
 * which moves each to where it begins. */
static void sort_tasks(struct trp_task_links *k)
{
    for (uint32_t i = 0; i < k->ntasks; i++)
        k->first[k->value[i] + 2]++;
    for (uint32_t v = 2; v < k->nvalues + 2; v++)
        k->first[v] += k->first[v - 1];
    for (uint32_t i = 0; i < k->ntasks; i++)
        k->tasks[k->first[k->value[i] + 1]++] = i;
}

void trp_task_links_count(struct trp_stage_link *l)
{
    struct trp_task_links *k = l->by;
    const struct trp_stage *p = l->parent;
    for (uint32_t v = 0; v < k->nvalues; v++) {
        k->left[v] = 0;
        k->lost[v] = TRP_NONE;
    }
    for (uint32_t t = 0; t < k->nparents; t++)
        for (uint32_t i = k->above_first[t]; i < k->above_first[t + 1]; i++) {
            uint32_t v = k->above[i];
            k->left[v] += !trp_bit(p->bits, t);
            if (p->lost && trp_bit(p->lost, t) && k->lost[v] == TRP_NONE)
                k->lost[v] = t;
        }
}

int trp_task_links_make(struct trp_stage_link *l, uint32_t ntasks,
                        const struct trp_by *told, trp_error *err)
{
    if (check(l, ntasks, told) < 0)
        return trp_error_set(err, TRP_EINVAL,
                             "it is not told rightly which tasks of stage %s its tasks "
                             "wait for",
                             l->parent->name);
    struct trp_task_links *k = links_new(l, told);
    if (!k)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %u tasks", ntasks);
    for (uint32_t i = 0; i < ntasks; i++)
        k->value[i] = told->values[i];
    sort_tasks(k);
    for (uint32_t i = 0; i < told->nabove; i++) {
        k->above_first[told->above[i].task + 1] = i + 1;
        k->above[i] = told->above[i].value;
    }
    for (uint32_t t = 0; t < k->nparents; t++) /* those without a value */
        if (k->above_first[t + 1] < k->above_first[t])
            k->above_first[t + 1] = k->above_first[t];
    l->by = k;
    trp_task_links_count(l);
    return 0;
}

bool trp_link_holds(const struct trp_stage_link *l, uint32_t task)
{
    return l->by ? l->by->left[l->by->value[task]] > 0
                 : !trp_bit(l->parent->bits, task);
}

uint32_t trp_link_lost(const struct trp_stage_link *l, uint32_t task)
{
    const struct trp_stage *p = l->parent;
    if (!p || !p->lost)
        return TRP_NONE;
    if (l->by)
        return l->by->lost[l->by->value[task]];
    return trp_bit(p->lost, task) ? task : TRP_NONE;
}

void trp_link_done(struct trp_engine *e, struct trp_stage_link *l, uint32_t task)
{
    struct trp_task_links *k = l->by;
    struct trp_task_set *set = l->child->set;
    if (!k && set)
        trp_set_unhold(e, set, task);
    for (uint32_t i = k ? k->above_first[task] : 0; k && i < k->above_first[task + 1];
         i++) {
        uint32_t v = k->above[i];
        if (--k->left[v])
            continue;
        for (uint32_t c = k->first[v]; set && c < k->first[v + 1]; c++)
            trp_set_unhold(e, set, k->tasks[c]);
    }
}

/* Only the first loss of a value has tasks to be told. */
bool trp_link_lose(struct trp_stage_link *l, uint32_t task, struct trp_stack *ret)
{
    struct trp_task_links *k = l->by;
    if (!k)
        return trp_stack_push(ret, task);
    for (uint32_t i = k->above_first[task]; i < k->above_first[task + 1]; i++) {
        uint32_t v = k->above[i], was = k->lost[v];
        k->left[v]--;
        if (was == TRP_NONE || task < was)
            k->lost[v] = task;
        for (uint32_t c = k->first[v]; was == TRP_NONE && c < k->first[v + 1]; c++)
            if (!trp_stack_push(ret, k->tasks[c]))
                return false;
    }
    return true;
}

int trp_task_links_check(const struct trp_stage_link *l, trp_error *err)
{
    const struct trp_task_links *k = l->by;
    const struct trp_stage *p = l->parent;
    uint32_t *left = calloc((size_t)k->nvalues + 1, sizeof(*left));
    for (uint32_t t = 0; left && t < k->nparents; t++)
        for (uint32_t i = k->above_first[t]; i < k->above_first[t + 1]; i++)
            left[k->above[i]] += !trp_bit(p->bits, t);
    uint32_t v = 0;
    while (left && v < k->nvalues && left[v] == k->left[v] &&
           (k->lost[v] == TRP_NONE || (p->lost && trp_bit(p->lost, k->lost[v]))))
        v++;
    bool sound = !left || v == k->nvalues;
    free(left);
    return sound ? 0
                 : trp_error_set(
                       err, TRP_ESTATE,
                       "stage %s: of value %u %u tasks of stage %s are left, or "
                       "the one that was lost is not",
                       l->child->name, v, k->left[v], p->name);
}
