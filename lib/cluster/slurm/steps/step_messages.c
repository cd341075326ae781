/*
 * What an executor's step says, and what is made of it: which devices it was given,
 * how it ended.
 *
 * Devices are told in the numbers that the step sees in the site's variable
 * (CUDA_VISIBLE_DEVICES): where Slurm holds a step to its devices they count from 0
 * again, and those are the numbers with which a task can say which it means. What has
 * no variable is counted from 0, or has the addresses that its discovery script has
 * said and no other executor on that host has.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/slurm/jobs/additional.h"
#include "cluster/slurm/jobs/node_watch.h"
#include "cluster/slurm/steps/executor_state.h"
#include "cluster/slurm/steps/step.h"
#include "executor/srun_refusal.h"
#include "os/log_tail.h"

void trp_slurm_executor_free_devices(struct trp_slurm_executor *e)
{
    for (uint32_t i = 0; i < e->ndevices; i++) {
        for (uint32_t k = 0; e->addresses[i] && k < e->devices[i].naddresses; k++)
            free(e->addresses[i][k]);
        free(e->addresses[i]);
    }
    e->ndevices = 0;
}

/* The word number `index` of "0,1,2", malloc'ed; its number when there is none. */
static char *address(const char *list, uint32_t index)
{
    char *text = NULL;
    const char *at = list;
    for (uint32_t i = 0; i < index && at; i++) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    if (at && *at)
        return strndup(at, strcspn(at, ","));
    return asprintf(&text, "%u", index) < 0 ? NULL : text;
}

/* Those of the wants before it that are told by the same variable come first in it. */
static uint32_t addresses_before(const struct trp_slurm_executor *e, uint32_t want,
                                 const char *variable)
{
    uint32_t n = 0;
    for (uint32_t i = 0; variable && i < want; i++) {
        const struct trp_slurm_want *w = &e->request.footprint.wants[i];
        const char *its = trp_site_variable(e->slurm->site, w->resource);
        if (its && w->kind == TRP_SLURM_GRES && strcmp(its, variable) == 0)
            n += w->count;
    }
    return n;
}

static bool has_address(const struct trp_slurm_executor *e, const char *resource,
                        const char *text, size_t n)
{
    for (uint32_t i = 0; i < e->ndevices; i++) {
        const struct trp_resource_addresses *d = &e->devices[i];
        if (strcmp(d->name, resource) != 0)
            continue;
        for (uint32_t k = 0; k < d->naddresses; k++)
            if (strncmp(d->addresses[k], text, n) == 0 && !d->addresses[k][n])
                return true;
    }
    return false;
}

static const char *host_of(const struct trp_slurm_executor *e)
{
    return trp_slurm_node_of(e->slurm, &e->request)->name;
}

/* Another executor on the host has it. */
static bool is_taken(const struct trp_slurm_executor *e, const char *resource,
                     const char *text, size_t n)
{
    struct trp_slurm_executor *o, *next;
    HASH_ITER(hh, e->slurm->executors, o, next) {
        if (o != e && trp_slurm_executor_has_srun(o) &&
            has_address(o, resource, text, n) && strcmp(host_of(o), host_of(e)) == 0)
            return true;
    }
    return false;
}

/* The first free ones of a script's "0,1,2", malloc'ed; how many. */
static uint32_t take_free(const struct trp_slurm_executor *e,
                          const struct trp_slurm_want *w, const char *list, char **v)
{
    uint32_t n = 0;
    while (*list && n < w->count) {
        size_t size = strcspn(list, ",");
        if (!is_taken(e, w->resource, list, size) && (v[n] = strndup(list, size)))
            n++;
        list += size + (list[size] == ',');
    }
    return n;
}

static void describe_lack(struct trp_slurm_executor *e, const struct trp_slurm_want *w,
                          uint32_t free_ones)
{
    snprintf(e->heard.refusal, sizeof e->heard.refusal,
             "of the addresses that the discovery script of %s says there, others have "
             "all but %u, it needs %u",
             w->resource, free_ones, w->count);
    trp_slurm_executor_free_devices(e);
}

/* What comes of it: ON_GO, ON_LACK, or, when out of memory, ON_KILL. */
static enum trp_slurm_event set_devices(struct trp_slurm_executor *e,
                                        const struct trp_slurm_line *line)
{
    const struct trp_slurm_footprint *footprint = &e->request.footprint;
    for (uint32_t i = 0; i < footprint->nwants + footprint->nscripted; i++) {
        const struct trp_slurm_want *w = &footprint->wants[i];
        char key[TRP_RESOURCE_NAME_MAX + sizeof TRP_SLURM_DISCOVERED];
        snprintf(key, sizeof key, TRP_SLURM_DISCOVERED "%s", w->resource);
        const char *said = trp_slurm_line_text(line, key);
        const char *variable = w->kind == TRP_SLURM_GRES
                                   ? trp_site_variable(e->slurm->site, w->resource)
                                   : NULL;
        const char *list = variable ? trp_slurm_line_text(line, variable) : "";
        uint32_t first = *list ? addresses_before(e, i, variable) : 0;
        char **v = calloc(w->count + 1, sizeof *v);
        uint32_t n = v && *said ? take_free(e, w, said, v) : 0;
        while (v && !*said && n < w->count && (v[n] = address(list, first + n)))
            n++;
        e->addresses[i] = v;
        e->devices[i] = (struct trp_resource_addresses){
            .name = w->resource, .addresses = (const char *const *)v, .naddresses = n};
        e->ndevices = i + 1;
        if (n == w->count)
            continue;
        if (!v || !*said)
            return TRP_SLURM_ON_KILL;
        describe_lack(e, w, n);
        return TRP_SLURM_ON_LACK;
    }
    return TRP_SLURM_ON_GO;
}

static void tell_step(const struct trp_slurm_executor *e)
{
    const struct trp_slurm *s = e->slurm;
    char name[TRP_SLURM_STEP_NAME];
    trp_slurm_step_name(e, name);
    struct trp_cluster_step step = {.job = trp_slurm_part_of(s, &e->request)->job,
                                    .name = name,
                                    .executor = {e->id}};
    if (s->handler.batch.step)
        s->handler.batch.step(s->handler.context, &step);
}

void trp_slurm_executor_note_step(struct trp_slurm_executor *e,
                                  const struct trp_slurm_line *line)
{
    e->heard.has_step = true;
    e->heard.step = (uint32_t)trp_slurm_line_number(line, "step");
}

void trp_slurm_executor_take_start(struct trp_slurm_executor *e,
                                   const struct trp_slurm_line *line)
{
    trp_slurm_executor_note_step(e, line);
    enum trp_slurm_event next = set_devices(e, line);
    if (next == TRP_SLURM_ON_GO && !trp_slurm_executor_say(e, "go\n"))
        next = TRP_SLURM_ON_KILL;
    trp_slurm_executor_happen(e, next, line);
}

void trp_slurm_executor_tell_granted(struct trp_slurm_executor *e,
                                     const struct trp_slurm_line *line)
{
    struct trp_slurm *s = e->slurm;
    const struct trp_slurm_node *n = trp_slurm_node_of(s, &e->request);
    (void)line;
    trp_slurm_executor_started(e);
    trp_slurm_budget_accepted(&s->budget);
    struct trp_granted granted = {.host = n->name,
                                  .rack = *n->rack ? n->rack : NULL,
                                  .resources = e->devices,
                                  .nresources = e->ndevices};
    struct trp_slurm_job *j = trp_slurm_additional_of(s, n->part);
    if (j && !j->first)
        j->first = (int64_t)time(NULL);
    if (j && j->ends)
        s->handler.batch.executor_ends(s->handler.context, (trp_executor_id){e->id},
                                       j->ends);
    s->handler.granted(s->handler.context, (trp_executor_id){e->id}, &granted);
    tell_step(e);
}

void trp_slurm_executor_tell_ending(struct trp_slurm_executor *e,
                                    const struct trp_slurm_line *line)
{
    struct trp_slurm *s = e->slurm;
    struct trp_slurm_job *j = trp_slurm_job_of(s, &e->request);
    (void)line;
    if (!j)
        return;
    if (s->handler.batch.ending)
        s->handler.batch.ending(s->handler.context, (trp_executor_id){e->id});
    trp_slurm_ledger_close_part(s->ledger, j->part); /* Slurm is about to end it */
    trp_slurm_additional_doubt(s, j);
}

void trp_slurm_executor_note_refusal(struct trp_slurm_executor *e,
                                     const struct trp_slurm_line *line)
{
    snprintf(e->heard.refusal, sizeof e->heard.refusal, "%s",
             trp_slurm_line_text(line, "text"));
}

void trp_slurm_executor_note_ending(struct trp_slurm_executor *e,
                                    const struct trp_slurm_line *line)
{
    (void)line;
    e->heard.ending = true;
}

void trp_slurm_executor_note_ended(struct trp_slurm_executor *e,
                                   const struct trp_slurm_line *line)
{
    struct trp_slurm_heard *h = &e->heard;
    h->ended = true;
    h->status = (int)trp_slurm_line_number(line, "status");
    h->signal = (int)trp_slurm_line_number(line, "signal");
    h->kills = trp_slurm_line_number(line, "kills");
    h->peak_mib = trp_slurm_line_number(line, "peak");
    if (!h->signal && h->status > 128 && h->status < 128 + NSIG)
        h->signal = h->status - 128;
}

void trp_slurm_executor_hear(struct trp_slurm_executor *e,
                             const struct trp_slurm_line *line)
{
    static const struct {
        const char *word;
        enum trp_slurm_event event;
    } messages[] = {
        {"started", TRP_SLURM_ON_STARTED},
        {"failed",  TRP_SLURM_ON_FAILED },
        {"leaving", TRP_SLURM_ON_LEAVING},
        {"ending",  TRP_SLURM_ON_ENDING },
        {"ended",   TRP_SLURM_ON_ENDED  },
    };
    trp_slurm_watch_trust(e->slurm, e->request.spots[0].node);
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        if (strcmp(line->word, messages[i].word) == 0)
            trp_slurm_executor_happen(e, messages[i].event, line);
    }
}

/* ---- its end ---- */

void trp_slurm_executor_complaint(const struct trp_slurm_executor *e, char *text,
                                  size_t size)
{
    if (*e->heard.refusal)
        snprintf(text, size, "%s", e->heard.refusal);
    else
        trp_srun_complaint(e->heard.complained.text, text, size);
}

static void describe_memory(const struct trp_slurm_executor *e, char *text, size_t size)
{
    /* Where the peak is not known the limit stands alone, in its own unit. */
    struct trp_memory_pair m = trp_memory_pair(
        e->memory_mib, e->heard.peak_mib ? e->heard.peak_mib : e->memory_mib);
    snprintf(text, size, "was killed for memory (profile %s, limit %s%s%s)", e->profile,
             m.a, e->heard.peak_mib ? ", peak " : "", e->heard.peak_mib ? m.b : "");
}

void trp_slurm_executor_describe(const struct trp_slurm_executor *e, char *cause,
                                 size_t size)
{
    const struct trp_slurm_node *n = trp_slurm_node_of(e->slurm, &e->request);
    char how[700], complaint[512], last[160] = "", path[4300];
    trp_slurm_executor_complaint(e, complaint, sizeof complaint);
    if (!trp_slurm_executor_is_there(e)) {
        snprintf(cause, size, "of profile %s was not started on %s: %s", e->profile,
                 n->name, *complaint ? complaint : "its srun ended before it");
        return;
    }
    const char *name = e->heard.signal ? sigabbrev_np(e->heard.signal) : NULL;
    snprintf(path, sizeof path, "%s/state/executors/%u.log", e->slurm->command.run_dir,
             e->id);
    trp_log_last_line(path, last, sizeof last);
    if (trp_slurm_executor_out_of_memory(e))
        describe_memory(e, how, sizeof how);
    else if (!e->heard.ended)
        snprintf(how, sizeof how, "is gone: %s",
                 *complaint ? complaint : "its srun ended without a word");
    else if (name)
        snprintf(how, sizeof how, "was killed by SIG%s (%d)", name, e->heard.signal);
    else
        snprintf(how, sizeof how, "ended with exit status %d", e->heard.status);
    snprintf(cause, size, "on %s %s%s%s", n->name, how, *last ? ": " : "", last);
}
