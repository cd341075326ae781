/*
 * What sacct prints, read, and put beside a run's own figures.
 */
#include <glib.h>
#include <math.h>
#include <string.h>

#include "events/account.h"
#include "unit.h"

#define S INT64_C(1000000000)
#define T0 INT64_C(1800000000) /* s */

static struct trp_sacct read_rows(const char *text)
{
    struct trp_sacct s;
    trp_error err;
    if (trp_sacct_parse(text, &s, &err) < 0)
        g_error("%s", err.text);
    return s;
}

TEST("rows are read")
{
    struct trp_sacct s =
        read_rows("12|CANCELLED by 1000|0:15|4|14|00:09.178||1800000000|my|name\n"
                  "12.batch|COMPLETED|0:0|4|14|01:02:03|20193280|1800000001|batch\n"
                  "12.3|OUT_OF_MEMORY|3:125|2|5|2-01:00:00|8M|1800000002|r:prep.1\n"
                  "13|PENDING|0:0|0|0|00:00:00||Unknown|troupe r\n"
                  "13.0|FAILED|3:0|1|7|10:00.500|7968K|1800000003|");
    g_assert_cmpuint(s.n, ==, 5);
    g_assert_cmpuint(s.rows[0].job, ==, 12);
    g_assert_true(s.rows[0].is_job);
    g_assert_cmpstr(s.rows[0].state, ==, "CANCELLED");
    g_assert_cmpint(s.rows[0].signal, ==, 15);
    g_assert_cmpuint(s.rows[0].cpus, ==, 4);
    g_assert_cmpint(s.rows[0].elapsed_s, ==, 14);
    g_assert_cmpfloat_with_epsilon(s.rows[0].cpu_s, 9.178, 1e-9);
    g_assert_cmpint(s.rows[0].rss_kib, ==, 0);
    g_assert_cmpint(s.rows[0].start_s, ==, T0);
    g_assert_cmpstr(s.rows[0].name, ==, "my|name");
    g_assert_false(s.rows[1].is_job);
    g_assert_cmpint(s.rows[1].step, ==, TRP_SACCT_NO_STEP);
    g_assert_cmpfloat_with_epsilon(s.rows[1].cpu_s, 3723, 1e-9);
    g_assert_cmpint(s.rows[1].rss_kib, ==, 19720);
    g_assert_cmpint(s.rows[2].step, ==, 3);
    g_assert_cmpint(s.rows[2].exit_status, ==, 3);
    g_assert_cmpfloat_with_epsilon(s.rows[2].cpu_s, 2 * 86400 + 3600, 1e-9);
    g_assert_cmpint(s.rows[2].rss_kib, ==, 8192);
    g_assert_cmpint(s.rows[3].start_s, ==, 0);
    g_assert_false(trp_sacct_is_over(&s.rows[3]));
    g_assert_true(trp_sacct_is_over(&s.rows[4]));
    g_assert_cmpstr(s.rows[4].name, ==, "");
    trp_sacct_free(&s);
    s = read_rows("");
    g_assert_cmpuint(s.n, ==, 0);
    trp_sacct_free(&s);
}

TEST("what is no row is refused")
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"12|COMPLETED|0:0|4|14|00:09.178||1800000000",            "1 of sacct's has 8"   },
        {"12|COMPLETED|0:0|4|14|00:09||1|x\n\n",                   "line 2 of sacct's has"},
        {"|COMPLETED|0:0|4|14|00:09||1|x",                         "no JobIDRaw: \"\""    },
        {"x2|COMPLETED|0:0|4|14|00:09||1|x",                       "no JobIDRaw: \"x2\""  },
        {"12.|COMPLETED|0:0|4|14|00:09||1|x",                      "no JobIDRaw"          },
        {"12_3|COMPLETED|0:0|4|14|00:09||1|x",                     "no JobIDRaw"          },
        {"99999999999|COMPLETED|0:0|4|14|00:09||1|x",              "no JobIDRaw"          },
        {"12|completed|0:0|4|14|00:09||1|x",                       "no State"             },
        {"12||0:0|4|14|00:09||1|x",                                "no State"             },
        {"12|COMPLETED|0|4|14|00:09||1|x",                         "no ExitCode"          },
        {"12|COMPLETED|0:-1|4|14|00:09||1|x",                      "no ExitCode"          },
        {"12|COMPLETED|0:0|four|14|00:09||1|x",                    "no AllocCPUS"         },
        {"12|COMPLETED|0:0|4||00:09||1|x",                         "no ElapsedRaw"        },
        {"12|COMPLETED|0:0|4|1e9|00:09||1|x",                      "no ElapsedRaw"        },
        {"12|COMPLETED|0:0|4|14|9||1|x",                           "no TotalCPU"          },
        {"12|COMPLETED|0:0|4|14|00:09.1||1|x",                     "no TotalCPU"          },
        {"12|COMPLETED|0:0|4|14|1:2:3:4||1|x",                     "no TotalCPU"          },
        {"12|COMPLETED|0:0|4|14||3|1|x",                           "no TotalCPU"          },
        {"12|COMPLETED|0:0|4|14|00:09|1.5M|1|x",                   "no MaxRSS"            },
        {"12|COMPLETED|0:0|4|14|00:09|K|1|x",                      "no MaxRSS"            },
        {"12|COMPLETED|0:0|4|14|00:09|9999999999999999999999|1|x", "no MaxRSS"            },
        {"12|COMPLETED|0:0|4|14|00:09||2026-11-22T14:19:20|x",     "no Start"             },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        struct trp_sacct s;
        trp_error err;
        g_assert_cmpint(trp_sacct_parse(wrong[i].text, &s, &err), ==, TRP_EINVAL);
        if (!strstr(err.text, wrong[i].words))
            g_error("wanted \"%s\", got \"%s\"", wrong[i].words, err.text);
        g_assert_cmpuint(s.n, ==, 0);
    }
}

/* ---- beside ours ---- */

static struct trp_run_step step_of(uint32_t job, const char *name, uint32_t profile,
                                   double from, double to)
{
    return (struct trp_run_step){.job = job,
                                 .name = g_strdup(name),
                                 .profile = {profile},
                                 .cores = 2,
                                 .began = T0 * S + (int64_t)(from * 1e9),
                                 .ended = T0 * S + (int64_t)(to * 1e9),
                                 .cpu = 3,
                                 .peak_kib = 1024};
}

static struct trp_run_record record_of(struct trp_run_step *steps, uint32_t n)
{
    static const char *const names[] = {"prep", "solve"};
    static struct trp_run_job jobs[] = {
        {.id = 7            },
        { .id = 8, .additional = true}
    };
    struct trp_run_record r = {
        .complete = true, .jobs = jobs, .njobs = 2, .steps = steps, .nsteps = n};
    for (uint32_t i = 0; i < 2; i++) {
        struct trp_resource_profile p = {.id = {i}, .cores = 2, .task_cpus = 1};
        strcpy(p.name, names[i]);
        trp_statistics_shape(&r.statistics, &p);
    }
    return r;
}

static void done(struct trp_run_record *r, struct trp_account *a, struct trp_sacct *s)
{
    for (uint32_t i = 0; i < r->nsteps; i++)
        g_free(r->steps[i].name);
    trp_statistics_free(&r->statistics);
    trp_account_free(a);
    trp_sacct_free(s);
}

TEST("steps are summed by profile")
{
    struct trp_run_step steps[] = {step_of(7, "r:prep.0", 0, 0.5, 10.5),
                                   step_of(8, "r:solve.1", 1, 11, 15),
                                   step_of(7, "r:prep.2", 0, 1, 6)};
    struct trp_run_record r = record_of(steps, 3);
    steps[1].failed = true;
    steps[1].end = (char[]){"killed for memory"};
    struct trp_sacct s =
        read_rows("7|COMPLETED|0:0|4|20|00:30||1800000000|r\n"
                  "7.batch|COMPLETED|0:0|4|20|00:01||1800000000|r:prep.0\n"
                  "7.0|COMPLETED|0:0|2|11|00:04.500|3M|1800000000|r:prep.0\n"
                  "7.1|FAILED|1:0|2|5|00:03|4M|1800000001|r:prep.2\n"
                  "8|COMPLETED|0:0|2|5|00:30||1800000010|troupe r\n"
                  "8.0|OUT_OF_MEMORY|0:125|2|4|00:02|2M|1800000011|r:solve.1\n"
                  "9|COMPLETED|0:0|64|100|00:30||1800000010|somebody's\n");
    struct trp_account a;
    g_assert_cmpint(trp_account_make(&r, &s, &a), ==, 0);
    g_assert_cmpuint(a.nprofiles, ==, 2);
    g_assert_cmpstr(a.profiles[0].profile, ==, "prep");
    g_assert_cmpuint(a.profiles[0].steps, ==, 2);
    g_assert_cmpfloat_with_epsilon(a.profiles[0].held, 2 * 10 + 2 * 5, 1e-9);
    g_assert_cmpfloat_with_epsilon(a.profiles[0].slurm_held, 22 + 10, 1e-9);
    g_assert_cmpfloat_with_epsilon(a.profiles[0].cpu, 6, 1e-9);
    g_assert_cmpfloat_with_epsilon(a.profiles[0].slurm_cpu, 7.5, 1e-9);
    g_assert_cmpint(a.profiles[0].peak_kib, ==, 1024);
    g_assert_cmpint(a.profiles[0].slurm_peak_kib, ==, 4096);
    g_assert_cmpuint(a.profiles[0].completed, ==, 1);
    g_assert_cmpuint(a.profiles[0].disagree, ==, 1); /* ours ended well */
    g_assert_cmpstr(a.profiles[1].profile, ==, "solve");
    g_assert_cmpuint(a.profiles[1].disagree, ==, 0); /* both say that it failed */
    g_assert_cmpuint(a.total.steps, ==, 3);
    g_assert_cmpfloat_with_epsilon(a.total.slurm_held, 40, 1e-9);
    g_assert_cmpfloat_with_epsilon(a.job_held, 4 * 20 + 2 * 5, 1e-9);
    g_assert_cmpuint(a.lacking + a.open + a.never, ==, 0);
    done(&r, &a, &s);
}

/* A job that was requeued, or a run that was resumed in the same job. */
TEST("of rows with one name it is the one that had begun")
{
    static const char text[] = "7.0|COMPLETED|0:0|2|10|00:04|3M|1800000000|r:prep.0\n"
                               "7.0|COMPLETED|0:0|2|20|00:04|3M|1800000050|r:prep.0\n"
                               "7.9|COMPLETED|0:0|2|30|00:04|3M|1800000090|r:prep.0\n";
    static const struct {
        double from, to;
        int64_t elapsed;
    } cases[] = {
        {0.5,  9.5,   10},
        {50.5, 70,    20},
        {49.9, 50.01, 20}, /* whole seconds of Slurm's */
        {91,   120,   30}
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct trp_run_step steps[] = {
            step_of(7, "r:prep.0", 0, cases[i].from, cases[i].to)};
        struct trp_run_record r = record_of(steps, 1);
        struct trp_sacct s = read_rows(text);
        struct trp_account a;
        g_assert_cmpint(trp_account_make(&r, &s, &a), ==, 0);
        g_assert_nonnull(a.steps[0].slurm);
        g_assert_cmpint(a.steps[0].slurm->elapsed_s, ==, cases[i].elapsed);
        done(&r, &a, &s);
    }
}

TEST("what has no row is counted")
{
    struct trp_run_step steps[] = {
        step_of(7, "r:prep.0", 0, 0, 1), step_of(8, "r:prep.1", 0, 0, 1),
        step_of(7, "r:prep.2", 0, 0, 1), step_of(7, "r:prep.3", 0, 0, 1),
        step_of(7, "r:prep.4", 0, -5, -3)};
    struct trp_run_record r = record_of(steps, 5);
    steps[2].ended = 0; /* the driver was killed */
    steps[3].began = 0; /* released while it came */
    struct trp_sacct s =
        read_rows("7.0|RUNNING|0:0|2|10|00:04|3M|1800000000|r:prep.0\n"
                  "7.1|COMPLETED|0:0|2|10|00:04|3M|1800000000|r:prep.1\n"
                  "7.2|COMPLETED|0:0|2|10|00:04|3M|1800000000|r:prep.2\n"
                  "7.3|COMPLETED|0:0|2|10|00:04|3M|1800000000|r:prep.3\n"
                  "7.4|COMPLETED|0:0|2|10|00:04|3M|1800000000|r:prep.4\n"
                  "7.5|COMPLETED|0:0|2|10|00:04|3M|1800000000|r:prep.40\n");
    struct trp_account a;
    g_assert_cmpint(trp_account_make(&r, &s, &a), ==, 0);
    g_assert_cmpuint(a.nsteps, ==, 3);
    g_assert_cmpuint(a.lacking, ==, 3); /* runs yet; another job's; began later */
    g_assert_cmpuint(a.open, ==, 1);
    g_assert_cmpuint(a.never, ==, 1);
    g_assert_cmpuint(a.total.steps, ==, 0);
    done(&r, &a, &s);
}
