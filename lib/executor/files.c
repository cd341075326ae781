/*
 * An executor's location: the folder of map outputs that all executors of the run on
 * this host share, the block server that serves it to other hosts, and the client that
 * fetches from theirs.
 *
 * The driver orders it (FILES) before any stage that needs it. If no folder can be made
 * on the node, that is no failure: map outputs then lie in the run's folder, which all
 * hosts see. Those of a static run always lie there.
 *
 * At the end the server is stopped first. The last executor on the host removes the
 * folder, when the run is over or its driver is gone, and says so: otherwise a step
 * would be sent to remove it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/proof.h"
#include "core/base/array.h"
#include "data/block_client.h"
#include "data/block_file.h"
#include "data/block_server.h"
#include "executor/executor_internal.h"
#include "executor/move_files.h"
#include "executor/scratch.h"
#include "os/private_folder.h"

struct trp_executor_files {
    char folder[TRP_RUN_FILES];
    char shared[TRP_RUN_FILES]; /* the run's, where outputs are moved to */
    bool opens;                 /* outputs of this host that others wrote */
    uint8_t compress;
    trp_block_server *server;
    trp_block_client *client;
    struct trp_run_files run; /* no path: the folder is in the run's */
};

/* ---- beginning ------------------------------------------------------------------- */

static int use_folder(struct trp_executor_files *f, const char *parent, trp_error *err)
{
    int n = snprintf(f->folder, sizeof f->folder, "%s/shuffle", parent);
    if (n >= (int)sizeof f->folder)
        return trp_error_set(err, TRP_ELIMIT, "%s: too long a path", parent);
    int rc = trp_folder_make(f->folder, err);
    return rc < 0 ? rc : TRP_OK;
}

static int use_node(struct trp_executor_files *f, const trp_executor *e,
                    const char *parent, const uint8_t *secret, trp_error *err)
{
    const char *job = trp_job_folder();
    uint8_t key[TRP_RUN_FILES_KEY];
    trp_proof_name(secret, "run files", key, sizeof key);
    int rc = parent[0] && !job ? trp_folder_make(parent, err) : 0;
    if (rc >= 0)
        rc = trp_run_files_enter(job ? job : parent, key, e->shape.run_id,
                                 e->shape.run_dir, &f->run, err);
    return rc < 0 ? rc : use_folder(f, f->run.path, err);
}

static int start_serving(struct trp_executor_files *f, const trp_executor *e,
                         bool here_only, const uint8_t *secret, trp_error *err)
{
    enum { PARTS = 4 }; /* a fetch waits for a quarter of network.timeout */
    const struct trp_block_server_config server = {
        .folder = f->folder,
        .shared = f->run.path[0] ? f->shared : NULL,
        .secret = secret,
        .munge = e->shape.munge != 0,
        .mac = e->shape.mac != 0,
        .here_only = here_only,
    };
    const struct trp_block_client_config client = {
        .secret = secret,
        .munge = e->shape.munge != 0,
        .mac = e->shape.mac != 0,
        .timeout_ns = e->shape.network_timeout_ns / PARTS,
    };
    int rc = trp_block_server_start(&server, &f->server, err);
    return rc < 0 ? rc : trp_block_client_start(&client, &f->client, err);
}

static int make_files(struct trp_executor_files *f, const trp_executor *e,
                      const struct trp_files_order *o, trp_error *err)
{
    uint8_t secret[TRP_SECRET_SIZE];
    char shared[sizeof e->shape.run_dir + 32];
    trp_error why;
    snprintf(shared, sizeof shared, "%s/state/scratch", e->shape.run_dir);
    snprintf(f->shared, sizeof f->shared, "%s/shuffle", shared);
    int rc = e->shape.secret_file[0] ? trp_executor_secret(&e->shape, secret, err) : 0;
    if (rc == 0 && o->in_run) {
        rc = use_folder(f, o->parent, err);
    } else if (rc == 0 && use_node(f, e, o->parent, secret, &why) < 0) {
        fprintf(stderr,
                "troupe: executor %u: %s; map outputs lie in the run's folder\n",
                e->shape.id, why.text);
        trp_run_files_leave(&f->run, false);
        rc = use_folder(f, shared, err);
    }
    if (rc == 0 && o->serves)
        rc = start_serving(f, e, o->here_only, secret, err);
    explicit_bzero(secret, sizeof secret);
    return rc;
}

static bool tell_location(trp_executor *e, const struct trp_executor_files *f,
                          const char *folder, const char *endpoint)
{
    struct stat st;
    struct trp_buf b = {0};
    struct trp_location l = {
        .number = TRP_NONE, .host = e->host, .folder = (char *)(uintptr_t)folder};
    if (f->run.path[0] && stat(folder, &st) == 0) {
        l.dev = st.st_dev;
        l.ino = st.st_ino;
    }
    trp_location_put(&b, &l, endpoint);
    bool good =
        !b.failed && trp_channel_send(e->channel, TRP_DRIVER_PEER, b.data, b.size) >= 0;
    trp_buf_free(&b);
    return good;
}

static void free_files(struct trp_executor_files *f)
{
    trp_block_client_stop(f->client);
    trp_block_server_stop(f->server);
    free(f);
}

int trp_executor_files_order(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_files_order o;
    trp_error err;
    if (atomic_load(&e->files))
        return TRP_EPROTO;
    int rc = trp_files_order_get(message, size, &o);
    if (rc < 0)
        return rc;
    struct trp_executor_files *f = calloc(1, sizeof *f);
    rc = f ? make_files(f, e, &o, &err) : trp_error_set(&err, TRP_ENOMEM, "no memory");
    free(o.parent);
    if (rc == 0 &&
        tell_location(e, f, f->folder,
                      f->server ? trp_block_server_endpoint(f->server) : "")) {
        f->opens = o.opens;
        f->compress = o.compress;
        atomic_store(&e->files, f);
        return 0;
    }
    if (rc < 0)
        trp_executor_fail(e, "%s", err.text);
    if (f) {
        trp_run_files_leave(&f->run, false);
        free_files(f);
    }
    return rc;
}

/* ---- meanwhile ------------------------------------------------------------------- */

int trp_executor_servers(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_executor_files *f = atomic_load(&e->files);
    struct trp_view v = trp_message_view(message, size, TRP_MSG_SERVERS);
    uint32_t location, n;
    char **endpoints;
    int rc = f && f->client ? 0 : TRP_EPROTO;
    while (rc >= 0 && (rc = trp_servers_next(&v, &location, &endpoints, &n)) > 0) {
        rc = trp_block_client_learn(f->client, location, (const char *const *)endpoints,
                                    n);
        trp_endpoints_free(endpoints, n);
    }
    return rc;
}

/* Nobody reads them, so no task waits for this. */
int trp_executor_drop(const trp_executor *e, const uint8_t *message, size_t size)
{
    const struct trp_executor_files *f = atomic_load(&e->files);
    struct trp_stack all = {0};
    int rc = f ? trp_drop_get(message, size, &all.v, &all.n) : TRP_EPROTO;
    if (rc < 0)
        return rc;
    if (all.n)
        trp_stack_sort(&all);
    trp_block_files_remove(f->folder, all.v, all.n);
    if (strcmp(f->folder, f->shared) != 0)
        trp_block_files_remove(f->shared, all.v, all.n);
    free(all.v);
    return TRP_OK;
}

/* ---- moving ---------------------------------------------------------------------- */

static void wake(void *context)
{
    trp_executor *e = context;
    atomic_store(&e->moved, true);
    trp_functions_wake(e);
}

/* The driver asks for nothing while it waits for what it asked for. */
int trp_executor_move(trp_executor *e, const uint8_t *message, size_t size)
{
    struct trp_executor_files *f = atomic_load(&e->files);
    struct trp_mover_config config = {
        .run_dir = e->shape.run_dir, .news = wake, .context = e};
    struct trp_move_output *outputs;
    trp_error err;
    int rc =
        f && !e->mover ? trp_move_get(message, size, &outputs, &config.n) : TRP_EPROTO;
    if (rc < 0)
        return rc;
    config.from = f->folder;
    config.outputs = outputs;
    rc = trp_mover_start(&config, &e->mover, &err);
    free(outputs);
    if (rc < 0)
        trp_executor_fail(e, "%s", err.text);
    return rc;
}

void trp_executor_tell_moved(trp_executor *e)
{
    struct trp_buf b = {0};
    atomic_store(&e->moved, false);
    bool last = e->mover && trp_mover_take(e->mover, &b);
    if (last) {
        trp_mover_stop(e->mover);
        e->mover = NULL;
    }
    if (b.failed ||
        (b.size && trp_channel_send(e->channel, TRP_DRIVER_PEER, b.data, b.size) < 0))
        trp_executor_fail(e, "cannot tell the driver of map outputs that were moved");
    trp_buf_free(&b);
}

void trp_executor_files_info(trp_executor *e, struct trp_task_info *ret)
{
    const struct trp_executor_files *f = atomic_load(&e->files);
    ret->map_outputs = f ? f->folder : NULL;
    ret->opens = f && f->opens;
    ret->apart = f && f->client && f->run.path[0];
    ret->compress = f ? f->compress : 0;
    ret->client = f ? f->client : NULL;
}

/* ---- the end --------------------------------------------------------------------- */

void trp_executor_files_leave(trp_executor *e)
{
    struct trp_executor_files *f = atomic_load(&e->files);
    if (f && trp_run_files_leave(&f->run, e->run_over || e->driver_gone) &&
        !e->driver_gone)
        tell_location(e, f, "", "");
}

void trp_executor_files_end(trp_executor *e)
{
    struct trp_executor_files *f = atomic_exchange(&e->files, NULL);
    if (f)
        free_files(f);
}
