/*
 * The rack of a rank, from what Slurm tells a task; the devices that a rank may use,
 * and how the ranks of a host share them out.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "driver/rank_devices.h"
#include "driver/ranks.h"
#include "unit.h"

static void expect(const char *path, const char *node, const char *rack)
{
    char buf[16];
    g_test_message("%s for %s", path ? path : "no path", node ? node : "no node");
    trp_rank_rack(path, node, buf, sizeof buf);
    g_assert_cmpstr(buf, ==, rack);
}

TEST("the rack is the leaf switch of the node")
{
    expect("spine.rack2.node7", "node7", "rack2");
    expect("rack2.node7", "node7", "rack2");
    expect("s[0-1].s2.node7", "node7", "s2");
}

TEST("anything else is no rack")
{
    expect(NULL, "node7", "");
    expect("spine.rack2.node7", NULL, "");
    expect("node7", "node7", "");             /* no topology */
    expect("spine.rack2.node8", "node7", ""); /* from another node */
    expect("", "", "");
    expect(".node7", "node7", "");
    expect("a-switch-of-16-bytes.node7", "node7", "");
}

/* ---- devices ---- */

static const struct trp_resource_profile two_gpus = {
    .custom = {{.name = "gpu", .executor = 2}, {.name = "key", .task = TRP_ONE}},
    .ncustom = 2,
};

static void clear(void)
{
    static const char *const names[] = {"SLURM_JOB_ID",         "SLURM_STEP_GPUS",
                                        "SLURM_GPUS_PER_TASK",  "SLURM_TRES_BIND",
                                        "CUDA_VISIBLE_DEVICES", "FPGAS"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        g_unsetenv(names[i]);
}

/* What a rank says with these variables ("NAME=VALUE", NULL-terminated) set. */
static void says(const char *site_text, const char *const *variables, const char *want)
{
    trp_site *site;
    char *text;
    clear();
    for (; *variables; variables++)
        g_assert_cmpint(putenv((char *)(uintptr_t)*variables), ==, 0);
    g_assert_cmpint(trp_site_parse("s.yaml", site_text, strlen(site_text), &site, NULL),
                    ==, 0);
    g_assert_cmpint(trp_rank_devices(&two_gpus, site, &text, NULL), ==, 0);
    g_assert_cmpstr(text, ==, want);
    free(text);
    trp_site_free(site);
    clear();
}

#define VARIABLES(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST("Slurm, the site file and a variable say which devices there are, in this order")
{
    static const char plain[] = "site: 1",
                      local[] = "{site: 1, local: {gpu: [a, b], key: [k]}}";
    says(plain, VARIABLES("X=1"), "");
    says(local, VARIABLES("X=1"), "gpu\tshared\t`local:` of s.yaml\ta,b\n");
    says(local, VARIABLES("CUDA_VISIBLE_DEVICES=3"),
         "gpu\tshared\t`local:` of s.yaml\ta,b\n");
    says(plain, VARIABLES("CUDA_VISIBLE_DEVICES=3,1"),
         "gpu\tshared\tCUDA_VISIBLE_DEVICES\t3,1\n");
    says(local, VARIABLES("SLURM_JOB_ID=7", "CUDA_VISIBLE_DEVICES=0,1"),
         "gpu\tshared\tCUDA_VISIBLE_DEVICES\t0,1\n");
    says(local, VARIABLES("SLURM_JOB_ID=7", "SLURM_STEP_GPUS=4"),
         "gpu\tshared\tSLURM_STEP_GPUS\t4\n");
    says(local, VARIABLES("SLURM_JOB_ID=7"), "");
    says(local, VARIABLES("SLURM_JOB_ID=7", "CUDA_VISIBLE_DEVICES=NoDevFiles"), "");
    says(local,
         VARIABLES("SLURM_JOB_ID=7", "CUDA_VISIBLE_DEVICES=0", "SLURM_GPUS_PER_TASK=1"),
         "gpu\town\tCUDA_VISIBLE_DEVICES\t0\n");
    says("{site: 1, resources: {gpu: {slurm: \"gres:fpga\", env: FPGAS}}}",
         VARIABLES("SLURM_JOB_ID=7", "SLURM_STEP_GPUS=4", "FPGAS=x"),
         "gpu\tshared\tFPGAS\tx\n");
}

enum { RANKS = 5 };

/* Ranks 1, 3 and 4 on host a, 2 on b, of `devices` each. NULL: as wanted. */
static void shares(const char *const *devices, const char *const *want,
                   const char *failure)
{
    static const char *const hosts[RANKS] = {"a", "a", "b", "a", "a"};
    struct trp_rank_place *places = calloc(RANKS, sizeof *places);
    trp_error err = {0};
    for (int i = 0; i < RANKS; i++) {
        strcpy(places[i].host, hosts[i]);
        places[i].devices = strdup(devices[i]);
    }
    int rc = trp_ranks_share(places, RANKS, &two_gpus, NULL, &err);
    g_assert_cmpint(rc, ==, failure ? TRP_ENEVER : 0);
    g_assert_cmpstr(err.text, ==, failure ? failure : "");
    for (int i = 0; !failure && i < RANKS; i++) {
        g_assert_cmpuint(places[i].nshare, ==, i ? 1 : 0);
        if (i == 0)
            continue;
        g_assert_cmpstr(places[i].share[0].name, ==, "gpu");
        g_assert_cmpuint(places[i].share[0].naddresses, ==, 2);
        g_autofree char *got = g_strdup_printf("%s,%s", places[i].share[0].addresses[0],
                                               places[i].share[0].addresses[1]);
        g_assert_cmpstr(got, ==, want[i]);
    }
    trp_ranks_free(places, RANKS);
}

#define SHARED(list) "gpu\tshared\tVAR\t" list "\n"
#define OWN(list) "key\town\tVAR\t9\ngpu\town\tVAR\t" list "\n"

TEST("ranks of a host share its devices out without overlap")
{
    shares((const char *const[RANKS]){"", SHARED("11,10,5,4,3,2"), SHARED("0,1"),
                                      SHARED("2,3,4,5,10,11"),
                                      SHARED("2,2,3,4,5,10,11")},
           (const char *const[RANKS]){"", "2,3", "0,1", "4,5", "10,11"}, NULL);
    /* Bound by Slurm: each has its own, however they are numbered. */
    shares(
        (const char *const[RANKS]){"", OWN("0,1"), OWN("0,1"), OWN("0,1"), OWN("0,1")},
        (const char *const[RANKS]){"", "0,1", "0,1", "0,1", "0,1"}, NULL);
}

TEST("too few devices are told with host and rank")
{
    shares(
        (const char *const[RANKS]){"", SHARED("0,1,2"), SHARED("0,1"), SHARED("0,1,2"),
                                   SHARED("0,1,2")},
        NULL,
        "executor.resource.gpu.amount is 2, but of the 3 gpu on a (by VAR) 1 is left "
        "for rank 3; start fewer ranks there or ask for more gpu");
    shares(
        (const char *const[RANKS]){"", SHARED("0,1"), "", SHARED("2,3"), SHARED("4,5")},
        NULL,
        "executor.resource.gpu.amount is 2, but nothing says which gpu rank 2 on b "
        "may use; ask Slurm for it, name it under `local:` in a site file, or set "
        "executor.resource.gpu.discoveryScript");
}
