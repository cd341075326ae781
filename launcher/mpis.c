/*
 * By asking: each mpirun for its version, each module for its MPI's. Two MPIs cannot be
 * in one process, so a module is asked by a troupe-rank of its own.
 */
#include "mpis.h"

#include <ctype.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cluster/mpirun.h"
#include "cluster/slurm/helper/mpi_types.h"
#include "comm/mpi.h"
#include "events/json_print.h"
#include "piped.h"
#include "programs.h"

enum { SAID_MAX = 8192, SAY_MS = 10000 };

/* All that it says within SAY_MS; its exit status, or -1: it cannot be started. */
static int hear(const char *const *argv, char said[SAID_MAX])
{
    struct trp_piped_said all;
    said[0] = '\0';
    if (trp_piped_run((char *const *)(uintptr_t)argv, SAY_MS, &all) != 0)
        return -1;
    snprintf(said, SAID_MAX, "%s%s", all.out, all.err);
    trp_piped_said_free(&all);
    return all.status;
}

bool trp_mpis_ask(const char *program, char *ret_name, size_t size)
{
    char said[SAID_MAX];
    const char *const argv[] = {program, "--version", NULL};
    ret_name[0] = '\0';
    if (hear(argv, said) < 0)
        return false;
    const char *open = strstr(said, "(Open MPI)"), *number = NULL;
    if (!open)
        open = strstr(said, "(OpenRTE)");
    if (open)
        number = strchr(open, ')') + 1;
    else if (strstr(said, "HYDRA") && (number = strstr(said, "Version:")))
        number += strlen("Version:");
    if (!number)
        return true;
    while (isspace((unsigned char)*number))
        number++;
    snprintf(ret_name, size, "%s %.*s", open ? "Open MPI" : "MPICH",
             (int)strcspn(number, " \t\n"), number);
    return true;
}

void trp_mpis_srun(char *ret_text, size_t size)
{
    char said[SAID_MAX];
    const char *const argv[] = {"srun", "--mpi=list", NULL};
    trp_slurm_mpi_types(hear(argv, said) == 0 ? said : "", ret_text, size);
}

/* ---- finding --------------------------------------------------------------------- */

/* The one of that name, new when it is not there; NULL: no more room. */
static struct trp_mpi_here *entry(struct trp_mpi_here *v, uint32_t *n, const char *name)
{
    for (uint32_t i = 0; i < *n; i++)
        if (strcmp(v[i].name, name) == 0)
            return &v[i];
    if (*n == TRP_MPIS_MAX)
        return NULL;
    struct trp_mpi_here *m = &v[(*n)++];
    *m = (struct trp_mpi_here){.module = false};
    snprintf(m->name, sizeof m->name, "%s", name);
    return m;
}

static void add_launcher(struct trp_mpi_here *v, uint32_t *n, const char *program)
{
    char *path, name[64];
    if (trp_program_find(program, &path, NULL) != 0)
        return;
    struct trp_mpi_here *m =
        trp_mpis_ask(path, name, sizeof name) && *name ? entry(v, n, name) : NULL;
    if (m && !m->launcher[0])
        snprintf(m->launcher, sizeof m->launcher, "%s", path);
    if (m && strcmp(program, "mpirun") == 0)
        m->first = true;
    free(path);
}

static void add_module(struct trp_mpi_here *v, uint32_t *n, const char *rank,
                       const char *path)
{
    char said[SAID_MAX];
    const char *const argv[] = {rank, "mpi", path, NULL};
    if (hear(argv, said) != 0)
        return;
    said[strcspn(said, "\n")] = '\0';
    struct trp_mpi_here *m = entry(v, n, said);
    if (m)
        m->module = true;
}

/* Whether there is a network but the loopback interface's. */
static bool has_network(void)
{
    struct ifaddrs *list;
    bool found = false;
    if (getifaddrs(&list) < 0)
        return true;
    for (struct ifaddrs *i = list; i && !found; i = i->ifa_next)
        found =
            i->ifa_addr &&
            (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
            (i->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP;
    freeifaddrs(list);
    return found;
}

int trp_mpis_join(trp_error *err)
{
    char *server, name[64];
    if (!trp_mpis_ask("mpirun", name, sizeof name))
        return trp_error_set(err, TRP_ENEVER, "there is no mpirun in PATH");
    if (!trp_mpi_joins(name))
        return trp_error_set(
            err, TRP_ENEVER,
            "mpirun is %s, which cannot join separately started programs",
            name[0] ? name : "of an MPI that is not known here");
    if (trp_program_find("ompi-server", &server, NULL) != 0)
        return trp_error_set(err, TRP_ENEVER,
                             "mpirun is %s, but its ompi-server is not in PATH "
                             "(Debian: the package openmpi-bin)",
                             name);
    free(server);
    if (!has_network())
        return trp_error_set(err, TRP_ENEVER,
                             "there is no network here but the loopback interface, "
                             "over which Open MPI joins nobody");
    return 0;
}

uint32_t trp_mpis_find(struct trp_mpi_here ret[TRP_MPIS_MAX])
{
    uint32_t n = 0;
    char *rank = NULL, **modules = trp_mpi_modules();
    for (const char *const *program = trp_mpirun_programs; *program; program++)
        add_launcher(ret, &n, *program);
    if (modules && trp_program_own("troupe-rank", &rank, NULL) == 0)
        for (char **m = modules; *m; m++)
            add_module(ret, &n, rank, *m);
    for (char **m = modules; m && *m; m++)
        free(*m);
    free(modules);
    free(rank);
    for (uint32_t i = 0; i < n; i++)
        ret[i].joins = ret[i].module && ret[i].first && trp_mpis_join(NULL) == 0;
    return n;
}

/* ---- printing -------------------------------------------------------------------- */

static void print_json(const struct trp_mpi_here *v, uint32_t n, char *srun)
{
    json_t *mpis = json_array(), *types = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(
            mpis, json_pack("{s:s, s:s, s:b, s:b, s:b}", "name", v[i].name, "mpirun",
                            v[i].launcher, "gangs", v[i].launcher[0] != '\0', "static",
                            v[i].module, "messages", v[i].joins));
    for (char *rest = srun, *type; (type = strsep(&rest, " "));)
        if (*type)
            json_array_append_new(types, json_string(type));
    json_t *document = json_pack("{s:o, s:o}", "mpis", mpis, "srun", types);
    trp_json_print(document, JSON_INDENT(2), stdout);
    json_decref(document);
}

static const char *yes(bool is)
{
    return is ? "yes" : "no";
}

void trp_mpis_print(bool json)
{
    struct trp_mpi_here v[TRP_MPIS_MAX];
    char srun[TRP_SLURM_MPI_TYPES];
    uint32_t n = trp_mpis_find(v);
    trp_mpis_srun(srun, sizeof srun);
    if (json) {
        print_json(v, n, srun);
        return;
    }
    printf("%-20s  gangs  static runs  messages  mpirun\n", "MPI");
    for (uint32_t i = 0; i < n; i++)
        printf("%-20s  %-5s  %-11s  %-8s  %s\n", v[i].name, yes(v[i].launcher[0]),
               yes(v[i].module), yes(v[i].joins),
               v[i].launcher[0] ? v[i].launcher : "none in PATH");
    if (n == 0)
        puts("none: neither an mpirun in PATH nor a module of this Troupe");
    if (*srun)
        printf("\nsrun --mpi: %s\n", srun);
}
