/*
 * What `troupe check` reads on a host: plugstack.conf and the plugin.
 */
#include <glib.h>
#include <glib/gstdio.h>

#include "cluster/slurm/check/facts.h"
#include "unit.h"

static void write_file(const char *folder, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

TEST("plugstack.conf")
{
    struct trp_slurm_facts f = {0};
    const struct trp_slurm_plugin *p = &f.plugin;
    g_autofree char *folder = g_dir_make_tmp("test_slurm_check.XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "plugstack.conf", NULL);
    trp_slurm_facts_plugstack(&f, path);
    g_assert_cmpint(p->line.seen, ==, TRP_SLURM_MISSING);
    g_assert_cmpstr(p->line.path, ==, path);
    write_file(folder, "plugstack.conf",
               "# optional spank_troupe.so\n"
               "optional my_spank_troupe.so\nrequired\nrequired spank_troupe.so.1\n");
    trp_slurm_facts_plugstack(&f, path);
    g_assert_cmpint(p->line.seen, ==, TRP_SLURM_MISSING);
    write_file(folder, "plugstack.conf", "include parts/../*.part\n");
    write_file(folder, "a.part", "include a.part\noptional other.so\n");
    write_file(
        folder, "b.part",
        "\n required\t/opt/spank_troupe.so  x=1 site=/s.yaml shapes=/s.shapes # ours\n"
        "optional spank_troupe.so site=/later\n");
    trp_slurm_facts_plugstack(&f, path);
    g_assert_cmpint(p->line.seen, ==, TRP_SLURM_MISSING);
    write_file(folder, "plugstack.conf", "include *.part\n");
    trp_slurm_facts_plugstack(&f, path);
    g_autofree char *where = g_build_filename(folder, "b.part:2", NULL);
    g_assert_cmpint(p->line.seen, ==, TRP_SLURM_THERE);
    g_assert_cmpstr(p->line.path, ==, where);
    g_assert_true(p->required);
    g_assert_cmpstr(p->file.path, ==, "/opt/spank_troupe.so");
    g_assert_cmpstr(p->site, ==, "/s.yaml");
    g_assert_cmpstr(p->shapes.path, ==, "/s.shapes");
    static const char *const files[] = {"a.part", "b.part", "plugstack.conf"};
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *file = g_build_filename(folder, files[i], NULL);
        g_unlink(file);
    }
    g_rmdir(folder);
    trp_slurm_facts_free(&f);
}

/* Any prefix of an ELF file is looked at without harm, and none but a plugin has a
 * version. */
TEST("the version of a plugin")
{
    char *text, *path = NULL;
    gsize size;
    g_assert_true(g_file_get_contents("/proc/self/exe", &text, &size, NULL));
    int fd = g_file_open_tmp("test_slurm_check.XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_close(fd, NULL);
    for (gsize n = 0; n < size; n += n < 256 ? 16 : size / 50) {
        g_assert_true(g_file_set_contents(path, text, (gssize)n, NULL));
        g_assert_cmpuint(trp_slurm_plugin_version(path), ==, 0);
    }
    g_assert_cmpuint(trp_slurm_plugin_version("/nowhere"), ==, 0);
    g_assert_cmpuint(trp_slurm_plugin_version("/dev/null"), ==, 0);
    g_unlink(path);
    g_free(path);
    g_free(text);
}
