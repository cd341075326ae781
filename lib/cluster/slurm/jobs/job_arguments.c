/*
 * What an additional job is asked for with: the executors' shape by the site file, and
 * where the site says nothing the place of the driver's own job.
 *
 * Executors of one job are tasks, with memory by the CPU and devices by the task: so
 * Slurm may spread them over any nodes, and on each of them ledger and grant agree.
 *
 * The ranks of a gang are tasks, too. With devices it is one step with as many of them
 * on each node: so it is asked for *even*, so many ranks with their devices on each of
 * so many nodes, on the fewest that the cluster has for it. What Slurm does not have
 * now is asked for with half as many a node, and so on down to one, before it is
 * queued. Where nobody knows what nodes there are Slurm spreads them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/executor_entry.h"
#include "cluster/slurm/jobs/additional.h"
#include "conf/site_request.h"
#include "executor/executor.h"
#include "os/strings.h"

#define MINUTE_NS INT64_C(60000000000)

static const char *or_else(const char *own, const char *inherited)
{
    return own && *own ? own : inherited;
}

static const char *partition_of(const struct trp_slurm *s,
                                const struct trp_site_request *r)
{
    return or_else(r->partition, s->inventory.place.partition);
}

int trp_slurm_request_place(const struct trp_slurm *s,
                            const struct trp_resource_profile *p, uint32_t ranks,
                            char partition[TRP_SLURM_NAME], trp_error *err)
{
    struct trp_site_request r;
    int code = trp_site_request_make(s->site, p, ranks, &r, err);
    if (code == 0)
        snprintf(partition, TRP_SLURM_NAME, "%s", partition_of(s, &r));
    return code;
}

void trp_slurm_request_rule(const struct trp_slurm *s,
                            const struct trp_resource_profile *p, uint32_t ranks,
                            char *text, size_t size)
{
    struct trp_site_request r;
    *text = '\0';
    if (trp_site_request_make(s->site, p, ranks, &r, NULL) < 0 || !r.route)
        return;
    const struct {
        const char *what, *name;
    } named[] = {
        {"account",     r.account    },
        {"QOS",         r.qos        },
        {"reservation", r.reservation}
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof named / sizeof *named && n < size; i++)
        if (named[i].name)
            n += (size_t)snprintf(text + n, size - n, ", %s %s", named[i].what,
                                  named[i].name);
    if (n < size)
        snprintf(text + n, size - n, ", by %s:%u:%u", s->site->file, r.route->mark.line,
                 r.route->mark.column);
}

/* Slurm counts them by the job. */
static int64_t licences_of(const struct trp_site_request *r, uint32_t licence,
                           uint32_t count)
{
    return r->licenses[licence].count * count;
}

/* Ranks a node, `most` at most; 0: as Slurm likes. */
static uint32_t even_of(const struct trp_slurm *s,
                        const struct trp_slurm_kind_jobs *want,
                        const struct trp_site_request *r, uint32_t most)
{
    struct trp_slurm_footprint footprint;
    if (!r->ranks || !r->ngres || r->one_node)
        return r->one_node ? r->ranks : 0;
    if (trp_slurm_footprint_rank(&want->profile, s->site, &footprint, NULL) < 0)
        return 0;
    return trp_slurm_offers_even(&s->additional.offers, partition_of(s, r), &footprint,
                                 r->ranks, most);
}

bool trp_slurm_request_spread(const struct trp_slurm *s,
                              struct trp_slurm_kind_jobs *want)
{
    struct trp_site_request r;
    if (trp_site_request_make(s->site, &want->profile, want->ranks, &r, NULL) < 0 ||
        r.one_node)
        return false;
    uint32_t now = even_of(s, want, &r, want->most ? want->most : r.ranks);
    want->most = even_of(s, want, &r, now / 2);
    return want->most > 0;
}

/* "gres:gpu:2,gres:nic:1" of each task, or of each node with `even` of them. */
static void put_devices(FILE *f, const struct trp_slurm *s,
                        const struct trp_slurm_kind_jobs *want,
                        const struct trp_site_request *r, uint32_t even)
{
    char text[TRP_SITE_REQUEST_LIST + 256] = "";
    struct trp_site_request node = *r;
    size_t n = 0;
    if (even)
        trp_site_request_make(s->site, &want->profile, even, &node, NULL);
    for (uint32_t i = 0; i < r->ngres && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%sgres:%s:%lld", n ? "," : "",
                              r->gres[i].name,
                              (long long)(even ? node.gres[i].count : r->gres[i].each));
    trp_slurm_line_put(f, even ? "node_gres" : "gres", text);
}

static void put_licences(FILE *f, const struct trp_site_request *r, uint32_t count)
{
    char text[TRP_SITE_REQUEST_LIST + 256] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < r->nlicenses && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:%lld", n ? "," : "",
                              r->licenses[i].name, (long long)licences_of(r, i, count));
    trp_slurm_line_put(f, "licences", text);
}

/* The site's time, what is left of the driver's job, what the partition allows: the
 * least. */
static int64_t minutes_of(const struct trp_slurm *s, const char *partition)
{
    const struct trp_slurm_partition *p =
        trp_slurm_offers_partition(&s->additional.offers, partition);
    int64_t left = s->inventory.ends - (int64_t)time(NULL), minutes = 0;
    if (s->inventory.ends > 0 && left < INT64_C(60) * 60 * 24 * 3650)
        minutes = left > 60 ? (left + 59) / 60 : 1; /* not before the run ends */
    int64_t site =
        s->additional.time_ns ? (s->additional.time_ns - 1) / MINUTE_NS + 1 : 0;
    if (site && (!minutes || site < minutes))
        minutes = site;
    if (p && p->minutes && (!minutes || p->minutes < minutes))
        minutes = p->minutes;
    return minutes;
}

static void put_place(FILE *f, const struct trp_slurm *s,
                      const struct trp_site_request *r, const char *partition)
{
    const struct trp_slurm_place *own = &s->inventory.place;
    trp_slurm_line_put(f, "constraint", r->constraint);
    trp_slurm_line_put(f, "partition", partition);
    trp_slurm_line_put(f, "account", or_else(r->account, own->account));
    trp_slurm_line_put(f, "qos", or_else(r->qos, own->qos));
    /* A reservation is of certain nodes: it goes with the partition. */
    bool moves = r->partition && *r->partition;
    trp_slurm_line_put(f, "reservation",
                       or_else(r->reservation, moves ? "" : own->reservation));
    trp_slurm_line_put_number(f, "time", minutes_of(s, partition));
    trp_slurm_line_put_number(f, "exclusive", r->exclusive);
}

/* Hosts that do not answer, as Slurm does not know yet; and `not_on` (may be NULL). */
static bool put_spared(FILE *f, const struct trp_slurm *s, const char *not_on)
{
    char *list = NULL;
    size_t size = 0;
    FILE *names = open_memstream(&list, &size);
    if (names && not_on)
        fputs(not_on, names);
    for (uint32_t i = 0; names && i < s->inventory.nnodes; i++) {
        const char *name = s->inventory.nodes[i].name;
        enum trp_slurm_standing is =
            name ? trp_slurm_ledger_standing(s->ledger, i) : TRP_SLURM_GONE;
        if (is == TRP_SLURM_DOUBTFUL || is == TRP_SLURM_SILENT)
            fprintf(names, "%s%s", ftell(names) > 0 ? "," : "", name);
    }
    bool some = names && fclose(names) == 0 && size > 0;
    if (some)
        trp_slurm_line_put(f, "exclude", list);
    free(list);
    return some;
}

static int put_guard(FILE *f, const struct trp_slurm *s, const struct trp_slurm_job *j,
                     trp_error *err)
{
    struct trp_executor_shape shape = {.id = j->guard, .cores = 1, .slots = 1};
    char *script = NULL;
    size_t size = 0;
    char *entry = trp_executor_entry(&s->command, s->driver_address, &shape, err);
    if (!entry)
        return err->code;
    FILE *text = open_memstream(&script, &size);
    if (text) {
        fputs("#!/bin/sh\nexec ", text);
        trp_shell_word_print(s->rank_program, text);
        fputs(" guard\n", text);
    }
    if (!text || fclose(text) != 0) {
        free(script);
        free(entry);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    trp_slurm_line_put(f, "script", script);
    trp_slurm_line_put(f, "entry", entry);
    free(script);
    free(entry);
    return 0;
}

/* With `even` the last node has room for as many ranks as the others, even where fewer
 * are left for it: so any node suits as the last. */
static void put_tasks(FILE *f, const struct trp_site_request *r, uint32_t count,
                      uint32_t even)
{
    uint32_t nodes = even ? (r->ranks - 1) / even + 1 : 0;
    trp_slurm_line_put_number(f, "tasks",
                              even       ? (int64_t)nodes * even
                              : r->ranks ? r->ranks
                                         : count);
    trp_slurm_line_put_number(f, "nodes", nodes);
    trp_slurm_line_put_number(f, "node_tasks", even);
}

static void put_request(FILE *f, const struct trp_slurm *s,
                        const struct trp_slurm_kind_jobs *want,
                        const struct trp_site_request *r, uint32_t count)
{
    int64_t threads =
        trp_slurm_offers_threads(&s->additional.offers, partition_of(s, r));
    uint32_t even = even_of(s, want, r, want->most ? want->most : r->ranks);
    int64_t cpus = r->cpus > 0 ? r->cpus : 1;
    int64_t parts = cpus; /* of the memory: a gang's srun asks by the CPU it wants */
    cpus = (cpus + threads - 1) / threads * threads;
    if (!r->ranks)
        parts = cpus;
    put_tasks(f, r, count, even);
    trp_slurm_line_put_number(f, "cpus", cpus);
    trp_slurm_line_put_number(f, "memory", (r->memory_mib + parts - 1) / parts);
    put_devices(f, s, want, r, even);
    put_licences(f, r, r->ranks ? 1 : count);
}

char *trp_slurm_request_call(const struct trp_slurm *s, const char *verb,
                             const struct trp_slurm_kind_jobs *want, uint32_t count,
                             const struct trp_slurm_job *queued, bool *ret_spares,
                             trp_error *err)
{
    struct trp_site_request r;
    char text[512], *call = NULL;
    size_t size;
    int code = trp_site_request_make(s->site, &want->profile, want->ranks, &r, err);
    FILE *f = code < 0 ? NULL : open_memstream(&call, &size);
    if (!f)
        return NULL;
    fputs(verb, f);
    snprintf(text, sizeof text, "troupe %s", s->command.run_name);
    trp_slurm_line_put(f, "name", text);
    snprintf(text, sizeof text, "troupe %s of job %u", s->command.run_name,
             s->inventory.parts[0].leader);
    trp_slurm_line_put(f, "comment", text);
    trp_slurm_line_put(f, "folder", s->command.run_dir);
    put_request(f, s, want, &r, count);
    put_place(f, s, &r, partition_of(s, &r));
    bool spares = put_spared(f, s, want->not_on);
    if (ret_spares)
        *ret_spares = spares;
    if (queued)
        code = put_guard(f, s, queued, err);
    if (fclose(f) != 0 || code < 0) {
        free(call);
        call = NULL;
    }
    return call;
}
