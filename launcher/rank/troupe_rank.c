/*
 * troupe-rank: what mpirun starts for a pipeline. Its first word says which part it is:
 *
 *     driver RUN_DIR    the driver of a run
 *     executor          an executor (TROUPE_EXECUTOR says which)
 *     step VAR… -- …    what stands before an executor in a Slurm step
 *     guard             ends an additional Slurm job when the driver is gone
 *     tidy OWNER…       removes what executors left on their node that were killed
 *     move RUN_DIR …    copies map outputs of its node to the folder of the run
 *     gang SPECFILE     the wrapper of one rank of a gang
 *     ask RUN_DIR       asks the driver of a run on its node for who is elsewhere
 *     mpi MODULE        says which MPI a module is for
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/slurm/jobs/tidy.h"
#include "cluster/slurm/steps/step.h"
#include "comm/channel.h"
#include "comm/mpi.h"
#include "driver/ask.h"
#include "driver/pipeline_run.h"
#include "executor/executor.h"
#include "executor/job_guard.h"
#include "executor/move_files.h"
#include "executor/spawner.h"
#include "os/title.h"

/* Until the driver is gone; then the job goes. A guard that was suspended for a while
 * with its job calls again. */
static int guard_job(void)
{
    int status = trp_job_guard_main();
    while (status == 0) {
        sleep(1);
        status = trp_job_guard_main();
    }
    if (getenv("TROUPE_EXECUTOR"))
        trp_slurm_end_own_job();
    return status;
}

static int name_mpi(const char *module)
{
    char name[64];
    trp_error err;
    if (trp_mpi_name(module, name, sizeof name, &err) < 0) {
        fprintf(stderr, "troupe-rank: %s\n", err.text);
        return 1;
    }
    puts(name);
    return 0;
}

/* A rank of a gang, whose launcher tells what there is to be noted of its end. */
static int be_rank(int argc, char **argv)
{
    return getenv("SLURM_PROCID") ? trp_slurm_rank_main(argc, argv)
                                  : trp_gang_keep_mpirun_rank(argc, argv);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    trp_process_title_init(argc, argv);
    if (strcmp(part, "driver") == 0 && argc == 3)
        return trp_pipeline_driver_main(argv[2]);
    if (strcmp(part, "executor") == 0 && argc == 2)
        return trp_executor_main(&argc, &argv, NULL);
    if (strcmp(part, "step") == 0 && argc > 3)
        return trp_slurm_step_main(argc - 2, argv + 2);
    if (strcmp(part, "guard") == 0 && argc == 2)
        return guard_job();
    if (strcmp(part, "tidy") == 0 && argc > 2)
        return trp_slurm_tidy_main(argc - 2, argv + 2);
    if (strcmp(part, "move") == 0 && argc > 4)
        return trp_move_main(argc - 2, argv + 2);
    if (strcmp(part, "gang") == 0 && argc == 5)
        return be_rank(argc, argv);
    if (strcmp(part, "ask") == 0 && argc == 3)
        return trp_ask_main(argv[2]);
    if (strcmp(part, "mpi") == 0 && argc == 3)
        return name_mpi(argv[2]);
    fputs("troupe-rank: started by troupe, not by hand; see troupe --help\n", stderr);
    return 2;
}
