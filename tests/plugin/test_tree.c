/* Removal of trees that somebody wants to be removed badly. */
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/error.h"
#include "os/tree.h"

static int top; /* where all is made; the working folder too */

static void put(const char *path, const char *text)
{
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool there(const char *path)
{
    return faccessat(top, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int remove_all(const char *name)
{
    size_t all = SIZE_MAX;
    return trp_tree_remove(top, name, &all);
}

/* A command of a shell, for what is set up. */
static void sh(const char *command)
{
    g_assert_cmpint(system(command), ==, 0); /* NOLINT(cert-env33-c) */
}

static void test_links(void)
{
    sh("mkdir keep d; ln -s ../keep d/soft; ln -s ../../../../etc d/away; ln -s d "
       "d/self");
    put("keep/file", "x");
    g_assert_cmpint(link("keep/file", "d/hard"), ==, 0);
    g_assert_cmpint(symlink("keep", "top"), ==, 0);
    g_assert_cmpint(remove_all("d"), ==, 0);
    g_assert_false(there("d"));
    g_assert_cmpint(remove_all("top"), ==, 0);
    g_assert_true(there("keep/file"));
    g_assert_cmpint(remove_all("keep"), ==, 0);
}

static void test_kinds_and_names(void)
{
    sh("mkdir d; mkfifo d/fifo; touch d/-rf \"d/a\nb\" 'd/ ' 'd/*' d/$(printf "
       "'\\377\\001')");
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    int d = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(mkdirat(d, name, 0700), ==, 0);
    close(d);
    g_assert_cmpint(remove_all("d"), ==, 0);
    g_assert_false(there("d"));
}

static void test_modes(void)
{
    sh("mkdir -p d/read/only d/no/rights d/blind; touch d/read/file d/read/only/file "
       "d/no/rights/file d/blind/file; chmod 0555 d/read d/read/only; chmod 0 "
       "d/no/rights "
       "d/no; chmod 0300 d/blind");
    g_assert_cmpint(remove_all("d"), ==, 0);
    g_assert_false(there("d"));
}

/* Deeper than descriptors and paths go. */
static void test_depth(void)
{
    enum { DEEP = 300 };
    char name[201] = "";
    memset(name, 'd', 200);
    int at = dup(top);
    for (int i = 0; i < DEEP; i++) {
        g_assert_cmpint(mkdirat(at, name, 0700), ==, 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
    g_assert_cmpint(remove_all(name), ==, 0);
    g_assert_false(there(name));
}

static void test_absolute_path(void)
{
    size_t all = SIZE_MAX;
    sh("mkdir -p d/a; touch d/a/b; ln -s . link");
    char *here = g_get_current_dir(), *path = g_build_filename(here, "link/d", NULL);
    g_assert_cmpint(trp_tree_remove(AT_FDCWD, path, &all), ==, 0);
    g_assert_false(there("d"));
    g_assert_cmpint(unlink("link"), ==, 0);
    g_free(path);
    g_free(here);
}

static void test_budget(void)
{
    size_t budget = 10;
    sh("mkdir d; for i in $(seq 25); do : >d/$i; done");
    g_assert_cmpint(trp_tree_remove(top, "d", &budget), ==, TRP_EWAIT);
    g_assert_cmpuint(budget, ==, 0);
    g_assert_cmpint(remove_all("d"), ==, 0);
}

static void test_empty_keeps_the_folder(void)
{
    size_t all = SIZE_MAX;
    sh("mkdir -p d/a/b; touch d/a/b/c; chmod 0 d");
    int d = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d < 0) {
        g_test_skip("needs root");
        return;
    }
    g_assert_cmpint(trp_tree_empty(d, &all), ==, 0);
    g_assert_cmpint(trp_tree_empty(d, &all), ==, 0);
    close(d);
    g_assert_true(there("d"));
    g_assert_cmpint(rmdir("d"), ==, 0);
}

/* What cannot go stays, the rest goes. */
static void test_mounts(void)
{
    sh("mkdir -p d/a d/mount d/z; touch d/a/file d/z/file");
    if (mount("none", "d/mount", "tmpfs", 0, NULL) != 0) {
        remove_all("d");
        g_test_skip("may not mount");
        return;
    }
    put("d/mount/file", "x");
    g_assert_cmpint(remove_all("d"), ==, TRP_ESYSTEM);
    g_assert_true(there("d/mount/file"));
    g_assert_false(there("d/a"));
    g_assert_false(there("d/z"));
    /* What lies in it, and is given by its path, goes. */
    sh("mkdir -p d/mount/x/y");
    g_assert_cmpint(remove_all("d/mount/x"), ==, 0);
    g_assert_false(there("d/mount/x"));
    g_assert_cmpint(umount("d/mount"), ==, 0);
    /* Of the same file system: no other device number tells. */
    sh("mkdir keep; touch keep/file");
    g_assert_cmpint(mount("keep", "d/mount", NULL, MS_BIND, NULL), ==, 0);
    g_assert_cmpint(remove_all("d"), ==, TRP_ESYSTEM);
    g_assert_null(trp_folder_open(top, "d/mount"));
    g_assert_true(there("keep/file"));
    g_assert_cmpint(umount("d/mount"), ==, 0);
    g_assert_cmpint(remove_all("d"), ==, 0);
    g_assert_cmpint(remove_all("keep"), ==, 0);
}

/* Swaps d/a/x, a folder, and a link to ../../keep for as long as it lives. */
static pid_t start_swapper(void)
{
    pid_t pid = fork();
    if (pid > 0)
        return pid;
    for (;;) {
        mkdir("d", 0700);
        mkdir("d/a", 0700);
        mkdir("d/a/x", 0700);
        close(creat("d/a/x/file", 0600));
        rename("d/a/x", "aside");
        (void)!symlink("../../keep", "d/a/x");
        unlink("d/a/x");
        rename("aside", "d/a/x");
        rename("d/a/x", "d/y");
    }
}

static void test_swaps(void)
{
    sh("mkdir keep; touch keep/file keep/other");
    pid_t pid = start_swapper();
    gint64 until = g_get_monotonic_time() + G_USEC_PER_SEC / 2;
    int tries = 0;
    while (g_get_monotonic_time() < until) {
        size_t budget = 1000;
        trp_tree_remove(top, "d", &budget);
        tries++;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    g_assert_cmpint(tries, >, 10);
    g_assert_true(there("keep/file"));
    g_assert_true(there("keep/other"));
    remove_all("d");
    remove_all("aside");
    g_assert_cmpint(remove_all("keep"), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    char *folder = g_dir_make_tmp("tree-XXXXXX", NULL);
    if (!folder || chdir(folder) != 0)
        return 1;
    top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_test_add_func("/tree/links are removed, not what they lead to", test_links);
    g_test_add_func("/tree/any kind and name of file", test_kinds_and_names);
    g_test_add_func("/tree/folders without rights", test_modes);
    g_test_add_func("/tree/three hundred levels and a path of 60 kB", test_depth);
    g_test_add_func("/tree/by its path", test_absolute_path);
    g_test_add_func("/tree/a budget is kept", test_budget);
    g_test_add_func("/tree/an emptied folder stays", test_empty_keeps_the_folder);
    g_test_add_func("/tree/mounts are not crossed", test_mounts);
    g_test_add_func("/tree/folders swapped with links meanwhile", test_swaps);
    int r = g_test_run();
    g_assert_cmpint(rmdir(folder), ==, 0);
    close(top);
    g_free(folder);
    return r;
}
