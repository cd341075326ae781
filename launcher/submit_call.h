/*
 * The command line of `troupe submit`: what is sbatch's, what is `run`'s, what to run.
 */
#ifndef TRP_LAUNCHER_SUBMIT_CALL_H
#define TRP_LAUNCHER_SUBMIT_CALL_H

#include "os/strings.h"
#include "settings.h"

enum { TRP_SBATCH_NAME = 32 };

/* An option of sbatch, or the ":" between the components of a heterogeneous job. */
struct trp_sbatch_option {
    char name[TRP_SBATCH_NAME]; /* long, without dashes; ":" */
    const char *value;          /* NULL: none */
};

/* Strings are borrowed from argv but where they are owned lists. */
struct trp_submit_call {
    struct trp_settings_request settings;
    bool print;
    bool local;                    /* --local: nothing is asked of Slurm but the job */
    const char *run_name, *resume; /* NULL: not given */
    const char *runs;              /* --runs-dir; NULL: not given */
    struct trp_strings run;        /* `run`'s own options but those three, as words */
    struct trp_sbatch_option *sbatch; /* in order */
    uint32_t nsbatch, sbatch_capacity;
    struct trp_strings sbatch_words; /* the same as they were written */
    char **app;                      /* program and arguments; NULL: a pipeline */
};

/* What was read of the command line: the caller's to free. */
struct trp_submit_call trp_submit_call_take(void);
void trp_submit_call_free(struct trp_submit_call *c);

/* The last value of an option of sbatch; "" for a flag, NULL when it is not given. */
const char *trp_submit_sbatch(const struct trp_submit_call *c, const char *name);

#endif
