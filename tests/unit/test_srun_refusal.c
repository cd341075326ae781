/* What is made of srun's words when it has started nothing. */
#include "executor/srun_refusal.h"
#include "unit.h"

#include <glib.h>

TEST("Slurm's words have a meaning")
{
    static const char *const not_now[] = {
        "srun: error: Unable to create step for job 308: Memory required by task is "
        "not available\n",
        "srun: error: Unable to create step for job 3: Requested nodes are busy\n",
        "srun: error: Unable to confirm allocation for job 7: Unable to contact slurm "
        "controller (connect failure)\n",
    };
    static const char *const never[] = {
        "srun: error: Unable to create step for job 3: Invalid generic resource (gres) "
        "specification\n",
        "srun: error: Unable to create step for job 3: More processors requested than "
        "permitted\n",
        "slurmstepd: error: execve(): /opt/troupe-rank: No such file or directory\n",
    };
    g_assert_cmpint(trp_srun_refusal(""), ==, TRP_SRUN_UNKNOWN);
    /* The node failed before it came to the program. */
    g_assert_cmpint(trp_srun_refusal("srun: error: task 0 launch failed: Slurmd could "
                                     "not execve job\n"),
                    ==, TRP_SRUN_UNKNOWN);
    g_assert_cmpint(trp_srun_refusal("srun: error: node2: task 0: Exited with exit "
                                     "code 1\n"),
                    ==, TRP_SRUN_UNKNOWN);
    g_assert_cmpint(trp_srun_refusal("srun: error: Unable to create step for job 3: "
                                     "Rate limit exceeded, please retry momentarily\n"),
                    ==, TRP_SRUN_TOO_OFTEN);
    for (size_t i = 0; i < G_N_ELEMENTS(not_now); i++)
        g_assert_cmpint(trp_srun_refusal(not_now[i]), ==, TRP_SRUN_NOT_NOW);
    for (size_t i = 0; i < G_N_ELEMENTS(never); i++)
        g_assert_cmpint(trp_srun_refusal(never[i]), ==, TRP_SRUN_NEVER);
}

TEST("the first error is told")
{
    char text[32];
    trp_srun_complaint("srun: job 7 queued\nsrun: error: no room\nsrun: error: more\n",
                       text, sizeof text);
    g_assert_cmpstr(text, ==, "no room");
    trp_srun_complaint("something else\nand more", text, sizeof text);
    g_assert_cmpstr(text, ==, "something else");
    trp_srun_complaint("", text, sizeof text);
    g_assert_cmpstr(text, ==, "");
}

TEST("nodes that were not reached are told")
{
    char text[128];
    g_assert_true(trp_srun_unreached(
        "srun: error: Task launch for StepId=7.0 failed on node n2: Communication "
        "connection failure\n"
        "srun: error: Application launch failed: Communication connection failure\n",
        text, sizeof text));
    g_assert_cmpstr(text, ==,
                    "Task launch for StepId=7.0 failed on node n2: Communication "
                    "connection failure");
    g_assert_true(trp_srun_unreached(
        "srun: error: Task launch for StepId=7.0 failed on node n2: Socket timed out\n"
        "srun: error: Task launch for StepId=7.0 failed on node n4: Socket timed out\n"
        "srun: error: n1: task 0: Killed\n",
        text, sizeof text));
    g_assert_cmpstr(
        text, ==, "Task launch for StepId=7.0 failed on node n2,n4: Socket timed out");
    /* That n2 was reached, or that nobody knows. */
    g_assert_false(trp_srun_unreached("", text, sizeof text));
    g_assert_false(trp_srun_unreached("srun: error: n2: task 0: Exited with exit code "
                                      "233\n",
                                      text, sizeof text));
    g_assert_false(trp_srun_unreached("srun: error: Task launch for StepId=7.0 failed "
                                      "on node n2: Unspecified error\n",
                                      text, sizeof text));
    g_assert_false(
        trp_srun_unreached("Task launch for \nx failed on node n2: Socket timed out\n",
                           text, sizeof text));
    char small[48];
    g_assert_true(trp_srun_unreached("Task launch for StepId=7.0 failed on node "
                                     "a-long-name: Socket timed out",
                                     small, sizeof small));
    g_assert_cmpstr(small, ==, "Task launch for StepId=7.0 failed on node a-lon");
}
