/* A run's folder: making, naming, locking, opening, its state, and the list of runs. */
#include "events/run_folder.h"
#include "os/held.h"

#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver_files.h"
#include "unit.h"

/* A folder of its own, which is entered; runs_of: its folder of runs. */
static char *new_base(void)
{
    char *base = g_dir_make_tmp("troupe-runs-XXXXXX", NULL);
    g_assert_cmpint(chdir(base), ==, 0);
    return base;
}

static const char *runs_of(const char *base)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/troupe-runs", base);
    return path;
}

static void free_base(char *base)
{
    files_remove(base);
    g_free(base);
}

static trp_run_folder *make(const char *base, const char *app, const char *name)
{
    trp_run_folder *f = NULL;
    trp_error err = {0};
    if (trp_run_folder_new(runs_of(base), app, name, &f, &err) != 0)
        g_error("wanted a run folder, got %s", err.text);
    return f;
}

static void set(trp_run_folder *f, const char *status, int exit_status)
{
    trp_error err = {0};
    if (trp_run_folder_state(f, "weather \xff", status, exit_status, &err) != 0)
        g_error("wanted the state written, got %s", err.text);
}

/* What a run works from: the last that is written before anything is started. */
static void begin(trp_run_folder *f)
{
    char *spec = g_build_filename(f->path, "state", "run_spec.json", NULL);
    g_assert_true(g_file_set_contents(spec, "{}", -1, NULL));
    g_free(spec);
    trp_run_folder_free(f);
}

static void refuse(const char *base, const char *name, int code, const char *words)
{
    trp_run_folder *f = NULL;
    trp_error err = {0};
    g_assert_cmpint(trp_run_folder_new(runs_of(base), "app", name, &f, &err), ==, code);
    g_assert_null(f);
    if (!strstr(err.text, words))
        g_error("wanted '%s' in '%s'", words, err.text);
}

static mode_t mode_of(const char *dir, const char *name)
{
    char *path = g_build_filename(dir, name, NULL);
    struct stat st = {0};
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_free(path);
    return st.st_mode & 0777;
}

TEST("a run has its folders, modes and the link last")
{
    char *base = new_base();
    trp_run_folder *f = make(base, "weather", "try-1");
    char *path = g_build_filename(base, "troupe-runs", "try-1", NULL);
    char *last = g_build_filename(base, "troupe-runs", "last", NULL);
    char *to = g_file_read_link(last, NULL);
    g_assert_cmpstr(f->name, ==, "try-1");
    g_assert_cmpstr(f->path, ==, path);
    g_assert_cmpstr(f->shown, ==, "troupe-runs/try-1");
    g_assert_cmpstr(trp_run_called(f->path), ==, "try-1");
    g_assert_cmpint(mode_of(path, "."), ==, 0700);
    g_assert_cmpint(mode_of(path, "logs"), ==, 0700);
    g_assert_cmpint(mode_of(path, "state"), ==, 0700);
    g_assert_cmpint(mode_of(path, "state/lock"), ==, 0600);
    g_assert_cmpstr(to, ==, "try-1");
    trp_run_folder_free(f);
    trp_run_folder_free(make(base, "weather", "try-2"));
    g_free(to);
    to = g_file_read_link(last, NULL);
    g_assert_cmpstr(to, ==, "try-2");
    g_setenv("TROUPE_RUN", "try-2", TRUE); /* within a task of it */
    g_setenv("TROUPE_TASK", "0", TRUE);
    trp_run_folder_free(make(base, "weather", "inner"));
    g_free(to);
    to = g_file_read_link(last, NULL);
    g_assert_cmpstr(to, ==, "try-2");
    g_setenv("TROUPE_RUN", "elsewhere", TRUE); /* of a run in another folder */
    trp_run_folder_free(make(base, "weather", "try-3"));
    g_unsetenv("TROUPE_RUN");
    g_unsetenv("TROUPE_TASK");
    g_free(to);
    to = g_file_read_link(last, NULL);
    g_assert_cmpstr(to, ==, "try-3");
    g_free(to);
    g_free(last);
    g_free(path);
    free_base(base);
}

TEST("a run is shown so that it can be pasted")
{
    char *base = new_base();
    trp_run_folder *f = make(base, "weather", "try-1");
    g_assert_cmpstr(trp_run_shown(f->path), ==, "troupe-runs/try-1");
    g_assert_cmpint(chdir(runs_of(base)), ==, 0);
    g_assert_cmpstr(trp_run_shown(f->path), ==, f->path);
    g_assert_cmpstr(trp_run_called(f->path), ==, f->path);
    g_assert_cmpint(chdir(base), ==, 0);
    g_assert_cmpstr(trp_run_called(f->path), ==, "try-1");
    trp_run_folder_free(f);
    free_base(base);
}

TEST("names are made clean and never shared")
{
    char *base = new_base();
    trp_run_folder *v[4];
    for (int i = 0; i < 4; i++)
        v[i] = make(base, ".my app/\xc3\xa9", NULL);
    for (int i = 0; i < 4; i++) {
        if (!g_regex_match_simple("^_my-app-----?[0-9]{8}T[0-9]{6}-[0-9]+(\\.[0-9]+)?$",
                                  v[i]->name, 0, 0))
            g_error("wanted a clean name, got %s", v[i]->name);
        for (int j = 0; j < i; j++)
            g_assert_cmpstr(v[i]->name, !=, v[j]->name);
    }
    for (int i = 0; i < 4; i++)
        trp_run_folder_free(v[i]);
    free_base(base);
}

TEST("bad names and taken names are refused")
{
    char *base = new_base();
    char *longest = g_strnfill(65, 'a');
    static const char *const bad[] = {"", "last", ".history", "-x", "a/b", "a b", "\n"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        refuse(base, bad[i], TRP_EINVAL, "run name");
    refuse(base, longest, TRP_EINVAL, "run name");
    longest[64] = '\0';
    begin(make(base, "app", longest));
    refuse(base, longest, TRP_EEXIST, "use --resume");
    g_free(longest);
    free_base(base);
}

TEST("a folder that was reserved is taken by one run")
{
    char *base = new_base(), *name = NULL, *other = NULL, *path = NULL;
    trp_error err = {0};
    g_assert_cmpint(trp_run_folder_reserve(runs_of(base), "my app", NULL, &name, &err),
                    ==, 0);
    g_assert_true(g_str_has_prefix(name, "my-app-"));
    g_assert_cmpint(trp_run_folder_reserve(runs_of(base), "a", name, &other, &err), ==,
                    TRP_EEXIST);
    g_assert_nonnull(strstr(err.text, "waits for a job already"));
    begin(make(base, "app", name));
    refuse(base, name, TRP_EEXIST, "use --resume");
    trp_run_folder_unreserve(runs_of(base), name); /* it began: nothing is done */
    g_assert_cmpint(trp_run_folder_find(runs_of(base), name, &path, &err), ==, 0);
    g_free(path);
    g_free(name);

    g_assert_cmpint(trp_run_folder_reserve(runs_of(base), "app", "b", &name, &err), ==,
                    0);
    trp_run_folder_unreserve(runs_of(base), name);
    begin(make(base, "app", "b"));
    g_assert_cmpint(trp_run_folder_reserve(runs_of(base), "app", "b", &other, &err), ==,
                    TRP_EEXIST);
    g_assert_cmpint(trp_run_folder_reserve(runs_of(base), "app", "../c", &other, &err),
                    ==, TRP_EINVAL);
    g_free(name);
    free_base(base);
}

TEST("what cannot be made is told")
{
    char *base = new_base();
    char *file = g_build_filename(base, "troupe-runs", NULL);
    g_assert_true(g_file_set_contents(file, "a file", -1, NULL));
    refuse(base, NULL, TRP_ESYSTEM, "is no folder");
    refuse("/nonexistent", NULL, TRP_ESYSTEM, "No such file or directory");
    g_free(file);
    free_base(base);
}

TEST("nothing stays of one that failed")
{
    char *base = new_base();
    char *last = g_build_filename(base, "troupe-runs", "last", NULL);
    char *run = g_build_filename(base, "troupe-runs", "x", NULL);
    g_assert_cmpint(g_mkdir_with_parents(last, 0700), ==, 0);
    refuse(base, "x", TRP_ESYSTEM, "last"); /* a folder where the link should be */
    g_assert_false(g_file_test(run, G_FILE_TEST_EXISTS));
    g_free(run);
    g_free(last);
    free_base(base);
}

TEST("a run is opened by name, link and path")
{
    char *base = new_base();
    trp_run_folder *f = make(base, "weather", "try");
    trp_error err = {0};
    trp_run_folder *g = NULL;
    g_assert_cmpint(trp_run_folder_open(runs_of(base), "try", &g, &err), ==,
                    TRP_EINVAL);
    g_assert_cmpstr(err.text, ==, "run troupe-runs/try is still running");
    char *path = g_strdup(f->path);
    trp_run_folder_free(f);
    const char *const ways[] = {"try", "last", "troupe-runs/try", "./troupe-runs/try/",
                                path};
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        if (trp_run_folder_open(runs_of(base), ways[i], &g, &err) != 0)
            g_error("wanted %s opened, got %s", ways[i], err.text);
        g_assert_cmpstr(g->name, ==, "try");
        g_assert_cmpstr(g->path, ==, path);
        g_assert_cmpstr(g->shown, ==, "troupe-runs/try");
        trp_run_folder_free(g);
    }
    static const char *const not_runs[] = {"", "nope", "troupe-runs", "/", "../.."};
    for (size_t i = 0; i < G_N_ELEMENTS(not_runs); i++)
        g_assert_cmpint(trp_run_folder_open(runs_of(base), not_runs[i], &g, &err), ==,
                        TRP_EINVAL);
    g_free(path);
    free_base(base);
}

TEST("the folder of a run that did not begin is used again")
{
    char *base = new_base(), *text = NULL;
    trp_run_folder *f = make(base, "weather", "r"), *g = NULL;
    trp_error err = {0};
    char *state = g_build_filename(f->path, "state", "run.json", NULL);
    char *id = g_build_filename(f->path, "state", "id", NULL);
    /* another that starts at the same moment */
    refuse(base, "r", TRP_EEXIST, "use --resume r or another name");
    g_assert_true(g_file_test(state, G_FILE_TEST_EXISTS));
    trp_run_folder_free(f);
    /* as a disk leaves it that was full */
    g_assert_cmpint(g_unlink(state), ==, 0);
    g_assert_cmpint(g_unlink(id), ==, 0);
    g_assert_cmpint(trp_run_folder_open(runs_of(base), "r", &g, &err), ==, TRP_EINVAL);
    f = make(base, "weather", "r");
    g_assert_true(g_file_get_contents(id, &text, NULL, NULL));
    g_assert_cmpuint(strlen(text), ==, 32);
    begin(f);
    refuse(base, "r", TRP_EEXIST, "use --resume r");
    g_free(text);
    g_free(id);
    g_free(state);
    free_base(base);
}

/* In place of the folder `name` of the runs. */
static void refuse_folder(const char *base, const char *words)
{
    struct trp_run_view *v = NULL;
    uint32_t n = 0;
    trp_error err = {0};
    char *path = NULL;
    refuse(base, "x", TRP_ESYSTEM, words);
    refuse(base, "x", TRP_ESYSTEM, "--runs-dir DIR");
    g_assert_cmpint(trp_run_folder_list(runs_of(base), &v, &n, &err), ==, TRP_ESYSTEM);
    g_assert_cmpint(trp_run_folder_find(runs_of(base), "last", &path, &err), ==,
                    TRP_ESYSTEM);
}

TEST("folders that others can change are refused")
{
    char *base = new_base();
    char *real = g_build_filename(base, "real", NULL);
    trp_run_folder *f = make(base, "weather", "r"), *g = NULL;
    trp_error err = {0};
    char *run = g_strdup(f->path);
    begin(f);
    g_assert_cmpint(chmod(runs_of(base), 0770), ==, 0);
    refuse_folder(base, "others can write in");
    g_assert_cmpint(chmod(runs_of(base), 01777), ==, 0);
    refuse_folder(base, "(mode 1777)");
    g_assert_cmpint(chmod(runs_of(base), 0755), ==, 0);

    g_assert_cmpint(chmod(run, 0702), ==, 0);
    static const char *const ways[] = {"r", "last", "troupe-runs/r"};
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++)
        g_assert_cmpint(trp_run_folder_open(runs_of(base), ways[i], &g, &err), ==,
                        TRP_ESYSTEM);
    g_assert_cmpint(chmod(run, 0700), ==, 0);
    g_assert_cmpint(rename(run, real), ==, 0);
    g_assert_cmpint(symlink("../real", run), ==, 0);
    g_assert_cmpint(trp_run_folder_open(runs_of(base), "r", &g, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "is a link"));

    g_assert_cmpint(rename(runs_of(base), "elsewhere"), ==, 0);
    g_assert_cmpint(symlink("elsewhere", runs_of(base)), ==, 0);
    refuse_folder(base, "is a link");
    if (geteuid() == 0) {
        g_assert_cmpint(g_unlink(runs_of(base)), ==, 0);
        g_assert_cmpint(mkdir(runs_of(base), 0700), ==, 0);
        g_assert_cmpint(chown(runs_of(base), 1, 1), ==, 0);
        refuse_folder(base, "belongs to daemon");
    }
    g_free(run);
    g_free(real);
    free_base(base);
}

/* What is opened by the run's path is what was there, not what is there now. */
TEST("a held folder is not what is put in its place")
{
    char *base = new_base();
    trp_run_folder *f = make(base, "weather", "r");
    char *file = g_build_filename(f->path, "state", "pids", NULL);
    char *link = g_build_filename(f->path, "state", "link", NULL), name[4096];
    struct stat st;
    trp_error err = {0};
    g_assert_cmpint(rename(runs_of(base), "moved"), ==, 0);
    g_assert_cmpint(g_mkdir_with_parents("troupe-runs/r/state", 0777), ==, 0);
    trp_run_folder_pid(f->path, 12, "x");
    set(f, "failed", 1);
    g_assert_cmpint(access("moved/r/state/pids", F_OK), ==, 0);
    g_assert_cmpint(access("troupe-runs/r/state/pids", F_OK), <, 0);
    g_assert_cmpint(access("troupe-runs/r/state/run.json", F_OK), <, 0);
    g_assert_true(trp_held_name(file, name, sizeof name));
    g_assert_cmpint(stat(name, &st), ==, 0);

    g_assert_cmpint(symlink("pids", "moved/r/state/link"), ==, 0);
    g_assert_cmpint(trp_held_open(link, O_RDONLY, 0), <, 0);
    g_assert_cmpint(symlink("state", "moved/r/other"), ==, 0);
    char *through = g_build_filename(f->path, "other", "pids", NULL);
    char *above = g_build_filename(f->path, "..", "..", "moved", NULL);
    g_assert_cmpint(trp_held_open(through, O_RDONLY, 0), <, 0);
    g_assert_cmpint(trp_held_open(above, O_RDONLY, 0), <, 0);

    /* a process that is told of it by its path */
    char *id = g_strdup(trp_held_id(f->path)), *path = g_strdup(f->path);
    g_assert_cmpuint(strlen(id), ==, 32);
    trp_run_folder_free(f);
    g_assert_cmpint(trp_held_folder(path, id, &err), ==, TRP_ESYSTEM);
    g_assert_nonnull(strstr(err.text, "somebody has put another in its place"));
    files_remove("troupe-runs");
    g_assert_cmpint(trp_held_folder(path, id, &err), ==, TRP_ENOENT);
    g_assert_cmpint(rename("moved", "troupe-runs"), ==, 0);
    g_assert_cmpint(trp_held_folder(path, id, &err), ==, 0);
    trp_held_leave(path);
    g_free(id);
    g_free(path);
    g_free(through);
    g_free(above);
    g_free(link);
    g_free(file);
    free_base(base);
}

TEST("runs can be elsewhere")
{
    char *base = new_base(), *runs = NULL, *cwd = g_get_current_dir();
    trp_error err = {0};
    g_assert_cmpint(trp_runs_dir("./some//", &runs, &err), ==, 0);
    g_assert_true(g_str_has_prefix(runs, cwd));
    g_assert_true(g_str_has_suffix(runs, "/some"));
    trp_run_folder *f = NULL;
    g_assert_cmpint(trp_run_folder_new(runs, "app", "r", &f, &err), ==, 0);
    g_assert_cmpstr(f->shown, ==, f->path);
    g_assert_cmpstr(trp_run_called(f->path), ==, f->path);
    g_assert_cmpint(mode_of("some", "."), ==, 0700);
    trp_run_folder_free(f);
    g_free(runs);
    g_setenv("TROUPE_RUNS", "/a/b", TRUE);
    g_assert_cmpint(trp_runs_dir(NULL, &runs, &err), ==, 0);
    g_assert_cmpstr(runs, ==, "/a/b");
    g_free(runs);
    g_unsetenv("TROUPE_RUNS");
    g_assert_cmpint(trp_runs_dir("", &runs, &err), ==, TRP_EINVAL);
    g_free(cwd);
    free_base(base);
}

static struct trp_run_view *list(const char *base, uint32_t wanted)
{
    struct trp_run_view *v = NULL;
    uint32_t n = 0;
    trp_error err = {0};
    g_assert_cmpint(trp_run_folder_list(runs_of(base), &v, &n, &err), ==, 0);
    g_assert_cmpuint(n, ==, wanted);
    return v;
}

TEST("the list tells running, ended and died")
{
    char *base = new_base();
    trp_run_folder_list_free(list(base, 0), 0);
    trp_run_folder *f = make(base, "weather", "try");
    set(f, "running", 0);
    struct trp_run_view *v = list(base, 1);
    int64_t started = v->started_ms;
    g_assert_cmpstr(v->name, ==, "try");
    g_assert_cmpstr(v->app, ==, "weather \xef\xbf\xbd");
    g_assert_cmpstr(v->status, ==, "running");
    g_assert_cmpint(v->pid, ==, getpid());
    g_assert_cmpint(v->ended_ms, ==, 0);
    trp_run_folder_list_free(v, 1);

    set(f, "failed", 1);
    v = list(base, 1);
    g_assert_cmpstr(v->status, ==, "failed");
    g_assert_cmpint(v->exit_status, ==, 1);
    g_assert_cmpint(v->started_ms, ==, started);
    g_assert_cmpint(v->ended_ms, >=, started);
    trp_run_folder_list_free(v, 1);

    set(f, "running", 0);
    trp_run_folder_free(f); /* the lock goes, as with a kill */
    v = list(base, 1);
    g_assert_cmpstr(v->status, ==, "died");
    trp_run_folder_list_free(v, 1);
    free_base(base);
}

static void put(const char *base, const char *path, const char *text)
{
    char *file = g_build_filename(base, "troupe-runs", path, NULL);
    char *dir = g_path_get_dirname(file);
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
    g_free(dir);
    g_free(file);
}

TEST("the list is newest first and skips rubbish")
{
    char *base = new_base();
    put(base, "a/state/run.json", "{\"status\":\"succeeded\",\"started\":10}");
    put(base, "b/state/run.json", "{\"status\":\"failed\",\"started\":30,\"exit\":1}");
    put(base, "c/state/run.json", "{\"status\":\"failed\",\"started\":20}");
    put(base, "d/state/run.json", "{\"status\":");
    put(base, "e/state/run.json", "[]");
    put(base, "f/state/run.json", "{\"status\":7}");
    put(base, "g/state/run.json/x", "a folder");
    put(base, "h/notes.txt", "not a run");
    put(base, "file", "not a folder");
    put(base, ".history/app-1", "");
    put(base, "i/state/run.json", "{\"status\":\"running\",\"started\":\"soon\"}");
    struct trp_run_view *v = list(base, 4);
    static const char *const wanted[] = {"b", "c", "a", "i"};
    for (size_t i = 0; i < 4; i++)
        g_assert_cmpstr(v[i].name, ==, wanted[i]);
    g_assert_cmpint(v[0].exit_status, ==, 1);
    g_assert_cmpstr(v[3].status, ==, "died");
    trp_run_folder_list_free(v, 4);
    free_base(base);
}

TEST("processes are noted, a line each")
{
    char *base = new_base();
    trp_run_folder *f = make(base, "app", "x");
    trp_run_folder_pid(f->path, 12, "troupe: driver x");
    trp_run_folder_pid(f->path, 34, "troupe: executor\n0 x");
    char *file = g_build_filename(f->path, "state", "pids", NULL), *text = NULL;
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "12 troupe: driver x\n34 troupe: executor 0 x\n");
    g_free(text);
    g_free(file);
    trp_run_folder_free(f);
    free_base(base);
}
