/* Folders of jobs on a node: what root makes and removes, and what it does not. */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/as_user.h"
#include "plugin/job_folder.h"

enum { ALICE = 59011, BOB = 59012 };

static char records[64], parent[64];
static trp_error err;

/* Ordinary users need root, and a job's own user is always this one otherwise. */
static struct trp_node_job job_of(uint32_t id, uid_t uid)
{
    if (geteuid() != 0)
        return (struct trp_node_job){.id = id, .uid = getuid(), .gid = getgid()};
    return (struct trp_node_job){.id = id, .uid = uid, .gid = uid};
}

static const struct trp_node_job *job(uint32_t id, uid_t uid)
{
    static struct trp_node_job j;
    j = job_of(id, uid);
    return &j;
}

static bool needs_root(void)
{
    if (geteuid() != 0)
        g_test_skip("needs root");
    return geteuid() != 0;
}

static int run_shell(void *command)
{
    /* NOLINTNEXTLINE(cert-env33-c): a test's own words */
    return system(command) == 0 ? 0 : 1;
}

/* Runs a command of a shell as a user, in `parent`. */
static void as(uid_t uid, const char *command)
{
    char *all = g_strdup_printf("cd %s && { %s; }", parent, command);
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
            _exit(2);
        _exit(run_shell(all));
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (status != 0)
        g_error("as %u: %s", uid, command);
    g_free(all);
}

static bool there(const char *path)
{
    char *all = g_strdup_printf("%s/%s", parent, path);
    struct stat st;
    bool is = lstat(all, &st) == 0;
    g_free(all);
    return is;
}

static unsigned entries(const char *path)
{
    unsigned n = 0;
    char *all = g_strdup_printf("%s/%s", parent, path);
    GDir *d = g_dir_open(all, 0, NULL);
    while (d && g_dir_read_name(d))
        n++;
    if (d)
        g_dir_close(d);
    g_free(all);
    return n;
}

static void make(uint32_t id, uid_t uid)
{
    if (trp_scratch_make(records, parent, job(id, uid), &err) < 0)
        g_error("%s", err.text);
}

static int end(uint32_t id, uid_t uid)
{
    return trp_scratch_end(records, job(id, uid), 60, &err);
}

static void test_made_and_removed(void)
{
    char path[PATH_MAX], want[PATH_MAX];
    struct stat st;
    g_assert_cmpint(trp_scratch_find(records, job(12, ALICE), path), ==, TRP_ENOENT);
    g_assert_cmpint(end(12, ALICE), ==, TRP_ENOENT);
    make(12, ALICE);
    g_assert_cmpint(trp_scratch_find(records, job(12, ALICE), path), ==, 0);
    snprintf(want, sizeof want, "%s/jobs/12", parent);
    g_assert_cmpstr(path, ==, want);
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode, ==, S_IFDIR | 0700);
    g_assert_cmpuint(st.st_uid, ==, job(12, ALICE)->uid);
    g_assert_cmpuint(st.st_gid, ==, job(12, ALICE)->gid);
    as(ALICE, "mkdir -p jobs/12/a/b && echo x >jobs/12/a/b/c && chmod 0500 jobs/12/a");
    if (geteuid() == 0)
        as(BOB, "! ls jobs/12 2>/dev/null && ! touch jobs/x 2>/dev/null && "
                "! ls jobs/going 2>/dev/null");
    g_assert_cmpint(end(12, ALICE), ==, 0);
    g_assert_false(there("jobs/12"));
    g_assert_cmpuint(entries("jobs/going"), ==, 0);
    g_assert_cmpint(end(12, ALICE), ==, TRP_ENOENT);
    g_assert_cmpint(trp_scratch_find(records, job(12, ALICE), path), ==, TRP_ENOENT);
}

static void lose_record(uint32_t id)
{
    char *path = g_strdup_printf("%s/%u", records, id);
    g_assert_cmpint(unlink(path), ==, 0);
    g_free(path);
}

static void test_requeued(void)
{
    make(13, ALICE);
    as(ALICE, "touch jobs/13/of-the-first-start");
    make(13, ALICE); /* the prolog twice */
    g_assert_cmpuint(entries("jobs/13"), ==, 1);
    lose_record(13); /* the node died */
    make(13, ALICE);
    g_assert_true(there("jobs/13"));
    g_assert_cmpuint(entries("jobs/13"), ==, 0);
    if (geteuid() == 0) {
        struct stat st;
        char *path = g_strdup_printf("%s/jobs/13", parent);
        lose_record(13);
        make(13, BOB);
        g_assert_cmpint(lstat(path, &st), ==, 0);
        g_assert_cmpuint(st.st_uid, ==, BOB);
        g_free(path);
    }
    g_assert_cmpint(end(13, BOB), ==, 0);
}

/* A change of the site file while a job runs. */
static void test_record_outlives_site(void)
{
    make(14, ALICE);
    as(ALICE, "touch jobs/14/file");
    char *other = g_strdup_printf("%s/other", parent);
    g_assert_cmpint(trp_scratch_make(records, other, job(15, ALICE), &err), ==, 0);
    g_assert_cmpint(end(14, ALICE), ==, 0);
    g_assert_false(there("jobs/14"));
    g_assert_true(there("other/jobs/15"));
    g_assert_cmpint(end(15, ALICE), ==, 0);
    g_assert_false(there("other/jobs/15"));
    /* Its file system has gone altogether. */
    g_assert_cmpint(trp_scratch_make(records, other, job(16, ALICE), &err), ==, 0);
    char *command = g_strdup_printf("rm -r %s", other);
    g_assert_cmpint(run_shell(command), ==, 0);
    g_assert_cmpint(end(16, ALICE), ==, 0);
    g_assert_cmpint(end(16, ALICE), ==, TRP_ENOENT);
    g_free(command);
    g_free(other);
}

static void refuse(const char *place, const char *word)
{
    char *path = g_strdup_printf("%s%s%s", *place == '/' ? "" : parent,
                                 *place == '/' ? "" : "/", place);
    g_assert_cmpint(trp_scratch_make(records, path, job(17, ALICE), &err), ==,
                    TRP_EINVAL);
    if (!strstr(err.text, word))
        g_error("wanted \"%s\", got: %s", word, err.text);
    g_free(path);
}

static void test_places(void)
{
    g_assert_cmpint(trp_scratch_make(records, "rel", job(17, ALICE), &err), ==,
                    TRP_EINVAL);
    refuse("a/../b", "bad path");
    refuse("./a", "bad path");
    char *command =
        g_strdup_printf("cd %s && mkdir open real && chmod 777 open && ln -s "
                        "real link && touch file",
                        parent);
    g_assert_cmpint(run_shell(command), ==, 0);
    refuse("open", "others than root");
    refuse("open/below", "others than root");
    refuse("link", "link");
    refuse("file", "no folder");
    g_free(command);
    if (geteuid() != 0)
        return;
    /* In a folder like /tmp others may have been there first. */
    command = g_strdup_printf("cd %s && mkdir sticky && chmod 1777 sticky", parent);
    g_assert_cmpint(run_shell(command), ==, 0);
    as(BOB, "mkdir sticky/jobs");
    refuse("sticky", "others than root");
    as(BOB, "rmdir sticky/jobs; ln -s ../real sticky/jobs");
    refuse("sticky", "link");
    as(BOB, "rm sticky/jobs");
    g_free(command);
    command = g_strdup_printf("%s/sticky", parent);
    g_assert_cmpint(trp_scratch_make(records, command, job(17, ALICE), &err), ==, 0);
    as(BOB, "! mv sticky/jobs x 2>/dev/null && ! rmdir sticky/jobs/17 2>/dev/null");
    g_assert_cmpint(end(17, ALICE), ==, 0);
    g_free(command);
}

/* Alice lets others write into a folder; bob moves it into his job's. */
static void test_anothers_folder(void)
{
    if (needs_root())
        return;
    char *command =
        g_strdup_printf("cd %s && mkdir shared && chmod 777 shared", parent);
    g_assert_cmpint(run_shell(command), ==, 0);
    make(20, BOB);
    as(ALICE, "mkdir -m 777 shared/open && mkdir shared/open/private && "
              "touch shared/open/private/file shared/alone");
    as(BOB,
       "mv shared/open jobs/20/ && touch jobs/20/own && ln shared/alone jobs/20/alone "
       "2>/dev/null || true");
    g_assert_cmpint(end(20, BOB), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "jobs/going/20."));
    g_assert_false(there("jobs/20"));
    g_assert_true(there("shared/alone"));
    /* Nothing of alice's has gone, and all of bob's. */
    char *count = g_strdup_printf("cd %s/jobs/going/20.* && [ \"$(find . -type f)\" = "
                                  "./open/private/file ] && mv open %s/shared/",
                                  parent, parent);
    g_assert_cmpint(run_shell(count), ==, 0);
    as(ALICE, "rm -r shared/open shared/alone");
    g_free(count);
    g_free(command);
}

/* Bob swaps a folder of his with a link to one of alice's while it is removed. */
static void test_swaps(void)
{
    if (needs_root())
        return;
    as(ALICE, "mkdir shared/hers && for i in $(seq 50); do : >shared/hers/$i; done; "
              "chmod 777 shared/hers");
    char name[32];
    for (unsigned id = 100; id < 140; id++) {
        make(id, BOB);
        pid_t pid = fork();
        if (pid == 0) {
            char path[PATH_MAX], hers[PATH_MAX];
            snprintf(path, sizeof path, "%s/jobs/%u", parent, id);
            snprintf(hers, sizeof hers, "%s/shared/hers", parent);
            if (setresgid(BOB, BOB, BOB) || setresuid(BOB, BOB, BOB) || chdir(path))
                _exit(1);
            for (;;) { /* by its working folder, which has no name any more */
                mkdir("x", 0700);
                close(creat("x/1", 0600));
                rename("x", "y");
                (void)!symlink(hers, "x");
                rename("x", "z");
            }
        }
        usleep(2000);
        end(id, BOB); /* may fail: it is filled again */
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        snprintf(name, sizeof name, "jobs/%u", id);
        g_assert_false(there(name));
    }
    g_assert_cmpuint(entries("shared/hers"), ==, 50);
    as(ALICE, "rm -r shared/hers");
}

static void sweep_all(void);

static void test_mounted_over(void)
{
    if (needs_root())
        return;
    make(30, ALICE);
    char *path = g_strdup_printf("%s/jobs/30", parent);
    if (mount("none", path, "tmpfs", 0, NULL) != 0) {
        g_test_skip("may not mount");
    } else {
        as(ALICE, "true");
        g_assert_cmpint(end(30, ALICE), ==, 0);
        g_assert_false(there("jobs/30"));
    }
    end(30, ALICE);
    g_free(path);
}

/* What a user mounts over a job's folder says that it is whose it likes. */
static void test_mounted_as_another(void)
{
    if (needs_root())
        return;
    for (int swept = 0; swept < 2; swept++) {
        char *path = g_strdup_printf("%s/jobs/31", parent), options[64];
        char *segment = g_strdup_printf("/dev/shm/vader_segment.test-%d", getpid());
        make(31, ALICE);
        snprintf(options, sizeof options, "uid=%d,gid=%d", BOB, BOB);
        g_assert_true(g_file_set_contents(segment, "bob's", -1, NULL));
        g_assert_cmpint(chown(segment, BOB, BOB), ==, 0);
        if (mount("none", path, "tmpfs", 0, options) != 0)
            g_test_skip("may not mount");
        else if (swept)
            sweep_all();
        else
            g_assert_cmpint(end(31, ALICE), ==, 0);
        end(31, ALICE);
        g_assert_false(there("jobs/31"));
        g_assert_true(g_file_test(segment, G_FILE_TEST_EXISTS));
        unlink(segment);
        g_free(segment);
        g_free(path);
    }
}

static bool is_here(uint32_t id, void *context)
{
    ++*(unsigned *)context;
    return id == 41;
}

static int sweep(unsigned *ret_asked)
{
    *ret_asked = 0;
    return trp_scratch_sweep(records, parent, is_here, ret_asked, &err);
}

static void age(void)
{
    char *path = g_strdup_printf("%s/.swept", records);
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    g_assert_cmpint(utimensat(AT_FDCWD, path, old, 0), ==, 0);
    g_free(path);
}

static void sweep_all(void)
{
    unsigned asked;
    age();
    g_assert_cmpint(sweep(&asked), ==, 0);
    age();
}

static void test_leftovers(void)
{
    unsigned asked;
    char *command = g_strdup_printf("rm -rf %s/jobs", parent);
    g_assert_cmpint(run_shell(command), ==, 0);
    g_assert_cmpint(sweep(&asked), ==, 0); /* no job ever */
    g_assert_cmpuint(asked, ==, 0);
    make(41, ALICE);
    make(42, BOB);
    make(43, ALICE);
    as(ALICE, "touch jobs/43/file");
    g_free(command);
    command = g_strdup_printf("mkdir %s/jobs/admins %s/jobs/going", parent, parent);
    run_shell(command);
    if (geteuid() == 0) {
        g_free(command); /* a removal that was killed */
        command = g_strdup_printf("cd %s/jobs/going && mkdir -p 40.1/a/b && "
                                  "chown -R %d:%d 40.1",
                                  parent, BOB, BOB);
        g_assert_cmpint(run_shell(command), ==, 0);
    }
    g_assert_cmpint(sweep(&asked), ==, 0);
    g_assert_cmpuint(asked, ==, 3);
    g_assert_true(there("jobs/41"));
    g_assert_true(there("jobs/admins"));
    g_assert_false(there("jobs/42"));
    g_assert_false(there("jobs/43"));
    g_assert_cmpuint(entries("jobs/going"), ==, 0);
    g_assert_cmpint(end(43, ALICE), ==, TRP_ENOENT); /* its record has gone too */
    g_assert_cmpint(sweep(&asked), ==, 0);
    g_assert_cmpuint(asked, ==, 0); /* not again so soon */
    age();
    g_assert_cmpint(sweep(&asked), ==, 0);
    g_assert_cmpuint(asked, ==, 1);
    g_assert_cmpint(end(41, ALICE), ==, 0);
    g_free(command);
}

static int show_rights(void *context)
{
    (void)context;
    uid_t real, effective, saved;
    getresuid(&real, &effective, &saved);
    int fd = open("/etc/shadow", O_RDONLY | O_CLOEXEC);
    bool right = real == 0 && effective == BOB && saved == 0 && fd < 0 &&
                 getegid() == BOB && getgroups(0, NULL) == 1;
    return right ? 7 : 8;
}

static int wait_for_ever(void *context)
{
    (void)context;
    while (getpid() > 0)
        pause();
    return 0;
}

static int die(void *context)
{
    (void)context;
    raise(SIGKILL);
    return 0;
}

static void test_as_user(void)
{
    if (needs_root())
        return;
    g_assert_cmpint(trp_as_user(BOB, BOB, 0, show_rights, NULL), ==, 7);
    g_assert_cmpint(trp_as_user(BOB, BOB, 0, die, NULL), ==, -1);
    g_assert_cmpint(trp_as_user(BOB, BOB, 1, wait_for_ever, NULL), ==, -1);
    g_assert_cmpuint(geteuid(), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    char folder[] = "/tmp/scratch-XXXXXX";
    if (!mkdtemp(folder) || chmod(folder, 0755) != 0)
        return 1;
    umask(022);
    snprintf(records, sizeof records, "%s/run", folder);
    snprintf(parent, sizeof parent, "%s/scratch", folder);
    g_test_add_func("/scratch/work as a user has that user's rights", test_as_user);
    g_test_add_func("/scratch/is made and removed", test_made_and_removed);
    g_test_add_func("/scratch/a requeued job gets an empty one", test_requeued);
    g_test_add_func("/scratch/a record outlives the site file",
                    test_record_outlives_site);
    g_test_add_func("/scratch/places that others can change", test_places);
    g_test_add_func("/scratch/another user's folder inside", test_anothers_folder);
    g_test_add_func("/scratch/links to another user's folder", test_swaps);
    g_test_add_func("/scratch/a mount over it", test_mounted_over);
    g_test_add_func("/scratch/a mount over it that says it is another user's",
                    test_mounted_as_another);
    g_test_add_func("/scratch/leftovers of jobs that are gone", test_leftovers);
    int r = g_test_run();
    char *command = g_strdup_printf("rm -rf %s", folder);
    run_shell(command);
    g_free(command);
    return r;
}
