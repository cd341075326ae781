/*
 * `troupe topo`: the tree that locality uses: of the Slurm job that we are in, else
 * this machine; with --mpi the MPIs that are here.
 */
#include <stdio.h>

#include "args.h"
#include "cluster/cluster.h"
#include "commands.h"
#include "conf/racks.h"
#include "mpis.h"
#include "settings.h"

enum option { JSON = 1, SITE, LOCAL, MPI };
static const struct trp_arg table[] = {
    {"json",  TRP_ARG_FLAG,     JSON },
    {"site",  TRP_ARG_VALUE,    SITE },
    {"local", TRP_ARG_OPTIONAL, LOCAL},
    {"mpi",   TRP_ARG_FLAG,     MPI  },
    {NULL,    TRP_ARG_FLAG,     0    },
};

static const char usage[] =
    "usage: troupe topo [options]\n\n"
    "  --json             one JSON document\n"
    "  --site FILE        site file (devices under local:, racks:)\n"
    "  --local[=CORES]    this machine, with so many cores\n"
    "  --mpi              the MPIs that are here instead, and what works with each\n";

/* With the racks of the site file. */
static int print_tree(const struct trp_topology *t, const trp_site *site, bool json,
                      trp_error *err)
{
    trp_racks *racks = NULL;
    int code = trp_racks_open(site, &racks, err);
    struct trp_topology *all = code == 0 ? trp_topology_with_racks(t, racks) : NULL;
    if (all && json)
        trp_topology_print_json(all, stdout);
    else if (all)
        trp_topology_print(all, stdout);
    else if (code == 0)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory for the topology");
    trp_topology_free(all);
    trp_racks_close(racks);
    return code;
}

static int print_topology(const struct trp_settings_request *q, bool json)
{
    struct trp_settings s;
    struct trp_cluster_where where = {0};
    trp_cluster *c = NULL;
    trp_error err;
    int code = trp_settings_load(q, &s, &err);
    if (code == 0)
        code = trp_settings_where(q, &s, &where, &err);
    if (code == 0)
        code = trp_cluster_new(NULL, &where, s.options, s.site, NULL, NULL, &c, &err);
    if (code == 0) {
        code = print_tree(c->ops->topology(c), s.site, json, &err);
        c->ops->close(c, NULL);
    }
    trp_settings_where_free(&where);
    trp_settings_free(&s);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}

int trp_launcher_topo(int argc, char **argv)
{
    static struct trp_settings_request q;
    struct trp_args a = trp_args_of("topo", table, argc, argv);
    const char *value;
    bool json = false, mpi = false;
    trp_error err;
    int what;
    while ((what = trp_args_next(&a, &value, &err)) != TRP_ARG_END) {
        int code = 0;
        switch (what) {
        case TRP_ARG_HELP:
            fputs(usage, stdout);
            return trp_launcher_printed(0);
        case JSON:
            json = true;
            break;
        case SITE:
            q.site = value;
            break;
        case MPI:
            mpi = true;
            break;
        case LOCAL:
            code = trp_settings_local(&q, value, &err);
            break;
        case TRP_ARG_WORD:
        case TRP_ARG_REST:
            return trp_launcher_misuse("topo: takes no arguments");
        default:
            code = what;
        }
        if (code < 0)
            return trp_launcher_fail(&err);
    }
    if (!mpi)
        return print_topology(&q, json);
    trp_mpis_print(json);
    return trp_launcher_printed(0);
}
