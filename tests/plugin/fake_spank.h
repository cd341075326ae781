/*
 * SPANK for tests: what a plugin calls, on a task, a job and a log that a test can set
 * and look at. There is one, `fake`; fake_reset empties it.
 */
#ifndef TRP_TESTS_FAKE_SPANK_H
#define TRP_TESTS_FAKE_SPANK_H

#pragma GCC visibility push(default)
#include <slurm/slurm.h>
#include <slurm/spank.h>
#pragma GCC visibility pop

enum { FAKE_OPTIONS = 4, FAKE_VARIABLES = 32, FAKE_TEXT = 8192 };

struct fake_spank {
    spank_context_t context;
    char *major, *minor; /* of Slurm; NULL: it does not tell */
    struct spank_option options[FAKE_OPTIONS];
    int noptions;
    spank_err_t register_result, setenv_result;
    char *variables[FAKE_VARIABLES]; /* "NAME=VALUE", the task's */
    int nvariables;
    uint32_t job;                 /* its user is this process's; 0: cannot be asked */
    uint32_t step, cpus_per_task; /* cpus_per_task 0: cannot be asked */
    char log[FAKE_TEXT];          /* errors, a line each */
};
extern struct fake_spank fake;

void fake_reset(spank_context_t context);
/* The task's environment. */
void fake_put(const char *name, const char *value);
const char *fake_get(const char *name);
/* --name=value, from the command line or the environment, or with a job. */
int fake_option(const char *name, const char *value, int remote);
spank_t fake_handle(void);

/* What slurm.conf has under CliFilterPlugins; NULL: nothing. */
void fake_filters(const char *plugins);

#endif
