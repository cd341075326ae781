/*
 * Which CPUs a GPU is near, by what the kernel shows of it. Slurm numbers GPUs by the
 * number in the name of their device file (gres.conf, File=), so GPU 2 is /dev/nvidia2,
 * or /dev/dri/renderD2… of others:
 *
 *   NVIDIA   its driver shows no device below /sys/dev/char; the PCI address is the
 *            name of the folder in /proc/driver/nvidia/gpus whose file `information`
 *            has the number of the device file
 *   others   /sys/dev/char/MAJOR:MINOR/device is the PCI device
 *
 * Below the PCI device, local_cpulist. hwloc reads the same files; it would be one more
 * library in every srun, for two lines.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "plugin/plugin.h"

enum { LINE = 4096, PATH = PATH_MAX + 512 };

bool trp_plugin_cpu_list(const char *text, cpu_set_t *ret)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    do {
        char *end;
        errno = 0;
        if (*text < '0' || *text > '9')
            return false;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-') {
            text = end + 1;
            if (*text < '0' || *text > '9')
                return false;
            last = strtoul(text, &end, 10);
        }
        if (errno || last < first)
            return false;
        for (unsigned long i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET(i, &set);
        text = end;
    } while (*text == ',' && *++text);
    if (*text && strcmp(text, "\n") != 0)
        return false;
    *ret = set;
    return true;
}

static bool read_list(const char *path, cpu_set_t *ret)
{
    char line[LINE];
    FILE *f = fopen(path, "re");
    bool read = f && fgets(line, sizeof line, f);
    if (f)
        fclose(f);
    return read && trp_plugin_cpu_list(line, ret);
}

/* "Device Minor: 	 2" */
static bool is_minor(const char *path, unsigned long id)
{
    static const char key[] = "Device Minor:";
    char line[256];
    bool is = false;
    FILE *f = fopen(path, "re");
    while (f && !is && fgets(line, sizeof line, f))
        is = strncmp(line, key, strlen(key)) == 0 &&
             strtoul(line + strlen(key), NULL, 10) == id;
    if (f)
        fclose(f);
    return is;
}

static bool near_nvidia(const char *root, unsigned long id, cpu_set_t *ret)
{
    char path[PATH];
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root,
                 e->d_name);
        if (*e->d_name == '.' || !is_minor(path, id))
            continue;
        snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/local_cpulist", root,
                 e->d_name);
        found = read_list(path, ret);
    }
    if (d)
        closedir(d);
    return found;
}

static bool near_file(const char *root, const char *file, unsigned long id,
                      cpu_set_t *ret)
{
    char path[PATH];
    struct stat st;
    snprintf(path, sizeof path, "%s%s%lu", root, file, id);
    if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
        return false;
    snprintf(path, sizeof path, "%s/sys/dev/char/%u:%u/device/local_cpulist", root,
             major(st.st_rdev), minor(st.st_rdev));
    return read_list(path, ret);
}

static bool near_one(const char *root, unsigned long id, cpu_set_t *ret)
{
    return near_nvidia(root, id, ret) || near_file(root, "/dev/nvidia", id, ret) ||
           near_file(root, "/dev/dri/renderD", id, ret);
}

bool trp_plugin_near(const char *root, const char *ids, cpu_set_t *ret)
{
    cpu_set_t wanted, all, one;
    CPU_ZERO(&all);
    if (!trp_plugin_cpu_list(ids, &wanted)) /* "0,2-3" as well */
        return false;
    for (unsigned long i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &wanted))
            continue;
        if (!near_one(root, i, &one))
            return false;
        CPU_OR(&all, &all, &one);
    }
    *ret = all;
    return true;
}
