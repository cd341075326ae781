/* Private folders of processes: in the job's folder where there is one, else as before.
 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/held.h"
#include "os/private_folder.h"
#include "os/tree.h"
#include "unit.h"

static char job[] = "/tmp/private-XXXXXX";

/* Whether one that is made now is in the job's folder; removes it again. */
static bool is_in_job(void)
{
    char path[TRP_PRIVATE_FOLDER];
    trp_error err;
    struct stat st;
    g_assert_cmpint(trp_private_folder("", path, &err), ==, 0);
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode, ==, S_IFDIR | 0700);
    g_autofree char *mark = g_build_filename(path, ".made-by-troupe", NULL);
    g_assert_cmpint(unlink(mark), ==, 0);
    g_assert_cmpint(rmdir(path), ==, 0);
    bool in = g_str_has_prefix(path, job) && path[strlen(job)] == '/';
    g_assert_true(in || g_str_has_prefix(path, "/tmp/troupe-"));
    return in;
}

static bool accepts(const char *path)
{
    g_setenv("TROUPE_SCRATCH", path, TRUE);
    const char *folder = trp_job_folder();
    g_assert_true(!folder || strcmp(folder, path) == 0);
    g_assert_cmpint(folder != NULL, ==, is_in_job());
    return folder != NULL;
}

TEST("job's folder")
{
    g_assert_null(trp_job_folder());
    g_assert_false(is_in_job());
    g_assert_true(accepts(job));
    g_assert_false(accepts(""));
    g_assert_false(accepts(job + 1)); /* not absolute */
    g_assert_false(accepts("/tmp/of/another/node"));
    g_assert_false(accepts("/tmp")); /* others' too */
    g_assert_cmpint(g_chmod(job, 0755), ==, 0);
    g_assert_false(accepts(job));
    g_assert_cmpint(g_chmod(job, 0700), ==, 0);
    g_autofree char *link = g_strdup_printf("%s/link", job);
    g_assert_cmpint(symlink(job, link), ==, 0);
    g_assert_false(accepts(link));
    g_assert_cmpint(unlink(link), ==, 0);
    if (geteuid() == 0) {
        g_assert_cmpint(chown(job, 59031, 59031), ==, 0);
        g_assert_false(accepts(job));
        g_assert_cmpint(chown(job, 0, 0), ==, 0);
    }
}

/* Open MPI's sockets have to fit behind it. */
TEST("a path that is too long")
{
    g_autofree char *below = g_strdup_printf("%s/%032d", job, 0);
    g_assert_cmpint(g_mkdir(below, 0700), ==, 0);
    g_setenv("TROUPE_SCRATCH", below, TRUE);
    g_assert_cmpstr(trp_job_folder(), ==, below);
    g_assert_false(is_in_job());
    g_assert_cmpint(rmdir(below), ==, 0);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A process that makes a folder for `owner`, and holds it until it is killed. */
static pid_t hold_folder(const char *owner, char ret_path[TRP_PRIVATE_FOLDER])
{
    int fds[2];
    g_assert_cmpint(pipe(fds), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        char path[TRP_PRIVATE_FOLDER] = "";
        trp_error err;
        if (trp_private_folder(owner, path, &err) < 0 ||
            write(fds[1], path, sizeof path) != sizeof path)
            _exit(1);
        for (;;)
            pause();
    }
    close(fds[1]);
    g_assert_cmpint(read(fds[0], ret_path, TRP_PRIVATE_FOLDER), ==, TRP_PRIVATE_FOLDER);
    close(fds[0]);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
}

/* Killed ones leave theirs, also one that was made just now; those of others stay. */
TEST("tidied after who was killed")
{
    enum { WAIT_MS = 100 };
    char killed[TRP_PRIVATE_FOLDER], mine[TRP_PRIVATE_FOLDER], plain[64];
    const char *const first[] = {"run.1"}, *const both[] = {"run.1", "run.12"};
    g_setenv("TROUPE_SCRATCH", job, TRUE);
    g_snprintf(plain, sizeof plain, "%s/troupe-backup", job);
    g_assert_cmpint(g_mkdir(plain, 0700), ==, 0);
    pid_t one = hold_folder("run.1", killed), two = hold_folder("run.12", mine);
    g_assert_false(trp_private_folders_tidy(first, 1, WAIT_MS));
    g_assert_true(is_folder(killed) && is_folder(mine));
    end(one);
    g_assert_true(trp_private_folders_tidy(first, 1, WAIT_MS));
    g_assert_true(!is_folder(killed) && is_folder(mine) && is_folder(plain));
    g_assert_false(trp_private_folders_tidy(both, 2, WAIT_MS));
    end(two);
    g_assert_true(trp_private_folders_tidy(both, 2, WAIT_MS));
    g_assert_true(!is_folder(mine) && is_folder(plain));
    g_assert_cmpint(rmdir(plain), ==, 0);
}

/* ---- memory groups ---- */

static char *make_below(const char *folder, const char *prefix, const char *rest)
{
    char *path = g_strdup_printf("%s/%s%s", folder, prefix, rest);
    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    return path;
}

/* Groups are folders: any will do. A run in another control group finds them by the link
 * that was left; the folder stays for as long as one of them does. */
TEST("groups in another control group go with it")
{
    char path[TRP_PRIVATE_FOLDER];
    const char *const nobody[] = {""};
    g_setenv("TROUPE_SCRATCH", job, TRUE);
    pid_t pid = hold_folder("run.1", path);
    char *name = path + strlen(job) + 1;
    g_autofree char *parent = make_below(job, "", "parent"),
                    *link = g_build_filename(path, ".groups", NULL),
                    *first = make_below(parent, name, "-0"),
                    *trial = make_below(parent, name, "-4294967295"),
                    *used = make_below(parent, name, "-12"),
                    *within = make_below(used, "", "group"),
                    *member = g_build_filename(used, "member", NULL),
                    *word = make_below(parent, name, "-probe"),
                    *other = make_below(parent, "troupe-000000", "-0");
    g_assert_cmpint(symlink(parent, link), ==, 0);
    g_assert_true(g_file_set_contents(member, "", 0, NULL));
    trp_private_folders_tidy(nobody, 1, 0);
    g_assert_true(is_folder(first));
    end(pid);
    trp_private_folders_tidy(nobody, 1, 0);
    g_assert_true(!is_folder(first) && !is_folder(trial));
    g_assert_true(is_folder(path) && is_folder(used) && !is_folder(within));
    g_assert_cmpint(unlink(member), ==, 0);
    trp_private_folders_tidy(nobody, 1, 0);
    g_assert_true(!is_folder(path) && !is_folder(used));
    g_assert_true(is_folder(word) && is_folder(other));
    g_assert_cmpint(rmdir(word) | rmdir(other) | rmdir(parent), ==, 0);
}

/* A link that says anything else keeps nothing. */
TEST("a link to groups may say anything")
{
    enum { LONG = 2000 };
    g_autofree char *long_text = g_strnfill(LONG, '/');
    const char *const texts[] = {"parent", "/nonexistent", "/", long_text},
                      *const nobody[] = {""};
    g_setenv("TROUPE_SCRATCH", job, TRUE);
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        char path[TRP_PRIVATE_FOLDER];
        pid_t pid = hold_folder("run.1", path);
        g_autofree char *link = g_build_filename(path, ".groups", NULL);
        g_assert_cmpint(symlink(texts[i], link), ==, 0);
        end(pid);
        trp_private_folders_tidy(nobody, 1, 0);
        g_assert_false(is_folder(path));
    }
}

/* ---- run files ---- */

static const uint8_t key[TRP_RUN_FILES_KEY] = {1, 2, 3, 250, 251, 252};

static void enter(const char *run, struct trp_run_files *ret)
{
    trp_error err;
    g_assert_cmpint(trp_run_files_enter(job, key, "run", run, ret, &err), ==, 0);
    g_assert_true(is_folder(ret->path));
}

/* A run's folder whose lock is held; *ret_lock is its descriptor. */
static char *make_run(int *ret_lock)
{
    char *run = g_strdup_printf("%s/r", job), *state = g_strdup_printf("%s/state", run),
         *lock = g_strdup_printf("%s/lock", state);
    g_assert_cmpint(g_mkdir_with_parents(state, 0700), ==, 0);
    *ret_lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(flock(*ret_lock, LOCK_EX | LOCK_NB), ==, 0);
    g_free(state);
    g_free(lock);
    return run;
}

static void remove_run(char *run, int lock)
{
    size_t all = SIZE_MAX;
    close(lock);
    g_assert_cmpint(trp_tree_remove(AT_FDCWD, run, &all), ==, 0);
    g_free(run);
}

/* While it is used, and after that while its run goes on, none but the run removes it. */
TEST("a run's files stay as long as it")
{
    int lock;
    char *run = make_run(&lock), path[TRP_RUN_FILES];
    struct trp_run_files one, two;
    const char *const others[] = {"run.1", job}, *const ours[] = {"run", job};
    g_unsetenv("TROUPE_SCRATCH");
    enter(run, &one);
    enter(run, &two);
    g_assert_cmpstr(one.path, ==, two.path);
    strcpy(path, one.path);
    g_assert_true(trp_private_folders_tidy(others, 2, 0));
    g_assert_true(is_folder(path));
    g_assert_false(trp_run_files_leave(&one, false));
    g_assert_false(trp_run_files_leave(&two, false));
    g_assert_true(trp_private_folders_tidy(others, 2, 0));
    g_assert_true(is_folder(path)); /* between two executors */
    enter(run, &one);
    g_assert_false(trp_private_folders_tidy(ours, 2, 0));
    g_assert_false(trp_run_files_leave(&one, false));
    g_assert_true(trp_private_folders_tidy(ours, 2, 0));
    g_assert_false(is_folder(path));
    enter(run, &one);
    g_assert_false(trp_run_files_leave(&one, false));
    g_assert_cmpint(flock(lock, LOCK_UN), ==, 0); /* the run is over */
    g_assert_true(trp_private_folders_tidy(others, 2, 0));
    g_assert_false(is_folder(path));
    remove_run(run, lock);
}

/* What a run left, whose processes were all killed, another run does not find: its key is
 * another one. */
TEST("another run has other files")
{
    static const uint8_t other[TRP_RUN_FILES_KEY] = {1, 2, 3, 250, 251, 253};
    int lock;
    char *run = make_run(&lock);
    struct trp_run_files one, two;
    trp_error err;
    enter(run, &one);
    g_autofree char *output = g_build_filename(one.path, "0-0-0", NULL);
    g_assert_true(g_file_set_contents(output, "old", 3, NULL));
    close(one.lock);
    g_assert_cmpint(trp_run_files_enter(job, other, "run.2", run, &two, &err), ==, 0);
    g_assert_cmpstr(two.path, !=, one.path);
    g_autofree char *same = g_build_filename(two.path, "0-0-0", NULL);
    g_assert_cmpint(g_access(same, F_OK), ==, -1);
    g_assert_true(trp_run_files_leave(&two, true));
    enter(run, &one);
    g_assert_true(trp_run_files_leave(&one, true));
    remove_run(run, lock);
}

/* The last one at the run's end removes it. */
TEST("a run's last process removes them")
{
    int lock;
    char *run = make_run(&lock), path[TRP_RUN_FILES];
    struct trp_run_files one, two;
    enter(run, &one);
    enter(run, &two);
    strcpy(path, one.path);
    g_assert_false(trp_run_files_leave(&one, true));
    g_assert_true(is_folder(path));
    g_assert_true(trp_run_files_leave(&two, true));
    g_assert_false(is_folder(path));
    g_assert_false(trp_run_files_leave(&two, true));
    /* what has the name and is not ours alone is not taken */
    g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    g_assert_cmpint(g_chmod(path, 0755), ==, 0);
    trp_error err;
    g_assert_cmpint(trp_run_files_enter(job, key, "run", run, &one, &err), ==,
                    TRP_ESYSTEM);
    g_assert_cmpint(rmdir(path), ==, 0);
    remove_run(run, lock);
}

/* One of a process of a run: others leave it alone while it is used, and then while its run
 * goes on; the run itself removes it. */
TEST("one in a folder that hosts may share")
{
    int lock;
    char *run = make_run(&lock), path[2][TRP_RUN_FILES];
    struct trp_run_files files;
    trp_error err;
    g_assert_cmpint(trp_held_folder(run, NULL, &err), ==, 0);
    g_assert_cmpint(trp_held_identify(run, &err), ==, 0);
    for (int i = 0; i < 2; i++) {
        int fd = trp_private_folder_in(job, run, path[i], sizeof path[i]);
        g_assert_cmpint(fd, >=, 0);
        trp_private_folders_sweep_in(job, run);
        g_assert_true(is_folder(path[i]));
        close(fd);
        trp_private_folders_sweep_in(job, NULL);
        trp_private_folders_sweep_in(job, "/another/run");
        g_assert_true(is_folder(path[i]));
        g_assert_cmpint(trp_run_files_find(job, trp_held_id(run), &files, &err), ==,
                        TRP_ENOENT);
        if (i == 0)
            trp_private_folders_sweep_in(job, run);
        else
            g_assert_cmpint(flock(lock, LOCK_UN), ==, 0);
        trp_private_folders_sweep_in(job, NULL);
        g_assert_false(is_folder(path[i]));
    }
    g_assert_cmpint(trp_private_folder_in(job, run, path[0], strlen(path[1])), ==, -1);
    g_assert_cmpint(trp_private_folder_in("/nonexistent", run, path[0], sizeof path[0]),
                    ==, -1);
    trp_held_leave(run);
    remove_run(run, lock);
}

static bool is_there(const char *folder, const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    bool there = access(path, F_OK) == 0;
    return there;
}

/* Whoever removes a folder is killed when the file `name` of it has gone. */
static void kill_remover(const char *path, const char *name)
{
    pid_t child = fork();
    if (child == 0) {
        trp_private_folder_remove(path);
        _exit(0);
    }
    while (is_there(path, name))
        continue;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* What is left of it can still be told from what others made, and goes later. */
TEST("removed after whoever removed it was killed")
{
    enum { FILES = 60, ROUNDS = 10 };
    g_setenv("TROUPE_SCRATCH", job, TRUE);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char path[TRP_PRIVATE_FOLDER], name[16];
        int status;
        pid_t maker = fork(); /* its lock ends with it */
        snprintf(path, sizeof path, "%s/troupe-%06u", job, round);
        if (maker == 0) {
            trp_error err;
            char made[TRP_PRIVATE_FOLDER];
            if (trp_private_folder("", made, &err) < 0 || rename(made, path) < 0)
                _exit(1);
            for (unsigned i = 0; i < FILES; i++) {
                g_autofree char *file = g_strdup_printf("%s/%u", path, i);
                g_file_set_contents(file, "x", 1, NULL);
            }
            _exit(0);
        }
        waitpid(maker, &status, 0);
        g_assert_cmpint(status, ==, 0);
        snprintf(name, sizeof name, "%u", round * (FILES / ROUNDS));
        kill_remover(path, name);
        g_assert_true(access(path, F_OK) != 0 || is_there(path, ".made-by-troupe"));
    }
    char beside[TRP_PRIVATE_FOLDER];
    snprintf(beside, sizeof beside, "%s/x", job);
    trp_private_folders_sweep(beside);
    g_assert_cmpint(rmdir(job), ==, 0); /* it is empty */
    g_assert_cmpint(mkdir(job, 0700), ==, 0);
}

int main(int argc, char **argv)
{
    g_unsetenv("TROUPE_SCRATCH");
    g_unsetenv("TMPDIR");
    if (!mkdtemp(job))
        return 1;
    int r = unit_run(argc, argv);
    g_assert_cmpint(rmdir(job), ==, 0);
    return r;
}
