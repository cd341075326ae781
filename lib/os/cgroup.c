/*
 * Where am I: /proc/self/cgroup has a line a hierarchy, "ID:CONTROLLERS:PATH", v2's
 * with ID 0 and no controllers. Where is it mounted: /proc/self/mountinfo, whose fourth
 * field is the part of the hierarchy that the mount shows (a container sees only its
 * own part, but reads the host's path in /proc/self/cgroup: that part is taken off).
 *
 * Limits: every folder from ours up to the mount point is read, the smallest wins.
 *
 * A memory group for an executor: on v1 below our own group. On v2 a group with
 * processes in it cannot have children with controllers, so our own folder serves only
 * when it is the root; else a sibling of our own is made, where the parent hands the
 * memory controller down (a delegated unit, or root). Whether that is allowed is not
 * computed but tried once, with a child that joins: the rules differ by version,
 * delegation and container.
 */
#include "os/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/ids.h"
#include "os/whole_file.h"

enum { LINE = 4096, NO_LIMIT_MIB = INT32_MAX };

/* A controller's hierarchy as this process sees it. */
struct place {
    bool v2;
    char mount[TRP_CGROUP_PATH];
    char own[TRP_CGROUP_PATH]; /* MOUNT/PATH */
};

static bool read_text(const char *path, char *buf, size_t size)
{
    return trp_file_begin(AT_FDCWD, path, 0, buf, size) >= 0;
}

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text);
}

static bool join(char *ret, const char *a, const char *b)
{
    int n = snprintf(ret, TRP_CGROUP_PATH, "%s/%s", a, b);
    return n > 0 && n < TRP_CGROUP_PATH;
}

/* Both have TRP_CGROUP_PATH bytes. */
static void copy_path(char *to, const char *from)
{
    memcpy(to, from, strlen(from) + 1);
}

/* Is `word` one of the comma- or blank-separated words of `list`? */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ", \n");
        if (len == n && memcmp(at, word, n) == 0)
            return true;
        at += len;
        at += strspn(at, ", \n");
    }
    return false;
}

/* The path of our group: of `controller` (v1), or of v2 with controller "". */
static bool own_path(const char *root, const char *controller, char *ret, size_t size)
{
    char file[LINE], line[LINE];
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *f = fopen(file, "re");
    if (!f)
        return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *controllers++ = '\0';
        *path++ = '\0';
        bool this_one = *controller ? has_word(controllers, controller) : !*controllers;
        if (this_one && strlen(path) < size) {
            copy_path(ret, path);
            found = true;
        }
    }
    fclose(f);
    return found;
}

/* The mount of `controller` (v1) or of v2 with "", and the part of it that is shown. */
static bool find_mount(const char *root, const char *controller, char *ret_mount,
                       char *ret_part)
{
    char file[LINE], line[LINE];
    snprintf(file, sizeof file, "%s/proc/self/mountinfo", root);
    FILE *f = fopen(file, "re");
    if (!f)
        return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char part[TRP_CGROUP_PATH], mount[TRP_CGROUP_PATH], type[32], options[512];
        const char *tail = strstr(line, " - ");
        if (!tail || sscanf(line, "%*s %*s %*s %511s %511s", part, mount) != 2 ||
            sscanf(tail, " - %31s %*s %511s", type, options) != 2)
            continue;
        bool this_one =
            *controller ? strcmp(type, "cgroup") == 0 && has_word(options, controller)
                        : strcmp(type, "cgroup2") == 0;
        int n = snprintf(ret_mount, TRP_CGROUP_PATH, "%s%s", root, mount);
        if (this_one && n < TRP_CGROUP_PATH) {
            copy_path(ret_part, part);
            found = true;
        }
    }
    fclose(f);
    return found;
}

static bool find_place(const char *root, const char *controller, bool v2,
                       struct place *ret)
{
    char path[TRP_CGROUP_PATH], part[TRP_CGROUP_PATH];
    const char *word = v2 ? "" : controller;
    if (!find_mount(root, word, ret->mount, part) ||
        !own_path(root, word, path, sizeof path))
        return false;
    ret->v2 = v2;
    size_t n = strcmp(part, "/") == 0 ? 0 : strlen(part);
    const char *rest = strncmp(path, part, n) == 0 ? path + n : path;
    struct stat st;
    if (strcmp(rest, "/") == 0 || !*rest ||
        !join(ret->own, ret->mount, rest + (*rest == '/')) || stat(ret->own, &st) < 0)
        copy_path(ret->own, ret->mount);
    return true;
}

/* Calls `look` on our folder and all above it, up to the mount point. */
static void walk_up(const struct place *p, struct trp_cgroup_limits *limits,
                    void (*look)(const char *folder, bool v2,
                                 struct trp_cgroup_limits *limits))
{
    char at[TRP_CGROUP_PATH];
    copy_path(at, p->own);
    for (;;) {
        look(at, p->v2, limits);
        char *slash = strrchr(at, '/');
        if (strlen(at) <= strlen(p->mount) || !slash)
            return;
        *slash = '\0';
    }
}

static void look_memory(const char *folder, bool v2, struct trp_cgroup_limits *limits)
{
    char path[TRP_CGROUP_PATH], text[64];
    if (!join(path, folder, v2 ? "memory.max" : "memory.limit_in_bytes") ||
        !read_text(path, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return;
    unsigned long long mib = strtoull(text, NULL, 10) >> 20;
    if (mib < NO_LIMIT_MIB &&
        (!limits->memory_mib || (int64_t)mib < limits->memory_mib))
        limits->memory_mib = mib ? (int64_t)mib : 1;
}

static void look_cpu(const char *folder, bool v2, struct trp_cgroup_limits *limits)
{
    char path[TRP_CGROUP_PATH], text[64];
    double quota = 0, period = 0;
    if (v2) {
        if (!join(path, folder, "cpu.max") || !read_text(path, text, sizeof text) ||
            sscanf(text, "%lf %lf", &quota, &period) != 2)
            return;
    } else {
        if (!join(path, folder, "cpu.cfs_quota_us") ||
            !read_text(path, text, sizeof text))
            return;
        quota = strtod(text, NULL);
        if (!join(path, folder, "cpu.cfs_period_us") ||
            !read_text(path, text, sizeof text))
            return;
        period = strtod(text, NULL);
    }
    if (quota <= 0 || period <= 0)
        return;
    if (limits->cpus <= 0 || quota / period < limits->cpus)
        limits->cpus = quota / period;
}

void trp_cgroup_limits(const char *root, struct trp_cgroup_limits *ret)
{
    struct place p;
    memset(ret, 0, sizeof *ret);
    if (find_place(root, "memory", false, &p))
        walk_up(&p, ret, look_memory);
    if (find_place(root, "cpu", false, &p))
        walk_up(&p, ret, look_cpu);
    if (find_place(root, "", true, &p)) {
        walk_up(&p, ret, look_memory);
        walk_up(&p, ret, look_cpu);
    }
}

bool trp_cgroup_own_memory(const char *root, char *ret_path, bool *ret_v2,
                           int64_t *ret_limit_mib)
{
    struct place p;
    struct trp_cgroup_limits limits = {0};
    char file[TRP_CGROUP_PATH];
    bool found = false;
    for (int v2 = 0; v2 < 2 && !found; v2++)
        found = find_place(root, "memory", v2, &p) &&
                join(file, p.own, v2 ? "memory.events" : "memory.oom_control") &&
                access(file, R_OK) == 0;
    if (!found)
        return false;
    walk_up(&p, &limits, look_memory);
    copy_path(ret_path, p.own);
    *ret_v2 = p.v2;
    *ret_limit_mib = limits.memory_mib;
    return true;
}

int64_t trp_cgroup_peak_mib(const char *path, bool v2)
{
    char file[TRP_CGROUP_PATH], text[64];
    if (!join(file, path, v2 ? "memory.peak" : "memory.max_usage_in_bytes") ||
        !read_text(file, text, sizeof text))
        return 0;
    return (int64_t)(strtoull(text, NULL, 10) >> 20);
}

/* Does this v2 folder hand the memory controller down? */
static bool hands_down(const char *folder)
{
    char path[TRP_CGROUP_PATH], text[512];
    return join(path, folder, "cgroup.subtree_control") &&
           read_text(path, text, sizeof text) && has_word(text, "memory");
}

/* A child joins the group as an executor does (executor/executor.c), goes back and
 * ends: may they do that? (Going back, since a group is not free for some 50 ms after a
 * process has ended in it.) */
static bool may_join(const char *group, const char *own, bool v2)
{
    char path[TRP_CGROUP_PATH], back[TRP_CGROUP_PATH];
    const char *file = v2 ? "cgroup.procs" : "tasks";
    if (!join(path, group, file) || !join(back, own, file))
        return false;
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0)
        _exit(write_text(path, "0") && write_text(back, "0") ? 0 : 1);
    int status = 1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0;
}

/* Folders in which groups may be made: at most three, with the group we are in. */
struct candidates {
    struct candidate {
        bool v2;
        char parent[TRP_CGROUP_PATH], own[TRP_CGROUP_PATH];
    } v[3];
    int n;
};

static void find_candidates(const char *root, struct candidates *c)
{
    struct place p;
    c->n = 0;
    if (find_place(root, "memory", false, &p)) {
        struct candidate *v = &c->v[c->n++];
        v->v2 = false;
        copy_path(v->own, p.own);
        copy_path(v->parent, p.own);
    }
    if (!find_place(root, "", true, &p))
        return;
    for (int up = 0; up < 2; up++) {
        struct candidate *v = &c->v[c->n];
        v->v2 = true;
        copy_path(v->own, p.own);
        copy_path(v->parent, p.own);
        char *slash = strrchr(v->parent, '/');
        if (up && (!slash || strlen(p.own) <= strlen(p.mount)))
            return;
        if (up)
            *slash = '\0';
        if (hands_down(v->parent))
            c->n++;
    }
}

static void leave_link(const char *folder, const char *parent)
{
    char link[PATH_MAX];
    if (snprintf(link, sizeof link, "%s/" TRP_CGROUP_LINK, folder) >= (int)sizeof link)
        return;
    unlink(link);
    int ignored = symlink(parent, link); /* they are then found from our own group */
    (void)ignored;
}

void trp_cgroup_memory_open(const char *root, const char *prefix, const char *folder,
                            struct trp_cgroup_memory *ret)
{
    struct candidates c;
    char name[NAME_MAX + 1];
    memset(ret, 0, sizeof *ret);
    snprintf(name, sizeof name, "%s%u", prefix, TRP_NONE);
    find_candidates(root, &c);
    for (int i = 0; i < c.n && !ret->usable; i++) {
        char group[TRP_CGROUP_PATH];
        ret->v2 = c.v[i].v2;
        copy_path(ret->parent, c.v[i].parent);
        if (folder)
            leave_link(folder, ret->parent);
        if (!trp_cgroup_memory_make(ret, name, 64, group))
            continue;
        ret->usable = may_join(group, c.v[i].own, ret->v2);
        trp_cgroup_remove(group);
    }
}

bool trp_cgroup_memory_make(const struct trp_cgroup_memory *m, const char *name,
                            int64_t limit_mib, char *ret_path)
{
    char path[TRP_CGROUP_PATH], file[TRP_CGROUP_PATH], text[32];
    if (!join(path, m->parent, name) ||
        !join(file, path, m->v2 ? "memory.max" : "memory.limit_in_bytes") ||
        mkdir(path, 0755) < 0)
        return false;
    snprintf(text, sizeof text, "%lld", (long long)limit_mib << 20);
    if (!write_text(file, text)) {
        rmdir(path);
        return false;
    }
    /* No swapping around the limit, where swap is counted at all. */
    if (m->v2) {
        if (join(file, path, "memory.swap.max"))
            write_text(file, "0");
    } else if (join(file, path, "memory.memsw.limit_in_bytes")) {
        write_text(file, text);
    }
    copy_path(ret_path, path);
    return true;
}

uint64_t trp_cgroup_oom_kills(const char *path, bool v2)
{
    char file[TRP_CGROUP_PATH], text[1024];
    if (!join(file, path, v2 ? "memory.events" : "memory.oom_control") ||
        !read_text(file, text, sizeof text))
        return 0;
    /* At the start of a line: v2 also has "oom_group_kill". */
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, "oom_kill ", 9) == 0)
            return strtoull(at + 9, NULL, 10);
    }
    return 0;
}

/* Calls `what` for the group and those in it, which executors make for their commands; false
 * once it said so. */
static bool for_all(const char *path, bool (*what)(const char *group, int *total),
                    int *total)
{
    bool go = true;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && go && (e = readdir(dir));) {
        char below[TRP_CGROUP_PATH];
        if (e->d_type == DT_DIR && e->d_name[0] != '.' && join(below, path, e->d_name))
            go = what(below, total);
    }
    if (dir)
        closedir(dir);
    return go && what(path, total);
}

static bool kill_in(const char *path, int *total)
{
    char file[TRP_CGROUP_PATH];
    int pid;
    FILE *f = join(file, path, "cgroup.procs") ? fopen(file, "re") : NULL;
    while (f && fscanf(f, "%d", &pid) == 1) {
        if (pid > 1 && pid != getpid() && kill(pid, SIGKILL) == 0)
            ++*total;
    }
    if (f)
        fclose(f);
    return true;
}

static bool is_empty(const char *path, int *total)
{
    char file[TRP_CGROUP_PATH], text[16];
    (void)total;
    return !join(file, path, "cgroup.procs") || !read_text(file, text, sizeof text) ||
           !text[0];
}

static bool remove_one(const char *path, int *total)
{
    (void)total;
    return rmdir(path) == 0 || errno == ENOENT;
}

int trp_cgroup_kill(const char *path)
{
    int killed = 0;
    for_all(path, kill_in, &killed);
    return killed;
}

bool trp_cgroup_is_empty(const char *path)
{
    return for_all(path, is_empty, NULL);
}

bool trp_cgroup_remove(const char *path)
{
    return for_all(path, remove_one, NULL);
}

bool trp_cgroup_memory_sweep_in(const char *parent, const char *prefix, bool kill)
{
    size_t n = strlen(prefix);
    bool gone = true;
    DIR *dir = opendir(parent);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[TRP_CGROUP_PATH];
        if (strncmp(e->d_name, prefix, n) != 0 || !e->d_name[n] ||
            strspn(e->d_name + n, "0123456789") != strlen(e->d_name + n) ||
            !join(path, parent, e->d_name))
            continue;
        bool removed = trp_cgroup_remove(path);
        for (int i = 0; i < 200 && !removed && kill; i++) {
            trp_cgroup_kill(path);
            usleep(5000);
            removed = trp_cgroup_remove(path);
        }
        gone &= removed;
    }
    if (dir)
        closedir(dir);
    return gone;
}

bool trp_cgroup_memory_sweep(const char *root, const char *prefix, bool kill)
{
    struct candidates c;
    bool gone = true;
    find_candidates(root, &c);
    for (int i = 0; i < c.n; i++)
        gone &= trp_cgroup_memory_sweep_in(c.v[i].parent, prefix, kill);
    return gone;
}
