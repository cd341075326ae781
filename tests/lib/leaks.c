/*
 * When leaks are looked for at the end of a process, in a build with the address sanitizer,
 * which links this file into every program. In a process of MPI they are not: Open MPI
 * leaves much behind, and has unloaded the modules that it came from by then, so that no
 * suppression can name them. libslurm 22.05 leaves a part of some answers about steps behind
 * that its own function for freeing them does not know, and the resolver of libc what a thread
 * that was given up had asked it.
 */
#include <dlfcn.h>
#include <stdlib.h>

/* LeakSanitizer's own names for it (sanitizer/lsan_interface.h). */
int __lsan_is_turned_off(void);
const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void);

__attribute__((visibility("default"))) int __lsan_is_turned_off(void)
{
    return dlsym(RTLD_DEFAULT, "MPI_Init") || getenv("OMPI_COMM_WORLD_SIZE") ||
           getenv("PMIX_RANK") || getenv("PMI_RANK");
}

/* A count of what was passed over would be taken for a report. */
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

/* A fuzz target has its own. */
__attribute__((visibility("default"), weak)) const char *
__lsan_default_suppressions(void)
{
    return "leak:slurm_get_job_steps\nleak:res_context_send\n";
}
