/*
 * A budget of work for each case, so that no file hangs the simulator: steps that are
 * cheap one by one may stand in a file by the hundred thousand. Work is counted, not
 * timed, so a case is refused everywhere or nowhere. The budget is some ten seconds;
 * the largest case of ours needs a thousandth of it.
 */
#include "sim/scenario/case.h"

#define BUDGET UINT64_C(1000000000)
#define JSON_VALUE 50 /* to make a value, in the cost of a look at an executor */

void trp_sim_work(trp_sim_case *c, uint64_t units)
{
    c->work += units < BUDGET ? units : BUDGET;
}

void trp_sim_more(trp_sim_case *c)
{
    c->entries++;
}

bool trp_sim_is_too_much(const trp_sim_case *c)
{
    return c->work >= BUDGET;
}

static uint64_t count_values(json_t *value)
{
    uint64_t n = 1;
    const char *key;
    json_t *below;
    size_t i;
    if (json_is_array(value)) {
        json_array_foreach(value, i, below)
            n += count_values(below);
    } else if (json_is_object(value)) {
        json_object_foreach(value, key, below)
            n += count_values(below);
    }
    return n;
}

void trp_sim_work_json(trp_sim_case *c, json_t *value)
{
    trp_sim_work(c, JSON_VALUE * count_values(value));
}
