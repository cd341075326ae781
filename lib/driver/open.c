/*
 * Three ways to a driver: for a pipeline, whose parts are ready; for a C program, from
 * the run specification that `troupe` left; for a static run, from nothing but MPI
 * ranks and the environment.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/mpi.h"
#include "conf/option_places.h"
#include "core/base/utf8.h"
#include "core/topo/hosts.h"
#include "driver/driver_open.h"
#include "driver/driver_state.h"
#include "driver/rank_devices.h"
#include "driver/ranks.h"
#include "events/run_folder.h"
#include "executor/executor.h"
#include "os/held.h"
#include "os/quick_hwloc.h"

int trp_driver_open_spec(const struct trp_run_spec *spec, const trp_options *options,
                         const struct trp_site *site, trp_profiles *profiles,
                         const struct trp_pool_list *pools, trp_driver **ret,
                         trp_error *err)
{
    const char *rank[] = {spec->rank_program, "executor", NULL};
    struct trp_driver_config c = {
        .mode = TRP_DRIVER_ELASTIC,
        .run_name = spec->run_name,
        .run_dir = spec->run_dir,
        .app_name = spec->app_name,
        .options = options,
        .site = site,
        .profiles = profiles,
        .pools = pools ? pools->specs : NULL,
        .npools = pools ? pools->n : 0,
        .where = trp_run_spec_where(spec),
        .executor_argv = spec->napp ? (const char *const *)spec->app : rank,
        .carried = spec->carried,
        .ompi_server = spec->ompi_server,
        .quiet = spec->quiet,
        .control_fd = -1,
        .prints = spec->napp > 0,
        .resumes = spec->napp == 0,
    };
    int rc = 0;
    if (spec->control && *spec->control)
        rc = trp_control_connect(spec->control, &c.control_fd, err);
    if (rc == 0)
        rc = trp_driver_new(&c, ret, err);
    if (rc < 0 && c.control_fd >= 0) {
        trp_control_exit(c.control_fd, trp_error_exit_status(rc));
        close(c.control_fd);
    }
    return rc;
}

/* Options, site and profiles of a program. */
struct parts {
    trp_options *options;
    struct trp_site *site;
    trp_profiles *profiles;
    struct trp_pool_list pools;
};

static void parts_free(struct parts *p)
{
    trp_pool_list_free(&p->pools);
    trp_options_free(p->options);
    trp_site_free(p->site);
    trp_profiles_free(p->profiles);
}

static int make_profiles(struct parts *p, enum trp_manager_kind kind, trp_error *err)
{
    struct trp_profile_defaults defaults;
    trp_options_profile_defaults(p->options, &defaults);
    defaults.kind = kind;
    return trp_profiles_new(&defaults, NULL, &p->profiles, err);
}

int trp_driver_hold(const char *run_dir, trp_error *err)
{
    const char *id = getenv("TROUPE_RUN_ID");
    if (!id || !*id)
        return trp_error_set(err, TRP_EINVAL,
                             "TROUPE_RUN_ID is not set: only troupe starts drivers");
    int rc = trp_held_folder(run_dir, id, err);
    unsetenv("TROUPE_RUN_ID");
    trp_quick_hwloc_forget();
    return rc < 0 ? rc : trp_run_folder_drives(run_dir, err);
}

int trp_driver_open(const char *run_dir, trp_driver **ret_driver,
                    trp_profiles **ret_profiles, trp_error *err)
{
    struct trp_run_spec *spec = NULL;
    struct parts p = {0};
    int rc = trp_driver_hold(run_dir, err);
    if (rc == 0)
        rc = trp_run_spec_load(run_dir, &spec, err);
    if (rc == 0)
        rc = trp_options_new(&p.options, err);
    for (uint32_t i = 0; rc == 0 && i < spec->noptions; i++)
        rc = trp_options_set(p.options, spec->options[i].key, spec->options[i].value,
                             spec->options[i].origin, spec->options[i].where, err);
    if (rc == 0)
        rc = trp_site_load(spec->site && *spec->site ? spec->site : NULL, &p.site, err);
    if (rc == 0)
        rc = trp_site_take_scripts(p.site, p.options, spec->cwd, err);
    if (rc == 0)
        rc = make_profiles(&p, TRP_MANAGER_ELASTIC, err);
    if (rc == 0)
        rc = trp_pool_list_make(NULL, p.options, spec->cwd, &p.pools, err);
    if (rc == 0)
        rc = trp_driver_open_spec(spec, p.options, p.site, p.profiles, &p.pools,
                                  ret_driver, err);
    if (rc < 0) {
        trp_run_spec_free(spec);
        parts_free(&p);
        return rc;
    }
    (*ret_driver)->pools = p.pools;
    (*ret_driver)->own_spec = spec;
    (*ret_driver)->own_options = p.options;
    (*ret_driver)->own_site = p.site;
    *ret_profiles = p.profiles;
    return trp_driver_profile_added(*ret_driver, (trp_profile_id){0}, NULL) ==
                   TRP_ENOMEM
               ? trp_error_set(err, TRP_ENOMEM, "out of memory")
               : 0;
}

/* ---- static runs ---- */

static int static_parts(struct parts *p, trp_error *err)
{
    int rc = trp_options_new(&p->options, err);
    if (rc == 0)
        rc = trp_site_load(NULL, &p->site, err);
    if (rc == 0)
        rc = trp_options_from_places(p->options, p->site, NULL, err);
    if (rc == 0) /* whatever was said: mpirun or srun has started all there are */
        rc = trp_options_set(p->options, "dynamicAllocation.enabled", "false",
                             TRP_ORIGIN_COMMAND_LINE, "a static run", err);
    if (rc == 0)
        rc = trp_options_check(p->options, err);
    if (rc == 0)
        rc = trp_site_take_scripts(p->site, p->options, NULL, err);
    if (rc == 0 && !strcmp(trp_options_text(p->options, "comm.transport"), "socket"))
        rc = trp_error_set(err, TRP_EINVAL,
                           "%s: comm.transport=socket: the messages of a static run "
                           "travel over the MPI that has started it; leave it out",
                           trp_options_where(p->options, "comm.transport"));
    if (rc == 0)
        rc = trp_pool_list_make(NULL, p->options, NULL, &p->pools, err);
    return rc < 0 ? rc : make_profiles(p, TRP_MANAGER_STATIC, err);
}

/* The whole life of a rank above 0; does not return. */
static void work(const struct parts *p, int rank,
                 const struct trp_function_runner *runner)
{
    const struct trp_resource_profile *profile =
        trp_profiles_get(p->profiles, (trp_profile_id){0});
    struct trp_executor_shape *shape = calloc(1, sizeof(*shape));
    struct trp_channel_handler handler;
    struct trp_listen_config c = {.transport = TRP_TRANSPORT_WORLD};
    trp_channel *channel;
    trp_error err = {.text = "out of memory"};
    c.network_timeout_ns = trp_options_time_ns(p->options, "network.timeout");
    c.heartbeat_ns = trp_options_time_ns(p->options, "executor.heartbeatInterval");
    trp_executor_handler(&handler);
    if (!shape || trp_channel_world(&c, &handler, &channel, &err) < 0) {
        fprintf(stderr, "troupe: rank %d: %s\n", rank, err.text);
        _exit(trp_error_exit_status(TRP_ESYSTEM));
    }
    shape->id = (uint32_t)rank - 1;
    shape->cores = (uint32_t)profile->cores;
    shape->slots = profile->slots;
    shape->network_timeout_ns = c.network_timeout_ns;
    shape->heartbeat_ns = c.heartbeat_ns;
    int status = trp_executor_work(channel, shape, runner);
    trp_mpi()->finalize();
    exit(status);
}

/* Ranks are executors that were not asked for: the engine is told to expect them. */
static int expect_ranks(trp_driver *d, const struct trp_rank_place *places, int size,
                        trp_error *err)
{
    trp_driver_enter(d);
    int rc = 0;
    for (int i = 1; i < size && rc == 0; i++) {
        const trp_profile_id profile = {0};
        trp_executor_id id = d->trace
                                 ? trp_engine_trace_expect(d->trace, d->engine, profile)
                                 : trp_engine_expect_executor(d->engine, profile);
        const struct trp_granted granted = {.host = places[i].host,
                                            .resources = places[i].share,
                                            .nresources = places[i].nshare};
        rc = trp_record_expect(d, id, &granted, err);
    }
    trp_driver_leave(d);
    return rc;
}

/* *ret is to be freed; its names are those of `places`. */
static uint32_t list_racks(const struct trp_rank_place *places, int size,
                           struct trp_host_rack **ret)
{
    uint32_t n = 0;
    *ret = calloc((size_t)size, sizeof(**ret));
    for (int i = 0; *ret && i < size; i++)
        if (places[i].rack[0])
            (*ret)[n++] = (struct trp_host_rack){places[i].host, places[i].rack};
    return n;
}

static int static_driver(struct parts *p, const char *program,
                         const struct trp_rank_place *places, int size,
                         trp_driver **ret, trp_error *err)
{
    char *runs;
    trp_run_folder *folder;
    struct trp_host_rack *racks;
    static char app[NAME_MAX + 1]; /* as it is shown, as long as the driver */
    const char *slash = strrchr(program, '/');
    snprintf(app, sizeof app, "%s", slash ? slash + 1 : program);
    trp_utf8_plain(app, '?');
    int rc = trp_runs_dir(NULL, &runs, err);
    if (rc < 0)
        return rc;
    rc = trp_run_folder_new(runs, app, NULL, &folder, err);
    free(runs);
    if (rc < 0)
        return rc;
    struct trp_driver_config c = {.mode = TRP_DRIVER_STATIC,
                                  .run_name = folder->name,
                                  .run_dir = folder->path,
                                  .app_name = app,
                                  .options = p->options,
                                  .site = p->site,
                                  .profiles = p->profiles,
                                  .pools = p->pools.specs,
                                  .npools = p->pools.n,
                                  .control_fd = -1};
    c.nracks = list_racks(places, size, &racks);
    c.racks = racks;
    rc = trp_driver_new(&c, ret, err);
    free(racks);
    if (rc < 0) {
        trp_run_folder_free(folder);
        return rc;
    }
    (*ret)->own_folder = folder;
    return 0;
}

/* All ranks: parts, and on rank 0 the places of all with their shares of devices. Fails
 * on all ranks alike, with the text on rank 0. */
static int static_world(int rank, int size, struct parts *p,
                        struct trp_rank_place **ret_places, trp_error *err)
{
    char *devices = NULL;
    int rc = static_parts(p, err);
    const struct trp_resource_profile *profile =
        rc == 0 ? trp_profiles_get(p->profiles, (trp_profile_id){0}) : NULL;
    if (rc == 0 && rank > 0)
        rc = trp_rank_devices(profile, p->site, &devices, err);
    rc = trp_ranks_gather(rank, size, rc, devices, ret_places, err);
    if (rank == 0 && rc == 0)
        rc = trp_ranks_site(*ret_places, size, p->site, err);
    if (rank == 0 && rc == 0)
        rc = trp_ranks_share(*ret_places, size, profile, p->options, err);
    free(devices);
    return trp_ranks_agree(rc);
}

/* The run could not begin: what the program exits with, whatever its main returns. */
static int failed_with;

static void exit_failed(int status, void *unused)
{
    (void)unused;
    if (status == 0 || status == failed_with)
        return;
    fflush(NULL);
    _exit(failed_with);
}

/* All ranks leave MPI in order, so that mpirun has nothing to add to rank 0's words. */
static int end_world(int rank, int code)
{
    trp_mpi()->finalize();
    if (rank > 0)
        _exit(0);
    failed_with = trp_error_exit_status(code);
    on_exit(exit_failed, NULL);
    return code;
}

/* Each rank is a world of its own when what started it belongs to another MPI. */
static int other_launcher(int size, int started, trp_error *err)
{
    char name[64];
    trp_mpi()->name(name, sizeof name);
    trp_mpi()->finalize();
    return trp_error_set(err, TRP_EINVAL,
                         "%d ranks were started, but %s, which this program uses, sees "
                         "%d; start it by that MPI's own mpirun",
                         started, name, size);
}

int trp_driver_open_static(const char *program, int started,
                           const struct trp_function_runner *runner,
                           trp_driver **ret_driver, trp_profiles **ret_profiles,
                           trp_error *err)
{
    struct parts p = {0};
    struct trp_rank_place *places;
    int rc = trp_mpi_begin(true, NULL, err);
    if (rc < 0)
        return rc;
    const int rank = trp_mpi()->rank(), size = trp_mpi()->size();
    if (size != started)
        return other_launcher(size, started, err);
    rc = static_world(rank, size, &p, &places, err);
    if (rc < 0) {
        trp_ranks_free(places, size);
        parts_free(&p);
        return end_world(rank, rc);
    }
    if (rank > 0)
        work(&p, rank, runner);
    rc = static_driver(&p, program, places, size, ret_driver, err);
    if (rc < 0) {
        trp_channel_world_cancel(err); /* the others would wait for ever */
        trp_ranks_free(places, size);
        parts_free(&p);
        return rc;
    }
    (*ret_driver)->pools = p.pools;
    (*ret_driver)->own_options = p.options;
    (*ret_driver)->own_site = p.site;
    *ret_profiles = p.profiles;
    rc = expect_ranks(*ret_driver, places, size, err);
    trp_ranks_free(places, size);
    return rc < 0 ? rc
                  : trp_driver_profile_added(*ret_driver, (trp_profile_id){0}, err);
}
