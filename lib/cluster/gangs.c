/*
 * Gangs are started by one spawner for the whole run, forked while the driver is still
 * small. It runs the launcher (mpirun, srun: what the backend says) with the
 * rank wrapper and answers with the end of the attempt. The spawner knows a stage's
 * command from the stage's first running attempt to its last.
 *
 * When the spawner is gone or hangs, which is looked at while a gang runs, what is left
 * of its gangs is killed and all end as TRP_END_PLATFORM, which ends the run.
 */
#include "cluster/gangs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "cluster/mpirun.h"
#include "events/run_folder.h"
#include "executor/spawner.h"
#include "wire/message.h"

enum { LOOK_MS = 1000 };

enum state {
    WAITS,     /* in the backend's queue */
    WITHDRAWN, /* left it; to be told */
    RUNS,
    ENDED, /* why is being asked */
};

struct gang {
    struct trp_gang gang;    /* without profile and stage name */
    uint8_t *message, *item; /* memory behind it */
    uint32_t stage;          /* id in the stage message */
    void *ticket;
    enum state state;
    bool killed;        /* RUNS: it does not wait again */
    struct trp_end end; /* ENDED: without its text: */
    char reason[256];
    UT_hash_handle hh; /* by gang.attempt.n */
};

/* A stage that the spawner knows, for as long as an attempt of it runs. */
struct stage {
    uint32_t stage;
    uint32_t users;
    UT_hash_handle hh;
};

struct trp_gangs {
    const struct trp_executor_command *command;
    struct trp_gangs_backend backend;
    struct trp_cluster_handler handler;
    trp_spawner *spawner; /* NULL: gone, … */
    char lost[160];       /* … and how */
    uv_poll_t poll;
    uv_timer_t look; /* runs while a gang does */
    uint32_t open;   /* of these two */
    bool closed;     /* freed when they are, too */
    struct gang *gangs;
    struct stage *stages;
};

static void tell_end(trp_gangs *s, const struct trp_end *end)
{
    s->handler.gang_ended(s->handler.context, end->attempt, end);
}

static void tell_room(trp_gangs *s, const struct gang *g)
{
    s->handler.gang_room(s->handler.context, (trp_stage_id){g->stage},
                         g->state == RUNS);
}

static void free_gang(struct gang *g)
{
    free(g->message);
    free(g->item);
    free(g);
}

static void forget_gang(trp_gangs *s, struct gang *g)
{
    HASH_DEL(s->gangs, g);
    s->backend.leave(s->backend.context, g->ticket);
    s->backend.forget(s->backend.context, g->ticket);
    free_gang(g);
}

static void fail_gang(trp_gangs *s, struct gang *g, int status, const char *text)
{
    struct trp_end end = {.attempt = g->gang.attempt,
                          .status = (uint8_t)status,
                          .extra = (const uint8_t *)text,
                          .extra_size = (uint32_t)strlen(text)};
    forget_gang(s, g);
    tell_end(s, &end);
}

static uint8_t *copy_bytes(const uint8_t *from, size_t size)
{
    uint8_t *to = malloc(size ? size : 1);
    if (to && size)
        memcpy(to, from, size);
    return to;
}

/* The id of the stage is in its message, which is the caller's own. */
static bool read_stage(const struct trp_gang *g, uint32_t *ret_stage)
{
    struct trp_stage_message m;
    if (trp_stage_message_get(g->stage_message, g->stage_message_size, &m) < 0)
        return false;
    *ret_stage = m.stage.n;
    trp_stage_message_free(&m);
    return true;
}

int trp_gangs_add(trp_gangs *s, const struct trp_gang *g, void *ticket, trp_error *err)
{
    struct gang *own = calloc(1, sizeof *own);
    if (!own)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    own->gang = *g;
    own->gang.profile = NULL;
    own->gang.stage = NULL;
    own->gang.stage_message = own->message =
        copy_bytes(g->stage_message, g->stage_message_size);
    own->gang.item = own->item = copy_bytes(g->item, g->item_size);
    own->ticket = ticket;
    own->state = WAITS;
    int code = 0;
    if (!own->message || !own->item)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (!read_stage(g, &own->stage))
        code = trp_error_set(err, TRP_EPROTO, "gang of stage %s: bad stage message",
                             g->stage);
    if (code == 0) {
        HASH_ADD(hh, s->gangs, gang.attempt, sizeof own->gang.attempt, own);
        if (!own->hh.tbl)
            code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    if (code < 0)
        free_gang(own);
    return code;
}

static struct stage *find_stage(trp_gangs *s, uint32_t id)
{
    struct stage *stage;
    HASH_FIND(hh, s->stages, &id, sizeof id, stage);
    return stage;
}

/* Tells the spawner the stage's command unless it knows it. */
static int use_stage(trp_gangs *s, const struct gang *g)
{
    struct stage *stage = find_stage(s, g->stage);
    if (stage) {
        stage->users++;
        return 0;
    }
    stage = calloc(1, sizeof *stage);
    if (!stage)
        return TRP_ENOMEM;
    stage->stage = g->stage;
    stage->users = 1;
    int code = trp_spawner_stage(s->spawner, g->gang.stage_message,
                                 g->gang.stage_message_size);
    if (code == 0)
        HASH_ADD(hh, s->stages, stage, sizeof stage->stage, stage);
    if (code < 0 || !stage->hh.tbl) {
        free(stage);
        return code < 0 ? code : TRP_ENOMEM;
    }
    return 0;
}

static void leave_stage(trp_gangs *s, uint32_t id)
{
    struct stage *stage = find_stage(s, id);
    if (!stage || --stage->users)
        return;
    if (s->spawner)
        trp_spawner_forget(s->spawner, (trp_stage_id){id});
    HASH_DEL(s->stages, stage);
    free(stage);
}

static int start_gang(trp_gangs *s, struct gang *g)
{
    size_t size = 0;
    char **launcher = NULL, *devices = NULL;
    FILE *to = open_memstream(&devices, &size);
    if (to)
        s->backend.devices(s->backend.context, g->ticket, to);
    if (to && fclose(to) == 0)
        launcher = s->backend.launcher(s->backend.context, g->ticket);
    if (!launcher) {
        free(devices);
        return TRP_ENOMEM;
    }
    struct trp_launch launch = {.attempt = g->gang.attempt,
                                .stage = {g->stage},
                                .task = 0,
                                .number = (uint16_t)g->gang.number,
                                .has_item = g->gang.has_item,
                                .resources = (const uint8_t *)devices,
                                .resources_size = (uint32_t)size,
                                .extra = g->gang.item,
                                .extra_size = g->gang.item_size};
    struct trp_spawn spawn = {.launch = &launch,
                              .ranks = g->gang.ranks,
                              .gang_program = s->command->argv[0],
                              .launcher = (const char *const *)launcher,
                              .by_srun = s->backend.by_srun};
    if (s->backend.start_limit)
        spawn.start_limit_ns = s->backend.start_limit(s->backend.context, g->ticket);
    int code = use_stage(s, g);
    if (code == 0) {
        code = trp_spawner_start(s->spawner, &spawn);
        if (code < 0)
            leave_stage(s, g->stage);
    }
    trp_argv_free(launcher);
    free(devices);
    return code;
}

static void on_handle_closed(uv_handle_t *handle)
{
    trp_gangs *s = handle->data;
    struct trp_gangs_backend backend = s->backend;
    s->open--;
    if (s->closed && !s->open)
        free(s);
    backend.handle(backend.context, false);
}

static void close_handles(trp_gangs *s)
{
    uv_close((uv_handle_t *)&s->poll, on_handle_closed);
    uv_close((uv_handle_t *)&s->look, on_handle_closed);
}

/* The spawner is gone, or hangs: so end its gangs. */
static void lose_spawner(trp_gangs *s)
{
    struct gang *g, *next;
    struct trp_spawner_fate fate;
    close_handles(s);
    trp_spawner_bury(s->spawner, false, &fate);
    trp_spawner_close(s->spawner);
    s->spawner = NULL;
    snprintf(s->lost, sizeof s->lost, "the spawner of gangs %s", fate.text);
    HASH_ITER(hh, s->gangs, g, next) {
        if (g->state != RUNS)
            continue;
        leave_stage(s, g->stage);
        fail_gang(s, g, TRP_END_PLATFORM, s->lost);
    }
}

static void on_look(uv_timer_t *timer)
{
    trp_gangs *s = timer->data;
    bool runs = false;
    for (const struct gang *g = s->gangs; g && !runs; g = g->hh.next)
        runs = g->state == RUNS;
    if (!runs)
        uv_timer_stop(timer);
    else if (trp_spawner_look(s->spawner, (int64_t)uv_hrtime()) < 0)
        lose_spawner(s);
}

static struct gang *find_gang(const trp_gangs *s, trp_attempt_id attempt)
{
    struct gang *g;
    HASH_FIND(hh, s->gangs, &attempt, sizeof attempt, g);
    return g;
}

void trp_gangs_serve(trp_gangs *s, trp_attempt_id attempt)
{
    struct gang *g = find_gang(s, attempt);
    if (!s->spawner || start_gang(s, g) < 0) {
        fail_gang(s, g, TRP_END_PLATFORM,
                  s->lost[0] ? s->lost : "the spawner of gangs cannot be used");
        return;
    }
    g->state = RUNS;
    tell_room(s, g);
    if (!uv_is_active((uv_handle_t *)&s->look))
        uv_timer_start(&s->look, on_look, LOOK_MS, LOOK_MS);
}

void trp_gangs_kill(trp_gangs *s, trp_attempt_id attempt, bool soft)
{
    struct gang *g = find_gang(s, attempt);
    if (!g)
        return;
    if (g->state == RUNS) {
        g->killed = true;
        trp_spawner_kill(s->spawner, attempt, soft);
    } else if (g->state == WAITS) {
        g->state = WITHDRAWN;
        s->backend.leave(s->backend.context, g->ticket);
    }
}

void trp_gangs_refuse(trp_gangs *s, trp_attempt_id attempt, const char *text)
{
    struct gang *g = find_gang(s, attempt);
    if (g && g->state == WAITS)
        fail_gang(s, g, TRP_END_NEVER, text);
}

void trp_gangs_tell(trp_gangs *s)
{
    struct gang *g, *next;
    HASH_ITER(hh, s->gangs, g, next) {
        if (g->state == WITHDRAWN)
            fail_gang(s, g, TRP_END_KILLED, "");
    }
}

/* ---- the spawner ---- */

/* With the ends of gangs that do not end well comes the question why. */
static void end_gang(trp_gangs *s, struct gang *g, const struct trp_end *from)
{
    char text[TRP_ERROR_TEXT];
    struct trp_end end = *from;
    int loss = TRP_ENOENT;
    if (end.status != TRP_END_SUCCESS && s->backend.lost)
        loss = s->backend.lost(s->backend.context, g->ticket, text, sizeof text);
    if (loss == TRP_EWAIT) {
        g->state = ENDED;
        g->end = end;
        snprintf(g->reason, sizeof g->reason, "%.*s", (int)end.extra_size,
                 end.extra ? (const char *)end.extra : "");
        return;
    }
    if (loss >= 0) {
        end.status = TRP_END_LOST;
        end.code = loss;
        end.extra = (const uint8_t *)text;
        end.extra_size = (uint32_t)strlen(text);
    }
    forget_gang(s, g);
    tell_end(s, &end);
}

void trp_gangs_judge(trp_gangs *s, trp_attempt_id attempt)
{
    char reason[sizeof((struct gang *)0)->reason];
    struct gang *g = find_gang(s, attempt);
    if (!g || g->state != ENDED)
        return;
    struct trp_end end = g->end;
    memcpy(reason, g->reason, sizeof reason);
    end.extra = *reason ? (const uint8_t *)reason : NULL;
    end.extra_size = (uint32_t)strlen(reason);
    end_gang(s, g, &end);
}

static bool wait_again(trp_gangs *s, struct gang *g, const struct trp_end *end)
{
    char reason[sizeof g->reason];
    snprintf(reason, sizeof reason, "%.*s", (int)end->extra_size,
             end->extra ? (const char *)end->extra : "");
    if (!s->backend.again || !s->backend.again(s->backend.context, g->ticket, reason))
        return false;
    g->state = WAITS;
    tell_room(s, g);
    return true;
}

static void on_spawner(uv_poll_t *poll, int status, int events)
{
    trp_gangs *s = poll->data;
    struct trp_end end;
    int n = 0;
    (void)status;
    (void)events;
    while (s->spawner && (n = trp_spawner_next(s->spawner, &end)) == 1) {
        struct gang *g = find_gang(s, end.attempt);
        if (!g)
            continue;
        leave_stage(s, g->stage);
        if (end.status == TRP_END_RECALLED && g->killed)
            end.status = TRP_END_KILLED; /* as that was under way */
        if (end.status == TRP_END_RECALLED && wait_again(s, g, &end))
            continue;
        end_gang(s, g, &end);
    }
    if (n < 0)
        lose_spawner(s);
}

static int fork_spawner(trp_gangs *s, uv_loop_t *loop, const char *scratch,
                        trp_error *err)
{
    char name[200];
    snprintf(name, sizeof name, "gangs %s", s->command->run_name);
    struct trp_spawner_config config = {.name = name,
                                        .executor = TRP_NONE,
                                        .run_name = s->command->run_name,
                                        .run_dir = s->command->run_dir,
                                        .scratch = scratch,
                                        .cgroup = "",
                                        .last_words = {.fd = -1}};
    int code = trp_spawner_fork(&config, &s->spawner, err);
    if (code < 0)
        return code;
    trp_run_folder_pid(s->command->run_dir, trp_spawner_pid(s->spawner),
                       "spawner of gangs");
    s->poll.data = s;
    if (uv_poll_init(loop, &s->poll, trp_spawner_fd(s->spawner)) < 0) {
        trp_spawner_close(s->spawner);
        return trp_error_set(err, TRP_ESYSTEM, "cannot watch the spawner of gangs");
    }
    s->look.data = s;
    uv_timer_init(loop, &s->look);
    s->open = 2;
    s->backend.handle(s->backend.context, true);
    s->backend.handle(s->backend.context, true);
    uv_poll_start(&s->poll, UV_READABLE, on_spawner);
    return 0;
}

int trp_gangs_open(uv_loop_t *loop, const struct trp_executor_command *command,
                   const char *scratch, const struct trp_gangs_backend *backend,
                   const struct trp_cluster_handler *handler, trp_gangs **ret,
                   trp_error *err)
{
    trp_gangs *s = calloc(1, sizeof *s);
    if (!s)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    s->command = command;
    s->backend = *backend;
    s->handler = *handler;
    int code = fork_spawner(s, loop, scratch, err);
    if (code < 0)
        free(s);
    else
        *ret = s;
    return code;
}

void trp_gangs_close(trp_gangs *s)
{
    if (!s)
        return;
    if (s->spawner) {
        close_handles(s);
        trp_spawner_close(s->spawner);
        s->spawner = NULL;
    }
    /* Elements keep their order links when the table is cleared. */
    struct gang *g = s->gangs, *next_gang;
    struct stage *stage = s->stages, *next_stage;
    HASH_CLEAR(hh, s->gangs);
    HASH_CLEAR(hh, s->stages);
    for (; g; g = next_gang) {
        next_gang = g->hh.next;
        s->backend.leave(s->backend.context, g->ticket);
        s->backend.forget(s->backend.context, g->ticket);
        free_gang(g);
    }
    for (; stage; stage = next_stage) {
        next_stage = stage->hh.next;
        free(stage);
    }
    s->closed = true;
    if (!s->open)
        free(s);
}
