/*
 * What a run would have held as one allocation, and as a chain of jobs: the simulator
 * plays its pipeline, with its settings, on the times that its tasks took, on nodes like
 * those that it had. Nobody waits for Slurm there, and an executor starts as quickly as
 * the quickest of this run, so that what differs is what is held alone.
 *
 * A node is as large as the most that the run held on one of them at once: what nodes
 * have besides is not in the log.
 */
#include <stdlib.h>
#include <string.h>

#include "driver/pipeline_settings.h"
#include "events/json_text.h"
#include "report_page.h"
#include "sim/run/whole.h"

/* Above that it would take too long. A chain of jobs has a profile a stage, and each step
 * looks at all of them. */
enum { TASKS_MAX = 300000, STAGES_MAX = 1500 };

/* ---- the nodes ---- */

struct change {
    int64_t at;
    double cores, mib, devices[TRP_PROFILE_RESOURCES];
};

struct nodes {
    uint32_t count, inside;
    double cores, mib, devices[TRP_PROFILE_RESOURCES];
    int64_t start_up; /* ms */
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->cores < y->cores ? -1 : x->cores > y->cores; /* what goes first */
}

static void at_least(double *most, double v)
{
    *most = v > *most ? v : *most;
}

/* The most that was held at once, on one host. */
static void measure_host(const struct trp_page_facts *f, uint32_t host,
                         struct change *v, struct nodes *n)
{
    struct change now = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->nexecutors; i++) {
        const struct trp_page_executor *x = &f->executors[i];
        if (x->host != host || x->profile == TRP_NONE)
            continue;
        const struct trp_page_profile *p = &f->profiles[x->profile];
        struct change come = {.at = x->came, .cores = x->cores, .mib = p->memory_mib};
        struct change go = {.at = trp_page_executor_end(f, x),
                            .cores = -x->cores,
                            .mib = -p->memory_mib};
        for (uint32_t d = 0; d < f->ndevices; d++) {
            come.devices[d] = p->devices[d];
            go.devices[d] = -p->devices[d];
        }
        v[count++] = come;
        v[count++] = go;
    }
    qsort(v, count, sizeof *v, by_time);
    for (uint32_t i = 0; i < count; i++) {
        at_least(&n->cores, now.cores += v[i].cores);
        at_least(&n->mib, now.mib += v[i].mib);
        for (uint32_t d = 0; d < f->ndevices; d++)
            at_least(&n->devices[d], now.devices[d] += v[i].devices[d]);
    }
}

static bool is_additional(const struct trp_page_facts *f, uint32_t job)
{
    for (uint32_t i = 0; i < f->njobs; i++)
        if (f->jobs[i].id == job)
            return f->jobs[i].additional;
    return false;
}

/* Ranks of a gang are shared out over all hosts. */
static void measure_gangs(const struct trp_page_facts *f, struct nodes *n)
{
    for (uint32_t i = 0; i < f->ntasks; i++) {
        const struct trp_page_task *t = &f->tasks[i];
        uint32_t profile = f->stages[t->stage].profile;
        if (!t->ranks || profile == TRP_NONE)
            continue;
        const struct trp_page_profile *p = &f->profiles[profile];
        uint32_t ranks = (t->ranks + n->count - 1) / n->count;
        at_least(&n->cores, ranks * p->task_cpus);
        at_least(&n->mib, ranks * p->memory_mib / p->slots);
        for (uint32_t d = 0; d < f->ndevices; d++)
            at_least(&n->devices[d], ranks * p->per_task[d]);
    }
}

static bool measure(const struct trp_page_facts *f, struct nodes *n)
{
    struct change *v = calloc(2 * (size_t)f->nexecutors + 1, sizeof *v);
    bool *inside = calloc((size_t)f->nhosts + 1, sizeof *inside);
    *n = (struct nodes){.count = f->nhosts ? f->nhosts : 1, .start_up = INT64_MAX};
    for (uint32_t i = 0; inside && i < f->nexecutors; i++) {
        const struct trp_page_executor *x = &f->executors[i];
        int64_t from = x->began ? x->began : x->asked;
        if (x->host == TRP_NONE)
            continue;
        if (!inside[x->host] && !is_additional(f, x->job))
            n->inside += inside[x->host] = true;
        if (x->came - from < n->start_up)
            n->start_up = x->came - from;
    }
    for (uint32_t h = 0; v && h < f->nhosts; h++)
        measure_host(f, h, v, n);
    measure_gangs(f, n);
    n->inside = n->inside ? n->inside : 1;
    n->start_up = n->start_up == INT64_MAX ? 0 : n->start_up;
    bool good = v && inside;
    free(v);
    free(inside);
    return good;
}

static char *cluster_text(const struct trp_page_facts *f, const struct nodes *n)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out,
            "cluster: 1\nstart_up: {constant: %lldms}\nnodes:\n  - {name: node, "
            "count: %u, inside: %u, cores: %lld, memory: %lldm",
            (long long)n->start_up, n->count, n->inside,
            (long long)(n->cores > 1 ? n->cores : 1),
            (long long)(n->mib > 1 ? n->mib + 1 : 1));
    const char *before = ", devices: {";
    for (uint32_t d = 0; d < f->ndevices; d++)
        if (n->devices[d] > 0) {
            fprintf(out, "%s%s: %lld", before, f->device[d],
                    (long long)(n->devices[d] + 0.999));
            before = ", ";
        }
    if (before[2] == '\0')
        fputs("}", out);
    fputs("}\n", out);
    return fclose(out) == 0 ? text : NULL;
}

/* ---- how long tasks took ---- */

/* The newest stage of that name that has times; NULL: none has. */
static const struct trp_page_stage *measured(const struct trp_report_page *p,
                                             const char *name)
{
    const struct trp_page_facts *f = p->facts;
    for (uint32_t i = f->nstages; i-- > 0;) {
        const struct trp_page_stage *s = &f->stages[i];
        const struct trp_statistics *all = &p->records->v[s->start]->statistics;
        if (strcmp(s->name, name) == 0 && s->id.n < all->nstages &&
            all->stages[s->id.n] &&
            (all->stages[s->id.n]->durations.count || (!s->ntasks && s->ended)))
            return s;
    }
    return NULL;
}

/* NULL: `why` says which stage has no times, or is "". */
static char *durations_text(const struct trp_report_page *p, const char *events,
                            const trp_pipeline *pipeline, char *why, size_t size)
{
    struct trp_buf b = {0};
    TRP_JSON(&b, "{\"durations\":1,\"stages\":{");
    for (uint32_t i = 0; i < pipeline->nstages; i++) {
        const char *name = pipeline->stages[i].name;
        const struct trp_page_stage *s = measured(p, name);
        if (!s) {
            snprintf(why, size,
                     "Not every stage has run: of stage %s no task has succeeded, so "
                     "that how long they would have taken is not known.",
                     name);
            trp_buf_free(&b);
            return NULL;
        }
        trp_json_comma(&b);
        trp_json_text(&b, name);
        if (s->ntasks) {
            TRP_JSON(&b, ":{\"events\":");
            trp_json_text(&b, events);
            TRP_JSON_TEXT(&b, "stage", name);
        } else {
            TRP_JSON(&b, ":{\"constant\":\"0s\"");
        }
        if (!pipeline->stages[i].spec.ranks)
            TRP_JSON_INT(&b, "tasks", s->ntasks);
        TRP_JSON(&b, "}");
    }
    TRP_JSON(&b, "}}");
    trp_put_u8(&b, 0);
    if (b.failed)
        trp_buf_free(&b);
    return (char *)b.data;
}

/* ---- playing ---- */

static void put_why(struct trp_buf *b, const char *why)
{
    TRP_JSON(b, "{\"why\":");
    trp_json_text(b, why);
    TRP_JSON(b, "}");
}

static double hours(const json_t *run, const char *what, const char *of)
{
    return json_number_value(json_object_get(json_object_get(run, what), of)) * 3600;
}

static void put_seconds(struct trp_buf *b, const char *name, double s)
{
    char text[64];
    int64_t ms = (int64_t)(s * 1000 + 0.5);
    snprintf(text, sizeof text, ",\"%s\":%lld.%03d", name, (long long)(ms / 1000),
             (int)(ms % 1000));
    trp_put_raw(b, text, strlen(text));
}

static void put_runs(struct trp_buf *b, const struct nodes *n, const char *played)
{
    static const char *const shown[] = {"monolithic", "job-per-stage", "inside-first"};
    json_t *document = json_loads(played, 0, NULL), *run;
    char how[500];
    size_t i;
    snprintf(how, sizeof how,
             "Played by troupe sim on the times that tasks took in this run, on %u "
             "node%s as large as the most that the run held on one at once (%lld "
             "cores). Nobody waits for Slurm there, and executors start as quickly as "
             "the quickest of this run: %lld ms.",
             n->count, n->count == 1 ? "" : "s", (long long)n->cores,
             (long long)n->start_up);
    TRP_JSON(b, "{\"how\":");
    trp_json_text(b, how);
    TRP_JSON(b, ",\"runs\":[");
    json_array_foreach(json_object_get(document, "runs"), i, run) {
        const char *policy = json_string_value(json_object_get(run, "policy"));
        bool wanted = false;
        for (size_t k = 0; policy && k < sizeof shown / sizeof *shown; k++)
            wanted |= strcmp(policy, shown[k]) == 0;
        if (!wanted)
            continue;
        trp_json_comma(b);
        TRP_JSON(b, "{\"policy\":");
        trp_json_text(b, policy);
        put_seconds(b, "makespan", json_number_value(json_object_get(run, "makespan")));
        put_seconds(b, "nodes", hours(run, "held", "nodes"));
        put_seconds(b, "cores", hours(run, "held", "cores"));
        put_seconds(b, "used", hours(run, "used", "cores"));
        TRP_JSON(b, "}");
    }
    TRP_JSON(b, "]}");
    json_decref(document);
}

static void play(const struct trp_report_page *p, const struct trp_pipeline_settings *s,
                 struct trp_buf *b)
{
    char events[4300], why[TRP_ERROR_TEXT] = "", *played = NULL;
    struct nodes nodes;
    size_t size = 0;
    trp_error err;
    snprintf(events, sizeof events, "%s/events.jsonl", p->folder);
    char *cluster = measure(p->facts, &nodes) ? cluster_text(p->facts, &nodes) : NULL;
    char *durations = durations_text(p, events, s->pipeline, why, sizeof why);
    FILE *out = cluster && durations ? open_memstream(&played, &size) : NULL;
    const struct trp_whole_request q = {.cluster = "the nodes of the run",
                                        .durations = "the times of the run",
                                        .cluster_text = cluster,
                                        .durations_text = durations,
                                        .pipeline = s->pipeline,
                                        .options = s->options,
                                        .site = s->site,
                                        .pools = &s->pools,
                                        .compare = true,
                                        .json = true};
    int code = out ? trp_whole_play(&q, out, &err) : TRP_ENOMEM;
    if (out && fclose(out) != 0)
        code = TRP_ENOMEM;
    if (code == 0)
        put_runs(b, &nodes, played);
    else if (*why)
        put_why(b, why);
    else
        put_why(b, code == TRP_ENOMEM ? "There was too little memory to play it."
                                      : err.text);
    free(played);
    free(cluster);
    free(durations);
}

void trp_report_alternatives(const struct trp_report_page *p, struct trp_buf *b)
{
    struct trp_run_spec *spec = NULL;
    struct trp_pipeline_settings s;
    trp_error err;
    const char *why = NULL;
    if (!p->folder)
        why = "There is only the event log: the pipeline, which would be played, is in "
              "the run's folder.";
    else if (p->live)
        why = "The run goes on: how long all its tasks take is not known yet.";
    else if (p->in_a_hurry)
        why = "Time was up: troupe report -o makes the whole page.";
    else if (p->facts->ntasks > TASKS_MAX)
        why =
            "The run has too many tasks to be played for a page; troupe sim --compare "
            "does it.";
    else if (p->facts->nstages > STAGES_MAX)
        why = "The run has too many stages to be played for a page (more than 1,500); "
              "troupe sim --compare does it.";
    else if (trp_run_spec_load(p->folder, &spec, &err) < 0 ||
             (!spec->napp && trp_pipeline_settings_load(spec, &s, &err) < 0))
        why = err.text;
    else if (spec->napp)
        why = "The run is of a program, whose stages are known when they are there "
              "only: it cannot be played.";
    if (why) {
        put_why(b, why);
    } else {
        play(p, &s, b);
        trp_pipeline_settings_free(&s);
    }
    if (spec)
        trp_run_spec_free(spec);
}
