/*
 * Processors read from a pretended /sys: two sockets whose CPUs alternate, with two
 * threads a core.
 */
#include "os/processors.h"

#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>

enum { CPUS = 16 };

static char *root;

static void put(const char *path, const char *text)
{
    g_autofree char *file = g_build_filename(root, path, NULL);
    g_autofree char *folder = g_path_get_dirname(file);
    g_assert_cmpint(g_mkdir_with_parents(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

static void put_cpu(int cpu, const char *file, const char *text)
{
    g_autofree char *path =
        g_strdup_printf("sys/devices/system/cpu/cpu%d/%s", cpu, file);
    put(path, text);
}

/* Even CPUs are socket 0, odd ones socket 1; CPU n and n + 8 are one core. */
static void make_machine(void)
{
    root = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    g_assert_nonnull(root);
    for (int i = 0; i < CPUS; i++) {
        g_autofree char *core = g_strdup_printf("%d,%d\n", i % 8, i % 8 + 8);
        put_cpu(i, "topology/thread_siblings_list", core);
        put_cpu(i, "topology/core_siblings_list",
                i % 2 ? "1,3,5,7,9,11,13,15\n" : "0,2,4,6,8,10,12,14\n");
    }
    put("sys/devices/system/node/has_cpu", "0-1\n");
    put("sys/devices/system/node/has_memory", "0-1\n");
    put("sys/devices/system/node/node0/cpulist", "0,2,4,6,8,10,12,14\n");
    put("sys/devices/system/node/node1/cpulist", "1,3,5,7,9,11,13,15\n");
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:  4194304 kB\n");
    put("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:  2097152 kB\n");
    put("proc/cpuinfo", "processor\t: 0\nmodel name\t: A Fine CPU\nflags\t\t: x\n");
    put("proc/self/status", "Name:\tx\nMems_allowed_list:\t0-1\nx:\t0\n");
}

static void remove_machine(void)
{
    const char *argv[] = {"rm", "-rf", root, NULL};
    g_assert_true(g_spawn_sync(NULL, (char **)(gpointer)argv, NULL, G_SPAWN_SEARCH_PATH,
                               NULL, NULL, NULL, NULL, NULL, NULL));
    g_clear_pointer(&root, g_free);
}

/* "0/0 8/0 …": numbers and nodes, in order. */
static char *look(const char *allowed)
{
    cpu_set_t set;
    struct trp_processor *list;
    uint32_t n;
    GString *text = g_string_new(NULL);
    CPU_ZERO(&set);
    for (const char *c = allowed; *c; c++)
        CPU_SET((size_t)g_ascii_xdigit_value(*c), &set);
    g_assert_true(trp_processors_list(root, &set, sizeof set, &list, &n));
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%u/%u", i ? " " : "", list[i].number,
                               list[i].node);
    free(list);
    return g_string_free(text, FALSE);
}

static void test_neighbours_stand_together(void)
{
    make_machine();
    g_autofree char *all = look("0123456789abcdef");
    g_assert_cmpstr(all, ==,
                    "0/0 8/0 2/0 10/0 4/0 12/0 6/0 14/0 "
                    "1/1 9/1 3/1 11/1 5/1 13/1 7/1 15/1");
    g_autofree char *some = look("3b14");
    g_assert_cmpstr(some, ==, "4/0 1/1 3/1 11/1");
    remove_machine();
}

static void test_what_the_kernel_does_not_tell(void)
{
    char model[8] = "x";
    root = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    g_autofree char *all = look("120");
    g_assert_cmpstr(all, ==, "0/0 1/0 2/0");
    trp_processors_model(root, model, sizeof model);
    g_assert_cmpstr(model, ==, "");
    g_assert_cmpint(trp_processors_memory_mib(root), ==, 0);
    remove_machine();
}

static void test_model(void)
{
    char model[128];
    make_machine();
    trp_processors_model(root, model, sizeof model);
    g_assert_cmpstr(model, ==, "A Fine CPU");
    remove_machine();
}

static void test_memory_of_some_nodes(void)
{
    make_machine();
    g_assert_cmpint(trp_processors_memory_mib(root), ==, 0);
    put("proc/self/status", "Name:\tx\nMems_allowed_list:\t1\nx:\t0\n");
    g_assert_cmpint(trp_processors_memory_mib(root), ==, 2048);
    remove_machine();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/processors/those that share a core or a socket stand together",
                    test_neighbours_stand_together);
    g_test_add_func("/processors/without topology they stand by number",
                    test_what_the_kernel_does_not_tell);
    g_test_add_func("/processors/the model is the first one's", test_model);
    g_test_add_func("/processors/memory is that of the nodes that may be used",
                    test_memory_of_some_nodes);
    return g_test_run();
}
