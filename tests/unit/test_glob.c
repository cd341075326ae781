/* Patterns: what matches, how it is spelled, what is left out. */
#include <sys/stat.h>

#include "driver_files.h"
#include "os/glob.h"
#include "unit.h"

/* Asserts that `pattern` below `dir` gives the words of `wanted`, joined by '|'. */
static void expect(const char *dir, const char *pattern, const char *wanted)
{
    char **v;
    size_t n;
    trp_error err = {0};
    GString *got = g_string_new("");
    int r = trp_glob(dir, pattern, &v, &n, &err);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(r, ==, 0);
    for (size_t i = 0; i < n; i++)
        g_string_append_printf(got, "%s%s", i ? "|" : "", v[i]);
    g_assert_cmpstr(got->str, ==, wanted);
    g_string_free(got, TRUE);
    trp_glob_free(v, n);
}

static char *tree(const char *const *paths)
{
    char *dir = files_new();
    for (; *paths; paths++)
        files_put(dir, *paths, "x");
    return dir;
}

TEST("special characters match within a folder, sorted bytewise")
{
    char *d = tree((const char *const[]){"in/b.txt", "in/a.txt", "in/B.txt", "in/c.dat",
                                         "in/sub/d.txt", "top.txt", NULL});
    expect(d, "in/*.txt", "in/B.txt|in/a.txt|in/b.txt");
    expect(d, "in/?.[ab]*", "");
    expect(d, "in/[!a].txt", "in/B.txt|in/b.txt");
    expect(d, "*/*/*.txt", "in/sub/d.txt");
    expect(d, "in/*", "in/B.txt|in/a.txt|in/b.txt|in/c.dat|in/sub");
    expect(d, "in/*/", "in/sub/");
    expect(d, "*.txt", "top.txt");
    expect(d, "none/*.txt", "");
    files_free(d);
}

TEST("results are spelled as the pattern spells them")
{
    char *d = tree((const char *const[]){"in/a.txt", "in/b.txt", NULL}), *pattern;
    expect(d, "./in/*.txt", "./in/a.txt|./in/b.txt");
    expect(d, "in/../in/a*", "in/../in/a.txt");
    expect(d, "in//a*", "in//a.txt");
    expect(d, "*/../in/b.txt", "in/../in/b.txt");
    pattern = g_strdup_printf("%s/in/b*", d);
    g_autofree char *wanted = g_strdup_printf("%s/in/b.txt", d);
    expect(NULL, pattern, wanted);
    expect("/nowhere", pattern, wanted);
    g_free(pattern);
    files_free(d);
}

TEST("a pattern without special characters is a file")
{
    char *d = tree((const char *const[]){"in/a.txt", "odd/a[1].txt", "odd/s*r", NULL});
    expect(d, "in/a.txt", "in/a.txt");
    expect(d, "in/none.txt", "");
    expect(d, "in/", "in/");
    expect(d, "in/a.txt/", "");
    expect(d, "odd/a\\[1\\].txt", "odd/a[1].txt");
    expect(d, "odd/s\\**", "odd/s*r");
    expect(d, "", "");
    expect(d, "/", "/");
    files_free(d);
}

TEST("an escaped name matches itself only")
{
    char *d = tree((const char *const[]){"a[1]*?\\.x", "a1.x", NULL});
    char *pattern = trp_glob_escape("a[1]*?\\.x");
    expect(d, pattern, "a[1]*?\\.x");
    free(pattern);
    files_free(d);
}

TEST("hidden names need a dot in the pattern")
{
    char *d =
        tree((const char *const[]){".h/x.txt", "v/.x.txt", "v/y.txt", ".z.txt", NULL});
    expect(d, "*", "v");
    expect(d, "**/*.txt", "v/y.txt");
    expect(d, ".*", ".h|.z.txt");
    expect(d, "v/.*", "v/.x.txt");
    expect(d, ".h/*.txt", ".h/x.txt");
    expect(d, "**/.x*", "v/.x.txt");
    files_free(d);
}

TEST("two stars stand for any number of folders")
{
    char *d = tree((const char *const[]){"a/x.txt", "a/b/x.txt", "a/b/c/x.txt",
                                         "a/b/y.dat", "x.txt", NULL});
    expect(d, "**/x.txt", "a/b/c/x.txt|a/b/x.txt|a/x.txt|x.txt");
    expect(d, "a/**/x.txt", "a/b/c/x.txt|a/b/x.txt|a/x.txt");
    expect(d, "a/**/c/*", "a/b/c/x.txt");
    expect(d, "a/**", "a/b/c/x.txt|a/b/x.txt|a/b/y.dat|a/x.txt");
    expect(d, "**/**/b/**/x.txt", "a/b/c/x.txt|a/b/x.txt");
    expect(d, "**/b/**/x.txt", "a/b/c/x.txt|a/b/x.txt");
    expect(d, "a/**/", "a/b/|a/b/c/");
    expect(d, "a**/x.txt", "a/x.txt");
    files_free(d);
}

TEST("a file reached in two ways is one result")
{
    char *d = tree((const char *const[]){"a/a/a/x", NULL});
    expect(d, "**/a/**/x", "a/a/a/x");
    expect(d, "**/a/**/a/**/x", "a/a/a/x");
    files_free(d);
}

TEST("a loop of links ends")
{
    char *d = tree((const char *const[]){"a/x.txt", NULL});
    g_autofree char *link = g_build_filename(d, "a", "loop", NULL);
    g_assert_cmpint(symlink("..", link), ==, 0);
    expect(d, "**/x.txt", "a/x.txt");
    expect(d, "a/loop/a/x.txt", "a/loop/a/x.txt");
    expect(d, "a/*/a/x.txt", "a/loop/a/x.txt");
    expect(d, "**", "a/loop|a/x.txt");
    expect(d, "**/loop/**/x.txt", "a/loop/a/x.txt");
    files_free(d);
}

TEST("names may be any bytes")
{
    char *d = tree((const char *const[]){"in/a b.txt", "in/q'\"q.txt", "in/n\nl.txt",
                                         "in/\303\244.txt", "in/\377.txt", NULL});
    expect(d, "in/*.txt",
           "in/a b.txt|in/n\nl.txt|in/q'\"q.txt|in/\303\244.txt|in/\377.txt");
    files_free(d);
}

TEST("a pattern with too many parts is refused")
{
    char **v;
    size_t n;
    trp_error err = {0};
    GString *pattern = g_string_new("*");
    for (int i = 0; i < TRP_GLOB_PARTS; i++)
        g_string_append(pattern, "/*");
    g_assert_cmpint(trp_glob(NULL, pattern->str, &v, &n, &err), ==, TRP_ELIMIT);
    g_assert_nonnull(strstr(err.text, "64 parts"));
    g_string_free(pattern, TRUE);
}

TEST("folders that are too deep are told")
{
    char **v, *d = files_new();
    size_t n;
    trp_error err = {0};
    GString *path = g_string_new("a");
    for (int i = 0; i < TRP_GLOB_DEPTH + 4; i++)
        g_string_append(path, "/a");
    files_put(d, path->str, "x");
    g_assert_cmpint(trp_glob(d, "**/x", &v, &n, &err), ==, TRP_ELIMIT);
    g_assert_nonnull(strstr(err.text, "deep"));
    g_string_free(path, TRUE);
    files_free(d);
}

TEST("two patterns overlap when a path can match both")
{
    static const struct {
        const char *a, *b;
        bool overlap;
    } cases[] = {
        {"parts/*.txt", "parts/a.txt", true },
        {"parts/*.txt", "parts/*",     true },
        {"*.txt",       "*.bam",       false},
        {"a*",          "*b",          true },
        {"*",           "x/y",         false},
        {"**",          "x/y",         true },
        {"**/*.c",      "a/b/x.c",     true },
        {"a/**/b",      "a/b",         true },
        {"x[0-9].c",    "x?.c",        true },
        {"x[!]a].c",    "xb.c",        true },
        {"x\\*",        "xa",          false},
        {"x\\*",        "x*",          true },
        {"./a//b",      "a/b",         true },
        {"a/",          "a",           false},
        {"",            "",            true },
        {"",            "*",           true },
        {"[",           "[",           true },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        bool there = trp_glob_overlap(cases[i].a, cases[i].b);
        bool back = trp_glob_overlap(cases[i].b, cases[i].a);
        if (there != cases[i].overlap || back != there)
            g_error("%s and %s: %d, %d", cases[i].a, cases[i].b, there, back);
    }
}
