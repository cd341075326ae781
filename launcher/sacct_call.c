/*
 * sacct is called once, for all jobs by their numbers, without a shell. Only its times
 * are asked for in another form; whatever else SACCT_* or the locale say, the columns
 * are those of --format.
 */
#include "sacct_call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "piped.h"

static int failed(char *said, int status, trp_error *err)
{
    char text[TRP_ERROR_TEXT];
    trp_piped_words("sacct", said, text, sizeof text);
    if (!*text)
        return trp_error_set(err, TRP_ESYSTEM, "sacct ended with %d and said nothing",
                             status);
    return trp_error_set(err, TRP_ESYSTEM, "sacct: %s", text);
}

static int call(char *const *argv, struct trp_sacct *ret, trp_error *err)
{
    struct trp_piped_said said;
    trp_error why;
    int code = trp_piped_run(argv, -1, &said);
    if (code == ENOENT)
        return trp_error_set(err, TRP_ESYSTEM,
                             "sacct is not in PATH; call troupe report --sacct where "
                             "Slurm's commands are");
    if (code == ENOMEM)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (code)
        return trp_error_set(err, TRP_ESYSTEM, "sacct cannot be started: %s",
                             strerror(code));
    if (said.status)
        code = failed(said.err, said.status, err);
    else if (trp_sacct_parse(said.out, ret, &why) < 0)
        code = trp_error_set(err, TRP_ESYSTEM, "%s", why.text);
    trp_piped_said_free(&said);
    return code;
}

static char *jobs_of(const struct trp_run_records *runs)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fputs("--jobs=", f);
    for (uint32_t i = 0, n = 0; i < runs->n; i++)
        for (uint32_t k = 0; k < runs->v[i]->njobs; k++)
            fprintf(f, "%s%u", n++ ? "," : "", runs->v[i]->jobs[k].id);
    return fclose(f) == 0 ? text : NULL;
}

int trp_sacct_call(const struct trp_run_records *runs, struct trp_sacct *ret,
                   trp_error *err)
{
    static char program[] = "sacct", parsable[] = "--parsable2",
                header[] = "--noheader", plain[] = "--noconvert",
                all[] = "--duplicates", format[] = "--format=" TRP_SACCT_FORMAT;
    char *jobs = jobs_of(runs);
    char *argv[] = {program, parsable, header, plain, all, format, jobs, NULL};
    int code = TRP_ENOMEM;
    if (jobs && setenv("SLURM_TIME_FORMAT", "%s", 1) == 0) /* seconds since 1970 */
        code = call(argv, ret, err);
    else
        trp_error_set(err, code, "out of memory");
    free(jobs);
    return code;
}
