/*
 * sched_setaffinity for each thread, as hwloc does it. But hwloc first reads the
 * machine, for which it loads all its plugins with their libraries (X11, OpenCL, ICU)
 * and visits every processor: 5 ms, most of what it took an executor to start.
 */
#include "os/binding.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum { CPUS_MAX = 1 << 16 };

/* One number; -1: there is none. */
static long take_number(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9')
        return -1;
    long n = strtol(*at, &end, 10);
    *at = end;
    return n < CPUS_MAX ? n : -1;
}

static bool read_list(const char *text, cpu_set_t *set, size_t size)
{
    CPU_ZERO_S(size, set);
    for (;;) {
        long from = take_number(&text), to = from;
        if (*text == '-') {
            text++;
            to = take_number(&text);
        }
        if (from < 0 || to < from)
            return false;
        for (long cpu = from; cpu <= to; cpu++)
            CPU_SET_S((size_t)cpu, size, set);
        if (*text != ',')
            return *text == '\0';
        text++;
    }
}

/* A thread that ends meanwhile needs no binding. */
static bool bind_threads(const cpu_set_t *set, size_t size)
{
    DIR *threads = opendir("/proc/self/task");
    bool bound = true;
    int error = 0;
    if (!threads)
        return sched_setaffinity(0, size, set) == 0;
    for (struct dirent *e; (e = readdir(threads));) {
        pid_t id = (pid_t)strtol(e->d_name, NULL, 10);
        if (id <= 0 || sched_setaffinity(id, size, set) == 0 || errno == ESRCH)
            continue;
        error = errno;
        bound = false;
    }
    closedir(threads);
    errno = error;
    return bound;
}

bool trp_bind_process(const char *cpus)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    if (!set)
        return false;
    bool bound = read_list(cpus, set, size);
    if (!bound)
        errno = EINVAL;
    else
        bound = bind_threads(set, size);
    int error = errno;
    CPU_FREE(set);
    errno = error;
    return bound;
}
