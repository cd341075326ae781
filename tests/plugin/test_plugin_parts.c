/*
 * What the plugin is made of: shapes, lists of CPUs, what is near a device, what a task
 * is told of devices that several resources share.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_spank.h"
#include "plugin/plugin.h"
#include "plugin/shapes.h"

#define HEAD "troupe-shapes 1\n"

static int parse(const char *text, const char *name, struct trp_shape *ret,
                 trp_error *err)
{
    char *copy = g_strdup(text);
    int code = trp_shapes_parse("shapes", copy, strlen(text), name, ret, err);
    g_free(copy);
    return code;
}

static void test_shapes(void)
{
    struct trp_shape s;
    trp_error err;
    static const char text[] =
        HEAD "# a comment\n\nscratch /x\nlimit time 3\nnew word\n"
             "profile a\nresource gpu gres 4 GPUS\n"
             "resource seat license 2 -\noption mem 3M\n"
             "profile b\nnever no room, ever\nend\n";
    g_assert_cmpint(parse(text, "a", &s, &err), ==, 0);
    g_assert_cmpuint(s.nresources, ==, 2);
    g_assert_cmpstr(s.resources[0].name, ==, "gpu");
    g_assert_cmpstr(s.resources[0].variable, ==, "GPUS");
    g_assert_cmpuint(s.resources[0].count, ==, 4);
    g_assert_true(s.resources[0].gres);
    g_assert_cmpstr(s.resources[1].variable, ==, "");
    g_assert_false(s.resources[1].gres);
    g_assert_cmpstr(s.never, ==, "");
    g_assert_cmpint(parse(text, "b", &s, &err), ==, 0);
    g_assert_cmpstr(s.never, ==, "no room, ever");
    g_assert_cmpuint(s.nresources, ==, 0);
    g_assert_cmpint(parse(HEAD "end\n", "b", &s, &err), ==, TRP_ENOENT);
    g_assert_cmpstr(err.text, ==, "unknown profile \"b\"; there are: none in shapes");
}

static void test_wrong_shapes(void)
{
    static const struct {
        const char *text, *wanted;
    } all[] = {
        {"",                                       "shapes:0: it is cut, \"end\" is missing"       },
        {"troupe-shapes 2\nend\n",                 "shapes:1: not shapes of this version of Troupe"},
        {"end\n",                                  "shapes:1: not shapes of this version"          },
        {HEAD "profile a\n",                       "shapes:2: it is cut"                           },
        {HEAD "profile\nend\n",                    "shapes:2: not a name of a profile"             },
        {HEAD "profile a b\nend\n",                "shapes:2: not a name of a profile"             },
        {HEAD "profile ../a\nend\n",               "shapes:2: not a name of a profile"             },
        {HEAD "end\nprofile a\n",                  "shapes:3: something behind the end"            },
        {HEAD "profile a\nresource gpu gres 1\n",  "shapes:3: not a resource"                      },
        {HEAD "resource gpu gres x GPUS\nend\n",   "shapes:2: not a resource"                      },
        {HEAD "resource gpu gres 1 A=B\nend\n",    "shapes:2: not a resource"                      },
        {HEAD "resource g/u gres 1 GPUS\nend\n",   "shapes:2: not a resource"                      },
        {HEAD "resource gpu gres 1 GPUS x\nend\n", "shapes:2: not a resource"                      },
    };
    struct trp_shape s = {.never = "as it was"};
    trp_error err;
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_cmpint(parse(all[i].text, "a", &s, &err), ==, TRP_EPROTO);
        if (!g_str_has_prefix(err.text, all[i].wanted) ||
            !strstr(err.text,
                    "; make it again: troupe site-shape --all --output shapes"))
            g_error("wanted %s, got %s", all[i].wanted, err.text);
    }
    char nul[] = HEAD "x\0y\nend\n";
    g_assert_cmpint(trp_shapes_parse("shapes", nul, sizeof nul - 1, "a", &s, &err), ==,
                    TRP_EPROTO);
    g_assert_cmpstr(s.never, ==, "as it was");
    GString *many = g_string_new(HEAD "profile a\n");
    for (int i = 0; i <= TRP_PROFILE_RESOURCES; i++)
        g_string_append(many, "resource gpu gres 1 GPUS\n");
    g_assert_cmpint(parse(many->str, "a", &s, &err), ==, TRP_EPROTO);
    g_string_free(many, TRUE);
}

static void test_cpu_lists(void)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "1-",
                                        "-1",
                                        "3-2",
                                        "1 ",
                                        "1,x",
                                        "1--2",
                                        "1\n2",
                                        "0x1",
                                        ",1",
                                        "1;2",
                                        "+1",
                                        "1-2-3",
                                        "1,,2",
                                        " 1",
                                        "\n",
                                        "1.5",
                                        "99999999999999999999"};
    cpu_set_t set;
    g_assert_true(trp_plugin_cpu_list("0-2,5\n", &set));
    g_assert_cmpint(CPU_COUNT(&set), ==, 4);
    g_assert_true(CPU_ISSET(0, &set) && CPU_ISSET(2, &set) && CPU_ISSET(5, &set));
    g_assert_true(trp_plugin_cpu_list("1000000-4000000000,7", &set));
    g_assert_cmpint(CPU_COUNT(&set), ==, 1);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        if (trp_plugin_cpu_list(wrong[i], &set))
            g_error("taken: %s", wrong[i]);
    }
    g_assert_cmpint(CPU_COUNT(&set), ==, 1);
}

static void put(const char *root, const char *path, const char *text)
{
    char *file = g_build_filename(root, path, NULL), *dir = g_path_get_dirname(file);
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
    g_free(file);
    g_free(dir);
}

static void put_link(const char *root, const char *path, const char *to)
{
    char *file = g_build_filename(root, path, NULL), *dir = g_path_get_dirname(file);
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    g_assert_cmpint(symlink(to, file), ==, 0);
    g_free(file);
    g_free(dir);
}

static void test_near(void)
{
    char *root = g_dir_make_tmp("troupe-near.XXXXXX", NULL);
    cpu_set_t set;
    /* GPU 3 is NVIDIA's, GPU 5 another's: character devices 1:3 and 1:5. */
    put(root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t X\nDevice Minor: \t 2\n");
    put(root, "proc/driver/nvidia/gpus/0000:81:00.0/information",
        "Model: \t\t X\nDevice Minor: \t 3\n");
    put(root, "sys/bus/pci/devices/0000:81:00.0/local_cpulist", "8-11,24-27\n");
    put_link(root, "dev/dri/renderD5", "/dev/zero");
    put(root, "sys/dev/char/1:5/device/local_cpulist", "0-1\n");
    g_assert_true(trp_plugin_near(root, "3", &set));
    g_assert_cmpint(CPU_COUNT(&set), ==, 8);
    g_assert_true(CPU_ISSET(8, &set) && CPU_ISSET(27, &set));
    g_assert_true(trp_plugin_near(root, "3,5", &set));
    g_assert_cmpint(CPU_COUNT(&set), ==, 10);
    /* One that is not known, or of which nothing is. */
    g_assert_false(trp_plugin_near(root, "2", &set));
    g_assert_false(trp_plugin_near(root, "3,4", &set));
    g_assert_false(trp_plugin_near(root, "", &set));
    g_assert_false(trp_plugin_near(root, "GPU-1f2e", &set));
    put(root, "sys/dev/char/1:5/device/local_cpulist", "\n");
    g_assert_false(trp_plugin_near(root, "5", &set));
    g_assert_cmpint(CPU_COUNT(&set), ==, 10);
    char *tidy = g_strdup_printf("rm -rf '%s'", root);
    g_assert_cmpint(system(tidy), ==, 0);
    g_free(tidy);
    g_free(root);
}

/* A task of profile p with that shape, where its devices are "7,8,9"; what it is told
 * of `name`, or "-". */
static char *told(const char *resources, const char *devices, const char *name)
{
    struct trp_plugin p = {.profile = "p"};
    trp_error err;
    char *text = NULL;
    char *variable = g_strconcat("TROUPE_RESOURCE_", name, NULL);
    int fd = g_file_open_tmp("troupe-shapes.XXXXXX", &text, NULL);
    close(fd);
    char *content = g_strdup_printf(HEAD "profile p\n%send\n", resources);
    g_assert_true(g_file_set_contents(text, content, -1, NULL));
    g_strlcpy(p.shapes, text, sizeof p.shapes);
    fake_reset(S_CTX_REMOTE);
    fake_put(variable, "of the job");
    if (devices)
        fake_put("GPUS", devices);
    g_assert_cmpint(trp_plugin_step(fake_handle(), &p, &err), ==, 0);
    char *got = g_strdup(fake_get(variable) ? fake_get(variable) : "-");
    g_remove(text);
    g_free(text);
    g_free(content);
    g_free(variable);
    return got;
}

static void test_told(void)
{
#define BOTH "resource a gres 2 GPUS\nresource b gres 1 GPUS\n"
    static const struct {
        const char *resources, *devices, *name, *wanted;
    } all[] = {
        {"resource a gres 1 GPUS\n", "7,8,9", "a",
         "7,8,9"                                               }, /* the user asked for more */
        {"resource a gres 1 GPUS\n", "",      "a", "-"         },
        {"resource a gres 1 GPUS\n", NULL,    "a", "-"         },
        {"resource a gres 2 -\n",    "7,8,9", "a", "0,1"       },
        {"resource a license 1 -\n", NULL,    "a", "0"         },
        {"resource c license 1 -\n", NULL,    "a", "of the job"},
        {BOTH,                       "7,8,9", "a", "7,8"       },
        {BOTH,                       "7,8,9", "b", "9"         },
        {BOTH,                       "7,8",   "b", "-"         },
        {BOTH,                       "7",     "a", "7"         },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        char *got = told(all[i].resources, all[i].devices, all[i].name);
        if (strcmp(got, all[i].wanted) != 0)
            g_error("%s of %s in %s: wanted %s, got %s", all[i].name, all[i].resources,
                    all[i].devices ? all[i].devices : "none", all[i].wanted, got);
        g_free(got);
    }
}

static void test_long_list(void)
{
    GString *list = g_string_new("0");
    for (int i = 1; i < 4000; i++)
        g_string_append_printf(list, ",%d", i);
    char *got = told("resource a gres 1 GPUS\n", list->str, "a");
    g_assert_cmpstr(got, ==, "-"); /* not half of it */
    g_free(got);
    g_string_free(list, TRUE);
}

static void test_settings(void)
{
    struct trp_plugin p;
    trp_error err = {0};
    char site[] = "site=/a/b/s.yaml", shapes[] = "shapes=/c", odd[] = "troupe=x";
    char *argv[] = {odd, site, shapes};
    g_assert_cmpint(trp_plugin_settings(0, NULL, &p, &err), ==, 0);
    g_assert_cmpstr(p.site, ==, "/etc/troupe/site.yaml");
    g_assert_cmpstr(p.shapes, ==, "/etc/troupe/shapes");
    char *program = g_file_read_link("/proc/self/exe", NULL);
    char *folder = g_path_get_dirname(program);
    g_assert_true(g_str_has_prefix(p.command, folder)); /* from where it lies */
    g_assert_true(g_str_has_suffix(p.command, "/bin/troupe"));
    g_free(program);
    g_free(folder);
    g_assert_cmpint(trp_plugin_settings(2, argv, &p, &err), ==, TRP_EINVAL);
    g_assert_cmpstr(p.site, ==, "/a/b/s.yaml");
    g_assert_cmpstr(p.shapes, ==, "/a/b/shapes");
    g_assert_true(g_str_has_suffix(p.command, "/bin/troupe"));
    g_assert_cmpint(trp_plugin_settings(3, argv, &p, NULL), ==, TRP_EINVAL);
    g_assert_cmpstr(p.shapes, ==, "/c");
    char *long_one = g_strdup_printf("site=/%0*d", PATH_MAX, 1);
    g_assert_cmpint(trp_plugin_settings(1, &long_one, &p, &err), ==, TRP_EINVAL);
    g_free(long_one);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parts/shapes say what a profile has", test_shapes);
    g_test_add_func("/parts/wrong shapes are told at their line", test_wrong_shapes);
    g_test_add_func("/parts/lists of CPUs", test_cpu_lists);
    g_test_add_func("/parts/what the system knows of a GPU says what is near",
                    test_near);
    g_test_add_func("/parts/a task is told the devices that it has", test_told);
    g_test_add_func("/parts/a list that is too long is not cut", test_long_list);
    g_test_add_func("/parts/arguments count but the wrong one", test_settings);
    return g_test_run();
}
