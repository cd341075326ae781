/* `troupe report --json A B`: both runs, and what is the difference of their figures. */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "events/json_print.h"

static json_t *seconds(const struct trp_comparison *c, const struct trp_seconds *s)
{
    json_t *o = json_pack("{s:f}", "cores", s->cores);
    for (uint32_t i = 0; i < c->ndevices; i++)
        json_object_set_new(o, c->device[i], json_real(s->devices[i]));
    return o;
}

/* Seconds, or null where no task has succeeded. */
static json_t *time_or_null(const struct trp_durations *d, int64_t ns)
{
    return d->count ? json_real((double)ns * 1e-9) : json_null();
}

static json_t *figures(const struct trp_comparison *c, const struct trp_compared *r)
{
    const struct trp_durations *d = &r->durations;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:f, s:f, s:I, s:I, s:I}",
        "tasks", (json_int_t)r->tasks, "attempts", (json_int_t)r->attempts, "failed",
        (json_int_t)r->failures, "given_up", (json_int_t)r->given_up, "skipped",
        (json_int_t)r->skipped, "wall", (double)r->wall_ns * 1e-9, "median",
        time_or_null(d, trp_durations_quantile(d, 500)), "max",
        time_or_null(d, d->greatest), "held", seconds(c, &r->held), "used",
        seconds(c, &r->used), "cpu", r->cpu, "node_seconds", r->nodes, "read",
        (json_int_t)r->flow[TRP_FLOW_READ], "written",
        (json_int_t)r->flow[TRP_FLOW_WRITTEN], "spilled",
        (json_int_t)r->flow[TRP_FLOW_SPILLED]);
}

/* What `b` has more, of each number that both have. */
static json_t *difference(const json_t *a, const json_t *b)
{
    json_t *o = json_object(), *v;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)b, key, v) {
        const json_t *was = json_object_get(a, key);
        if (json_is_object(v) && json_is_object(was))
            json_object_set_new(o, key, difference(was, v));
        else if (json_is_integer(v) && json_is_integer(was))
            json_object_set_new(
                o, key, json_integer(json_integer_value(v) - json_integer_value(was)));
        else if (json_is_number(v) && json_is_number(was))
            json_object_set_new(
                o, key, json_real(json_number_value(v) - json_number_value(was)));
        else
            json_object_set_new(o, key, json_null());
    }
    return o;
}

static json_t *both(const struct trp_comparison *c, const struct trp_compared of[2],
                    bool whole)
{
    json_t *v[2];
    for (int i = 0; i < 2; i++) {
        v[i] = whole || of[i].nstages ? figures(c, &of[i]) : json_null();
        if (whole || !of[i].nstages)
            continue;
        json_object_set_new(v[i], "stages", json_integer(of[i].nstages));
        json_object_set_new(v[i], "profile", json_pack("s?", of[i].profile));
        json_object_set_new(v[i], "outcome", json_string(trp_report_end_word(&of[i])));
    }
    json_t *more = json_null();
    if (!json_is_null(v[0]) && !json_is_null(v[1])) {
        more = difference(v[0], v[1]);
        for (int i = 0; i < 3; i++)
            json_object_del(more, (const char *[]){"stages", "profile", "outcome"}[i]);
    }
    return json_pack("{s:o, s:o, s:o}", "a", v[0], "b", v[1], "difference", more);
}

static json_t *run(const struct trp_report_side *s)
{
    const struct trp_run_record *first = s->runs->v[0],
                                *last = s->runs->v[s->runs->n - 1];
    return json_pack("{s:s, s:s, s:s?, s:I, s:o, s:I, s:s}", "run", s->called, "events",
                     s->events, "name", first->app_name, "started",
                     (json_int_t)(first->started / 1000000), "exit",
                     last->complete ? json_integer(last->exit_status) : json_null(),
                     "starts", (json_int_t)s->runs->n, "state", s->state);
}

static json_t *notes(char *lines)
{
    json_t *list = json_array();
    for (const char *line; lines && (line = strsep(&lines, "\n")) && *line;)
        json_array_append_new(list, json_string(line));
    return list;
}

int trp_report_compare_json(const struct trp_report_side side[2], trp_error *err)
{
    struct trp_comparison c;
    if (trp_comparison_make(side[0].runs, side[1].runs, true, &c) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    char *caveats = trp_report_caveats(side, &c);
    json_t *stages = json_array();
    for (uint32_t i = 0; i < c.n; i++) {
        json_t *o = both(&c, c.rows[i]->of, false);
        json_object_set_new(o, "name", json_string(c.rows[i]->name));
        json_array_append_new(stages, o);
    }
    json_t *document = json_pack("{s:o, s:o, s:o, s:o, s:o}", "a", run(&side[0]), "b",
                                 run(&side[1]), "stages", stages, "total",
                                 both(&c, c.total.of, true), "notes", notes(caveats));
    trp_json_print(document, 0, stdout);
    json_decref(document);
    free(caveats);
    trp_comparison_free(&c);
    return 0;
}
