/*
 * Printing plans: as text in aligned columns, as JSON, and the dry run. What is printed
 * is made by plan_make.c, first and as a whole, so that both forms say the same.
 */
#include "driver/plan_print.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "conf/table.h"
#include "conf/wording.h"
#include "driver/command_env.h"
#include "driver/foreach.h"
#include "driver/output_names.h"
#include "driver/plan_make.h"
#include "driver/plan_slurm.h"
#include "events/json_print.h"
#include "os/strings.h"

/* ---- text ---- */

/* Appends "name amount" to a list in `text`. */
static void list_add(char *text, size_t size, const char *name, const char *amount)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s %s", n ? ", " : "", name, amount);
}

static char *executor_text(const struct trp_resource_profile *p, char *text,
                           size_t size)
{
    char amount[32];
    *text = '\0';
    if (p->task_only)
        list_add(text, size, "as", "default:");
    snprintf(amount, sizeof amount, "%lld", (long long)p->cores);
    list_add(text, size, "cores", amount);
    list_add(text, size, "memory",
             trp_memory_format(p->total_mib, amount, sizeof amount));
    for (uint32_t i = 0; i < p->ncustom; i++) {
        snprintf(amount, sizeof amount, "%lld", (long long)p->custom[i].executor);
        if (p->custom[i].on_executor)
            list_add(text, size, p->custom[i].name, amount);
    }
    return text;
}

static char *task_text(const struct trp_resource_profile *p, char *text, size_t size)
{
    char amount[32];
    *text = '\0';
    snprintf(amount, sizeof amount, "%lld", (long long)p->task_cpus);
    list_add(text, size, "cpus", amount);
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (p->custom[i].on_task)
            list_add(text, size, p->custom[i].name,
                     trp_amount_format(p->custom[i].task, amount, sizeof amount));
    return text;
}

/* Its tasks cannot be told as things are now: `waits` says why, with the place. */
static bool tasks_unknown(const struct trp_plan_stage *v)
{
    return v->waits && !v->known;
}

/* Stages that are told together: names differ in a number only, all else is the same. */
struct row {
    const struct trp_plan_stage *first;
    uint32_t stages, ntasks; /* the sum of theirs */
    bool together;           /* also what they come after */
    char *name, *after;
    UT_hash_handle hh;
    char *key;
};

enum { ROWS = 40, SHOWN_AFTER = 8 };

/* Whether tasks wait for tasks of both in the same way. */
static bool same_how(const struct trp_after *a, const struct trp_after *b)
{
    return a->each == b->each && !a->by == !b->by && (!a->by || !strcmp(a->by, b->by));
}

static void put_how(const struct trp_after *a, FILE *f)
{
    if (a->by)
        fprintf(f, " (by %s)", a->by);
    else
        fputs(a->each ? " (each)" : "", f);
}

/* What stages come after, together those whose names differ in a number: "a, b-* ×9"; with
 * `named`, one that is alone by its own name. */
static char *after_text(const struct trp_pipeline_stage *s, bool together, bool named)
{
    struct {
        char name[80];
        uint32_t n;
        const struct trp_after *only;
    } v[SHOWN_AFTER];
    uint32_t n = 0, more = 0;
    char *text = NULL;
    size_t size;
    for (uint32_t a = 0; a < s->nafter && together; a++) {
        char name[80];
        uint32_t i = 0;
        trp_name_stem(s->after[a].stage, name, sizeof name);
        while (i < n &&
               (strcmp(v[i].name, name) != 0 || !same_how(v[i].only, &s->after[a])))
            i++;
        more += i == SHOWN_AFTER;
        if (i == SHOWN_AFTER)
            continue;
        if (i == n) {
            strcpy(v[n].name, name);
            v[n].n = 0;
            v[n++].only = &s->after[a];
        }
        v[i].n++;
    }
    FILE *f = open_memstream(&text, &size);
    for (uint32_t a = 0; f && a < s->nafter && !together; a++) {
        fprintf(f, "%s%s", a ? ", " : "", s->after[a].stage);
        put_how(&s->after[a], f);
    }
    for (uint32_t i = 0; f && i < n; i++) {
        fprintf(f, "%s%s", i ? ", " : "",
                named && v[i].n == 1 ? v[i].only->stage : v[i].name);
        if (v[i].n > 1)
            fprintf(f, " ×%u", v[i].n);
        put_how(v[i].only, f);
    }
    if (f && more)
        fprintf(f, ", and %u more", more);
    if (f)
        fclose(f);
    return text;
}

/* The row where a stage belongs, made when there is none; NULL: out of memory. */
static struct row *row_of(struct row **table, const struct trp_plan_stage *v,
                          bool together)
{
    const struct trp_pipeline_stage *s = v->stage;
    struct row *r = NULL;
    char stem[80], *key = NULL, *after = after_text(s, together, false);
    trp_name_stem(s->name, stem, sizeof stem);
    if (asprintf(&key, "%s %s %u %d %s %s %s", together ? stem : s->name,
                 s->profile ? s->profile : "", s->spec.ranks, v->known,
                 after ? after : "", v->waits ? v->waits : "",
                 v->never ? v->never : "") < 0)
        key = NULL;
    if (key)
        HASH_FIND_STR(*table, key, r);
    if (!r && key && (r = calloc(1, sizeof *r))) {
        *r = (struct row){.first = v,
                          .together = together,
                          .name = strdup(stem),
                          .after = after,
                          .key = key};
        HASH_ADD_KEYPTR(hh, *table, r->key, strlen(r->key), r);
        return r;
    }
    free(after);
    free(key);
    return r;
}

static void free_rows(struct row *table)
{
    struct row *r, *next;
    HASH_ITER(hh, table, r, next) {
        HASH_DEL(table, r);
        free(r->name);
        free(r->after);
        free(r->key);
        free(r);
    }
}

static void stage_row(trp_table *t, const struct row *r)
{
    const struct trp_plan_stage *v = r->first;
    const struct trp_pipeline_stage *s = v->stage;
    if (r->stages > 1)
        trp_table_cell(t, "%s ×%u", r->name ? r->name : s->name, r->stages);
    else
        trp_table_cell(t, "%s", s->name);
    trp_table_cell(t, "%s", s->profile ? s->profile : "default");
    if (s->spec.ranks)
        trp_table_cell(t, "%u ranks", s->spec.ranks);
    else if (v->known)
        trp_table_cell(t, "%u", r->ntasks);
    else
        trp_table_cell(t, "?");
    char *own = r->stages == 1 ? after_text(s, r->together, true) : NULL;
    const char *after = own ? own : r->after;
    trp_table_cell(t, "%s", after && *after ? after : "-");
    free(own);
    if (v->never)
        trp_table_message(t, "never: %s", v->never);
    else
        trp_table_cell(t, "%s",
                       tasks_unknown(v) ? "see below"
                       : v->waits       ? v->waits
                                        : "-");
}

static void stage_rows(trp_table *t, const struct trp_plan *plan, bool all)
{
    struct row *table = NULL;
    for (uint32_t i = 0; i < plan->p->nstages; i++) {
        struct row *r =
            row_of(&table, &plan->stage[i], !all && plan->p->nstages > ROWS);
        if (!r)
            continue;
        r->stages++;
        r->ntasks += plan->stage[i].ntasks;
    }
    for (const struct row *r = table; r; r = r->hh.next)
        stage_row(t, r);
    free_rows(table);
}

static void profile_row(trp_table *t, const struct trp_plan_profile *v)
{
    const struct trp_resource_profile *p = v->made;
    char text[1024];
    trp_table_cell(t, "%s", v->name);
    if (!p) {
        for (int i = 0; i < 4; i++)
            trp_table_cell(t, "-");
        trp_table_message(t, "impossible: %s", v->never);
        return;
    }
    trp_table_cell(t, "%s", executor_text(p, text, sizeof text));
    trp_table_cell(t, "%s", task_text(p, text, sizeof text));
    trp_table_cell(t, "%u", p->slots);
    trp_table_cell(t, "%s", *p->limiting ? p->limiting : "-");
    if (v->never)
        trp_table_message(t, "never: %s", v->never);
    else
        trp_table_cell(t, v->fits == 1 ? "%u executor" : "%u executors", v->fits);
}

enum { WASTE_TEXT = 512 };

/* What of an executor its slots cannot use (semantics, section 2: a warning only). */
static const char *waste_of(const struct trp_plan *plan,
                            const struct trp_plan_profile *v, char buf[WASTE_TEXT])
{
    bool any =
        v->made && trp_profiles_waste(plan->profiles, v->made->id, buf, WASTE_TEXT);
    return any ? buf : NULL;
}

static void print_waste(const struct trp_plan *plan, FILE *out)
{
    char text[WASTE_TEXT];
    for (uint32_t i = 0; i < plan->nprofiles; i++) {
        const char *waste = waste_of(plan, &plan->profile[i], text);
        if (waste)
            fprintf(out, "\nprofile %s: %s\n", plan->profile[i].name, waste);
    }
}

/* The pools, and which stages are in them. */
static int print_pools(const struct trp_plan *plan, FILE *out, trp_error *err)
{
    static const struct trp_table_column columns[] = {
        {"pool",      NULL, false, false},
        {"weight",    NULL, false, false},
        {"min share", NULL, false, false},
        {"mode",      NULL, false, false},
        {"stages",    NULL, false, false},
    };
    trp_table *t = trp_table_new(columns, 5);
    for (uint32_t i = 0; i < plan->pools->n; i++) {
        const struct trp_pool_spec *pool = &plan->pools->specs[i];
        char *stages = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&stages, &size);
        for (uint32_t k = 0; f && k < plan->p->nstages; k++)
            if (trp_plan_pool(&plan->stage[k]) &&
                strcmp(trp_plan_pool(&plan->stage[k]), pool->name) == 0)
                fprintf(f, "%s%s", ftell(f) ? ", " : "", plan->p->stages[k].name);
        if (f)
            fclose(f);
        trp_table_cell(t, "%s", pool->name);
        trp_table_cell(t, "%s", pool->weight ? pool->weight : "1");
        trp_table_cell(t, "%s", pool->min_share ? pool->min_share : "0");
        trp_table_cell(t, "%s", pool->mode ? pool->mode : "FIFO");
        trp_table_cell(t, "%s", stages && *stages ? stages : "-");
        free(stages);
    }
    fputc('\n', out);
    return trp_table_print(t, out, err);
}

static void slurm_row(trp_table *t, const struct trp_site *site,
                      const struct trp_resource_profile *p, uint32_t ranks)
{
    char *text = trp_plan_slurm_text(site, p, ranks);
    trp_table_cell(t, "%s", text ? text : "");
    free(text);
}

/* What each profile, and each gang, becomes in Slurm. */
static int print_slurm(const struct trp_plan *plan, const struct trp_site *site,
                       FILE *out, trp_error *err)
{
    static const struct trp_table_column columns[] = {
        {"profile",  NULL, false, false},
        {"in Slurm", NULL, false, false},
    };
    trp_table *t = trp_table_new(columns, 2);
    for (uint32_t i = 0; i < plan->nprofiles; i++) {
        const struct trp_plan_profile *v = &plan->profile[i];
        if (!v->made)
            continue;
        trp_table_cell(t, "%s", v->name);
        slurm_row(t, site, v->made, 0);
    }
    for (uint32_t i = 0; i < plan->p->nstages; i++) {
        const struct trp_plan_stage *v = &plan->stage[i];
        if (!v->stage->spec.ranks || !v->profile || !v->profile->made)
            continue;
        trp_table_cell(t, "gang of stage %s", v->stage->name);
        slurm_row(t, site, v->profile->made, v->stage->spec.ranks);
    }
    fprintf(out, "\n");
    return trp_table_print(t, out, err);
}

static int print_text(const struct trp_plan *plan, const struct trp_site *site,
                      bool all, FILE *out, trp_error *err)
{
    static const struct trp_table_column of_stages[] = {
        {"stage",   NULL, false, false},
        {"profile", NULL, false, false},
        {"tasks",   NULL, false, false},
        {"after",   NULL, false, false},
        {"waits",   NULL, false, false},
    };
    static const struct trp_table_column of_profiles[] = {
        {"profile",    NULL, false, false},
        {"executor",   NULL, false, false},
        {"task",       NULL, false, false},
        {"slots",      NULL, false, false},
        {"limited by", NULL, false, false},
        {"fit here",   NULL, false, false},
    };
    trp_table *stages = trp_table_new(of_stages, 5);
    trp_table *profiles = trp_table_new(of_profiles, 6);
    stage_rows(stages, plan, all);
    for (uint32_t i = 0; i < plan->nprofiles; i++)
        profile_row(profiles, &plan->profile[i]);
    fprintf(out, "%s\n\n", plan->p->name);
    int r = trp_table_print(stages, out, err);
    for (uint32_t i = 0; i < plan->p->nstages; i++)
        if (tasks_unknown(&plan->stage[i]) && !plan->stage[i].never)
            fprintf(out, "%s\n", plan->stage[i].waits);
    fprintf(out, "\n");
    int s = trp_table_print(profiles, out, err);
    print_waste(plan, out);
    r = r < 0 ? r : s;
    s = plan->pools->n ? print_pools(plan, out, err) : 0;
    r = r < 0 ? r : s;
    s = site ? print_slurm(plan, site, out, err) : 0;
    return r < 0 ? r : s;
}

/* ---- JSON ---- */

static json_t *executor_json(const struct trp_resource_profile *p)
{
    json_t *j = json_pack("{s:I, s:I, s:I}", "cores", (json_int_t)p->cores, "memory",
                          (json_int_t)p->memory_mib, "memoryOverhead",
                          (json_int_t)p->overhead_mib);
    if (p->offheap_mib > 0)
        json_object_set_new(j, "offHeap", json_integer(p->offheap_mib));
    if (p->executor.pyspark_mib > 0)
        json_object_set_new(j, "pyspark.memory", json_integer(p->executor.pyspark_mib));
    for (uint32_t i = 0; i < p->ncustom; i++)
        if (p->custom[i].on_executor)
            json_object_set_new(j, p->custom[i].name,
                                json_integer(p->custom[i].executor));
    return j;
}

static json_t *task_json(const struct trp_resource_profile *p)
{
    json_t *j = json_pack("{s:I}", "cpus", (json_int_t)p->task_cpus);
    for (uint32_t i = 0; i < p->ncustom; i++) {
        trp_amount a = p->custom[i].task;
        if (p->custom[i].on_task)
            json_object_set_new(j, p->custom[i].name,
                                trp_amount_is_whole(a)
                                    ? json_integer(a / TRP_ONE)
                                    : json_real(trp_amount_to_double(a)));
    }
    return j;
}

static json_t *profile_json(const struct trp_plan *plan, const struct trp_site *site,
                            const struct trp_plan_profile *v)
{
    const struct trp_resource_profile *p = v->made;
    char waste[WASTE_TEXT];
    if (!p)
        return json_pack("{s:s, s:n, s:n, s:n, s:n, s:n, s:i, s:n, s:s?}", "name",
                         v->name, "id", "executor", "task", "slots", "limiting", "fits",
                         0, "waste", "never", v->never);
    json_t *j = json_pack(
        "{s:s, s:I, s:o, s:o, s:I, s:s, s:I, s:s?, s:s?}", "name", v->name, "id",
        (json_int_t)p->id.n, "executor", executor_json(p), "task", task_json(p),
        "slots", (json_int_t)p->slots, "limiting", p->limiting, "fits",
        (json_int_t)v->fits, "waste", waste_of(plan, v, waste), "never", v->never);
    if (site)
        trp_plan_slurm_json(site, p, 0, j);
    return j;
}

static json_t *pool_json(const struct trp_pool_spec *p)
{
    return json_pack("{s:s, s:I, s:I, s:s}", "name", p->name, "weight",
                     (json_int_t)(p->weight ? atoi(p->weight) : 1), "min_share",
                     (json_int_t)(p->min_share ? atoi(p->min_share) : 0), "mode",
                     p->mode ? p->mode : "FIFO");
}

static json_t *stage_json(const struct trp_plan *plan, const struct trp_site *site,
                          const struct trp_plan_stage *v,
                          const struct trp_stage_choice *c)
{
    const struct trp_pipeline_stage *s = v->stage;
    json_t *after = json_array();
    for (uint32_t a = 0; a < s->nafter; a++)
        json_array_append_new(after, json_string(s->after[a].stage));
    const char *pool = plan->pools->n ? trp_plan_pool(v) : NULL;
    json_t *j = json_pack("{s:s, s:s, s:o, s:I, s:s?, s:o, s:s?, s:s?}", "name",
                          s->name, "profile", s->profile ? s->profile : "default",
                          "tasks", v->known ? json_integer(v->ntasks) : json_null(),
                          "ranks", (json_int_t)s->spec.ranks, "pool", pool, "after",
                          after, "waits", v->waits, "never", v->never);
    if (site && s->spec.ranks && v->profile && v->profile->made)
        trp_plan_slurm_json(site, v->profile->made, s->spec.ranks, j);
    if (c) {
        json_int_t run = c->items.known ? c->items.ntasks - c->ndone : 0;
        json_object_set_new(j, "runs", json_boolean(c->runs));
        json_object_set_new(
            j, "run", c->runs && !c->items.known ? json_null() : json_integer(run));
        json_object_set_new(j, "done", json_integer(c->ndone));
        json_object_set_new(j, "why", json_pack("s?", *c->why ? c->why : NULL));
    }
    return j;
}

/* Whose room it is. */
static const char *room_of(const struct trp_cluster_where *w, char *buf, size_t size)
{
    if (!w->batch)
        return "this machine";
    if (!w->job)
        return w->batch->name;
    snprintf(buf, size, "%s job %u", w->batch->name, w->job);
    return buf;
}

static int print_json(const struct trp_plan *plan, const struct trp_site *site,
                      const char *room, const char *carried,
                      const struct trp_stage_choice *choices, FILE *out, trp_error *err)
{
    json_t *profiles = json_array(), *stages = json_array(), *pools = json_array();
    int failed = 0;
    for (uint32_t i = 0; i < plan->nprofiles; i++)
        failed |= json_array_append_new(profiles,
                                        profile_json(plan, site, &plan->profile[i]));
    for (uint32_t i = 0; i < plan->p->nstages; i++)
        failed |=
            json_array_append_new(stages, stage_json(plan, site, &plan->stage[i],
                                                     choices ? &choices[i] : NULL));
    for (uint32_t i = 0; i < plan->pools->n; i++)
        failed |= json_array_append_new(pools, pool_json(&plan->pools->specs[i]));
    json_t *root = json_pack("{s:s, s:o, s:o, s:o, s:s, s:s}", "name", plan->p->name,
                             "profiles", profiles, "stages", stages, "pools", pools,
                             "messages", carried, "room", room);
    failed |= !root || trp_json_print(root, JSON_INDENT(2), out) < 0;
    json_decref(root);
    return failed ? trp_error_set(err, TRP_ENOMEM, "the plan could not be written") : 0;
}

/* ---- the whole ---- */

static void warn(void *context, const char *line)
{
    (void)context;
    fprintf(stderr, "troupe: %s\n", line);
}

int trp_plan_print(const trp_pipeline *p, const trp_options *o,
                   const struct trp_site *site, const struct trp_pool_list *pools,
                   const char *carried, const struct trp_cluster_where *where,
                   const struct trp_stage_choice *choices, enum trp_plan_form form,
                   FILE *out, trp_error *err)
{
    const bool json = form == TRP_PLAN_JSON;
    struct trp_plan plan;
    char room[64];
    int r = trp_plan_make(p, o, site, where, &plan, err);
    if (r < 0)
        return r;
    plan.pools = pools;
    trp_output_names_warn(p, NULL, warn, NULL);
    r = json ? print_json(&plan, site, room_of(where, room, sizeof room), carried,
                          choices, out, err)
             : print_text(&plan, site, form == TRP_PLAN_ALL, out, err);
    if (!json)
        fprintf(out, "\nmessages travel %s\n", carried);
    if (!json && where->batch && !where->job)
        fprintf(
            out,
            "what fits is what jobs of %s can have; --local plans for this machine\n",
            where->batch->name);
    if (r == 0 && plan.first.code)
        r = trp_error_set(err, plan.first.code, "%s", plan.first.text);
    trp_plan_free(&plan);
    return r;
}

/* ---- dry run ---- */

/* A template (core/base/template.h) as its user wrote it, in its place. */
static char *as_written(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        bool dollar = strncmp(from, "${}", 3) == 0;
        *to++ = *from;
        from += dollar ? 3 : 1;
        if (dollar && *from == '{')
            *to++ = '$';
    }
    *to = '\0';
    return text;
}

static int print_stage(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                       const trp_options *o, FILE *out, trp_error *err)
{
    struct trp_strings argv = {0};
    struct trp_items items = {0};
    int r = trp_stage_argv(p, s, o, &argv, err);
    bool known = trp_foreach_known(s) || !s->nafter;
    if (r == 0 && known)
        r = trp_foreach_evaluate(p, s, NULL, &items, err);
    if (r == 0) {
        fprintf(out, "%s: ", s->name);
        if (s->spec.ranks)
            fprintf(out, "a gang of %u ranks", s->spec.ranks);
        else if (known)
            fprintf(out, "%u task%s", items.ntasks, items.ntasks == 1 ? "" : "s");
        else
            fputs("? tasks", out);
        fprintf(out, ", profile %s\n   ", s->profile ? s->profile : "default");
        for (size_t i = 0; i < argv.n; i++) {
            fputc(' ', out);
            trp_shell_word_print(
                i < s->nwrap || s->run ? argv.v[i] : as_written(argv.v[i]), out);
        }
        fputc('\n', out);
    }
    trp_items_free(&items);
    trp_strings_free(&argv);
    return r;
}

int trp_dry_run_print(const trp_pipeline *p, const trp_options *o,
                      const struct trp_site *site, FILE *out, trp_error *err)
{
    trp_profiles *profiles = NULL;
    trp_profile_id *ids = calloc((size_t)p->nstages + 1, sizeof *ids);
    if (!ids)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the plan");
    int r = trp_pipeline_profiles(p, o, site, &profiles, ids, err);
    for (uint32_t i = 0; i < p->nstages && r == 0; i++)
        r = print_stage(p, &p->stages[p->order[i]], o, out, err);
    if (profiles)
        trp_profiles_free(profiles);
    free(ids);
    return r;
}
