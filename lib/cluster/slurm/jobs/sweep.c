/*
 * Which jobs the drivers of a run have been in: state/slurm_jobs of its folder, a
 * number a line. An additional job says in its comment of which of them it is.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cluster/slurm/jobs/additional_parts.h"
#include "os/held.h"

enum { DRIVERS = 256 }; /* the last ones */

static uint32_t read_drivers(int fd, uint32_t jobs[DRIVERS])
{
    uint32_t n = 0, job;
    int copy = dup(fd);
    FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
    while (f && fscanf(f, "%u", &job) == 1)
        jobs[n++ % DRIVERS] = job;
    if (f)
        fclose(f);
    return n < DRIVERS ? n : DRIVERS;
}

static char *make_call(const struct trp_slurm *s, const uint32_t *jobs, uint32_t n,
                       bool now)
{
    char list[DRIVERS * 12] = "", *call = NULL;
    size_t at = 0, size;
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%u", i ? "," : "",
                               jobs[i]);
    FILE *f = open_memstream(&call, &size);
    if (!f)
        return NULL;
    fputs("sweep", f);
    trp_slurm_line_put(f, "run", s->command.run_name);
    trp_slurm_line_put(f, "folder", s->command.run_dir);
    trp_slurm_line_put(f, "drivers", list);
    trp_slurm_line_put_number(f, "now", now);
    return fclose(f) == 0 ? call : NULL;
}

void trp_slurm_sweep(struct trp_slurm *s)
{
    uint32_t jobs[DRIVERS], own = s->inventory.parts[0].leader;
    char path[PATH_MAX], line[16];
    snprintf(path, sizeof path, "%s/state/slurm_jobs", s->command.run_dir);
    int fd = trp_held_open(path, O_RDWR | O_APPEND | O_CREAT, 0600);
    uint32_t n = fd < 0 ? 0 : read_drivers(fd, jobs);
    bool others = n > 0; /* this job, too, when it was started again */
    if (n == DRIVERS)
        n--;
    jobs[n++] = own;
    int size = snprintf(line, sizeof line, "%u\n", own);
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        fprintf(stderr, "troupe: cannot write %s: %m\n", path);
    if (fd >= 0)
        close(fd);
    char *call = make_call(s, jobs, n, others);
    if (call)
        trp_slurm_helper_tell(s->helper, call);
    free(call);
}
