/*
 * Hosts, racks and devices of ranks.
 *
 * Slurm tells each task of a step the way through its switches (topology/tree), so that
 * neither libslurm nor troupe-slurm is needed, which a program that mpirun or srun
 * starts does not find. Telling it in the hello of each executor was rejected: the
 * racks must be known when the first stage begins, and by then not all have come.
 */
#include "driver/ranks.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/mpi.h"
#include "driver/rank_devices.h"

void trp_rank_rack(const char *path, const char *node, char *ret, size_t size)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    *ret = '\0';
    if (!dot || !node || strcmp(dot + 1, node) != 0)
        return;
    const char *leaf = dot;
    while (leaf > path && leaf[-1] != '.')
        leaf--;
    if (snprintf(ret, size, "%.*s", (int)(dot - leaf), leaf) >= (int)size)
        *ret = '\0';
}

/* What every rank sends to rank 0; its devices follow. */
struct report {
    char host[TRP_RACKS_NAME_MAX + 1];
    char rack[TRP_RACKS_NAME_MAX + 1];
    int32_t code, devices_size;
    char text[TRP_ERROR_TEXT];
};

static void fill_report(struct report *r, int code, const char *devices,
                        const trp_error *err)
{
    gethostname(r->host, sizeof r->host - 1);
    trp_rank_rack(getenv("SLURM_TOPOLOGY_ADDR"), getenv("SLURMD_NODENAME"), r->rack,
                  sizeof r->rack);
    r->code = code;
    r->devices_size = devices ? (int32_t)strlen(devices) : 0;
    if (code < 0)
        snprintf(r->text, sizeof r->text, "%s", err ? err->text : "");
}

/* Rank 0's part: the texts of all, one after the other. *ret is to be freed. */
static int gather_devices(const struct report *all, int size, const char *own,
                          char **ret, trp_error *err)
{
    int *sizes = calloc((uint32_t)size, 2 * sizeof *sizes), *at = sizes + size,
        total = 0;
    for (int i = 0; sizes && i < size; i++) {
        at[i] = total;
        total += sizes[i] = all[i].devices_size;
    }
    char *bytes = malloc((size_t)total + 1);
    int rc = !sizes || !bytes
                 ? trp_error_set(err, TRP_ENOMEM, "out of memory for %d ranks", size)
             : trp_mpi()->gatherv(own, sizes[0], bytes, sizes, at) < 0
                 ? trp_error_set(err, TRP_ESYSTEM, "MPI_Gatherv failed")
                 : 0;
    free(sizes);
    if (rc == 0)
        *ret = bytes;
    else
        free(bytes);
    return rc;
}

static int make_places(const struct report *all, int size, const char *devices,
                       struct trp_rank_place **ret, trp_error *err)
{
    struct trp_rank_place *places = calloc((uint32_t)size, sizeof *places);
    bool whole = places != NULL;
    for (int i = 0; whole && i < size; i++) {
        memcpy(places[i].host, all[i].host, sizeof places[i].host);
        memcpy(places[i].rack, all[i].rack, sizeof places[i].rack);
        places[i].devices = strndup(devices, (size_t)all[i].devices_size);
        whole = places[i].devices != NULL;
        devices += all[i].devices_size;
    }
    if (!whole) {
        trp_ranks_free(places, size);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %d ranks", size);
    }
    *ret = places;
    return 0;
}

static int first_failure(const struct report *all, int size, trp_error *err)
{
    for (int i = 0; i < size; i++) {
        if (all[i].code < 0 && i == 0)
            return trp_error_set(err, all[i].code, "%s", all[i].text);
        if (all[i].code < 0)
            return trp_error_set(err, all[i].code, "rank %d on %s: %s", i, all[i].host,
                                 all[i].text);
    }
    return 0;
}

int trp_ranks_gather(int rank, int size, int code, const char *devices,
                     struct trp_rank_place **ret_places, trp_error *err)
{
    struct report own = {0}, *all = NULL;
    char *texts = NULL;
    fill_report(&own, code, devices, err);
    *ret_places = NULL;
    if (rank == 0 && !(all = calloc((uint32_t)size, sizeof *all)))
        return trp_error_set(err, TRP_ENOMEM, "out of memory for %d ranks", size);
    int rc = 0;
    if (trp_mpi()->gather(&own, sizeof own, all) < 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "MPI_Gather failed");
    else if (rank == 0)
        rc = gather_devices(all, size, devices, &texts, err);
    else if (trp_mpi()->gatherv(devices, own.devices_size, NULL, NULL, NULL) < 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "MPI_Gatherv failed");
    if (rc == 0 && rank == 0)
        rc = first_failure(all, size, err);
    if (rc == 0 && rank == 0)
        rc = make_places(all, size, texts, ret_places, err);
    free(texts);
    free(all);
    return rc < 0 ? rc : code;
}

int trp_ranks_agree(int code)
{
    return trp_mpi()->bcast(&code, sizeof code) == 0 ? code : TRP_ESYSTEM;
}

void trp_ranks_free(struct trp_rank_place *places, int size)
{
    for (int i = 0; places && i < size; i++) {
        struct trp_rank_place *p = &places[i];
        for (uint32_t r = 0; r < p->nshare; r++) {
            for (uint32_t k = 0; k < p->share[r].naddresses; k++)
                free((void *)(uintptr_t)p->share[r].addresses[k]);
            free((void *)(uintptr_t)p->share[r].addresses);
            free((void *)(uintptr_t)p->share[r].name);
        }
        free(p->share);
        free(p->devices);
    }
    free(places);
}

int trp_ranks_site(struct trp_rank_place *places, int size, const struct trp_site *site,
                   trp_error *err)
{
    trp_racks *racks;
    if (site->racks != TRP_SITE_RACKS_FILE && site->racks != TRP_SITE_RACKS_PATTERN)
        return 0;
    int rc = trp_racks_open(site, &racks, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < size; i++)
        trp_racks_of(racks, places[i].host, places[i].rack, sizeof places[i].rack);
    trp_racks_close(racks);
    return 0;
}

/* ---- sharing devices out ---- */

static bool has(const struct trp_rank_place *p, const char *resource,
                const char *address)
{
    for (uint32_t r = 0; r < p->nshare; r++) {
        if (strcmp(p->share[r].name, resource) != 0)
            continue;
        for (uint32_t k = 0; k < p->share[r].naddresses; k++)
            if (strcmp(p->share[r].addresses[k], address) == 0)
                return true;
    }
    return false;
}

/* The ranks of one host that have their share already. */
struct host_ranks {
    struct trp_rank_place **ranks;
    size_t n;
};

static bool is_taken(const struct host_ranks *before, const char *resource,
                     const char *address)
{
    for (size_t i = 0; i < before->n; i++)
        if (has(before->ranks[i], resource, address))
            return true;
    return false;
}

static int too_few(const struct trp_rank_place *place, int rank,
                   const struct trp_custom *c, const struct trp_rank_device *d,
                   uint32_t left, const trp_options *options, trp_error *err)
{
    char key[sizeof c->name + 32];
    snprintf(key, sizeof key, "executor.resource.%s.amount", c->name);
    const char *where = options ? trp_options_where(options, key) : "";
    const char *colon = *where ? ": " : "";
    if (!d->source)
        return trp_error_set(
            err, TRP_ENEVER,
            "%s%s%s is %lld, but nothing says which %s rank %d on %s may use; ask "
            "Slurm for it, name it under `local:` in a site file, or set "
            "executor.resource.%s.discoveryScript",
            where, colon, key, (long long)c->executor, c->name, rank, place->host,
            c->name);
    return trp_error_set(
        err, TRP_ENEVER,
        "%s%s%s is %lld, but of the %u %s on %s (by %s) %u %s left for rank %d; start "
        "fewer ranks there or ask for more %s",
        where, colon, key, (long long)c->executor, d->naddresses, c->name, place->host,
        d->source, left, left == 1 ? "is" : "are", rank, c->name);
}

/* A resource of a rank. */
static int share_one(struct trp_rank_place *p, int rank,
                     const struct host_ranks *before, const struct trp_custom *c,
                     const struct trp_rank_device *d, const trp_options *options,
                     trp_error *err)
{
    const char **v = calloc((size_t)d->naddresses + 1, sizeof *v);
    uint32_t n = 0;
    bool whole = v != NULL;
    for (uint32_t k = 0; whole && k < d->naddresses && n < c->executor; k++) {
        if (!d->own && is_taken(before, c->name, d->addresses[k]))
            continue;
        whole = (v[n++] = strdup(d->addresses[k])) != NULL;
    }
    struct trp_resource_addresses *r = &p->share[p->nshare++];
    *r = (struct trp_resource_addresses){strdup(c->name), v, v ? n : 0};
    if (!whole || !r->name)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a rank's devices");
    return n < c->executor ? too_few(p, rank, c, d, n, options, err) : 0;
}

static int share_rank(struct trp_rank_place *p, int rank,
                      const struct host_ranks *before,
                      const struct trp_resource_profile *profile,
                      const trp_options *options, trp_error *err)
{
    int rc = 0;
    p->share = calloc(profile->ncustom + 1, sizeof *p->share);
    if (!p->share)
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a rank's devices");
    for (uint32_t k = 0; k < profile->ncustom && rc == 0; k++) {
        struct trp_rank_device d;
        if (profile->custom[k].executor <= 0)
            continue;
        rc = trp_rank_device_read(p->devices, profile->custom[k].name, &d, err);
        if (rc == 0)
            rc = share_one(p, rank, before, &profile->custom[k], &d, options, err);
        trp_rank_device_free(&d);
    }
    return rc;
}

/* By host; those of a host in order of rank, as they lie in memory. */
static int by_host(const void *a, const void *b)
{
    const struct trp_rank_place *x = *(struct trp_rank_place *const *)a;
    const struct trp_rank_place *y = *(struct trp_rank_place *const *)b;
    int order = strcmp(x->host, y->host);
    return order ? order : (x > y) - (x < y);
}

int trp_ranks_share(struct trp_rank_place *places, int size,
                    const struct trp_resource_profile *profile,
                    const trp_options *options, trp_error *err)
{
    size_t n = (uint32_t)size - 1, first = 0;
    struct trp_rank_place **order = calloc(n + 1, sizeof(*order));
    int rc = order ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory for ranks");
    for (size_t i = 0; i < n && rc == 0; i++)
        order[i] = &places[i + 1];
    if (rc == 0)
        qsort(order, n, sizeof(*order), by_host);
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (strcmp(order[i]->host, order[first]->host) != 0)
            first = i;
        const struct host_ranks before = {order + first, i - first};
        rc = share_rank(order[i], (int)(order[i] - places), &before, profile, options,
                        err);
    }
    free(order);
    return rc;
}
