/*
 * The life of an executor process.
 *
 *     name, bind, join the cgroup, call the driver
 *         → fork the spawner → MPI_Init → join → work → end
 *
 * The order is the point: the spawner is forked while the process is small and has no
 * threads, after the socket on which it may have to say last words; binding comes
 * before it, so that commands are bound as well.
 *
 * Teardown, by whoever holds the baton when the work is over: commands are killed with
 * the spawner, functions are told and given half a second, the channel is closed.
 * Without a spawner the executor does itself what that would have done, and tells why.
 * Then the thread that the process began with joins the others, finalizes MPI and
 * returns; when a function does not return, or a peer was lost, the process ends by
 * _exit, since waiting for either could take for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/executor_internal.h"
#include "executor/move_files.h"
#include "executor/scratch.h"
#include "os/binding.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/private_folder.h"
#include "os/quick_hwloc.h"
#include "os/title.h"

enum { SLOTS_MAX = 4096, FLUSH_MS = 100, FUNCTION_GRACE_MS = 500 };

/* ---- the struct ------------------------------------------------------------------ */

static void executor_free(trp_executor *e)
{
    if (!e)
        return;
    struct trp_function_thread *threads = e->threads;
    trp_task_ring_free(&e->ready);
    free(e->unheard);
    trp_task_ring_free(&e->handover);
    trp_executor_stages_free(e);
    trp_buf_free(&e->ends);
    trp_baton_free(e->baton);
    if (e->wake >= 0)
        close(e->wake);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->work);
    pthread_cond_destroy(&e->synced);
    trp_executor_files_end(e);
    trp_block_store_free(e->blocks);
    free(threads);
    free(e);
    trp_the_executor = NULL;
}

/* Where what is kept lies when it is not in memory: on the node's own disk, if that is
 * known. */
static int open_blocks_folder(void *context)
{
    trp_executor *e = context;
    struct trp_task_info info;
    trp_executor_files_info(e, &info);
    const char *path = e->shape.scratch[0] ? e->shape.scratch : info.map_outputs;
    errno = ENOENT;
    if (!path || trp_folder_make(path, NULL) < 0)
        return -1;
    return trp_held_open(path, O_RDONLY | O_DIRECTORY, 0);
}

static int executor_new(const struct trp_executor_shape *shape,
                        const struct trp_function_runner *runner,
                        trp_executor **ret_executor, trp_error *err)
{
    if (shape->slots < 1 || shape->slots > SLOTS_MAX)
        return trp_error_set(err, TRP_ELIMIT,
                             "an executor with %u slots; 1 to %d are possible",
                             shape->slots, SLOTS_MAX);
    trp_executor *e = calloc(1, sizeof *e);
    if (!e)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    e->shape = *shape;
    e->runner = runner;
    e->threads = calloc(shape->slots, sizeof *e->threads);
    e->baton = trp_baton_new();
    e->blocks = trp_block_store_new(open_blocks_folder, e);
    e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->synced, NULL);
    gethostname(e->host, sizeof e->host - 1);
    e->loop[0].executor = e;
    trp_the_executor = e;
    if (e->threads && e->baton && e->blocks && e->wake >= 0) {
        *ret_executor = e;
        return TRP_OK;
    }
    executor_free(e);
    return trp_error_set(err, TRP_ENOMEM, "out of memory, or of descriptors");
}

static int fork_spawner(trp_executor *e, const struct trp_last_words_way *last_words,
                        trp_error *err)
{
    char name[160];
    snprintf(name, sizeof name, "%u %s", e->shape.id, e->shape.run_name);
    struct trp_spawner_config config = {
        .name = name,
        .executor = e->shape.id,
        .last_words = *last_words,
        .run_name = e->shape.run_name,
        .run_dir = e->shape.run_dir,
        .scratch = e->shape.scratch,
        .memory_mib = e->shape.memory_mib,
        .cgroup = e->shape.cgroup,
        .own_cgroup = e->shape.cgroup[0] && !e->shape.in_cgroup,
        .watched = e->shape.memory_mib > 0 && !e->shape.cgroup[0] ? getpid() : 0,
        .for_functions = e->runner != NULL,
    };
    trp_spawner *spawner;
    int r = trp_spawner_fork(&config, &spawner, err);
    if (r == TRP_OK)
        e->spawner = spawner;
    return r;
}

/* An executor of a static run has no spawner until a command needs one: what it says
 * when it dies would reach nobody, since MPI ends all ranks with it. */
int trp_executor_need_spawner(trp_executor *e, trp_error *err)
{
    static const struct trp_last_words_way nobody = {.fd = -1};
    return e->spawner ? TRP_OK : fork_spawner(e, &nobody, err);
}

/* ---- work and end ---------------------------------------------------------------- */

/* Lets what was sent leave the process. */
static void flush(trp_executor *e)
{
    for (int i = 0; i < FLUSH_MS && !e->driver_gone; i++) {
        trp_channel_progress(e->channel, trp_clock_ns());
        if (trp_channel_sleep(e->channel))
            return;
        poll(NULL, 0, 1);
    }
}

/* What it had started ends before the driver hears of it, and runs the tasks again. */
static _Noreturn void end_without_spawner(trp_executor *e)
{
    struct trp_spawner_fate fate;
    trp_functions_stop(e, FUNCTION_GRACE_MS);
    trp_spawner_bury(e->spawner, e->adopts, &fate);
    fprintf(stderr, "troupe: executor %u: its spawner %s\n", e->shape.id, fate.text);
    struct trp_last_words last_words = {
        .said = true,
        .reason = fate.hangs ? TRP_LOSS_SPAWNER_HUNG : TRP_LOSS_SPAWNER_DIED,
        .signal = fate.signal,
    };
    trp_channel_last_words(e->channel, &last_words);
    _exit(e->status);
}

void trp_executor_finish(trp_executor *e)
{
    if (e->finishing)
        return;
    e->finishing = true;
    if (e->status != 0)
        flush(e);
    if (e->spawner_lost)
        end_without_spawner(e);
    bool stopped = !e->last_words_said && trp_functions_stop(e, FUNCTION_GRACE_MS);
    trp_mover_stop(e->mover);
    e->mover = NULL;
    trp_executor_files_leave(e);
    /* When a function has not returned this process dies. The spawner sees that, kills
     * the commands and passes the last words on. */
    if (!stopped)
        _exit(e->status);
    if (e->run_over)
        flush(e);
    trp_spawner_close(e->spawner);
    e->spawner = NULL;
    trp_crash_install(NULL);
    e->clean = trp_channel_close(e->channel);
    e->channel = NULL;
}

/* Works until no other thread is left, and frees it; the process's exit status. After an
 * end that was not clean it does not return: MPI cannot be finalized. */
static int work(trp_executor *e)
{
    struct trp_function_thread *self = &e->loop[0];
    self->tid = gettid();
    trp_crash_install(e->spawner);
    trp_crash_thread();
    trp_functions_loop(self);
    trp_functions_join(e);
    int status = e->status;
    bool clean = e->clean;
    executor_free(e);
    if (!clean)
        _exit(status);
    return status;
}

/* ---- an elastic executor --------------------------------------------------------- */

static int bind_process(const char *cpus, trp_error *err)
{
    if (!cpus[0] || trp_bind_process(cpus))
        return TRP_OK;
    return trp_error_set(err, TRP_ESYSTEM, "cannot bind to processors %s: %m", cpus);
}

/* By which this process joins a group: on v1 a process of one thread by that thread,
 * which goes at once. (To move a process of several the kernel keeps all processes from
 * forking and ending meanwhile, and waits some 12 ms for those that do.) */
static int open_cgroup(const char *group)
{
    char path[sizeof(((struct trp_executor_shape *)0)->cgroup) + 16];
    struct stat threads;
    int fd = -1;
    snprintf(path, sizeof path, "%s/tasks", group);
    if (stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3)
        fd = open(path, O_WRONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    return fd >= 0 ? fd : open(path, O_WRONLY | O_CLOEXEC);
}

/* Into the memory cgroup that was made for this executor, before anything is forked.
 * Where that fails the spawner samples instead. */
static void join_cgroup(struct trp_executor_shape *shape)
{
    if (shape->in_cgroup)
        return;
    int fd = shape->cgroup[0] ? open_cgroup(shape->cgroup) : -1;
    if (fd < 0 || write(fd, "0\n", 2) != 2)
        shape->cgroup[0] = '\0';
    if (fd >= 0)
        close(fd);
}

int trp_executor_secret(const struct trp_executor_shape *shape, uint8_t *ret,
                        trp_error *err)
{
    const char *path = shape->secret_file;
    int fd = trp_held_open(path, O_RDONLY, 0);
    ssize_t n = fd >= 0 ? read(fd, ret, TRP_SECRET_SIZE) : -1;
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n != TRP_SECRET_SIZE)
        return trp_error_set(err, TRP_ESYSTEM, "cannot read the run's secret in %s: %s",
                             path, n < 0 ? strerror(error) : "it is too short");
    return TRP_OK;
}

/* Tasks must not find in their environment what this executor was started with. */
static void clear_environment(void)
{
    trp_quick_hwloc_forget();
    for (size_t i = 0; environ && environ[i];) {
        char name[128];
        size_t n = strcspn(environ[i], "=");
        if (strncmp(environ[i], "TROUPE_", 7) != 0 || n >= sizeof name) {
            i++;
            continue;
        }
        memcpy(name, environ[i], n);
        name[n] = '\0';
        unsetenv(name);
    }
}

/* A run that a function starts sees that it is in a task. */
static void mark_environment(uint32_t id)
{
    char text[16];
    snprintf(text, sizeof text, "%u", id);
    setenv("TROUPE_EXECUTOR", text, 1);
}

int trp_executor_call(const struct trp_executor_shape *shape, trp_channel **ret,
                      trp_error *err)
{
    uint8_t secret[TRP_SECRET_SIZE];
    struct trp_call_config config = {
        .transport = shape->sockets ? TRP_TRANSPORT_SOCKET : TRP_TRANSPORT_CONNECT,
        .mac = shape->mac != 0,
        .address = shape->driver,
        .secret = secret,
        .munge = shape->munge != 0,
        .executor = shape->id,
        .network_timeout_ns = shape->network_timeout_ns,
        .heartbeat_ns = shape->heartbeat_ns,
    };
    int r = trp_executor_secret(shape, secret, err);
    if (r == TRP_OK)
        r = trp_channel_call(&config, ret, err);
    explicit_bzero(secret, sizeof secret);
    return r;
}

static int join_run(trp_executor *e, trp_error *err)
{
    struct trp_channel_handler handler;
    join_cgroup(&e->shape);
    int r = trp_held_folder(e->shape.run_dir, e->shape.run_id, err);
    if (r == TRP_OK)
        r = bind_process(e->shape.cpuset, err);
    if (r == TRP_OK)
        r = trp_executor_call(&e->shape, &e->channel, err);
    if (r == TRP_OK) {
        struct trp_last_words_way last_words;
        trp_channel_last_words_way(e->channel, &last_words);
        r = fork_spawner(e, &last_words, err);
    }
    if (r != TRP_OK)
        return r;
    trp_executor_handler(&handler);
    return trp_channel_join(e->channel, &handler, trp_spawner_pid(e->spawner), err);
}

static int report(uint32_t id, const trp_error *err)
{
    fprintf(stderr, "troupe: executor %u: %s\n", id, err->text);
    return trp_error_exit_status(err->code);
}

/* Scratch folders lie in the folder of the Slurm job, if it has one: that is removed with
 * the job, however the job ends. */
static void prefer_job_folder(struct trp_executor_shape *shape)
{
    const char *folder = trp_job_folder();
    if (folder && strlen(folder) < sizeof shape->scratch)
        strcpy(shape->scratch, folder);
}

static int read_shape(struct trp_executor_shape *shape, trp_error *err)
{
    const char *text = getenv("TROUPE_EXECUTOR");
    if (!text)
        return trp_error_set(
            err, TRP_EINVAL,
            "TROUPE_EXECUTOR is not set: only troupe starts executors");
    int r = trp_shape_parse(text, shape, err);
    if (r == TRP_OK)
        prefer_job_folder(shape);
    return r;
}

int trp_executor_main(int *argc, char ***argv, const struct trp_function_runner *runner)
{
    struct trp_executor_shape *shape = calloc(1, sizeof *shape);
    trp_executor *e = NULL;
    trp_error err = {.code = TRP_ENOMEM, .text = "out of memory"};
    if (!shape || read_shape(shape, &err) < 0) {
        free(shape);
        return report(0, &err);
    }
    trp_process_title_init(*argc, *argv);
    clear_environment();
    mark_environment(shape->id);
    trp_process_title("troupe: executor %u %s", shape->id, shape->run_name);
    int r = executor_new(shape, runner, &e, &err);
    free(shape);
    if (r < 0)
        return report(0, &err);
    if (join_run(e, &err) < 0) {
        int status = report(e->shape.id, &err);
        trp_spawner_close(e->spawner);
        if (e->channel)
            trp_channel_close(e->channel);
        _exit(status); /* MPI may be half joined */
    }
    int status = work(e);
    trp_channel_finalize();
    return status;
}

/* ---- a rank of a static run ------------------------------------------------------ */

int trp_executor_work(trp_channel *channel, const struct trp_executor_shape *shape,
                      const struct trp_function_runner *runner)
{
    trp_executor *e = NULL;
    trp_error err;
    if (executor_new(shape, runner, &e, &err) < 0)
        return report(shape->id, &err);
    prefer_job_folder(&e->shape);
    e->channel = channel;
    return work(e);
}
