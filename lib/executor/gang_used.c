/*
 * What the ranks of a gang in a Slurm step have used. srun's own times say nothing of
 * it, so the process in front of each rank (cluster/slurm/steps/rank_keep.c) leaves a file
 * "used.RANK" in the gang's folder: CPU time in ns, and the largest memory of a process
 * in KiB. If that process was killed too, there is no file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "executor/spawner_internal.h"
#include "os/whole_file.h"

static bool read_used(int folder, const char *name, long long *cpu_ns, long long *kib)
{
    char text[64];
    trp_file_begin(folder, name, O_NOFOLLOW, text, sizeof text);
    return sscanf(text, "%lld %lld", cpu_ns, kib) == 2 && *cpu_ns >= 0;
}

void trp_gang_add_used(const struct trp_keeper *k, const char *folder,
                       struct trp_end *end)
{
    int fd = openat(k->scratch, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    bool any = false;
    int64_t cpu = 0, peak = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        long long ns, kib;
        if (strncmp(d->d_name, "used.", 5) != 0 || !read_used(fd, d->d_name, &ns, &kib))
            continue;
        any = true;
        cpu += ns;
        peak = kib > peak ? kib : peak;
    }
    closedir(dir);
    if (!any)
        return;
    end->cpu_ns = cpu;
    end->peak_kib = peak;
}
