/*
 * One executor as a step of the job: `srun … troupe-rank step … -- mpirun -np 1 …`, in
 * a session of its own.
 *
 * Its life is told through srun's pipes: the step says "started" with the devices that
 * it was given, the driver answers "go" and tells `granted`; it says "ended", and srun
 * goes. What srun itself says (a refusal, Out Of Memory) is kept for the last words.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/executor_entry.h"
#include "cluster/mpirun.h"
#include "cluster/slurm/jobs/additional.h"
#include "cluster/slurm/jobs/tidy.h"
#include "cluster/slurm/steps/executor_state.h"
#include "cluster/slurm/steps/ghosts.h"
#include "events/run_folder.h"
#include "executor/executor.h"

enum {
    TEXT = 1024,
    CAUSE = 840,
};

int trp_slurm_executor_ask(struct trp_slurm *s, trp_executor_id id,
                           const struct trp_resource_profile *p, bool ahead,
                           const char *not_on, trp_error *err)
{
    struct trp_slurm_executor *e = calloc(1, sizeof *e);
    if (!e)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    e->slurm = s;
    e->id = id.n;
    e->slots = p->slots;
    e->memory_mib = p->total_mib;
    e->ender = TRP_SLURM_BY_NOBODY;
    memcpy(e->profile, p->name, sizeof e->profile);
    e->state = TRP_SLURM_EXECUTOR_QUEUED;
    e->request.units = 1;
    e->request.ahead = ahead;
    e->request.not_on = not_on;
    int code = trp_slurm_footprint_executor(p, s->site, &e->request.footprint, err);
    if (code == 0)
        code = trp_slurm_ledger_ask(s->ledger, &e->request, err);
    if (code == 0)
        code = trp_slurm_additional_wanted(s, &e->request, p, 0, err);
    if (code < 0) {
        trp_slurm_ledger_leave(s->ledger, &e->request);
        free(e);
        return code;
    }
    HASH_ADD(hh, s->executors, id, sizeof e->id, e);
    if (!e->hh.tbl) {
        trp_slurm_ledger_leave(s->ledger, &e->request);
        free(e);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    trp_slurm_pump_soon(s);
    return 0;
}

void trp_slurm_executor_needed_now(struct trp_slurm_executor *e)
{
    struct trp_slurm *s = e->slurm;
    if (e->state == TRP_SLURM_EXECUTOR_QUEUED && e->request.ahead &&
        e->request.state == TRP_SLURM_QUEUED &&
        trp_slurm_additional_needed(s, &e->request) < 0)
        trp_slurm_executor_refuse(e, "it cannot be asked for");
}

/* ---- the end ---- */

static void free_executor(struct trp_slurm_executor *e)
{
    trp_slurm_executor_free_devices(e);
    free(e);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct trp_slurm_executor *e = handle->data;
    struct trp_slurm *s = e->slurm;
    if (--e->handles == 0 && e->state == TRP_SLURM_EXECUTOR_FORGOTTEN)
        free_executor(e);
    trp_slurm_handle_closed(s);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_handle_closed);
}

void trp_slurm_executor_hang_up(struct trp_slurm_executor *e)
{
    close_handle((uv_handle_t *)&e->in);
}

static void close_handles(struct trp_slurm_executor *e)
{
    if (!e->handles)
        return;
    close_handle((uv_handle_t *)&e->process);
    close_handle((uv_handle_t *)&e->in);
    close_handle((uv_handle_t *)&e->out);
    close_handle((uv_handle_t *)&e->errors);
    close_handle((uv_handle_t *)&e->timer);
}

/* Out of the ledger; freed once its handles are closed. */
static void forget_executor(struct trp_slurm_executor *e)
{
    struct trp_slurm *s = e->slurm;
    HASH_DEL(s->executors, e);
    trp_slurm_ghosts_over(e);
    if (trp_slurm_executor_is_there(e) && !e->heard.ended)
        trp_slurm_tidy_owe(s, e->request.spots[0].node, e->id);
    trp_slurm_executor_tried(e, false);
    trp_slurm_ledger_leave(s->ledger, &e->request);
    trp_slurm_executor_set(e, TRP_SLURM_EXECUTOR_FORGOTTEN, TRP_SLURM_BY_NOBODY);
    if (!e->handles)
        free_executor(e);
    else
        close_handles(e);
}

/* Its srun came too early, or in vain: back into the queue. A timer serves that, before
 * which the loop has closed the handles. */
static bool ask_again(struct trp_slurm_executor *e)
{
    struct trp_slurm *s = e->slurm;
    trp_slurm_executor_tried(e, false);
    trp_slurm_ledger_leave(s->ledger, &e->request);
    if (trp_slurm_ledger_ask(s->ledger, &e->request, NULL) < 0)
        return false;
    trp_slurm_additional_again(s, e->request.kind);
    close_handles(e);
    e->heard = (struct trp_slurm_heard){0};
    e->blows = 0;
    trp_slurm_executor_set(e, TRP_SLURM_EXECUTOR_QUEUED, TRP_SLURM_BY_NOBODY);
    trp_slurm_pump_soon(s);
    return true;
}

static void tell_gone(struct trp_slurm_executor *e, const struct trp_gone *g)
{
    struct trp_slurm *s = e->slurm;
    trp_executor_id id = {e->id};
    forget_executor(e);
    trp_slurm_pump_soon(s);
    s->handler.gone(s->handler.context, id, g);
}

void trp_slurm_executor_refuse(struct trp_slurm_executor *e, const char *text)
{
    const struct trp_gone g = {.status = TRP_ENEVER, .text = text};
    tell_gone(e, &g);
}

void trp_slurm_executor_unqueue(struct trp_slurm_executor *e,
                                const struct trp_slurm_line *line)
{
    (void)line;
    trp_slurm_ledger_leave(e->slurm->ledger, &e->request);
    trp_slurm_pump_soon(e->slurm);
}

void trp_slurm_executor_tell(struct trp_slurm_executor *e)
{
    const struct trp_gone g = {.text = "withdrawn before it was started"};
    tell_gone(e, &g);
}

static void describe(const struct trp_slurm_executor *e, enum trp_slurm_verdict v,
                     char *cause, char text[TEXT])
{
    const struct trp_slurm_job *j = trp_slurm_job_of(e->slurm, &e->request);
    trp_slurm_executor_describe(e, cause, CAUSE);
    if (v == TRP_SLURM_END_JOB_OVER)
        trp_slurm_additional_cause(j, text, TEXT);
    else if (trp_slurm_executor_is_there(e))
        snprintf(text, TEXT,
                 "executor %u %s; see troupe-runs/%.60s/state/executors/%u.log", e->id,
                 cause, e->slurm->command.run_name, e->id);
    else
        snprintf(text, TEXT, "executor %u %s", e->id, cause);
}

static void note_refusal_for_now(const struct trp_slurm_executor *e)
{
    char complaint[512];
    trp_slurm_executor_complaint(e, complaint, sizeof complaint);
    trp_slurm_ghosts_refused(e->slurm, &e->request, complaint);
}

void trp_slurm_executor_finish(struct trp_slurm_executor *e,
                               const struct trp_slurm_line *line)
{
    (void)line;
    const struct trp_slurm_job *j = trp_slurm_job_of(e->slurm, &e->request);
    enum trp_slurm_verdict v = trp_slurm_executor_verdict(e, j);
    char text[TEXT], cause[CAUSE];
    struct trp_gone g = {.text = text, .cause = cause};
    describe(e, v, cause, text);
    switch (v) {
    case TRP_SLURM_END_GIVEN_UP:
    case TRP_SLURM_END_TOO_OFTEN:
    case TRP_SLURM_END_NOT_NOW:
        if (v == TRP_SLURM_END_NOT_NOW)
            note_refusal_for_now(e);
        if (v == TRP_SLURM_END_TOO_OFTEN)
            trp_slurm_srun_refused(e->slurm);
        if (ask_again(e))
            return;
        g.status = TRP_EWAIT;
        break;
    case TRP_SLURM_END_NEVER:
        g.status = TRP_ENEVER;
        break;
    case TRP_SLURM_END_FAILED:
        g.status = TRP_ESYSTEM;
        g.untried = trp_slurm_executor_failed(e);
        break;
    case TRP_SLURM_END_ENDED:
        g.status = TRP_EWAIT;
        break;
    case TRP_SLURM_END_AS_TOLD:
        break;
    case TRP_SLURM_END_JOB_OVER:
        g.status = trp_slurm_additional_status(j);
        break;
    case TRP_SLURM_END_DIED:
        g.status = TRP_ESYSTEM;
        g.memory = trp_slurm_executor_out_of_memory(e);
        break;
    }
    tell_gone(e, &g);
}

bool trp_slurm_executor_has_exited(const struct trp_slurm_executor *e)
{
    return !uv_is_active((const uv_handle_t *)&e->process);
}

/* srun and the last of its words: they come in any order. An srun that had to be killed
 * leaves a child that ends the step, and holds the pipes as long. */
void trp_slurm_executor_finish_when_over(struct trp_slurm_executor *e,
                                         const struct trp_slurm_line *line)
{
    bool open = uv_is_active((const uv_handle_t *)&e->out);
    if (!trp_slurm_executor_has_exited(e) || (open && e->blows < TRP_SLURM_BLOWS))
        return;
    struct trp_slurm_job *j = trp_slurm_executor_in_order(e) || e->heard.asked
                                  ? NULL
                                  : trp_slurm_job_of(e->slurm, &e->request);
    if (j && !j->gone) {
        trp_slurm_additional_doubt(e->slurm, j);
        e->heard.asked = j->asking;
        if (j->asking)
            return;
    }
    trp_slurm_executor_finish(e, line);
}

static void on_srun_exit(uv_process_t *process, int64_t exit_status, int signal)
{
    (void)exit_status, (void)signal;
    trp_slurm_executor_happen(process->data, TRP_SLURM_ON_EXIT, NULL);
}

bool trp_slurm_executor_say(struct trp_slurm_executor *e, const char *line)
{
    uv_os_fd_t fd; /* a socket, with room: libuv's write would raise SIGPIPE */
    ssize_t n = (ssize_t)strlen(line);
    return uv_fileno((uv_handle_t *)&e->in, &fd) == 0 &&
           send(fd, line, (size_t)n, MSG_NOSIGNAL) == n;
}

/* At close, where the loop does not read any more. */
static void hear_end(struct trp_slurm_executor *e)
{
    static const char word[] = "0 ended ";
    uv_os_fd_t fd;
    ssize_t n;
    if (!trp_slurm_executor_has_srun(e) || uv_fileno((uv_handle_t *)&e->out, &fd) < 0)
        return;
    while ((n = read(fd, e->heard.said.text + e->heard.said.size,
                     TRP_SLURM_TEXT - e->heard.said.size)) > 0)
        e->heard.said.size += (size_t)n;
    e->heard.ended |=
        memmem(e->heard.said.text, e->heard.said.size, word, strlen(word)) != NULL;
}

bool trp_slurm_executor_close(struct trp_slurm_executor *e, unsigned blow)
{
    int status;
    if (trp_slurm_executor_has_srun(e) && !trp_slurm_executor_has_exited(e)) {
        while (e->blows < blow)
            trp_slurm_executor_strike(e);
        if (waitpid(e->process.pid, &status, WNOHANG) == 0 && blow < TRP_SLURM_BLOWS)
            return false;
    }
    hear_end(e);
    forget_executor(e);
    return true;
}

/* ---- srun's pipes ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct trp_slurm_executor *e = handle->data;
    struct trp_slurm_output *w =
        handle == (uv_handle_t *)&e->out ? &e->heard.said : &e->heard.complained;
    (void)suggested;
    /* When it is full, the newer half is kept. */
    if (w->size >= TRP_SLURM_TEXT - 1) {
        w->size = TRP_SLURM_TEXT / 2;
        memmove(w->text, w->text + TRP_SLURM_TEXT - 1 - w->size, w->size);
    }
    *buf = uv_buf_init(w->text + w->size, (unsigned)(TRP_SLURM_TEXT - 1 - w->size));
}

/* The step's lines, as far as they are whole. False: it is over. */
static void hear_lines(struct trp_slurm_executor *e)
{
    char line[TRP_SLURM_TEXT];
    for (char *end; (end = memchr(e->heard.said.text, '\n', e->heard.said.size));) {
        struct trp_slurm_line l;
        trp_error err;
        size_t n = (size_t)(end + 1 - e->heard.said.text);
        memcpy(line, e->heard.said.text, n);
        line[n - 1] = '\0';
        e->heard.said.size -= n;
        memmove(e->heard.said.text, end + 1, e->heard.said.size);
        if (trp_slurm_line_parse(line, &l, &err) == 0)
            trp_slurm_executor_hear(e, &l);
    }
}

static void on_said(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct trp_slurm_executor *e = stream->data;
    (void)buf;
    if (n > 0) {
        e->heard.said.size += (size_t)n;
        hear_lines(e);
    } else if (n < 0) {
        uv_read_stop(stream);
        trp_slurm_executor_happen(e, TRP_SLURM_ON_EXIT, NULL);
    }
}

static void on_complained(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct trp_slurm_executor *e = stream->data;
    (void)buf;
    if (n < 0)
        uv_read_stop(stream);
    else
        e->heard.complained.size += (size_t)n;
    e->heard.complained.text[e->heard.complained.size] = '\0';
}

/* ---- the beginning ---- */

static char *make_entry(const struct trp_slurm_executor *e, trp_error *err)
{
    struct trp_executor_shape shape = {.id = e->id,
                                       .cores = (uint32_t)e->request.footprint.cores,
                                       .slots = e->slots,
                                       .memory_mib = e->memory_mib};
    return trp_executor_entry(&e->slurm->command, e->slurm->driver_address, &shape,
                              err);
}

/* A pipe for what srun writes, of which it has a reading end as well: so the pipe
 * outlives its reader. The srun of 26.05 kills its step, at once, when it cannot write
 * what that says at its end, of a driver that is gone. It is opened once more, since
 * uv_spawn lets what the child has block. Without one, uv_spawn makes the usual pipe, or
 * says why not. */
static void add_output(uv_pipe_t *reader, uv_stdio_container_t *writes,
                       uv_stdio_container_t *holds)
{
    uv_file ends[2];
    char path[32];
    if (uv_pipe(ends, UV_NONBLOCK_PIPE, 0) < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    int again = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (again >= 0)
        *holds = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = again};
    *writes = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = ends[1]};
    uv_pipe_open(reader, ends[0]);
}

static int spawn(struct trp_slurm_executor *e, char **argv, char **env)
{
    uv_loop_t *loop = e->slurm->loop;
    /* The last two are UV_IGNORE, which is 0, until add_output() has its say. */
    uv_stdio_container_t stdio[5] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
         .data.stream = (uv_stream_t *)&e->in    },
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&e->out   },
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&e->errors},
    };
    uv_process_options_t options = {.exit_cb = on_srun_exit,
                                    .file = argv[0],
                                    .args = argv,
                                    .env = env,
                                    .flags = UV_PROCESS_DETACHED, /* setsid */
                                    .stdio_count = sizeof stdio / sizeof *stdio,
                                    .stdio = stdio};
    uv_pipe_init(loop, &e->in, 0);
    uv_pipe_init(loop, &e->out, 0);
    uv_pipe_init(loop, &e->errors, 0);
    uv_timer_init(loop, &e->timer);
    e->process.data = e->in.data = e->out.data = e->errors.data = e->timer.data = e;
    add_output(&e->out, &stdio[1], &stdio[3]);
    add_output(&e->errors, &stdio[2], &stdio[4]);
    int code = uv_spawn(loop, &e->process, &options);
    for (int i = 1; i <= 4; i++)
        if (stdio[i].flags == UV_INHERIT_FD)
            close(stdio[i].data.fd);
    e->handles = 5;
    e->slurm->handles += 5;
    if (code == 0) {
        uv_read_start((uv_stream_t *)&e->out, on_alloc, on_said);
        uv_read_start((uv_stream_t *)&e->errors, on_alloc, on_complained);
    }
    return code;
}

static int start_srun(struct trp_slurm_executor *e, trp_error *err)
{
    char *entry = make_entry(e, err);
    if (!entry)
        return err->code;
    const char *more[] = {entry, NULL};
    char name[TRP_SLURM_STEP_NAME];
    trp_slurm_step_name(e, name);
    char **argv = trp_slurm_step_argv(e->slurm, &e->request, name);
    char **env = trp_mpirun_environ(environ, NULL, more);
    int code = TRP_ENOMEM;
    if (argv && env)
        code = spawn(e, argv, env);
    if (!argv || !env)
        trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (code < 0)
        code = trp_error_set(err, code == UV_ENOENT ? TRP_ENEVER : TRP_EWAIT,
                             "cannot start srun for executor %u: %s", e->id,
                             uv_strerror(code));
    trp_argv_free(argv);
    trp_argv_free(env);
    free(entry);
    return code;
}

void trp_slurm_executor_start(struct trp_slurm_executor *e,
                              const struct trp_slurm_line *line)
{
    (void)line;
    trp_error err;
    char what[64];
    int code = start_srun(e, &err);
    if (code < 0) {
        bool never = code == TRP_ENEVER || code == TRP_ELIMIT;
        const struct trp_gone g = {.status = never ? TRP_ENEVER : TRP_EWAIT,
                                   .text = err.text};
        tell_gone(e, &g);
        return;
    }
    trp_slurm_srun_started(e->slurm);
    snprintf(what, sizeof what, "srun of executor %u", e->id);
    trp_run_folder_pid(e->slurm->command.run_dir, e->process.pid, what);
    trp_slurm_executor_limit(e);
    uint32_t node = e->request.spots[0].node;
    enum trp_slurm_standing standing =
        trp_slurm_ledger_standing(e->slurm->ledger, node);
    if (standing != TRP_SLURM_GOOD)
        trp_slurm_executor_happen(e, TRP_SLURM_ON_DOUBT, NULL);
    if (standing == TRP_SLURM_DOUBTFUL)
        trp_slurm_additional_tell_trial(e->slurm, e->request.kind, node);
}
