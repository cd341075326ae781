/*
 * Read from /sys/devices/system, a small file for each thing that a processor shares.
 * hwloc reads the same files, and much more: it has plugins, which it loads with their
 * libraries (X11, OpenCL), and it would be a library more, with two of its own, in every
 * driver and executor.
 */
#include "os/processors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/binding.h"

enum { CPUS_MAX = 1 << 16, NODES_MAX = 1 << 12, TEXT = 8192 };

/* The beginning of a file; "" when it cannot be read. */
static void read_text(const char *path, char text[TEXT])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* ---- processors ------------------------------------------------------------------ */

static uint32_t lowest(const char *root, uint32_t cpu, const char *file)
{
    char path[TEXT], text[TEXT];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, file);
    read_text(path, text);
    return (uint32_t)strtoul(text, NULL, 10);
}

static bool read_set(const char *root, const char *file, cpu_set_t *set, size_t size)
{
    char path[TEXT], text[TEXT];
    snprintf(path, sizeof path, "%s/sys/devices/system/node/%s", root, file);
    read_text(path, text);
    return trp_cpu_list(text, set, size);
}

static bool put_nodes(const char *root, struct trp_processor *list, uint32_t n)
{
    char file[64];
    cpu_set_t *nodes = CPU_ALLOC(NODES_MAX), *cpus = CPU_ALLOC(CPUS_MAX);
    const size_t nodes_size = CPU_ALLOC_SIZE(NODES_MAX),
                 cpus_size = CPU_ALLOC_SIZE(CPUS_MAX);
    bool made = nodes && cpus;
    bool known = made && read_set(root, "has_cpu", nodes, nodes_size);
    for (uint32_t node = 0; known && node < NODES_MAX; node++) {
        snprintf(file, sizeof file, "node%u/cpulist", node);
        if (!CPU_ISSET_S(node, nodes_size, nodes) ||
            !read_set(root, file, cpus, cpus_size))
            continue;
        for (uint32_t i = 0; i < n; i++)
            if (CPU_ISSET_S(list[i].number, cpus_size, cpus))
                list[i].node = node;
    }
    CPU_FREE(nodes);
    CPU_FREE(cpus);
    return made;
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b)
{
    const struct trp_processor *x = a, *y = b;
    int c = compare(x->socket, y->socket);
    c = c ? c : compare(x->node, y->node);
    c = c ? c : compare(x->cache, y->cache);
    c = c ? c : compare(x->core, y->core);
    return c ? c : compare(x->number, y->number);
}

bool trp_processors_list(const char *root, const cpu_set_t *allowed, size_t size,
                         struct trp_processor **ret_list, uint32_t *ret_n)
{
    uint32_t n = 0, count = (uint32_t)CPU_COUNT_S(size, allowed);
    struct trp_processor *list = calloc((size_t)count + 1, sizeof *list);
    for (uint32_t cpu = 0; list && n < count; cpu++) {
        if (!CPU_ISSET_S(cpu, size, allowed))
            continue;
        list[n++] = (struct trp_processor){
            .number = cpu,
            .core = lowest(root, cpu, "topology/thread_siblings_list"),
            .cache = lowest(root, cpu, "cache/index3/shared_cpu_list"),
            .socket = lowest(root, cpu, "topology/core_siblings_list"),
        };
    }
    if (!list || !put_nodes(root, list, n)) {
        free(list);
        errno = ENOMEM;
        return false;
    }
    if (n)
        qsort(list, n, sizeof *list, by_place);
    *ret_list = list;
    *ret_n = n;
    return true;
}

bool trp_processors_own(struct trp_processor **ret_list, uint32_t *ret_n)
{
    const size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    bool known = set && sched_getaffinity(getpid(), size, set) == 0 &&
                 trp_processors_list("", set, size, ret_list, ret_n);
    int error = errno;
    CPU_FREE(set);
    errno = error;
    return known;
}

void trp_processors_model(const char *root, char *buf, size_t size)
{
    static const char key[] = "\nmodel name";
    char path[TEXT], text[TEXT];
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    read_text(path, text);
    const char *line = strstr(text, key), *colon = line ? strchr(line, ':') : NULL;
    if (colon)
        colon += 1 + strspn(colon + 1, " ");
    snprintf(buf, size, "%.*s", colon ? (int)strcspn(colon, "\n") : 0,
             colon ? colon : "");
}

/* ---- memory ---------------------------------------------------------------------- */

/* The number behind `key`. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? at + strlen(key) + strspn(at + strlen(key), " \t") : "";
}

static bool read_allowed(const char *root, cpu_set_t *nodes, size_t size)
{
    char path[TEXT], text[TEXT];
    snprintf(path, sizeof path, "%s/proc/self/status", root);
    read_text(path, text);
    char *list = strstr(text, "Mems_allowed_list:");
    if (!list)
        return false;
    list += strcspn(list, "0123456789");
    list[strcspn(list, "\n")] = '\0';
    return trp_cpu_list(list, nodes, size);
}

static int64_t node_kib(const char *root, uint32_t node)
{
    char path[TEXT], text[TEXT];
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%u/meminfo", root,
             node);
    read_text(path, text);
    return strtoll(value_of(text, "MemTotal:"), NULL, 10);
}

int64_t trp_processors_memory_mib(const char *root)
{
    const size_t size = CPU_ALLOC_SIZE(NODES_MAX);
    cpu_set_t *all = CPU_ALLOC(NODES_MAX), *allowed = CPU_ALLOC(NODES_MAX);
    int64_t kib = 0;
    bool part = false;
    bool known = all && allowed && read_set(root, "has_memory", all, size) &&
                 read_allowed(root, allowed, size);
    for (uint32_t node = 0; known && node < NODES_MAX; node++) {
        if (!CPU_ISSET_S(node, size, all))
            continue;
        if (CPU_ISSET_S(node, size, allowed))
            kib += node_kib(root, node);
        else
            part = true;
    }
    CPU_FREE(all);
    CPU_FREE(allowed);
    return part ? kib / 1024 : 0;
}
