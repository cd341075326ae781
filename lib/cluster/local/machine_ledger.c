/*
 * Cores are a bit a core; a share is a run of neighbours when there is one (first fit),
 * else the lowest free ones: neighbours share caches and sockets (machine.c lists them
 * so). Devices are a flag an address, lowest first. Costs O(cores + addresses) a share,
 * which is nothing beside starting a process.
 */
#include "cluster/local/machine_ledger.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/profile/footprint.h"

struct device {
    char *name;
    char **addresses; /* in natural order */
    bool *taken;
    uint32_t n, free;
};

struct trp_machine_ledger {
    bool *core_taken, *core_others; /* ours; those that others have */
    uint32_t cores, cores_free;     /* free: not ours … */
    uint32_t others;                /* … but so many of them are of others */
    int64_t memory_mib, memory_free;
    struct device *devices;
    uint32_t ndevices;
    struct trp_resource_addresses *view; /* of all devices */
    struct trp_request *first;
};

void trp_machine_footprint_make(const struct trp_resource_profile *p, uint32_t ranks,
                                struct trp_machine_footprint *ret)
{
    struct trp_profile_footprint one = trp_profile_footprint(p, ranks > 0);
    uint64_t units = ranks ? ranks : 1;
    memset(ret, 0, sizeof *ret);
    ret->cores = (uint64_t)one.cores * units;
    ret->memory_mib = trp_profile_amount_of(one.memory_mib, units);
    for (uint32_t i = 0; i < p->ncustom; i++) {
        int64_t count = trp_profile_amount_of(one.custom[i], units);
        if (count <= 0)
            continue;
        struct trp_machine_devices *d = &ret->devices[ret->ndevices++];
        memcpy(d->name, p->custom[i].name, sizeof d->name);
        d->count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    }
}

static int copy_device(struct device *d, const struct trp_resource_addresses *from)
{
    d->name = strdup(from->name);
    d->addresses = calloc(from->naddresses + 1, sizeof *d->addresses);
    d->taken = calloc(from->naddresses + 1, sizeof *d->taken);
    if (!d->name || !d->addresses || !d->taken)
        return TRP_ENOMEM;
    for (; d->n < from->naddresses; d->n++) {
        d->addresses[d->n] = strdup(from->addresses[d->n]);
        if (!d->addresses[d->n])
            return TRP_ENOMEM;
    }
    qsort(d->addresses, d->n, sizeof *d->addresses, trp_natural_order);
    d->free = d->n;
    return 0;
}

static void set_view(trp_machine_ledger *ledger, uint32_t i)
{
    const struct device *d = &ledger->devices[i];
    ledger->view[i] =
        (struct trp_resource_addresses){.name = d->name,
                                        .addresses = (const char *const *)d->addresses,
                                        .naddresses = d->n};
}

int trp_machine_ledger_new(uint32_t cores, int64_t memory_mib,
                           const struct trp_resource_addresses *devices,
                           uint32_t ndevices, trp_machine_ledger **ret_ledger,
                           trp_error *err)
{
    trp_machine_ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    ledger->cores = ledger->cores_free = cores;
    ledger->memory_mib = ledger->memory_free = memory_mib;
    ledger->core_taken = calloc(cores + 1, sizeof *ledger->core_taken);
    ledger->core_others = calloc(cores + 1, sizeof *ledger->core_others);
    ledger->devices = calloc(ndevices + 1, sizeof *ledger->devices);
    ledger->view = calloc(ndevices + 1, sizeof *ledger->view);
    int code =
        ledger->core_taken && ledger->core_others && ledger->devices && ledger->view
            ? 0
            : TRP_ENOMEM;
    for (uint32_t i = 0; i < ndevices && code == 0; i++) {
        struct device *d = &ledger->devices[ledger->ndevices++];
        code = copy_device(d, &devices[i]);
        set_view(ledger, i);
    }
    if (code < 0) {
        trp_machine_ledger_free(ledger);
        return trp_error_set(err, code, "out of memory");
    }
    *ret_ledger = ledger;
    return 0;
}

void trp_machine_ledger_free(trp_machine_ledger *ledger)
{
    if (!ledger)
        return;
    for (uint32_t i = 0; i < ledger->ndevices; i++) {
        struct device *d = &ledger->devices[i];
        for (uint32_t k = 0; k < d->n; k++)
            free(d->addresses[k]);
        free(d->addresses);
        free(d->taken);
        free(d->name);
    }
    free(ledger->devices);
    free(ledger->view);
    free(ledger->core_taken);
    free(ledger->core_others);
    free(ledger);
}

uint32_t trp_machine_ledger_cores(const trp_machine_ledger *ledger)
{
    return ledger->cores;
}

int64_t trp_machine_ledger_memory_mib(const trp_machine_ledger *ledger)
{
    return ledger->memory_mib;
}

const struct trp_resource_addresses *
trp_machine_ledger_devices(const trp_machine_ledger *ledger, uint32_t *ret_n)
{
    *ret_n = ledger->ndevices;
    return ledger->view;
}

static struct device *find_device(const trp_machine_ledger *ledger, const char *name)
{
    for (uint32_t i = 0; i < ledger->ndevices; i++) {
        if (strcmp(ledger->devices[i].name, name) == 0)
            return &ledger->devices[i];
    }
    return NULL;
}

static void keep_least(uint64_t available, uint64_t wanted, uint64_t *fit)
{
    if (wanted && available / wanted < *fit)
        *fit = available / wanted;
}

uint32_t trp_machine_ledger_fit(const trp_machine_ledger *ledger,
                                const struct trp_machine_footprint *footprint,
                                trp_error *err)
{
    uint64_t fit = UINT32_MAX;
    if (footprint->cores > ledger->cores) {
        trp_error_set(err, TRP_ENEVER, "cores wanted %llu, available %u",
                      (unsigned long long)footprint->cores, ledger->cores);
        return 0;
    }
    if (footprint->memory_mib > ledger->memory_mib) {
        struct trp_memory_pair m =
            trp_memory_pair(footprint->memory_mib, ledger->memory_mib);
        trp_error_set(err, TRP_ENEVER, "memory wanted %s, available %s", m.a, m.b);
        return 0;
    }
    keep_least(ledger->cores, footprint->cores, &fit);
    keep_least((uint64_t)ledger->memory_mib, (uint64_t)footprint->memory_mib, &fit);
    for (uint32_t i = 0; i < footprint->ndevices; i++) {
        const struct trp_machine_devices *want = &footprint->devices[i];
        const struct device *d = find_device(ledger, want->name);
        uint32_t available = d ? d->n : 0;
        if (want->count > available) {
            trp_error_set(err, TRP_ENEVER,
                          available
                              ? "%s wanted %u, available %u"
                              : "%s wanted %u, available %u; a site file says what "
                                "is here: local: {%s: [\"0\"]}",
                          want->name, want->count, available, want->name);
            return 0;
        }
        keep_least(available, want->count, &fit);
    }
    return (uint32_t)fit;
}

static bool fits_now(const trp_machine_ledger *ledger,
                     const struct trp_machine_footprint *footprint)
{
    if (footprint->cores > ledger->cores_free ||
        footprint->memory_mib > ledger->memory_free)
        return false;
    for (uint32_t i = 0; i < footprint->ndevices; i++) {
        const struct device *d = find_device(ledger, footprint->devices[i].name);
        if (!d || d->free < footprint->devices[i].count)
            return false;
    }
    return true;
}

/* ---- more devices ---- */

/* One more of no addresses; NULL when out of memory. */
static struct device *add_device(trp_machine_ledger *ledger, const char *name)
{
    size_t n = (size_t)ledger->ndevices + 1;
    struct device *devices = reallocarray(ledger->devices, n, sizeof *devices);
    if (!devices)
        return NULL;
    ledger->devices = devices;
    struct trp_resource_addresses *view = reallocarray(ledger->view, n, sizeof *view);
    if (!view)
        return NULL;
    ledger->view = view;
    struct device *d = &devices[ledger->ndevices];
    *d = (struct device){.name = strdup(name)};
    if (!d->name)
        return NULL;
    set_view(ledger, ledger->ndevices++);
    return d;
}

/* Puts an address into its place, unless it is there. */
static int add_address(struct device *d, const char *address)
{
    uint32_t i = 0;
    while (i < d->n && trp_natural_compare(d->addresses[i], address) < 0)
        i++;
    for (uint32_t k = i; k < d->n; k++)
        if (strcmp(d->addresses[k], address) == 0)
            return 0;
    char **addresses = reallocarray(d->addresses, d->n + 1, sizeof *addresses);
    if (addresses)
        d->addresses = addresses;
    bool *taken = reallocarray(d->taken, d->n + 1, sizeof *taken);
    if (taken)
        d->taken = taken;
    char *copy = strdup(address);
    if (!addresses || !taken || !copy) {
        free(copy);
        return TRP_ENOMEM;
    }
    memmove(addresses + i + 1, addresses + i, (d->n - i) * sizeof *addresses);
    memmove(taken + i + 1, taken + i, (d->n - i) * sizeof *taken);
    addresses[i] = copy;
    taken[i] = false;
    d->n++;
    d->free++;
    return 0;
}

int trp_machine_ledger_learn(trp_machine_ledger *ledger, const char *resource,
                             const char *addresses, trp_error *err)
{
    struct device *d = find_device(ledger, resource);
    char *copy = strdup(addresses), *rest = NULL;
    if (!d && copy)
        d = add_device(ledger, resource);
    int code = d && copy ? 0 : TRP_ENOMEM;
    for (char *w = copy ? strtok_r(copy, ",", &rest) : NULL; w && code == 0;
         w = strtok_r(NULL, ",", &rest))
        code = add_address(d, w);
    free(copy);
    if (d)
        set_view(ledger, (uint32_t)(d - ledger->devices));
    return code < 0 ? trp_error_set(err, code, "out of memory") : 0;
}

static bool is_free(const trp_machine_ledger *ledger, uint32_t core)
{
    return !ledger->core_taken[core] && !ledger->core_others[core];
}

/* Where a run of n free cores begins; ledger->cores when there is none. */
static uint32_t find_run(const trp_machine_ledger *ledger, uint32_t n)
{
    uint32_t length = 0;
    for (uint32_t i = 0; i < ledger->cores; i++) {
        length = is_free(ledger, i) ? length + 1 : 0;
        if (length == n)
            return i + 1 - n;
    }
    return ledger->cores;
}

static void take_cores(trp_machine_ledger *ledger, struct trp_request *r)
{
    uint32_t n = (uint32_t)r->footprint.cores, taken = 0;
    uint32_t i = find_run(ledger, n);
    if (i == ledger->cores)
        i = 0;
    for (; taken < n; i++) {
        if (!is_free(ledger, i))
            continue;
        ledger->core_taken[i] = true;
        r->cores[taken++] = i;
    }
    ledger->cores_free -= n;
}

static void take_device(struct device *d, const char **ret, uint32_t n)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; taken < n; i++) {
        if (d->taken[i])
            continue;
        d->taken[i] = true;
        ret[taken++] = d->addresses[i];
    }
    d->free -= n;
}

static void take_share(trp_machine_ledger *ledger, struct trp_request *r)
{
    take_cores(ledger, r);
    ledger->memory_free -= r->footprint.memory_mib;
    for (uint32_t i = 0; i < r->footprint.ndevices; i++) {
        struct device *d = find_device(ledger, r->footprint.devices[i].name);
        take_device(d, r->lists[i], r->footprint.devices[i].count);
    }
    r->state = TRP_REQUEST_HAS;
}

static void free_share(struct trp_request *r)
{
    free(r->cores);
    r->cores = NULL;
    for (uint32_t i = 0; i < r->footprint.ndevices; i++) {
        free(r->lists[i]);
        r->lists[i] = NULL;
        r->devices[i].addresses = NULL;
    }
}

/* The share's memory is had when asking, so that serving it cannot fail. */
static int make_share(const trp_machine_ledger *ledger, struct trp_request *r)
{
    bool failed = false;
    r->cores = calloc(r->footprint.cores + 1, sizeof *r->cores);
    for (uint32_t i = 0; i < r->footprint.ndevices; i++) {
        uint32_t n = r->footprint.devices[i].count;
        r->devices[i].name = find_device(ledger, r->footprint.devices[i].name)->name;
        r->devices[i].naddresses = n;
        r->devices[i].addresses = r->lists[i] = calloc(n + 1, sizeof(char *));
        failed = failed || !r->lists[i];
    }
    if (r->cores && !failed)
        return 0;
    free_share(r);
    return TRP_ENOMEM;
}

int trp_machine_ledger_ask(trp_machine_ledger *ledger, struct trp_request *r,
                           trp_error *err)
{
    if (trp_machine_ledger_fit(ledger, &r->footprint, err) == 0)
        return TRP_ENEVER;
    for (uint32_t i = 0; i < r->footprint.ndevices; i++) {
        if (!find_device(ledger, r->footprint.devices[i].name)) /* wants 0 of it */
            r->footprint.devices[i--] = r->footprint.devices[--r->footprint.ndevices];
    }
    if (make_share(ledger, r) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    r->state = TRP_REQUEST_WAITS;
    DL_APPEND2(ledger->first, r, before, behind);
    return 0;
}

bool trp_machine_ledger_has_room(const trp_machine_ledger *ledger)
{
    return ledger->first && fits_now(ledger, &ledger->first->footprint);
}

void trp_machine_ledger_others(trp_machine_ledger *ledger, const bool *has)
{
    ledger->others = 0;
    for (uint32_t i = 0; i < ledger->cores; i++) {
        ledger->core_others[i] = has[i] && !ledger->core_taken[i];
        ledger->others += ledger->core_others[i];
    }
}

struct trp_request *trp_machine_ledger_next(trp_machine_ledger *ledger)
{
    struct trp_request *r = ledger->first;
    if (!trp_machine_ledger_has_room(ledger) ||
        r->footprint.cores > ledger->cores_free - ledger->others)
        return NULL;
    DL_DELETE2(ledger->first, r, before, behind);
    take_share(ledger, r);
    return r;
}

static void give_share(trp_machine_ledger *ledger, const struct trp_request *r)
{
    for (uint32_t i = 0; i < r->footprint.cores; i++)
        ledger->core_taken[r->cores[i]] = false;
    ledger->cores_free += (uint32_t)r->footprint.cores;
    ledger->memory_free += r->footprint.memory_mib;
    for (uint32_t i = 0; i < r->footprint.ndevices; i++) {
        struct device *d = find_device(ledger, r->footprint.devices[i].name);
        for (uint32_t k = 0; k < r->devices[i].naddresses; k++) {
            uint32_t at = 0;
            while (d->addresses[at] != r->devices[i].addresses[k])
                at++;
            d->taken[at] = false;
        }
        d->free += r->devices[i].naddresses;
    }
}

void trp_machine_ledger_put_back(trp_machine_ledger *ledger, struct trp_request *r)
{
    give_share(ledger, r);
    r->state = TRP_REQUEST_WAITS;
    DL_PREPEND2(ledger->first, r, before, behind);
}

void trp_machine_ledger_leave(trp_machine_ledger *ledger, struct trp_request *r)
{
    if (r->state == TRP_REQUEST_WAITS)
        DL_DELETE2(ledger->first, r, before, behind);
    else if (r->state == TRP_REQUEST_HAS)
        give_share(ledger, r);
    else
        return;
    free_share(r);
    r->state = TRP_REQUEST_NONE;
}

void trp_machine_ledger_room(const trp_machine_ledger *ledger, struct trp_room *ret)
{
    *ret = (struct trp_room){.hosts = 1,
                             .cores = ledger->cores,
                             .cores_free = ledger->cores_free,
                             .memory_mib = ledger->memory_mib,
                             .memory_free = ledger->memory_free};
    for (uint32_t i = 0; i < ledger->ndevices; i++)
        trp_room_add(ret, ledger->devices[i].name, ledger->devices[i].n,
                     ledger->devices[i].free);
}
