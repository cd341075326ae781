/*
 * By what srun starts the ranks of a gang.
 */
#include <glib.h>
#include <string.h>

#include "cluster/slurm/helper/inventory_lines.h"
#include "cluster/slurm/helper/job_answer.h"
#include "cluster/slurm/helper/mpi_types.h"
#include "unit.h"

static void expect_types(const char *said, const char *types)
{
    char got[TRP_SLURM_MPI_TYPES];
    trp_slurm_mpi_types(said, got, sizeof got);
    g_assert_cmpstr(got, ==, types);
}

TEST("the list of srun is read")
{
    char few[10];
    expect_types("MPI plugin types are...\n\tcray_shasta\n\tnone\n\tpmi2\n\tpmix\n"
                 "specific pmix plugin versions available: pmix_v4\n",
                 "cray_shasta none pmi2 pmix");
    expect_types("MPI plugin types are...\n\tpmi2 \r\n\n  none", "pmi2 none");
    expect_types("sh: 1: exec: srun: not found\n", "");
    expect_types("", "");
    trp_slurm_mpi_types("\tnone\n\tpmix\n\tpmi2\n", few, sizeof few);
    g_assert_cmpstr(few, ==, "none pmix");
}

TEST("a type is in it or not")
{
    g_assert_true(trp_slurm_mpi_has("none pmi2 pmix", "none"));
    g_assert_true(trp_slurm_mpi_has("none pmi2 pmix", "pmix"));
    g_assert_false(trp_slurm_mpi_has("none pmi2 pmix_v4", "pmix"));
    g_assert_false(trp_slurm_mpi_has("none pmi2", "pmi"));
    g_assert_false(trp_slurm_mpi_has("", "none"));
}

/* `text`: of the site file; `type` NULL: none serves it, and `why` is said. */
static void expect(const char *text, const char *types, enum trp_linked_mpi linked,
                   const char *type, const char *why)
{
    char got[TRP_SITE_WORD_MAX + 1];
    trp_site *site;
    trp_error err = {.text = ""};
    g_assert_cmpint(trp_site_parse("site", text, strlen(text), &site, &err), ==, 0);
    int code = trp_slurm_mpi_choose(site, types, linked, got, &err);
    g_assert_cmpint(code, ==, type ? 0 : TRP_ENEVER);
    if (type)
        g_assert_cmpstr(got, ==, type);
    else
        g_assert_nonnull(strstr(err.text, why));
    trp_site_free(site);
}

TEST("what serves a program's MPI is taken of the list")
{
    static const char site[] = "site: 1\n", all[] = "none pmi2 pmix",
                      few[] = "none pmi2";
    expect(site, all, TRP_LINKED_OPENMPI, "pmix", NULL);
    expect(site, all, TRP_LINKED_MPICH, "pmi2", NULL);
    expect(site, all, TRP_LINKED_NONE, "pmix", NULL);
    expect(site, "pmix_v5 pmix none", TRP_LINKED_OPENMPI, "pmix", NULL);
    expect(site, "none pmix_v4 pmix_v5", TRP_LINKED_OPENMPI, "pmix_v4", NULL);
    expect(site, few, TRP_LINKED_MPICH, "pmi2", NULL);
    expect(site, few, TRP_LINKED_NONE, "pmi2", NULL);
    expect(site, "none cray_shasta", TRP_LINKED_NONE, "none", NULL);
}

TEST("an MPI that none serves is told")
{
    static const char site[] = "site: 1\n";
    expect(
        site, "none pmi2", TRP_LINKED_OPENMPI, NULL,
        "linked with Open MPI, which srun --mpi=pmix would start, and this Slurm has "
        "only none pmi2");
    expect(
        site, "none pmix", TRP_LINKED_MPICH, NULL,
        "linked with MPICH, which srun --mpi=pmi2 would start, and this Slurm has only "
        "none pmix");
}

/* The site knows better, and without a list there is what most have. */
TEST("the site file has the last word")
{
    static const char site[] = "site: 1\nmpi: cray_shasta\n";
    expect(site, "none pmi2", TRP_LINKED_OPENMPI, "cray_shasta", NULL);
    expect(site, "", TRP_LINKED_MPICH, "cray_shasta", NULL);
    expect("site: 1\n", "", TRP_LINKED_MPICH, "pmi2", NULL);
    expect("site: 1\n", "", TRP_LINKED_OPENMPI, "pmix", NULL);
    expect("site: 1\n", "", TRP_LINKED_NONE, "pmix", NULL);
}

/* What was asked before the run is what the run goes by. */
TEST("a run goes by what was asked before it")
{
    struct trp_slurm_inventory i;
    uint64_t rpcs;
    trp_error err;
    g_assert_cmpint(
        trp_slurm_answer_read("0 allocation job=8 leader=8 component=-1 live=1\n"
                              "0 node job=8 name=n1 host=n1 cpus=4\n"
                              "0 mpi types=none%20pmi2\n"
                              "0 done rpcs=4\n",
                              &i, &rpcs, &err),
        ==, 0);
    g_assert_cmpstr(i.mpi_types, ==, "none pmi2");
    trp_slurm_inventory_free(&i);
}
