/*
 * The folder is handed over as Open MPI's own parameter (orte_tmpdir_base), not as
 * TMPDIR: TMPDIR stays the user's, for a program that runs below.
 */
#include "cluster/mpirun.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/processes.h"

#define FOLDER_ENTRY TRP_MPI_FOLDER "="

/* Words are made with room for all from the start, so adding never moves the array. */
struct words {
    char **v;
    size_t n, capacity;
    bool failed;
};

static void words_open(struct words *w, size_t capacity)
{
    memset(w, 0, sizeof *w);
    w->v = calloc(capacity + 1, sizeof *w->v);
    w->capacity = capacity;
    w->failed = !w->v;
}

static void words_add(struct words *w, const char *first, const char *second)
{
    if (w->failed || w->n == w->capacity) {
        w->failed = true;
        return;
    }
    char *word;
    if (asprintf(&word, "%s%s", first, second) < 0) {
        w->failed = true;
        return;
    }
    w->v[w->n++] = word;
}

static char **words_finish(struct words *w)
{
    if (!w->failed)
        return w->v;
    trp_argv_free(w->v);
    return NULL;
}

void trp_argv_free(char **words)
{
    if (!words)
        return;
    for (char **w = words; *w; w++)
        free(*w);
    free(words);
}

char **trp_mpirun_argv(const char *ompi_server, const char *const *program)
{
    static const char *const flags[] = {
        "mpirun",
        "-np",
        "1",
        "--bind-to",
        "none",
        "--oversubscribe",
        "--mca",
        "ras",
        "^slurm",
        "--mca",
        "plm",
        "isolated",
        /* An accept whose executor died in between asks for it no longer than this. */
        "--mca",
        "pmix_server_max_wait",
        "3",
        /* A rank that ends with another status than 0 would cost two waits of 1 s. */
        "--mca",
        "odls_base_sigkill_timeout",
        "0",
        "--ompi-server",
    };
    size_t nflags = sizeof flags / sizeof *flags, n = 0;
    while (program[n])
        n++;
    struct words w;
    words_open(&w, nflags + 1 + n);
    for (size_t i = 0; *ompi_server && i < nflags; i++)
        words_add(&w, flags[i], "");
    if (*ompi_server)
        words_add(&w, *ompi_server == '/' ? "file:" : "", ompi_server);
    for (size_t i = 0; i < n; i++)
        words_add(&w, program[i], "");
    return words_finish(&w);
}

/* ---- gangs ----------------------------------------------------------------------- */

const char *const trp_mpirun_programs[] = {"mpirun", "mpirun.openmpi", "mpiexec.hydra",
                                           NULL};

/* Which MPI's the program of that name in PATH is; none: it is not there. MPICH's is
 * called hydra, whatever links to it. */
static enum trp_linked_mpi launcher_in_path(const char *name)
{
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/bin:/bin"; *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        char path[4096];
        snprintf(path, sizeof path, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name);
        char *real = access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
        const char *base = real ? strrchr(real, '/') : NULL;
        bool hydra = base && strstr(base, "hydra");
        free(real);
        if (base)
            return hydra ? TRP_LINKED_MPICH : TRP_LINKED_OPENMPI;
        at += n;
    }
    return TRP_LINKED_NONE;
}

static const char *const mpi_names[] = {
    [TRP_LINKED_OPENMPI] = "Open MPI", [TRP_LINKED_MPICH] = "MPICH"};

static int no_launcher(enum trp_linked_mpi mpi, enum trp_linked_mpi here,
                       trp_error *err)
{
    if (!here)
        return trp_error_set(err, TRP_ENEVER, "there is no mpirun in PATH");
    return trp_error_set(
        err, TRP_ENEVER,
        "its program is linked with %s, and the mpirun in PATH is of %s; put "
        "the one of %s there as well (mpirun, %s), or build it with %s",
        mpi_names[mpi], mpi_names[here], mpi_names[mpi],
        mpi == TRP_LINKED_MPICH ? "mpiexec.hydra" : "mpirun.openmpi", mpi_names[here]);
}

int trp_mpirun_gang_words(enum trp_linked_mpi mpi, uint32_t ranks, char ***ret_words,
                          trp_error *err)
{
    /* Open MPI 4 would ask for ssh (rsh), which its later ones know by another name. */
    static const char *const of_openmpi[] = {
        "--oversubscribe", "--bind-to", "none", "--mca",     "ras",
        "^slurm",          "--mca",     "plm",  "^slurm,rsh"};
    static const char *const of_mpich[] = {"-bind-to", "none", "-launcher", "fork"};
    enum trp_linked_mpi first = TRP_LINKED_NONE, found = TRP_LINKED_NONE;
    const char *name = NULL;
    for (size_t i = 0; trp_mpirun_programs[i] && !name; i++) {
        found = launcher_in_path(trp_mpirun_programs[i]);
        first = first ? first : found;
        if (found && (!mpi || found == mpi))
            name = trp_mpirun_programs[i];
    }
    if (!name)
        return no_launcher(mpi, first, err);
    bool mpich = found == TRP_LINKED_MPICH;
    const char *const *flags = mpich ? of_mpich : of_openmpi;
    size_t n = (mpich ? sizeof of_mpich : sizeof of_openmpi) / sizeof *flags;
    char number[16];
    struct words w;
    words_open(&w, n + 3);
    words_add(&w, name, "");
    words_add(&w, "-np", "");
    snprintf(number, sizeof number, "%u", ranks);
    words_add(&w, number, "");
    for (size_t i = 0; i < n; i++)
        words_add(&w, flags[i], "");
    *ret_words = words_finish(&w);
    return *ret_words ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
}

/* ---- ends ------------------------------------------------------------------------ */

void trp_mpirun_kill_program(pid_t pid, bool by_mpirun)
{
    if (by_mpirun)
        trp_children_signal(pid, SIGKILL);
    else
        kill(pid, SIGKILL);
}

static bool is_dropped(const char *entry)
{
    static const char folder[] = FOLDER_ENTRY;
    static const char *const kept[] = {"SLURM_CONF=", "SLURM_STEPMGR="};
    static const char *const prefixes[] = {
        "OMPI_",          "PMIX_",          "PMI_",
        "SLURM_",         folder,           "TROUPE_CONTROL=",
        "TROUPE_DRIVER=", "TROUPE_RUN_ID=", "TROUPE_EXECUTOR=",
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
            return false;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

char **trp_mpirun_environ(char *const *from, const char *folder,
                          const char *const *more)
{
    size_t n = 0, nmore = 0;
    while (from[n])
        n++;
    while (more[nmore])
        nmore++;
    struct words w;
    words_open(&w, n + nmore + 4);
    for (size_t i = 0; i < n; i++) {
        if (!is_dropped(from[i]))
            words_add(&w, from[i], "");
    }
    for (size_t i = 0; i < nmore; i++)
        words_add(&w, more[i], "");
    if (folder) {
        words_add(&w, "OMPI_MCA_orte_tmpdir_base=", folder);
        words_add(&w, FOLDER_ENTRY, folder);
    }
    if (geteuid() == 0) {
        words_add(&w, "OMPI_ALLOW_RUN_AS_ROOT=1", "");
        words_add(&w, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "");
    }
    return words_finish(&w);
}
