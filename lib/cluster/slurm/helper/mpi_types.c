/*
 * Open MPI finds its ranks by PMIx alone. MPICH does by what Slurm calls pmi2, which
 * every Slurm has; PMIx needs a Slurm that was built with it.
 */
#include "cluster/slurm/helper/mpi_types.h"

#include <stdio.h>
#include <string.h>

/* A line for each, indented; what follows, not indented, is versions of PMIx. */
void trp_slurm_mpi_types(const char *said, char *ret, size_t size)
{
    size_t n = 0;
    ret[0] = '\0';
    while (*said) {
        size_t length = strcspn(said, "\n"), blank = strspn(said, " \t");
        size_t word = strcspn(said + blank, " \t\r\n");
        if (blank && word && n + word + 2 <= size)
            n += (size_t)snprintf(ret + n, size - n, "%s%.*s", n ? " " : "", (int)word,
                                  said + blank);
        said += length + (said[length] == '\n');
    }
}

/* Where the first of them is that begins so: with `versions` pmix_v4 as well. Its size
 * is stored. */
static const char *find(const char *types, const char *type, bool versions,
                        size_t *ret_size)
{
    size_t n = strlen(type);
    for (const char *at = types; *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        bool begins = size >= n && strncmp(at, type, n) == 0;
        *ret_size = size;
        if (begins && (size == n || (versions && strncmp(at + n, "_v", 2) == 0)))
            return at;
        at += size;
    }
    return NULL;
}

bool trp_slurm_mpi_has(const char *types, const char *type)
{
    size_t size;
    return find(types, type, false, &size) != NULL;
}

int trp_slurm_mpi_choose(const trp_site *site, const char *types,
                         enum trp_linked_mpi linked, char ret[TRP_SITE_WORD_MAX + 1],
                         trp_error *err)
{
    static const char *const serve[][4] = {
        [TRP_LINKED_NONE] = {"pmix",  "pmi2", "none"},
        [TRP_LINKED_OPENMPI] = {"pmix"},
        [TRP_LINKED_MPICH] = {"pmi2" }
    };
    const char *const *usual = serve[linked], *at = NULL;
    size_t size = 0;
    if (site->mpi || !*types) {
        snprintf(ret, TRP_SITE_WORD_MAX + 1, "%s", site->mpi ? site->mpi : *usual);
        return 0;
    }
    for (size_t i = 0; usual[i] && !at; i++) {
        at = find(types, usual[i], false, &size);
        at = at ? at : find(types, usual[i], true, &size);
    }
    if (!at)
        return trp_error_set(
            err, TRP_ENEVER,
            "its program is linked with %s, which srun --mpi=%s would start, and this "
            "Slurm has only %s; build it with %s, or say mpi: in the site file",
            linked == TRP_LINKED_MPICH ? "MPICH" : "Open MPI", *usual, types,
            linked == TRP_LINKED_MPICH ? "Open MPI" : "MPICH");
    snprintf(ret, TRP_SITE_WORD_MAX + 1, "%.*s", (int)size, at);
    return 0;
}
