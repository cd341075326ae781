/*
 * A wide node's partition: the blocks of all map outputs, merged, as batches.
 *
 * Where they lie came with the stage's attempt (wire/map_output.h). What cannot be read
 * is no failure of the task: it ends as a fetch failure, and the map task runs again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/flow.h"
#include "executor/scratch.h"
#include "wire/map_output.h"

/* What is open for one partition of one side. */
struct trp_wide_side {
    struct trp_shuffle_source *sources;
    struct trp_data_host *hosts;
    struct trp_shuffle_read read;
    struct trp_combining *combining;
    trp_shuffle_reader *reader;
};

static int fetch_failed(struct trp_flow *f, uint32_t dataset, uint32_t map,
                        uint64_t attempt, uint32_t location, const char *text)
{
    if (!f->failed) {
        f->ret->fetch.failed = true;
        f->ret->fetch.dataset = dataset;
        f->ret->fetch.map = map;
        f->ret->fetch.attempt = attempt;
        f->ret->fetch.location = location;
        f->ret->error[0] = '\0';
    }
    return trp_flow_fail(f, TRP_ENOENT, "%s", text);
}

/* All of that host that are gone or damaged are told at once. */
static void find_others(struct trp_flow *f, const struct trp_wide_side *s,
                        const struct trp_fetch_problem *problem)
{
    struct trp_function_result *ret = f->ret;
    const struct trp_shuffle_read *r = &s->read;
    if (f->failed)
        return;
    bool *bad = calloc(r->nsources ? r->nsources : 1, sizeof(*bad));
    ret->fetch.more =
        malloc((r->nsources ? r->nsources : 1) * sizeof(*ret->fetch.more));
    if (bad && ret->fetch.more)
        trp_shuffle_find_others(r, problem, bad);
    for (uint32_t i = 0; bad && ret->fetch.more && i < r->nsources; i++)
        if (bad[i])
            ret->fetch.more[ret->fetch.nmore++] =
                (struct trp_map_output){r->sources[i].map, r->sources[i].attempt};
    free(bad);
}

static int read_failed(struct trp_flow *f, const struct trp_wide_side *s,
                       const struct trp_fetch_problem *problem, const trp_error *err)
{
    if (problem->is) {
        find_others(f, s, problem);
        return fetch_failed(f, problem->shuffle, problem->map, problem->attempt,
                            problem->host < s->read.nhosts
                                ? s->hosts[problem->host].location
                                : TRP_NONE,
                            err->text);
    }
    return trp_flow_data_failed(f, s->combining, err);
}

/* Whether a location's files can be opened: all hosts see them, or they are on this one
 * and not in another folder of the same name (another job's /tmp). */
static bool is_here(const struct trp_task_info *info, const struct trp_location *l)
{
    struct stat st;
    if (l->number == TRP_NONE || (l->ino == 0 && info->opens))
        return true;
    return info->opens && strcmp(l->host, info->host) == 0 &&
           stat(l->folder, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino;
}

static int fill_sources(struct trp_flow *f, struct trp_wide_side *s,
                        const struct trp_input *from)
{
    const struct trp_stage_inputs *in = f->task.info->inputs;
    s->sources = calloc(from->nmaps ? from->nmaps : 1, sizeof(*s->sources));
    s->hosts = calloc(in->nlocations ? in->nlocations : 1, sizeof(*s->hosts));
    if (!s->sources || !s->hosts)
        return trp_flow_fail(f, TRP_ENOMEM, "out of memory for a shuffle");
    for (uint32_t i = 0; i < in->nlocations; i++)
        s->hosts[i] = (struct trp_data_host){
            .name = in->locations[i].host,
            .here = is_here(f->task.info, &in->locations[i]),
            .folder = *in->locations[i].folder ? in->locations[i].folder : NULL,
            .location = in->locations[i].number};
    for (uint32_t i = 0; i < from->nmaps; i++) {
        if (from->maps[i].attempt == TRP_INPUT_MISSING)
            return fetch_failed(f, from->dataset, i, TRP_INPUT_MISSING, TRP_NONE,
                                "a map output is missing");
        s->sources[i] = (struct trp_shuffle_source){
            .map = i, .attempt = from->maps[i].attempt, .host = from->maps[i].location};
    }
    return 0;
}

static int side_open(struct trp_flow *f, struct trp_wide_side *s,
                     const struct trp_wide_plan *p, uint32_t k)
{
    const struct trp_task_info *info = f->task.info;
    const struct trp_input *from = trp_stage_inputs_of(info->inputs, p->dataset[k]);
    struct trp_fetch_problem problem = {0};
    trp_error err;
    if (!from || !info->map_outputs)
        return trp_flow_fail(f, TRP_EPROTO, "nothing is known of dataset %u",
                             p->dataset[k]);
    if (fill_sources(f, s, from) < 0)
        return -1;
    if (trp_folder_make(info->map_outputs, &err) < 0) /* for spills */
        return trp_flow_fail(f, err.code, "%s", err.text);
    s->combining = &f->combining[1 + k];
    s->read = (struct trp_shuffle_read){
        .folder = info->map_outputs,
        .shuffle = p->dataset[k],
        .partition = f->partition,
        .partitions = p->partitions,
        .sources = s->sources,
        .nsources = from->nmaps,
        .hosts = s->hosts,
        .nhosts = info->inputs->nlocations,
        .memory = trp_flow_memory(f) / p->nsides,
        .order = trp_wide_order(p, s->combining),
        .client = info->client,
        .killed = info->killed,
    };
    s->combining->task = &f->task;
    if (trp_shuffle_reader_open(&s->read, &s->reader, &problem, &err) < 0)
        return read_failed(f, s, &problem, &err);
    return 0;
}

static void side_close(struct trp_flow *f, struct trp_wide_side *s)
{
    struct trp_shuffle_reader_counts c;
    if (s->reader) {
        trp_shuffle_reader_counts(s->reader, &c);
        f->ret->has_data = true;
        f->ret->data.read_records += c.records;
        f->ret->data.local_blocks += c.local_blocks;
        f->ret->data.remote_blocks += c.remote_blocks;
        f->ret->data.local_bytes += c.local_bytes;
        f->ret->data.remote_bytes += c.remote_bytes;
        f->ret->data.wait_ns += (uint64_t)c.wait_ns;
        f->ret->data.spilled_bytes += c.spilled_bytes;
        trp_shuffle_reader_free(s->reader);
    }
    free(s->sources);
    free(s->hosts);
}

/* 1: a record; 0: no more; -1: told. */
int trp_flow_side_next(struct trp_flow *f, struct trp_wide_side *s,
                       struct trp_shuffle_record *ret)
{
    struct trp_fetch_problem problem = {0};
    trp_error err;
    int rc = trp_shuffle_next(s->reader, ret, &problem, &err);
    trp_flow_read(f, rc > 0);
    return rc < 0 ? read_failed(f, s, &problem, &err) : rc;
}

/* A record as it was before shuffle_out.c packed it. False: it is none. */
static bool unpack(const struct trp_wide_plan *p, struct trp_shuffle_record *r)
{
    struct trp_view v = trp_view_of(r->key, r->nk);
    bool keyed = trp_get_u8(&v);
    if (p->kind == TRP_WIDE_DISTINCT) {
        r->key = trp_get_bytes(&v, &r->nk);
        r->value = v.at;
        r->nv = (size_t)(v.end - v.at);
    } else {
        r->key = v.at;
        r->nk = (size_t)(v.end - v.at);
    }
    if (!keyed)
        r->key = NULL;
    return !v.bad;
}

/* Records as they come: each is one of the node's. */
static int run_plain(struct trp_flow *f, const struct trp_wide_plan *p,
                     struct trp_wide_side *s)
{
    bool packed = p->kind == TRP_WIDE_DISTINCT || p->kind == TRP_WIDE_REPARTITION;
    struct trp_shuffle_record r;
    int rc;
    while ((rc = trp_flow_side_next(f, s, &r)) > 0) {
        if (packed && !unpack(p, &r))
            return trp_flow_fail(f, TRP_EPROTO, "a record that cannot be read");
        if (trp_flow_source_emit(f, r.key, r.nk, r.value, r.nv) < 0)
            return -1;
    }
    return rc < 0 ? rc : trp_flow_source_end(f);
}

static int run_kind(struct trp_flow *f, const struct trp_wide_plan *p,
                    struct trp_wide_side *sides)
{
    switch (p->kind) {
    case TRP_WIDE_GROUP:
        return trp_flow_groups(f, p, &sides[0], sides[0].combining);
    case TRP_WIDE_JOIN:
    case TRP_WIDE_COGROUP:
        return trp_flow_pairs(f, p, &sides[0], &sides[1]);
    default:
        return run_plain(f, p, &sides[0]);
    }
}

int trp_flow_wide(struct trp_flow *f, const struct trp_chain_node *n)
{
    struct trp_wide_side sides[TRP_SIDES_MAX] = {0};
    const struct trp_wide_plan *p = &n->plan;
    int rc = 0;
    f->made_here = true;
    for (uint32_t k = 0; rc == 0 && k < p->nsides; k++)
        rc = side_open(f, &sides[k], p, k);
    if (rc == 0)
        rc = run_kind(f, p, sides);
    for (uint32_t k = 0; k < p->nsides; k++)
        side_close(f, &sides[k]);
    f->made_here = false;
    return rc;
}
