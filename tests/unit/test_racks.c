/*
 * Racks from a file and from a pattern.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/racks.h"
#include "conf/site.h"
#include "unit.h"

static trp_site *site(const char *file, const char *text)
{
    trp_site *s = NULL;
    trp_error err = {0};
    int code = trp_site_parse(file, text, strlen(text), &s, &err);
    if (code < 0)
        g_test_message("%s", err.text);
    g_assert_cmpint(code, ==, 0);
    return s;
}

static void expect(const trp_racks *r, const char *host, const char *rack)
{
    char buf[TRP_RACKS_NAME_MAX + 1];
    g_test_message("host %s", host);
    g_assert_cmpstr(trp_racks_of(r, host, buf, sizeof buf), ==, rack);
}

TEST("a pattern's group is the rack")
{
    trp_racks *r;
    trp_error err;
    trp_site *s = site("s.yaml", "site: 1\nracks: {pattern: \"r([0-9]+)n[0-9]+\"}\n");
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, 0);
    expect(r, "r12n3", "12");
    expect(r, "r07n130", "07");
    expect(r, "r12n3.cluster.example", "12");
    expect(r, "xr12n3", "");
    expect(r, "r12n3x", "");
    expect(r, "", "");
    trp_racks_close(r);
    trp_site_free(s);
    s = site("s.yaml", "site: 1\nracks: {pattern: \"n[0-9]+\\\\.(a|b)\\\\.org\"}\n");
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, 0);
    expect(r, "n1.a.org", "a");
    expect(r, "n1.b.org", "b");
    expect(r, "n1.c.org", "");
    trp_racks_close(r);
    trp_site_free(s);
}

static const struct {
    const char *pattern, *words;
} bad_patterns[] = {
    {"node[0-9]+",        "one group"     },
    {"(a)(b)",            "one group"     },
    {"((a{99}){99}){99}", "{n} may stand" },
    {"(a{255})",          "{n} may stand" },
    {"(a+){9}",           "{n} may stand" },
    {"(a{9}{9})",         "{n} may stand" },
    {"(a++)",             "side by side"  },
    {"(a{2}*)",           "side by side"  },
    {"(a)\\1",            "back reference"},
    {"(a",                "correct"       },
    {"a(b))",             "correct"       },
    {"([a",               "not closed"    },
    {"(a)\\",             "ends in"       },
};

TEST("patterns that cannot be used are refused")
{
    trp_error err;
    g_autofree char *longest = g_strnfill(TRP_RACKS_PATTERN_MAX + 1, 'a');
    for (size_t i = 0; i < G_N_ELEMENTS(bad_patterns); i++) {
        int code = trp_racks_check_pattern(bad_patterns[i].pattern, &err);
        g_test_message("%s: %s", bad_patterns[i].pattern,
                       code < 0 ? err.text : "taken");
        g_assert_cmpint(code, ==, TRP_EINVAL);
        g_assert_nonnull(strstr(err.text, bad_patterns[i].words));
    }
    g_assert_cmpint(trp_racks_check_pattern(longest, &err), ==, TRP_EINVAL);
    g_assert_cmpint(trp_racks_check_pattern("r([0-9]{1,2})n[[:digit:]]{3}", &err), ==,
                    0);
    g_assert_cmpint(trp_racks_check_pattern("[]a(](x)", &err), ==, 0);
}

TEST("a file's lines say which hosts a rack has")
{
    static const char text[] = "# the machine room\n"
                               "node[1-3,07]  rack-a\n"
                               "\tnode4,gpu[01-02]n rack-b # new\r\n"
                               "\n"
                               "login.example.org front\n"
                               "node4 rack-b";
    trp_racks *r;
    trp_error err;
    g_assert_cmpint(trp_racks_parse("racks", text, strlen(text), &r, &err), ==, 0);
    expect(r, "node1", "rack-a");
    expect(r, "node3", "rack-a");
    expect(r, "node07", "rack-a");
    expect(r, "node7", "");
    expect(r, "node4", "rack-b");
    expect(r, "gpu02n", "rack-b");
    expect(r, "gpu2n", "");
    expect(r, "login.example.org", "front");
    expect(r, "node2.example.org", "rack-a");
    trp_racks_close(r);
    g_assert_cmpint(trp_racks_parse("racks", "", 0, &r, &err), ==, 0);
    expect(r, "node1", "");
    trp_racks_close(r);
}

static const struct {
    const char *text, *place, *words;
} bad_files[] = {
    {"node1\n",                 "1:1",  "HOSTS RACK"              },
    {"\n  node1 a b\n",         "2:11", "HOSTS RACK"              },
    {"node[1-2 a\n",            "1:1",  "list of hosts"           },
    {"a,node[2-1] a\n",         "1:3",  "list of hosts"           },
    {"node[x] a\n",             "1:1",  "list of hosts"           },
    {"node[1][2] a\n",          "1:1",  "list of hosts"           },
    {"node] a\n",               "1:1",  "list of hosts"           },
    {"node1,,node2 a\n",        "1:7",  "not a host's name"       },
    {"node[1-9999999] a\n",     "1:1",  "1000000 hosts"           },
    {"a x\nb x\na y\n",         "3:1",  "in rack y and, by line 1"},
    {"n1 a\nn[2-3],n[1-2] b\n", "2:8",  "host n1 is in rack b"    },
};

TEST("each wrong line is told at its place")
{
    for (size_t i = 0; i < G_N_ELEMENTS(bad_files); i++) {
        trp_racks *r = NULL;
        trp_error err = {0};
        int code = trp_racks_parse("racks", bad_files[i].text,
                                   strlen(bad_files[i].text), &r, &err);
        g_autofree char *begin = g_strdup_printf("racks:%s: ", bad_files[i].place);
        g_test_message("wanted %s... %s ..., got %s", begin, bad_files[i].words,
                       err.text);
        g_assert_cmpint(code, ==, TRP_EINVAL);
        g_assert_true(g_str_has_prefix(err.text, begin));
        g_assert_nonnull(strstr(err.text, bad_files[i].words));
    }
}

TEST("a file is looked for beside the site file")
{
    trp_racks *r;
    trp_error err;
    g_autofree char *dir = g_dir_make_tmp("troupe-test-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "site.yaml", NULL);
    g_autofree char *racks = g_build_filename(dir, "racks.txt", NULL);
    trp_site *s = site(file, "site: 1\nracks: {file: racks.txt}\n");
    g_assert_cmpstr(s->racks_text, ==, racks);
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, TRP_EINVAL);
    g_assert_nonnull(strstr(err.text, "site.yaml:2:8: racks: "));
    g_assert_true(g_file_set_contents(racks, "node1 a\n", -1, NULL));
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, 0);
    expect(r, "node1", "a");
    trp_racks_close(r);
    trp_site_free(s);
    s = site(file, "site: 1\nracks: {file: .}\n");
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, TRP_EINVAL);
    trp_site_free(s);
    s = site(file, "site: 1\nracks: {file: /proc/self/mem}\n"); /* reads fail */
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, TRP_ESYSTEM);
    trp_site_free(s);
    s = site(file, "site: 1\nracks: {from: slurm}\n");
    g_assert_cmpint(trp_racks_open(s, &r, &err), ==, 0);
    expect(r, "node1", "");
    trp_racks_close(r);
    trp_site_free(s);
    unlink(racks);
    rmdir(dir);
}
