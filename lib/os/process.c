/*
 * One read and one sscanf a process, a few microseconds. The name stands in brackets
 * and may hold anything, brackets too, so what follows is looked for from the end.
 */
#include "os/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "os/whole_file.h"

static bool read_stat(const char *path, struct trp_process *ret)
{
    char text[1024];
    if (trp_file_begin(AT_FDCWD, path, 0, text, sizeof text) <= 0)
        return false;
    const char *name_end = strrchr(text, ')');
    if (!name_end)
        return false;
    long long rss = 0;
    unsigned long long faults = 0;
    int got =
        sscanf(name_end + 1,
               " %c %d %d %d %*d %*d %*u %llu %*u %*u %*u %*u %*u %*d %*d %*d "
               "%*d %*d %*d %*u %*u %lld",
               &ret->state, &ret->parent, &ret->group, &ret->session, &faults, &rss);
    ret->pid = (pid_t)strtol(text, NULL, 10);
    ret->minor_faults = faults;
    ret->rss_pages = rss;
    return got == 6;
}

bool trp_process_read(pid_t pid, struct trp_process *ret)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return read_stat(path, ret);
}

bool trp_process_read_thread(pid_t pid, pid_t thread, struct trp_process *ret)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)thread);
    return read_stat(path, ret);
}

int trp_process_list(struct trp_process **ret)
{
    DIR *proc = opendir("/proc");
    struct trp_process *all = NULL, p;
    uint32_t n = 0, capacity = 0;
    if (!proc)
        return -1;
    for (struct dirent *e; (e = readdir(proc));) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10); /* 0: not a process */
        if (pid <= 0 || !trp_process_read(pid, &p))
            continue;
        if (!TRP_ARRAY_GROW(all, n, capacity))
            break;
        all[n++] = p;
    }
    closedir(proc);
    *ret = all;
    return (int)n;
}
