/*
 * The tree of racks, hosts, sockets and devices: racks put in, printing. Hosts are
 * ordered by rack, so a rack is a run of hosts; hosts without a rack stand under ""
 * (text: no rack line).
 */
#include "cluster/topology.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/racks.h"
#include "conf/table.h"
#include "core/profile/profile.h"
#include "events/json_print.h"

static int by_rack_and_name(const void *a, const void *b)
{
    const struct trp_host_view *x = a, *y = b;
    int c = trp_natural_compare(x->rack, y->rack);
    return c ? c : trp_natural_compare(x->name, y->name);
}

struct trp_topology *trp_topology_with_racks(const struct trp_topology *t,
                                             const struct trp_racks *racks)
{
    char rack[TRP_RACKS_NAME_MAX + 1];
    struct trp_topology *copy = calloc(1, sizeof *copy);
    struct trp_host_view *hosts = calloc((size_t)t->nhosts + 1, sizeof *hosts);
    if (!copy || !hosts) {
        free(copy);
        free(hosts);
        return NULL;
    }
    copy->hosts = hosts;
    for (; copy->nhosts < t->nhosts; copy->nhosts++) {
        struct trp_host_view *h = &hosts[copy->nhosts];
        *h = t->hosts[copy->nhosts];
        const char *known = trp_racks_of(racks, h->name, rack, sizeof rack);
        h->rack = strdup(*known ? known : h->rack);
        if (!h->rack) {
            trp_topology_free(copy);
            return NULL;
        }
    }
    qsort(hosts, copy->nhosts, sizeof *hosts, by_rack_and_name);
    return copy;
}

void trp_topology_free(struct trp_topology *t)
{
    for (uint32_t i = 0; t && i < t->nhosts; i++)
        free((char *)(uintptr_t)t->hosts[i].rack);
    if (t)
        free((struct trp_host_view *)(uintptr_t)t->hosts);
    free(t);
}

/* "gpu: 0 1", in as many lines as it takes. */
static void print_devices(const struct trp_resource_addresses *d, const char *indent,
                          FILE *out)
{
    char *text = NULL, first[16];
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return;
    fprintf(f, "%s:", d->name);
    for (uint32_t k = 0; k < d->naddresses; k++)
        fprintf(f, " %s", d->addresses[k]);
    snprintf(first, sizeof first, "%s  ", indent);
    if (fclose(f) == 0)
        trp_text_wrap(text, first, (int)strlen(first) + 2, out);
    free(text);
}

static void print_host(const struct trp_host_view *h, const char *indent, FILE *out)
{
    char memory[32];
    fprintf(out, "%shost %s: %" PRIu32 " core%s, %s\n", indent, h->name, h->cores,
            h->cores == 1 ? "" : "s",
            trp_memory_format(h->memory_mib, memory, sizeof memory));
    fprintf(out, "%s  %" PRIu32 " socket%s, %" PRIu32 " NUMA node%s%s%s\n", indent,
            h->sockets, h->sockets == 1 ? "" : "s", h->numa_nodes,
            h->numa_nodes == 1 ? "" : "s", *h->model ? ", " : "", h->model);
    for (uint32_t i = 0; i < h->ndevices; i++)
        print_devices(&h->devices[i], indent, out);
}

static bool begins_rack(const struct trp_topology *t, uint32_t i)
{
    return i == 0 || strcmp(t->hosts[i].rack, t->hosts[i - 1].rack) != 0;
}

void trp_topology_print(const struct trp_topology *t, FILE *out)
{
    for (uint32_t i = 0; i < t->nhosts; i++) {
        const struct trp_host_view *h = &t->hosts[i];
        if (*h->rack && begins_rack(t, i))
            fprintf(out, "rack %s\n", h->rack);
        print_host(h, *h->rack ? "  " : "", out);
    }
}

static json_t *host_json(const struct trp_host_view *h)
{
    json_t *devices = json_object();
    for (uint32_t i = 0; i < h->ndevices; i++) {
        json_t *list = json_array();
        for (uint32_t k = 0; k < h->devices[i].naddresses; k++)
            json_array_append_new(list, json_string(h->devices[i].addresses[k]));
        json_object_set_new(devices, h->devices[i].name, list);
    }
    return json_pack("{s:s, s:I, s:I, s:o, s:I, s:I, s:s}", "name", h->name, "cores",
                     (json_int_t)h->cores, "memory", (json_int_t)h->memory_mib,
                     "devices", devices, "sockets", (json_int_t)h->sockets,
                     "numa_nodes", (json_int_t)h->numa_nodes, "model", h->model);
}

void trp_topology_print_json(const struct trp_topology *t, FILE *out)
{
    json_t *racks = json_array(), *hosts = NULL;
    for (uint32_t i = 0; i < t->nhosts; i++) {
        if (begins_rack(t, i)) {
            hosts = json_array();
            json_array_append_new(racks, json_pack("{s:s, s:o}", "name",
                                                   t->hosts[i].rack, "hosts", hosts));
        }
        json_array_append_new(hosts, host_json(&t->hosts[i]));
    }
    json_t *document = json_pack("{s:o}", "racks", racks);
    trp_json_print(document, 0, out);
    json_decref(document);
}

char *trp_room_text(const struct trp_room *r, char *buf, size_t size)
{
    const struct trp_memory_pair m = trp_memory_pair(r->memory_free, r->memory_mib);
    int n = snprintf(buf, size, "%llu of %llu cores, %s of %s",
                     (unsigned long long)r->cores_free, (unsigned long long)r->cores,
                     m.a, m.b);
    for (uint32_t i = 0; i < r->ndevices && (size_t)n < size; i++)
        n += snprintf(buf + n, size - (size_t)n, ", %s %llu of %llu",
                      r->devices[i].name, (unsigned long long)r->devices[i].free,
                      (unsigned long long)r->devices[i].count);
    if ((size_t)n < size)
        snprintf(buf + n, size - (size_t)n, " are free on %u host%s", r->hosts,
                 r->hosts == 1 ? "" : "s");
    return buf;
}
