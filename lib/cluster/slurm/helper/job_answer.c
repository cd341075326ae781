/*
 * Answers are written again as they came. Racks come after the nodes, in a second call:
 * a cluster without a topology plugin has none, and is flat.
 */
#include "cluster/slurm/helper/job_answer.h"
#include "cluster/slurm/helper/inventory_lines.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT_MS = 60000, LOOK_MS = 15000 };

struct keeping {
    FILE *to;
    char partition[TRP_SLURM_NAME]; /* of the job */
};

static int copy_line(void *context, const struct trp_slurm_line *line, trp_error *err)
{
    struct keeping *k = context;
    FILE *to = k->to;
    (void)err;
    if (strcmp(line->word, "allocation") == 0 && !*k->partition)
        snprintf(k->partition, sizeof k->partition, "%s",
                 trp_slurm_line_text(line, "partition"));
    trp_slurm_line_begin(to, 0, line->word);
    for (uint32_t i = 0; i < line->nfields; i++)
        trp_slurm_line_put(to, line->fields[i].key, line->fields[i].value);
    trp_slurm_line_end(to);
    return 0;
}

int trp_slurm_answer_ask(trp_slurm_helper *h, uint32_t job, bool gangs, char **ret_text,
                         trp_error *err)
{
    struct keeping k = {0};
    char call[TRP_SLURM_NAME + 32], *text = NULL;
    size_t size;
    FILE *to = k.to = open_memstream(&text, &size);
    if (!to)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the job's nodes");
    snprintf(call, sizeof call, "job job=%u", job);
    int code = trp_slurm_helper_ask(h, call, copy_line, &k, LIMIT_MS, err);
    snprintf(call, sizeof call, "racks partition=%s", k.partition);
    if (code == 0)
        code = trp_slurm_helper_ask(h, call, copy_line, &k, LIMIT_MS, err);
    if (code == 0 && gangs)
        code = trp_slurm_helper_ask(h, "mpi", copy_line, &k, LIMIT_MS, err);
    trp_slurm_line_begin(to, 0, "done");
    trp_slurm_line_put_number(to, "rpcs", (int64_t)trp_slurm_helper_rpcs(h));
    trp_slurm_line_end(to);
    if (fclose(to) != 0 && code == 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory for the job's nodes");
    if (code < 0)
        free(text);
    else
        *ret_text = text;
    return code;
}

int trp_slurm_answer_ask_offers(trp_slurm_helper *h, char **ret_text, trp_error *err)
{
    struct keeping k = {0};
    char *text = NULL;
    size_t size;
    k.to = open_memstream(&text, &size);
    if (!k.to)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster's nodes");
    int code = trp_slurm_helper_ask(h, "nodes", copy_line, &k, LOOK_MS, err);
    if (fclose(k.to) != 0 && code == 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory for the cluster's nodes");
    if (code < 0)
        free(text);
    else
        *ret_text = text;
    return code;
}

/* Each line to `take`. */
static int read_lines(const char *text, trp_slurm_answer take, void *context,
                      trp_error *err)
{
    char *copy = strdup(text), *rest = copy;
    int code = copy ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    for (char *line; code == 0 && (line = strsep(&rest, "\n"));) {
        struct trp_slurm_line l;
        if (!*line)
            continue;
        code = trp_slurm_line_parse(line, &l, err);
        if (code == 0)
            code = take(context, &l, err);
    }
    free(copy);
    return code;
}

struct reading {
    struct trp_slurm_inventory *inventory;
    uint64_t *rpcs;
};

static int read_one(void *context, const struct trp_slurm_line *l, trp_error *err)
{
    struct reading *r = context;
    if (strcmp(l->word, "done") == 0)
        *r->rpcs = (uint64_t)trp_slurm_line_number(l, "rpcs");
    else
        return trp_slurm_inventory_add(r->inventory, l, err);
    return 0;
}

static int read_rack(void *context, const struct trp_slurm_line *l, trp_error *err)
{
    return strcmp(l->word, "host") == 0 ? trp_slurm_inventory_add(context, l, err) : 0;
}

int trp_slurm_answer_racks(const char *text, struct trp_slurm_inventory *i,
                           trp_error *err)
{
    return read_lines(text, read_rack, i, err);
}

int trp_slurm_answer_read(const char *text, struct trp_slurm_inventory *ret,
                          uint64_t *ret_rpcs, trp_error *err)
{
    struct reading r = {ret, ret_rpcs};
    memset(ret, 0, sizeof *ret);
    *ret_rpcs = 0;
    int code = read_lines(text, read_one, &r, err);
    if (code == 0 && ret->nparts == 0)
        code = trp_error_set(err, TRP_ENOENT, "Slurm does not tell of such a job");
    /* From 24.11 on that is what scontrol prints. */
    else if (code == 0 && ret->live && ret->nnodes == 0)
        code =
            trp_error_set(err, TRP_ESYSTEM,
                          "what it has of its nodes is not known; is the scontrol of "
                          "this Slurm in PATH?");
    return code;
}

int trp_slurm_answer_offers(const char *text, struct trp_slurm_offers *ret,
                            trp_error *err)
{
    int code = read_lines(text, trp_slurm_offers_add, ret, err);
    ret->known = true;
    return code;
}
