/*
 * Control groups read from pretended /proc and /sys/fs/cgroup trees of both versions.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "os/cgroup.h"
#include "unit.h"

static void put(const char *root, const char *path, const char *text)
{
    g_autofree char *file = g_build_filename(root, path, NULL);
    g_autofree char *folder = g_path_get_dirname(file);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

static char *make_root(void)
{
    char *root = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    g_assert_nonnull(root);
    return root;
}

static void remove_root(char *root)
{
    const char *argv[] = {"rm", "-rf", root, NULL};
    g_assert_true(g_spawn_sync(NULL, (char **)(gpointer)argv, NULL, G_SPAWN_SEARCH_PATH,
                               NULL, NULL, NULL, NULL, NULL, NULL));
    g_free(root);
}

TEST("v1 limits are the smallest on the way up")
{
    char *root = make_root();
    struct trp_cgroup_limits l;
    put(root, "proc/self/cgroup", "4:memory:/a/b\n3:cpu,cpuacct:/a\n0::/\n");
    put(root, "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put(root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n");
    put(root, "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1073741824\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
    put(root, "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    trp_cgroup_limits(root, &l);
    g_assert_cmpint(l.memory_mib, ==, 512);
    g_assert_cmpfloat(l.cpus, ==, 1.5);
    remove_root(root);
}

TEST("v2 limits are the smallest on the way up")
{
    char *root = make_root();
    struct trp_cgroup_limits l;
    put(root, "proc/self/cgroup", "0::/x.slice/y.scope\n");
    put(root, "proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put(root, "sys/fs/cgroup/x.slice/memory.max", "2147483648\n");
    put(root, "sys/fs/cgroup/x.slice/y.scope/memory.max", "max\n");
    put(root, "sys/fs/cgroup/x.slice/y.scope/cpu.max", "max 100000\n");
    put(root, "sys/fs/cgroup/x.slice/cpu.max", "400000 100000\n");
    trp_cgroup_limits(root, &l);
    g_assert_cmpint(l.memory_mib, ==, 2048);
    g_assert_cmpfloat(l.cpus, ==, 4.0);
    remove_root(root);
}

TEST("a container reads its own part of the tree")
{
    char *root = make_root();
    struct trp_cgroup_limits l;
    put(root, "proc/self/cgroup", "4:memory:/docker/123\n");
    put(root, "proc/self/mountinfo",
        "35 31 0:32 /docker/123 /sys/fs/cgroup/memory ro - cgroup cgroup ro,memory\n");
    put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
    trp_cgroup_limits(root, &l);
    g_assert_cmpint(l.memory_mib, ==, 256);
    g_assert_cmpfloat(l.cpus, ==, 0.0);
    remove_root(root);
}

TEST("without control groups there is no limit and no group")
{
    char *root = make_root();
    struct trp_cgroup_limits l;
    struct trp_cgroup_memory m;
    trp_cgroup_limits(root, &l);
    g_assert_cmpint(l.memory_mib, ==, 0);
    g_assert_cmpfloat(l.cpus, ==, 0.0);
    trp_cgroup_memory_open(root, "troupe-test-", NULL, &m);
    g_assert_false(m.usable);
    remove_root(root);
}

/* Whoever is killed during the trial has said where it is, and a sweep finds it. */
TEST("a trial that was broken off is found by a sweep")
{
    char *root = make_root();
    struct trp_cgroup_memory m;
    union {
        struct inotify_event event;
        char room[4096];
    } made;
    put(root, "proc/self/cgroup", "4:memory:/a\n");
    put(root, "proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    g_autofree char *parent = g_build_filename(root, "sys/fs/cgroup/memory/a", NULL),
                    *folder = g_build_filename(root, "mine", NULL),
                    *link = g_build_filename(folder, TRP_CGROUP_LINK, NULL);
    g_assert_cmpint(g_mkdir_with_parents(parent, 0700), ==, 0);
    g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    g_assert_cmpint(inotify_add_watch(watch, parent, IN_CREATE), >=, 0);
    for (int i = 0; i < 2; i++) { /* a driver may begin again */
        trp_cgroup_memory_open(root, "troupe-abcdef-", folder, &m);
        g_assert_false(m.usable); /* a plain folder takes no limit */
        g_autofree char *place = g_file_read_link(link, NULL);
        g_assert_cmpstr(place, ==, parent);
    }
    g_assert_cmpint(read(watch, &made, sizeof made), >, (int)sizeof made.event);
    close(watch);
    g_autofree char *group = g_build_filename(parent, made.event.name, NULL);
    g_assert_cmpint(g_access(group, F_OK), ==, -1);
    g_assert_cmpint(g_mkdir(group, 0700), ==, 0);
    g_assert_true(trp_cgroup_memory_sweep(root, "troupe-abcdef-", false));
    g_assert_cmpint(g_access(group, F_OK), ==, -1);
    remove_root(root);
}

TEST("kills for memory are counted in both versions")
{
    char *root = make_root();
    put(root, "v2/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 7\n");
    put(root, "v1/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    g_autofree char *v1 = g_build_filename(root, "v1", NULL);
    g_autofree char *v2 = g_build_filename(root, "v2", NULL);
    g_assert_cmpuint(trp_cgroup_oom_kills(v2, true), ==, 2);
    g_assert_cmpuint(trp_cgroup_oom_kills(v1, false), ==, 4);
    g_assert_cmpuint(trp_cgroup_oom_kills("/nonexistent", false), ==, 0);
    g_assert_true(trp_cgroup_remove("/nonexistent"));
    remove_root(root);
}
