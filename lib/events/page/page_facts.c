/*
 * One function an event, as in run_record.c, which has looked at the event before: what
 * is no such event never comes here. Numbers of the log are looked up in hash tables,
 * since a log may be anything; they are emptied where a start of the run begins.
 */
#include "events/page/page_facts.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/time.h"
#include "events/page/facts_state.h"

struct trp_page_id {
    uint32_t id, place;
    UT_hash_handle hh;
};

struct trp_page_host {
    const char *name; /* of facts.hosts */
    uint32_t place;
    UT_hash_handle hh;
};

/* ---- numbers and names ---- */

int trp_page_id_set(struct trp_page_id **ids, uint32_t id, uint32_t place)
{
    struct trp_page_id *i = NULL;
    HASH_FIND(hh, *ids, &id, sizeof id, i);
    if (i) {
        i->place = place;
        return 0;
    }
    if (!(i = calloc(1, sizeof *i)))
        return TRP_ENOMEM;
    i->id = id;
    i->place = place;
    HASH_ADD(hh, *ids, id, sizeof i->id, i);
    if (i->hh.tbl)
        return 0;
    free(i);
    return TRP_ENOMEM;
}

uint32_t trp_page_id_get(const struct trp_page_id *ids, uint32_t id)
{
    struct trp_page_id *i = NULL;
    HASH_FIND(hh, ids, &id, sizeof id, i);
    return i ? i->place : TRP_NONE;
}

void trp_page_id_drop(struct trp_page_id **ids, uint32_t id)
{
    struct trp_page_id *i = NULL;
    HASH_FIND(hh, *ids, &id, sizeof id, i);
    if (!i)
        return;
    HASH_DEL(*ids, i);
    free(i);
}

static void ids_free(struct trp_page_id **ids)
{
    struct trp_page_id *i, *next;
    HASH_ITER(hh, *ids, i, next) {
        HASH_DEL(*ids, i);
        free(i);
    }
}

/* The place of a host's name; TRP_NONE: out of memory. */
static uint32_t host_place(struct trp_page_facts *f, const char *name)
{
    struct trp_page_host *h = NULL;
    HASH_FIND_STR(f->host_of, name, h);
    if (h)
        return h->place;
    h = calloc(1, sizeof *h);
    char *copy = strdup(name);
    if (h && copy && TRP_ARRAY_GROW(f->hosts, f->nhosts, f->hosts_capacity)) {
        h->name = copy;
        h->place = f->nhosts;
        HASH_ADD_KEYPTR(hh, f->host_of, h->name, strlen(h->name), h);
        if (h->hh.tbl) {
            f->hosts[f->nhosts++] = copy;
            return h->place;
        }
    }
    free(copy);
    free(h);
    return TRP_NONE;
}

static void free_hosts_of(struct trp_page_facts *f)
{
    struct trp_page_host *h, *next;
    HASH_ITER(hh, f->host_of, h, next) {
        HASH_DEL(f->host_of, h);
        free(h);
    }
}

static struct trp_page_start *now(const struct trp_page_facts *f)
{
    return &f->starts[f->nstarts - 1];
}

int64_t trp_page_note(struct trp_page_facts *f, int64_t ns)
{
    int64_t at = trp_ms(ns);
    if (at > now(f)->last)
        now(f)->last = at;
    if (at && !now(f)->at)
        now(f)->at = at;
    return at;
}

static int before(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    if (e->kind != TRP_LOG_START)
        trp_page_note(f, e->at);
    return 0;
}

/* ---- starts ---- */

/* What the start before has left without an end has none. */
static int on_log_start(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    (void)e;
    if (!TRP_ARRAY_GROW(f->starts, f->nstarts, f->starts_capacity))
        return TRP_ENOMEM;
    f->starts[f->nstarts++] = (struct trp_page_start){.first_stage = f->nstages};
    ids_free(&f->open);
    ids_free(&f->stage_of);
    ids_free(&f->executor_of);
    ids_free(&f->profile_of);
    ids_free(&f->job_of_gang);
    return 0;
}

/* ---- profiles ---- */

static uint32_t device_place(struct trp_page_facts *f, const char *name)
{
    for (uint32_t i = 0; i < f->ndevices; i++)
        if (strcmp(f->device[i], name) == 0)
            return i;
    if (f->ndevices == TRP_PROFILE_RESOURCES || strlen(name) >= TRP_RESOURCE_NAME_MAX)
        return TRP_NONE;
    strcpy(f->device[f->ndevices], name);
    return f->ndevices++;
}

static double amount(const json_t *requests, const char *name)
{
    return trp_log_amount(json_object_get(requests, name));
}

static void take_devices(struct trp_page_facts *f, json_t *requests, double *ret)
{
    const char *name;
    json_t *request;
    json_object_foreach(requests, name, request) {
        uint32_t at = trp_log_is_device(name) ? device_place(f, name) : TRP_NONE;
        if (at != TRP_NONE)
            ret[at] = trp_log_amount(request);
    }
}

/* A profile without an executor side has that of the default profile. */
static void inherit(const struct trp_page_facts *f, struct trp_page_profile *p)
{
    uint32_t of = trp_page_id_get(f->profile_of, 0);
    p->cores = of == TRP_NONE ? 1 : f->profiles[of].cores;
    p->memory_mib = of == TRP_NONE ? 0 : f->profiles[of].memory_mib;
}

static bool same_profile(const struct trp_page_profile *a,
                         const struct trp_page_profile *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->slots == b->slots &&
                a->cores == b->cores && a->memory_mib == b->memory_mib &&
                a->task_cpus == b->task_cpus;
    for (uint32_t i = 0; i < TRP_PROFILE_RESOURCES; i++)
        same &= a->devices[i] == b->devices[i] && a->per_task[i] == b->per_task[i];
    return same;
}

static int on_profile(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    json_t *executor = e->executor_requests, *task = e->task_requests;
    uint32_t place;
    struct trp_page_profile p = {.task_cpus = amount(task, "cpus"),
                                 .cores = amount(executor, "cores")};
    p.memory_mib = amount(executor, "memory") + amount(executor, "memoryOverhead") +
                   amount(executor, "offHeap") + amount(executor, "pyspark.memory");
    if (json_object_size(executor) == 0)
        inherit(f, &p);
    trp_log_profile_name(e, p.name, sizeof p.name);
    p.slots = e->slots          ? e->slots
              : p.task_cpus > 0 ? (uint32_t)(p.cores / p.task_cpus)
                                : 1;
    p.slots = p.slots ? p.slots : 1;
    take_devices(f, executor, p.devices);
    take_devices(f, task, p.per_task);
    /* A start tells anew what others had. */
    for (place = 0; place < f->nprofiles; place++)
        if (same_profile(&f->profiles[place], &p))
            return trp_page_id_set(&f->profile_of, e->profile, place);
    if (!TRP_ARRAY_GROW(f->profiles, f->nprofiles, f->profiles_capacity))
        return TRP_ENOMEM;
    f->profiles[f->nprofiles++] = p;
    return trp_page_id_set(&f->profile_of, e->profile, place);
}

static uint32_t profile_place(const struct trp_page_facts *f,
                              const struct trp_log_event *e)
{
    return trp_page_id_get(f->profile_of, e->profile);
}

/* ---- stages ---- */

/* Those of its first description: a stage's do not change. */
static bool take_parents(struct trp_page_stage *s, const json_t *ids)
{
    size_t n = json_array_size(ids);
    s->parents = n ? calloc(n, sizeof *s->parents) : NULL;
    for (size_t i = 0; s->parents && i < n; i++) {
        trp_stage_id id = {trp_log_id(json_array_get(ids, i))};
        if (id.n != TRP_NONE)
            s->parents[s->nparents++] = id;
    }
    return !n || s->parents;
}

/* Makes a stage known, in its start; TRP_NONE: out of memory. */
static uint32_t know_stage(struct trp_page_facts *f, const struct trp_log_event *e)
{
    uint32_t place = trp_page_stage_of(f, e);
    if (place == TRP_NONE) {
        char *copy = strdup(e->stage_name);
        if (!copy || !TRP_ARRAY_GROW(f->stages, f->nstages, f->stages_capacity) ||
            trp_page_id_set(&f->stage_of, e->stage, f->nstages) < 0) {
            free(copy);
            return TRP_NONE;
        }
        place = f->nstages++;
        f->stages[place] = (struct trp_page_stage){
            .start = f->nstarts - 1, .id = {e->stage}, .name = copy};
        if (!take_parents(&f->stages[place], e->parents))
            return TRP_NONE;
    }
    f->stages[place].profile = profile_place(f, e);
    f->stages[place].ntasks = e->ntasks;
    return place;
}

uint32_t trp_page_stage_of(const struct trp_page_facts *f,
                           const struct trp_log_event *e)
{
    return trp_page_id_get(f->stage_of, e->stage);
}

static int on_job_start(void *context, const struct trp_log_event *e)
{
    struct trp_log_event stage;
    for (size_t i = 0; i < json_array_size(e->stage_infos); i++) {
        trp_log_stage_of(json_array_get(e->stage_infos, i), &stage);
        if (know_stage(context, &stage) == TRP_NONE)
            return TRP_ENOMEM;
    }
    return 0;
}

/* It waits for that from now on. */
static int note_reason(struct trp_page_facts *f, uint32_t stage, enum trp_wait what,
                       int64_t at)
{
    struct trp_page_stage *s = &f->stages[stage];
    if (what == s->waits)
        return 0;
    if (!TRP_ARRAY_GROW(f->reasons, f->nreasons, f->reasons_capacity))
        return TRP_ENOMEM;
    f->reasons[f->nreasons++] = (struct trp_page_reason){stage, what, at};
    s->waits = what;
    return 0;
}

static int on_stage_submitted(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    uint32_t place = know_stage(f, e);
    if (place == TRP_NONE)
        return TRP_ENOMEM;
    if (!f->stages[place].submitted)
        f->stages[place].submitted = trp_ms(e->at);
    f->stages[place].ended = 0;
    return note_reason(f, place, TRP_WAIT_NOTHING, trp_ms(e->at));
}

static int on_stage_completed(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    uint32_t place = trp_page_stage_of(f, e);
    if (place != TRP_NONE)
        f->stages[place].ended = trp_ms(e->at);
    return 0;
}

static int on_task_skipped(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    uint32_t place = trp_page_stage_of(f, e);
    if (place != TRP_NONE)
        f->stages[place].skipped++;
    return 0;
}

/* ---- executors and jobs ---- */

/* NULL: out of memory, or it has no number. */
static struct trp_page_executor *executor(struct trp_page_facts *f,
                                          const struct trp_log_event *e)
{
    uint32_t place = trp_page_id_get(f->executor_of, e->executor);
    if (place != TRP_NONE)
        return &f->executors[place];
    if (e->executor >= TRP_LOG_NOBODY ||
        !TRP_ARRAY_GROW(f->executors, f->nexecutors, f->executors_capacity) ||
        trp_page_id_set(&f->executor_of, e->executor, f->nexecutors) < 0)
        return NULL;
    f->executors[f->nexecutors] = (struct trp_page_executor){.id = e->executor,
                                                             .start = f->nstarts - 1,
                                                             .host = TRP_NONE,
                                                             .profile = TRP_NONE,
                                                             .span = TRP_NONE};
    return &f->executors[f->nexecutors++];
}

/* From now on it serves that profile. */
static int begin_span(struct trp_page_facts *f, struct trp_page_executor *x,
                      uint32_t profile, int64_t at)
{
    if (x->span != TRP_NONE && !f->spans[x->span].to)
        f->spans[x->span].to = at;
    if (!TRP_ARRAY_GROW(f->spans, f->nspans, f->spans_capacity))
        return TRP_ENOMEM;
    x->span = f->nspans++;
    f->spans[x->span] = (struct trp_page_span){
        .executor = (uint32_t)(x - f->executors), .profile = profile, .from = at};
    return 0;
}

static int on_executor_added(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    struct trp_page_executor *x = executor(f, e);
    if (!x)
        return TRP_ENOMEM;
    x->came = trp_ms(e->at);
    x->asked = trp_ms(e->requested);
    if (!x->asked || x->asked > x->came)
        x->asked = x->came;
    x->cores = (double)e->cores;
    x->profile = profile_place(f, e);
    x->host = host_place(f, e->host ? e->host : "?");
    return x->host == TRP_NONE ? TRP_ENOMEM : begin_span(f, x, x->profile, x->came);
}

static int on_executor_relabelled(void *context, const struct trp_log_event *e)
{
    struct trp_page_executor *x = executor(context, e);
    return x ? begin_span(context, x, profile_place(context, e), trp_ms(e->at))
             : TRP_ENOMEM;
}

static int on_executor_removed(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    struct trp_page_executor *x = executor(f, e);
    if (!x)
        return TRP_ENOMEM;
    x->gone = trp_ms(e->at);
    if (x->span != TRP_NONE)
        f->spans[x->span].to = x->gone;
    free(x->why);
    x->why =
        e->removed && strcmp(e->removed, "released") != 0 ? strdup(e->removed) : NULL;
    return 0;
}

/* It is asked for, or not wanted any more. */
static int on_executor_wanted(void *context, const struct trp_log_event *e)
{
    struct trp_page_executor *x = executor(context, e);
    if (!x)
        return TRP_ENOMEM;
    if (e->kind == TRP_LOG_EXECUTOR_ASKED) {
        x->asked = trp_ms(e->at);
        x->profile = profile_place(context, e);
    } else {
        x->gone = trp_ms(e->at);
    }
    return 0;
}

static struct trp_page_job *job(struct trp_page_facts *f, const struct trp_log_event *e)
{
    for (uint32_t i = f->njobs; i-- > 0;)
        if (f->jobs[i].id == e->job && f->jobs[i].start == f->nstarts - 1)
            return &f->jobs[i];
    if (!TRP_ARRAY_GROW(f->jobs, f->njobs, f->jobs_capacity))
        return NULL;
    f->jobs[f->njobs] = (struct trp_page_job){
        .id = e->job, .start = f->nstarts - 1, .profile = TRP_NONE};
    return &f->jobs[f->njobs++];
}

/* It is queued, has begun, or has ended. */
static int on_slurm_job(void *context, const struct trp_log_event *e)
{
    struct trp_page_job *j = job(context, e);
    if (!j)
        return TRP_ENOMEM;
    if (e->kind == TRP_LOG_SLURM_ENDED) {
        j->end = j->end ? j->end : trp_page_note(context, e->ended);
        return 0;
    }
    j->asked = trp_page_note(context, e->submitted);
    if (e->kind == TRP_LOG_SLURM_QUEUED) {
        j->additional = true;
        j->profile = profile_place(context, e);
        j->queued = trp_ms(e->at);
    } else {
        j->additional = e->additional;
        j->at = trp_page_note(context, e->started);
        j->at = j->at ? j->at : trp_ms(e->at);
    }
    return 0;
}

/* An executor that is about to begin, or a gang's attempt. */
static int on_slurm_step(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    struct trp_page_job *j = job(f, e);
    if (!j)
        return TRP_ENOMEM;
    j->at = j->at ? j->at : trp_ms(e->at);
    if (e->task_id != TRP_NONE)
        return trp_page_id_set(&f->job_of_gang, e->task_id, e->job);
    struct trp_page_executor *x = executor(f, e);
    if (!x)
        return TRP_ENOMEM;
    x->job = e->job;
    x->began = trp_ms(e->at);
    return 0;
}

/* ---- what was waited for ---- */

static int on_stage_waits(void *context, const struct trp_log_event *e)
{
    uint32_t stage = trp_page_stage_of(context, e);
    int what = TRP_WAITS;
    while (what-- > 0 && !(e->reason && strcmp(e->reason, trp_wait_name(what)) == 0))
        ;
    return stage == TRP_NONE
               ? 0
               : note_reason(context, stage, what < 0 ? TRP_WAIT_NOTHING : what,
                             trp_ms(e->at));
}

/* ---- what was told ---- */

static int on_message(void *context, const struct trp_log_event *e)
{
    struct trp_page_facts *f = context;
    const char *level = e->message_level, *text = e->text;
    if (f->nmessages == TRP_PAGE_MESSAGES) {
        f->messages_left_out++;
        return 0;
    }
    struct trp_page_message m = {.at = trp_ms(e->at),
                                 .level = strdup(level ? level : ""),
                                 .text = strndup(text ? text : "", 2000)};
    if (m.level && m.text &&
        TRP_ARRAY_GROW(f->messages, f->nmessages, f->messages_capacity)) {
        f->messages[f->nmessages++] = m;
        return 0;
    }
    free(m.level);
    free(m.text);
    return TRP_ENOMEM;
}

/* ---- the whole ---- */

struct trp_log_reader trp_page_facts_reader(struct trp_page_facts *ret)
{
    static trp_log_take *const take[TRP_LOG_EVENTS] = {
        [TRP_LOG_START] = on_log_start,
        [TRP_LOG_APPLICATION] = trp_log_nothing,
        [TRP_LOG_APPLICATION_END] = trp_log_nothing,
        [TRP_LOG_PROFILE] = on_profile,
        [TRP_LOG_JOB] = on_job_start,
        [TRP_LOG_STAGE] = on_stage_submitted,
        [TRP_LOG_STAGE_END] = on_stage_completed,
        [TRP_LOG_EXECUTOR] = on_executor_added,
        [TRP_LOG_EXECUTOR_END] = on_executor_removed,
        [TRP_LOG_EXECUTOR_RELABELLED] = on_executor_relabelled,
        [TRP_LOG_EXECUTOR_ASKED] = on_executor_wanted,
        [TRP_LOG_EXECUTOR_DROPPED] = on_executor_wanted,
        [TRP_LOG_TASK] = trp_page_on_task_start,
        [TRP_LOG_TASK_END] = trp_page_on_task_end,
        [TRP_LOG_TASK_SKIPPED] = on_task_skipped,
        [TRP_LOG_SUMMARY_BEGIN] = trp_page_on_summary_begin,
        [TRP_LOG_SUMMARY] = trp_page_on_summary,
        [TRP_LOG_SLURM_JOB] = on_slurm_job,
        [TRP_LOG_SLURM_QUEUED] = on_slurm_job,
        [TRP_LOG_SLURM_ENDED] = on_slurm_job,
        [TRP_LOG_SLURM_STEP] = on_slurm_step,
        [TRP_LOG_STAGE_WAITS] = on_stage_waits,
        [TRP_LOG_MESSAGE] = on_message,
    };
    *ret = (struct trp_page_facts){0};
    return (struct trp_log_reader){take, before, ret};
}

int trp_page_facts_read(const char *file, struct trp_run_records *ret_records,
                        struct trp_page_facts *ret, trp_error *err)
{
    const struct trp_log_reader l = trp_page_facts_reader(ret);
    int rc = trp_run_records_read_also(file, &l, 1, ret_records, err);
    if (rc < 0)
        trp_page_facts_free(ret);
    return rc;
}

void trp_page_facts_free(struct trp_page_facts *f)
{
    ids_free(&f->open);
    ids_free(&f->stage_of);
    ids_free(&f->executor_of);
    ids_free(&f->profile_of);
    ids_free(&f->job_of_gang);
    free_hosts_of(f);
    for (uint32_t i = 0; i < f->nexecutors; i++)
        free(f->executors[i].why);
    for (uint32_t i = 0; i < f->nstages; i++) {
        free(f->stages[i].name);
        free(f->stages[i].parents);
    }
    for (uint32_t i = 0; i < f->nfailures; i++) {
        free(f->failures[i].reason);
        free(f->failures[i].kind);
    }
    for (uint32_t i = 0; i < f->nmessages; i++) {
        free(f->messages[i].level);
        free(f->messages[i].text);
    }
    for (uint32_t i = 0; i < f->nhosts; i++)
        free(f->hosts[i]);
    free(f->starts);
    free(f->tasks);
    free(f->sums);
    free(f->executors);
    free(f->spans);
    free(f->profiles);
    free(f->stages);
    free(f->failures);
    free(f->jobs);
    free(f->reasons);
    free(f->messages);
    free(f->hosts);
    *f = (struct trp_page_facts){0};
}

uint32_t trp_page_stage_place(const struct trp_page_facts *f, uint32_t start,
                              trp_stage_id id)
{
    uint32_t end =
        start + 1 < f->nstarts ? f->starts[start + 1].first_stage : f->nstages;
    for (uint32_t i = f->starts[start].first_stage; i < end; i++)
        if (f->stages[i].id.n == id.n)
            return i;
    return TRP_NONE;
}

int64_t trp_page_executor_end(const struct trp_page_facts *f,
                              const struct trp_page_executor *x)
{
    return x->gone ? x->gone : f->starts[x->start].last;
}

int64_t trp_page_executor_came(const struct trp_page_facts *f,
                               const struct trp_page_executor *x)
{
    return x->came ? x->came : trp_page_executor_end(f, x);
}

/* Of a log without ends of jobs: of a job's last executor. */
int64_t trp_page_job_end(const struct trp_page_facts *f, const struct trp_page_job *j)
{
    int64_t end = j->end, one;
    if (!j->additional)
        return f->starts[j->start].last;
    for (uint32_t i = 0; i < f->nexecutors && !j->end; i++) {
        const struct trp_page_executor *x = &f->executors[i];
        one = x->job == j->id && x->start == j->start ? trp_page_executor_end(f, x) : 0;
        end = one > end ? one : end;
    }
    return end ? end : f->starts[j->start].last;
}

int64_t trp_page_job_queued_to(const struct trp_page_facts *f,
                               const struct trp_page_job *j)
{
    return j->at ? j->at : trp_page_job_end(f, j);
}

int64_t trp_page_span_end(const struct trp_page_facts *f, const struct trp_page_span *s)
{
    return s->to ? s->to : trp_page_executor_end(f, &f->executors[s->executor]);
}

int64_t trp_page_task_end(const struct trp_page_facts *f, const struct trp_page_task *t)
{
    return t->ended ? t->ended : f->starts[f->stages[t->stage].start].last;
}
