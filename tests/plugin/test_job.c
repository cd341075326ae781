/* What the prolog asks of the site and of slurmctld. With the real ones:
 * tests/slurm/scratch.bats. */
#pragma GCC visibility push(default)
#include "cluster/slurm/helper/libslurm.h"
#pragma GCC visibility pop
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_spank.h"
#include "plugin/job_folder.h"
#include "plugin/plugin.h"
#include "plugin/shapes.h"

/* ---- a slurmctld that knows one job, or does not answer ---- */

enum { ENDS = -1 }; /* a load_error */

static slurm_job_info_t job;
static int load_error;
static int *asked; /* also counted by who is asked in a process of its own */
static bool ready;

static int load(job_info_msg_t **ret, uint32_t id)
{
    if (!ready || load_error == ENDS)
        _exit(1); /* as libslurm does */
    (*asked)++;
    errno = load_error ? load_error : ESLURM_INVALID_JOB_ID;
    if (load_error || id != job.job_id)
        return SLURM_ERROR;
    *ret = calloc(1, sizeof **ret);
    (*ret)->record_count = 1;
    (*ret)->job_array = &job;
    return SLURM_SUCCESS;
}

#pragma GCC visibility push(default)
void slurm_init(const char *conf)
{
    g_assert_null(conf);
    ready = true;
}

#if TRP_LIBSLURM_SINCE(26, 5)
int slurm_load_job(job_info_msg_t **ret, slurm_step_id_t id, uint16_t flags)
{
    (void)flags;
    return load(ret, id.job_id);
}
#else
int slurm_load_job(job_info_msg_t **ret, uint32_t id, uint16_t flags)
{
    (void)flags;
    return load(ret, id);
}
#endif

void slurm_free_job_info_msg(job_info_msg_t *m)
{
    free(m);
}

trp_libslurm_hostlist slurm_hostlist_create(const char *text)
{
    return (trp_libslurm_hostlist)strdup(text);
}

/* Names with commas between them. */
int slurm_hostlist_find(trp_libslurm_hostlist list, const char *name)
{
    char **names = g_strsplit((const char *)list, ",", 0);
    bool has = g_strv_contains((const char *const *)names, name);
    g_strfreev(names);
    return has ? 0 : -1;
}

void slurm_hostlist_destroy(trp_libslurm_hostlist list)
{
    free(list);
}
#pragma GCC visibility pop

static bool here(uint32_t state, const char *nodes)
{
    char text[64];
    struct trp_plugin_asking asking = {.own = 1};
    if (nodes)
        g_strlcpy(text, nodes, sizeof text);
    job = (slurm_job_info_t){
        .job_id = 7, .job_state = state, .nodes = nodes ? text : NULL};
    return trp_plugin_job_here(7, &asking);
}

static void test_here(void)
{
    g_setenv("SLURMD_NODENAME", "n1", TRUE);
    g_assert_true(here(JOB_RUNNING, "n0,n1"));
    g_assert_true(here(JOB_RUNNING | JOB_CONFIGURING, "n1"));
    g_assert_true(here(JOB_SUSPENDED, "n1"));
    g_assert_true(here(JOB_COMPLETE | JOB_COMPLETING, "n1"));
    g_assert_true(here(JOB_PENDING | JOB_COMPLETING, "n1"));
    g_assert_false(here(JOB_RUNNING, "n0,n11"));
    g_assert_false(here(JOB_COMPLETE | JOB_COMPLETING, "n2"));
    g_assert_false(here(JOB_COMPLETE, "n1"));
    g_assert_false(here(JOB_NODE_FAIL, "n1"));
    g_assert_false(here(JOB_PENDING, NULL));
    /* Who does not know where it is knows nothing. */
    g_unsetenv("SLURMD_NODENAME");
    g_assert_true(here(JOB_RUNNING, "n0"));
}

static void test_unknown(void)
{
    struct trp_plugin_asking asking = {.own = 7};
    *asked = 0;
    g_assert_true(trp_plugin_job_here(7, &asking));
    g_assert_cmpint(*asked, ==, 0);
    g_assert_false(trp_plugin_job_here(99, &asking));
    g_assert_false(trp_plugin_job_here(98, &asking));
    g_assert_cmpint(*asked, ==, 2);
    /* No answer is waited for twice. */
    load_error = SLURM_COMMUNICATIONS_CONNECTION_ERROR;
    g_assert_true(trp_plugin_job_here(99, &asking));
    g_assert_true(trp_plugin_job_here(98, &asking));
    g_assert_cmpint(*asked, ==, 3);
    load_error = 0;
    /* libslurm ends the process. */
    asking.silent = false;
    load_error = ENDS;
    g_assert_true(trp_plugin_job_here(99, &asking));
    g_assert_true(asking.silent);
    load_error = 0;
}

static int scratch_of(const char *text, char ret[PATH_MAX])
{
    trp_error err;
    char *path = NULL;
    int fd = g_file_open_tmp(NULL, &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_assert_true(g_close(fd, NULL));
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    int code = trp_shapes_scratch(path, ret, &err);
    g_unlink(path);
    g_free(path);
    return code;
}

static void test_site(void)
{
    char path[PATH_MAX];
    trp_error err;
    g_assert_cmpint(scratch_of("troupe-shapes 1\n# by\nscratch /a b\nend\n", path), ==,
                    0);
    g_assert_cmpstr(path, ==, "/a b");
    g_assert_cmpint(scratch_of("troupe-shapes 1\nlimit time 6\nend\n", path), ==,
                    TRP_ENOENT);
    g_assert_cmpint(scratch_of("troupe-shapes 1\n", path), ==, TRP_ENOENT);
    g_assert_cmpint(scratch_of("scratch /of/another/version\n", path), ==, TRP_EPROTO);
    g_assert_cmpint(scratch_of("troupe-shapes 1\n#\nscratch /cut", path), ==,
                    TRP_EPROTO);
    char *text = g_strdup_printf("troupe-shapes 1\n#\nscratch /%*d\n", PATH_MAX, 1);
    g_assert_cmpint(scratch_of(text, path), ==, TRP_EPROTO);
    g_free(text);
    g_assert_cmpint(trp_shapes_scratch("/nowhere/shapes", path, &err), ==, TRP_ENOENT);
    g_assert_cmpint(trp_shapes_scratch("/etc/passwd/shapes", path, &err), ==,
                    TRP_ESYSTEM);
}

/* Nothing is made, asked or told. */
static void test_nothing_to_do(void)
{
    struct trp_plugin p = {.shapes = "/nowhere/shapes"};
    trp_error err;
    fake_reset(S_CTX_JOB_SCRIPT);
    *asked = 0;
    g_assert_cmpint(trp_plugin_prolog(fake_handle(), &p, &err), ==, 0);
    fake.job = UINT32_MAX - 7;
    g_assert_cmpint(trp_plugin_epilog(fake_handle(), &err), ==, 0);
    g_assert_cmpint(trp_plugin_scratch(fake_handle(), &err), ==, 0);
    g_assert_null(fake_get("TROUPE_SCRATCH"));
    g_assert_cmpint(*asked, ==, 0);
    fake.job = 0; /* SPANK does not tell */
    g_assert_cmpint(trp_plugin_epilog(fake_handle(), &err), ==, TRP_ESTATE);
}

int main(int argc, char **argv)
{
    asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(asked != MAP_FAILED);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/job/those that may be on this node", test_here);
    g_test_add_func("/job/those that slurmctld does not know, or tell", test_unknown);
    g_test_add_func("/job/scratch of the shapes", test_site);
    g_test_add_func("/job/without scratch nothing is done", test_nothing_to_do);
    return g_test_run();
}
