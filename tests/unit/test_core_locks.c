/* Cores that runs of one user share: who has which, and who is next. */
#include <glib.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core_locks.h"
#include "unit.h"

static const uint32_t cpus[] = {0, 1, 2, 5};

static struct trp_core_locks open_locks(void)
{
    struct trp_core_locks l;
    g_assert_true(trp_core_locks_open(&l));
    return l;
}

TEST("all or none are taken, and go with who has them")
{
    struct trp_core_locks a = open_locks(), b = open_locks();
    bool others[4];
    g_assert_cmpuint(trp_core_locks_look(&b, cpus, 4, others), ==, 0);
    g_assert_true(trp_core_locks_take(&a, cpus + 2, 2));
    g_assert_cmpuint(trp_core_locks_look(&a, cpus, 4, others), ==, 0);
    g_assert_cmpuint(trp_core_locks_look(&b, cpus, 4, others), ==, 2);
    g_assert_true(!others[0] && !others[1] && others[2] && others[3]);
    g_assert_false(trp_core_locks_take(&b, cpus, 4));
    g_assert_cmpuint(trp_core_locks_look(&a, cpus, 4, others), ==, 0);
    trp_core_locks_give(&a, cpus + 2, 1);
    g_assert_true(trp_core_locks_take(&b, cpus, 3));
    trp_core_locks_close(&a);
    g_assert_true(trp_core_locks_take(&b, cpus + 3, 1));
    trp_core_locks_close(&b);
}

TEST("the first to wait is the first")
{
    struct trp_core_locks a = open_locks(), b = open_locks(), c = open_locks();
    g_assert_false(trp_core_locks_others_first(&c));
    trp_core_locks_queue(&a);
    trp_core_locks_queue(&b);
    trp_core_locks_queue(&a);
    g_assert_false(trp_core_locks_others_first(&a));
    g_assert_true(trp_core_locks_others_first(&b));
    g_assert_true(trp_core_locks_others_first(&c));
    trp_core_locks_close(&a);
    g_assert_false(trp_core_locks_others_first(&b));
    g_assert_true(trp_core_locks_others_first(&c));
    trp_core_locks_unqueue(&b);
    g_assert_false(trp_core_locks_others_first(&c));
    trp_core_locks_close(&b);
    trp_core_locks_close(&c);
}

TEST("only in what is this user's alone")
{
    struct trp_core_locks l = open_locks();
    trp_core_locks_close(&l);
    g_assert_cmpint(g_chmod("troupe-cores", 0644), ==, 0);
    g_assert_false(trp_core_locks_open(&l));
    g_assert_cmpint(l.fd, ==, -1);
    g_assert_true(l.taken);
    g_unlink("troupe-cores");
    g_assert_cmpint(symlink("other", "troupe-cores"), ==, 0);
    g_assert_false(trp_core_locks_open(&l));
    g_assert_true(l.taken);
    g_unlink("troupe-cores");
    g_assert_cmpint(g_chmod(".", 0755), ==, 0);
    g_assert_false(trp_core_locks_open(&l));
    g_setenv("XDG_RUNTIME_DIR", "/nonexistent", TRUE);
    g_assert_false(trp_core_locks_open(&l));
    g_assert_false(l.taken); /* nobody wanted them to be shared */
}

int main(int argc, char **argv)
{
    g_autofree char *folder = g_dir_make_tmp("troupe-XXXXXX", NULL);
    g_assert_nonnull(folder);
    g_assert_cmpint(g_chdir(folder), ==, 0);
    g_setenv("XDG_RUNTIME_DIR", folder, TRUE);
    int status = unit_run(argc, argv);
    g_rmdir(folder);
    return status;
}
