/*
 * Finding and loading the module of an MPI.
 *
 * Two MPIs in one process would answer each other's calls, since their functions have
 * the same names. So the MPI that is in the process already counts first, then the one
 * whose launcher has started it.
 */
#include "comm/mpi.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/peer.h"

static const char PREFIX[] = "mpi-", SUFFIX[] = ".so";

enum { VERSION_MAX = 8192 /* as MPI_Get_library_version wants it, and more */ };

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

/* Seen from the object that has this code: libtroupe, a program in bin or in
 * libexec/troupe, a test. */
static const char *const places[] = {"troupe/", "../lib/troupe/",
                                     "../" TROUPE_LIBDIR "/troupe/",
                                     "../../" TROUPE_LIBDIR "/troupe/"};

/* The folder of modules, with its last slash; "" when there is none. */
static void find_folder(char *folder, size_t size)
{
    Dl_info info;
    bool library =
        dladdr(&loaded, &info) != 0 && strstr(info.dli_fname, "/libtroupe.so");
    char *self = realpath(library ? info.dli_fname : "/proc/self/exe", NULL);
    folder[0] = '\0';
    char *slash = self ? strrchr(self, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(folder, size, "%.*s/%s", (int)(slash - self), self, places[i]);
        if (n > 0 && (size_t)n < size && access(folder, X_OK) == 0)
            break;
        folder[0] = '\0';
    }
    free(self);
}

static int is_module(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 && n > strlen(SUFFIX) &&
           strcmp(entry->d_name + n - strlen(SUFFIX), SUFFIX) == 0;
}

char **trp_mpi_modules(void)
{
    char folder[4096];
    struct dirent **entries = NULL;
    find_folder(folder, sizeof folder);
    int n = *folder ? scandir(folder, &entries, is_module, alphasort) : 0;
    char **paths = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *paths);
    bool whole = paths != NULL;
    for (int i = 0; i < n; i++) {
        whole = whole && asprintf(&paths[i], "%s%s", folder, entries[i]->d_name) > 0;
        free(entries[i]);
    }
    free(entries);
    if (whole)
        return paths;
    for (int i = 0; paths && i < n; i++)
        free(paths[i]);
    free(paths);
    return NULL;
}

bool trp_mpi_has_openmpi(void)
{
    char folder[4096], path[4200];
    find_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s%sopenmpi%s", folder, PREFIX, SUFFIX);
    return *folder && access(path, R_OK) == 0;
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
    /* Global: the MPI's own plugins look for its symbols. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle)
        return trp_error_set(err, TRP_ENEVER, "cannot load %s: %s", path, dlerror());
    const struct trp_mpi *m = dlsym(handle, TRP_MPI_MODULE);
    if (!m || strcmp(m->build, TROUPE_VERSION) != 0 ||
        m->peer_size != sizeof(struct trp_peer) ||
        m->channel_size != sizeof(struct trp_channel))
        return trp_error_set(err, TRP_ENEVER, "%s is of another build of Troupe", path);
    *m->host = &host;
    loaded = m;
    return 0;
}

static int load_module(trp_error *err)
{
    char folder[4096], path[4200], why[200];
    const char *family;
    if (loaded)
        return 0;
    int rc = choose(&family, why, sizeof why, err);
    if (rc < 0)
        return rc;
    find_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s%s%s%s", folder, PREFIX, family, SUFFIX);
    if (!*folder || access(path, R_OK) != 0)
        return trp_error_set(err, TRP_ENEVER,
                             "Troupe was built without %s here (no %s%s%s), which is "
                             "wanted by %s; install its headers and build Troupe again",
                             strcmp(family, "mpich") == 0 ? "MPICH" : "Open MPI",
                             PREFIX, family, SUFFIX, why);
    return load(path, err);
}

int trp_mpi_begin(bool threads, int64_t limit_ns, void (*stuck)(const char *text),
                  trp_error *err)
{
    int rc = load_module(err);
    return rc < 0 ? rc : loaded->begin(threads, limit_ns, stuck, err);
}

int trp_mpi_begin_joining(int64_t limit_ns, void (*stuck)(const char *text),
                          trp_error *err)
{
    char name[64];
    int rc = load_module(err);
    if (rc < 0)
        return rc;
    loaded->name(name, sizeof name);
    if (!trp_mpi_joins(name))
        return trp_error_set(err, TRP_ENEVER,
                             "%s cannot join programs that were started separately; "
                             "set comm.transport=socket",
                             name);
    return loaded->begin(true, limit_ns, stuck, err);
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

int trp_channel_throw_away_main(const char *port)
{
    trp_error err;
    return load_module(&err) == 0 && loaded->free_accept ? loaded->free_accept(port)
                                                         : 1;
}
