/*
 * Choosing and loading the module of an MPI.
 *
 * Two MPIs in one process would answer each other's calls, since their functions have
 * the same names. So the MPI that is in the process already counts first, then the one
 * whose launcher has started it.
 */
#include "comm/mpi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/peer.h"
#include "os/module.h"

enum {
    VERSION_MAX = 8192, /* as MPI_Get_library_version wants it, and more */
    PATH_SIZE = 4200
};

static const struct trp_mpi *loaded;

const struct trp_mpi *trp_mpi(void)
{
    return loaded;
}

/* ---- what a module calls --------------------------------------------------------- */

static int deliver_fragment(struct trp_peer *p, const uint8_t *bytes, size_t n)
{
    return trp_lane_take(&p->lane, bytes, n, trp_peer_deliver, p);
}

static void end(struct trp_peer *p)
{
    trp_peer_end(p, true);
}

static const struct trp_mpi_host host = {.take = deliver_fragment, .end = end};

/* ---- where they are -------------------------------------------------------------- */

static const char *const modules[] = {"mpi-mpich", "mpi-openmpi"};

char **trp_mpi_modules(void)
{
    enum { N = sizeof modules / sizeof *modules };
    char path[PATH_SIZE];
    char **paths = calloc(N + 1, sizeof *paths);
    bool whole = paths != NULL;
    for (size_t i = 0, n = 0; whole && i < N; i++)
        if (trp_module_find(modules[i], path, sizeof path))
            whole = (paths[n++] = strdup(path)) != NULL;
    if (whole)
        return paths;
    for (size_t i = 0; paths && i < N; i++)
        free(paths[i]);
    free(paths);
    return NULL;
}

bool trp_mpi_has_openmpi(void)
{
    char path[PATH_SIZE];
    return trp_module_find("mpi-openmpi", path, sizeof path);
}

/* ---- which one ------------------------------------------------------------------- */

/* By the text of MPI_Get_library_version: "openmpi", "mpich" with those that have its
 * binary interface, or NULL. */
static const char *family_of(const char *version)
{
    static const struct {
        const char *said, *family;
    } families[] = {
        {"Open MPI",     "openmpi"},
        {"MPICH",        "mpich"  },
        {"MVAPICH",      "mpich"  },
        {"Intel(R) MPI", "mpich"  },
    };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strstr(version, families[i].said))
            return families[i].family;
    return NULL;
}

/* Open MPI's launcher says so; MPICH's and Slurm's for it (pmi2) speak PMI. */
static const char *family_of_launcher(void)
{
    bool open = getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMIX_RANK");
    return !open && getenv("PMI_RANK") ? "mpich" : "openmpi";
}

/* `why`: how the family is known. */
static int choose(const char **ret_family, char *why, size_t size, trp_error *err)
{
    static char version[VERSION_MAX];
    int n = 0;
    int (*ask)(char *, int *);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
    if (!ask || ask(version, &n) != 0) {
        *ret_family = family_of_launcher();
        snprintf(why, size, "what has started it");
        return 0;
    }
    snprintf(why, size, "this program is linked with %.*s",
             (int)strcspn(version, "\n,"), version);
    *ret_family = family_of(version);
    return *ret_family ? 0
                       : trp_error_set(err, TRP_ENEVER,
                                       "%s, an MPI that Troupe does not know", why);
}

/* ---- loading --------------------------------------------------------------------- */

static int load(const char *path, trp_error *err)
{
    const struct trp_mpi *m;
    /* Global: the MPI's own plugins look for its symbols. */
    int rc = trp_module_load(path, true, (const void **)&m, err);
    if (rc < 0)
        return rc;
    if (m->peer_size != sizeof(struct trp_peer) ||
        m->channel_size != sizeof(struct trp_channel))
        return trp_error_set(err, TRP_ENEVER, "%s is of another build of Troupe", path);
    *m->host = &host;
    loaded = m;
    return 0;
}

static int load_module(trp_error *err)
{
    char name[32], path[PATH_SIZE], why[200];
    const char *family;
    if (loaded)
        return 0;
    int rc = choose(&family, why, sizeof why, err);
    if (rc < 0)
        return rc;
    snprintf(name, sizeof name, "mpi-%s", family);
    if (!trp_module_find(name, path, sizeof path))
        return trp_error_set(err, TRP_ENEVER,
                             "Troupe was built without %s here (no %s.so), which is "
                             "wanted by %s; install its headers and build Troupe again",
                             strcmp(family, "mpich") == 0 ? "MPICH" : "Open MPI", name,
                             why);
    return load(path, err);
}

int trp_mpi_begin(bool threads, void (*stuck)(const char *text), trp_error *err)
{
    int rc = load_module(err);
    return rc < 0 ? rc : loaded->begin(threads, stuck, err);
}

int trp_mpi_begin_joining(void (*stuck)(const char *text), trp_error *err)
{
    char name[64];
    int rc = load_module(err);
    if (rc < 0)
        return rc;
    loaded->name(name, sizeof name);
    if (!trp_mpi_joins(name))
        return trp_error_set(err, TRP_ENEVER,
                             "this program is linked with %s, which cannot join "
                             "separately started programs",
                             name);
    return loaded->begin(true, stuck, err);
}

int trp_mpi_name(const char *path, char *text, size_t size, trp_error *err)
{
    int rc = load(path, err);
    if (rc == 0)
        loaded->name(text, size);
    return rc;
}

void trp_channel_finalize(void)
{
    if (loaded)
        loaded->finalize();
}
