/*
 * Lines become records. Racks come after the nodes.
 */
#include "cluster/slurm/helper/inventory_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"

static void copy_word(char to[TRP_SLURM_WORD], const char *from, size_t n)
{
    n = n < TRP_SLURM_WORD ? n : TRP_SLURM_WORD - 1;
    memcpy(to, from, n);
    to[n] = '\0';
}

/* A name that is too long is none. */
static void copy_name(char to[TRP_SLURM_NAME], const char *from)
{
    size_t n = strlen(from);
    memcpy(to, from, n < TRP_SLURM_NAME ? n + 1 : 1);
    to[n < TRP_SLURM_NAME ? n : 0] = '\0';
}

/* One of them: "gpu:a100:2(IDX:0-1)", "gpu:2", "matlab". */
static void parse_pool(const char *text, size_t size, struct trp_slurm_pool *p)
{
    size_t n = 0;
    while (n < size && text[n] != '(')
        n++;
    const char *end = text + n, *first = memchr(text, ':', n), *last = first;
    for (const char *c = first; c && c < end; c++)
        last = *c == ':' ? c : last;
    memset(p, 0, sizeof *p);
    copy_word(p->name, text, first ? (size_t)(first - text) : n);
    p->count = 1;
    if (!first)
        return;
    char *stop;
    unsigned long count = strtoul(last + 1, &stop, 10);
    bool counted = stop > last + 1 && stop == end;
    p->count = counted ? (uint32_t)count : 1;
    const char *type_end = counted ? last : end;
    if (type_end > first)
        copy_word(p->type, first + 1, (size_t)(type_end - first - 1));
}

uint32_t trp_slurm_pools_parse(const char *text, struct trp_slurm_pool *ret)
{
    uint32_t n = 0;
    while (*text && n < TRP_SLURM_POOLS) {
        size_t size = 0;
        for (int depth = 0; text[size] && (depth || text[size] != ','); size++)
            depth += text[size] == '(' ? 1 : text[size] == ')' ? -1 : 0;
        if (size)
            parse_pool(text, size, &ret[n++]);
        text += size + (text[size] == ',');
    }
    return n;
}

static int no_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory for the job's nodes");
}

static int add_part(struct trp_slurm_inventory *i, const struct trp_slurm_line *l,
                    trp_error *err)
{
    if (!TRP_ARRAY_GROW(i->parts, i->nparts, i->parts_cap))
        return no_memory(err);
    struct trp_slurm_part *p = &i->parts[i->nparts++];
    *p = (struct trp_slurm_part){.job = (uint32_t)trp_slurm_line_number(l, "job"),
                                 .leader = (uint32_t)trp_slurm_line_number(l, "leader"),
                                 .component =
                                     (int)trp_slurm_line_number(l, "component")};
    p->nlicences =
        trp_slurm_pools_parse(trp_slurm_line_text(l, "licences"), p->licences);
    if (i->nparts > 1) {
        i->live = i->live && trp_slurm_line_number(l, "live");
        return 0;
    }
    i->live = trp_slurm_line_number(l, "live");
    i->uid = (uint32_t)trp_slurm_line_number(l, "uid");
    i->started = trp_slurm_line_number(l, "started");
    i->ends = trp_slurm_line_number(l, "ends");
    i->calls = trp_slurm_line_number(l, "calls");
    i->call_ms = trp_slurm_line_number(l, "call_ms");
    i->memory_enforced = trp_slurm_line_number(l, "memory_enforced");
    const char *state = trp_slurm_line_text(l, "state");
    copy_word(i->state, state, strlen(state));
    copy_name(i->batch_host, trp_slurm_line_text(l, "batch_host"));
    copy_name(i->place.partition, trp_slurm_line_text(l, "partition"));
    copy_name(i->place.account, trp_slurm_line_text(l, "account"));
    copy_name(i->place.qos, trp_slurm_line_text(l, "qos"));
    copy_name(i->place.reservation, trp_slurm_line_text(l, "reservation"));
    return 0;
}

static int add_node(struct trp_slurm_inventory *i, const struct trp_slurm_line *l,
                    trp_error *err)
{
    if (!TRP_ARRAY_GROW(i->nodes, i->nnodes, i->nodes_cap))
        return no_memory(err);
    struct trp_slurm_node *n = &i->nodes[i->nnodes++];
    *n = (struct trp_slurm_node){
        .name = strdup(trp_slurm_line_text(l, "name")),
        .host = strdup(trp_slurm_line_text(l, "host")),
        .rack = strdup(trp_slurm_line_text(l, "rack")),
        .features = strdup(trp_slurm_line_text(l, "features")),
        .part = i->nparts ? i->nparts - 1 : 0,
        .cores = (uint32_t)trp_slurm_line_number(l, "cpus"),
        .threads = (uint32_t)trp_slurm_line_number(l, "threads"),
        .sockets = (uint32_t)trp_slurm_line_number(l, "sockets"),
        .memory_mib = trp_slurm_line_number(l, "memory")};
    n->npools = trp_slurm_pools_parse(trp_slurm_line_text(l, "gres"), n->pools);
    if (n->threads == 0)
        n->threads = 1;
    return n->name && n->host && n->rack && n->features ? 0 : no_memory(err);
}

static int set_rack(struct trp_slurm_inventory *i, const struct trp_slurm_line *l,
                    trp_error *err)
{
    const char *name = trp_slurm_line_text(l, "name");
    for (uint32_t k = 0; k < i->nnodes; k++) {
        if (!i->nodes[k].name || strcmp(i->nodes[k].name, name) != 0)
            continue;
        char *rack = strdup(trp_slurm_line_text(l, "rack"));
        if (!rack)
            return no_memory(err);
        free(i->nodes[k].rack);
        i->nodes[k].rack = rack;
    }
    return 0;
}

int trp_slurm_inventory_add(void *inventory, const struct trp_slurm_line *line,
                            trp_error *err)
{
    struct trp_slurm_inventory *i = inventory;
    if (strcmp(line->word, "allocation") == 0)
        return add_part(i, line, err);
    if (strcmp(line->word, "node") == 0 && i->nparts)
        return add_node(i, line, err);
    if (strcmp(line->word, "host") == 0)
        return set_rack(i, line, err);
    if (strcmp(line->word, "mpi") == 0)
        snprintf(i->mpi_types, sizeof i->mpi_types, "%s",
                 trp_slurm_line_text(line, "types"));
    return 0;
}

uint32_t trp_slurm_inventory_here(const struct trp_slurm_inventory *i)
{
    char here[256] = "";
    gethostname(here, sizeof here - 1);
    size_t n = strcspn(here, ".");
    for (uint32_t k = 0; k < i->nnodes; k++) {
        const char *host = i->nodes[k].host;
        if (strcmp(host, here) == 0 ||
            (strcspn(host, ".") == n && n > 0 && strncmp(host, here, n) == 0))
            return k;
    }
    return UINT32_MAX;
}
