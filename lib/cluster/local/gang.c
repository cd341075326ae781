/*
 * Gangs: all ranks of an MPI program at once, as one attempt.
 *
 * They are started by one spawner for the whole run, forked in trp_cluster_local_new
 * while the driver is still small. A gang waits in the room's queue as executors do,
 * with the slots of all its ranks; the spawner then runs `mpirun -np RANKS` with the
 * rank wrapper and answers with the end of the attempt. The spawner knows a stage's
 * command from the stage's first running attempt to its last.
 *
 * When the spawner is gone, all its gangs end as TRP_END_PLATFORM, which ends the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/local/local_state.h"
#include "events/run_folder.h"
#include "wire/message.h"

static void tell_end(struct trp_local *l, const struct trp_end *end)
{
    l->handler.gang_ended(l->handler.context, end->attempt, end);
}

static void free_gang(struct trp_local_gang *g)
{
    free(g->message);
    free(g->item);
    free(g);
}

static void forget_gang(struct trp_local *l, struct trp_local_gang *g)
{
    HASH_DEL(l->gangs, g);
    trp_room_leave(l->room, &g->ticket.request);
    free_gang(g);
    trp_local_pump_soon(l);
}

static void fail_gang(struct trp_local *l, struct trp_local_gang *g, int status,
                      const char *text)
{
    struct trp_end end = {.attempt = g->gang.attempt,
                          .status = (uint8_t)status,
                          .extra = (const uint8_t *)text,
                          .extra_size = (uint32_t)strlen(text)};
    forget_gang(l, g);
    tell_end(l, &end);
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

int trp_local_gang_ask(struct trp_local *l, const struct trp_gang *g, trp_error *err)
{
    struct trp_local_gang *own = calloc(1, sizeof *own);
    if (!own)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    own->gang = *g;
    own->gang.profile = NULL;
    own->gang.stage = NULL;
    own->gang.stage_message = own->message =
        copy_bytes(g->stage_message, g->stage_message_size);
    own->gang.item = own->item = copy_bytes(g->item, g->item_size);
    own->ticket.is_gang = true;
    own->state = TRP_LOCAL_WAITS;
    trp_need_gang(g->profile, g->ranks, &own->ticket.request.need);
    int code = 0;
    if (!own->message || !own->item)
        code = trp_error_set(err, TRP_ENOMEM, "out of memory");
    else if (!read_stage(g, &own->stage))
        code = trp_error_set(err, TRP_EPROTO, "gang of stage %s: bad stage message",
                             g->stage);
    else
        code = trp_room_ask(l->room, &own->ticket.request, err);
    if (code == 0) {
        HASH_ADD(hh, l->gangs, gang.attempt, sizeof own->gang.attempt, own);
        if (!own->hh.tbl) {
            trp_room_leave(l->room, &own->ticket.request);
            code = trp_error_set(err, TRP_ENOMEM, "out of memory");
        }
    }
    if (code < 0) {
        free_gang(own);
        return code;
    }
    trp_local_pump_soon(l);
    return 0;
}

static struct trp_local_stage *find_stage(struct trp_local *l, uint32_t stage)
{
    struct trp_local_stage *s;
    HASH_FIND(hh, l->stages, &stage, sizeof stage, s);
    return s;
}

/* Tells the spawner the stage's command unless it knows it. */
static int use_stage(struct trp_local *l, const struct trp_local_gang *g)
{
    struct trp_local_stage *s = find_stage(l, g->stage);
    if (s) {
        s->users++;
        return 0;
    }
    s = calloc(1, sizeof *s);
    if (!s)
        return TRP_ENOMEM;
    s->stage = g->stage;
    s->users = 1;
    int code = trp_spawner_stage(l->spawner, g->gang.stage_message,
                                 g->gang.stage_message_size);
    if (code == 0)
        HASH_ADD(hh, l->stages, stage, sizeof s->stage, s);
    if (code < 0 || !s->hh.tbl) {
        free(s);
        return code < 0 ? code : TRP_ENOMEM;
    }
    return 0;
}

static void leave_stage(struct trp_local *l, uint32_t stage)
{
    struct trp_local_stage *s = find_stage(l, stage);
    if (!s || --s->users)
        return;
    if (l->spawner)
        trp_spawner_forget(l->spawner, (trp_stage_id){stage});
    HASH_DEL(l->stages, s);
    free(s);
}

/* "gpu=0,1\n…": the share's devices, for TROUPE_RESOURCE_<name>. */
static char *describe_devices(const struct trp_request *r, size_t *ret_size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_size);
    if (!f)
        return NULL;
    for (uint32_t i = 0; i < r->need.ndevices; i++) {
        fprintf(f, "%s=", r->devices[i].name);
        for (uint32_t k = 0; k < r->devices[i].naddresses; k++)
            fprintf(f, "%s%s", k ? "," : "", r->devices[i].addresses[k]);
        fputc('\n', f);
    }
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int start_gang(struct trp_local *l, struct trp_local_gang *g)
{
    size_t size = 0;
    char *devices = describe_devices(&g->ticket.request, &size);
    if (!devices)
        return TRP_ENOMEM;
    struct trp_launch launch = {.attempt = g->gang.attempt,
                                .stage = {g->stage},
                                .task = 0,
                                .number = (uint16_t)g->gang.number,
                                .has_item = g->gang.has_item,
                                .resources = (const uint8_t *)devices,
                                .resources_size = (uint32_t)size,
                                .extra = g->gang.item,
                                .extra_size = g->gang.item_size};
    struct trp_spawn spawn = {
        .launch = &launch, .ranks = g->gang.ranks, .gang_program = l->command.argv[0]};
    int code = use_stage(l, g);
    if (code == 0) {
        code = trp_spawner_start(l->spawner, &spawn);
        if (code < 0)
            leave_stage(l, g->stage);
    }
    free(devices);
    return code;
}

void trp_local_gang_serve(struct trp_local *l, struct trp_local_gang *g)
{
    if (!l->spawner || start_gang(l, g) < 0) {
        fail_gang(l, g, TRP_END_PLATFORM, "the spawner of gangs cannot be used");
        return;
    }
    g->state = TRP_LOCAL_RUNS;
}

void trp_local_gang_kill(struct trp_local *l, trp_attempt_id attempt, bool soft)
{
    struct trp_local_gang *g;
    HASH_FIND(hh, l->gangs, &attempt, sizeof attempt, g);
    if (!g)
        return;
    if (g->state == TRP_LOCAL_RUNS) {
        trp_spawner_kill(l->spawner, attempt, soft);
    } else if (g->state == TRP_LOCAL_WAITS) {
        trp_room_leave(l->room, &g->ticket.request);
        g->state = TRP_LOCAL_WITHDRAWN;
        trp_local_pump_soon(l);
    }
}

void trp_local_gangs_tell(struct trp_local *l)
{
    struct trp_local_gang *g, *next;
    HASH_ITER(hh, l->gangs, g, next)
    {
        if (g->state == TRP_LOCAL_WITHDRAWN)
            fail_gang(l, g, TRP_END_KILLED, "");
    }
}

static void on_spawner_closed(uv_handle_t *handle)
{
    trp_local_handle_closed(handle->data);
}

/* The spawner is gone: so are its gangs. */
static void lose_spawner(struct trp_local *l)
{
    struct trp_local_gang *g, *next;
    uv_close((uv_handle_t *)&l->spawner_poll, on_spawner_closed);
    trp_spawner_close(l->spawner);
    l->spawner = NULL;
    HASH_ITER(hh, l->gangs, g, next)
    {
        if (g->state != TRP_LOCAL_RUNS)
            continue;
        leave_stage(l, g->stage);
        fail_gang(l, g, TRP_END_PLATFORM, "the spawner of gangs died");
    }
}

static void on_spawner(uv_poll_t *poll, int status, int events)
{
    struct trp_local *l = poll->data;
    struct trp_end end;
    int n = 0;
    (void)status;
    (void)events;
    while (l->spawner && (n = trp_spawner_next(l->spawner, &end)) == 1) {
        struct trp_local_gang *g;
        HASH_FIND(hh, l->gangs, &end.attempt, sizeof end.attempt, g);
        if (!g)
            continue;
        leave_stage(l, g->stage);
        forget_gang(l, g);
        tell_end(l, &end);
    }
    if (n < 0)
        lose_spawner(l);
}

int trp_local_gangs_open(struct trp_local *l, trp_error *err)
{
    char name[200];
    snprintf(name, sizeof name, "gangs %s", l->command.run_name);
    struct trp_spawner_config config = {.name = name,
                                        .executor = TRP_NONE,
                                        .run_name = l->command.run_name,
                                        .run_dir = l->command.run_dir,
                                        .scratch = l->command.scratch,
                                        .cgroup = "",
                                        .words_fd = -1};
    int code = trp_spawner_fork(&config, &l->spawner, err);
    if (code < 0)
        return code;
    trp_run_folder_pid(l->command.run_dir, trp_spawner_pid(l->spawner),
                       "spawner of gangs");
    l->spawner_poll.data = l;
    if (uv_poll_init(l->loop, &l->spawner_poll, trp_spawner_fd(l->spawner)) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot watch the spawner of gangs");
    l->handles++;
    uv_poll_start(&l->spawner_poll, UV_READABLE, on_spawner);
    return 0;
}

void trp_local_gangs_close(struct trp_local *l)
{
    if (l->spawner) {
        uv_close((uv_handle_t *)&l->spawner_poll, on_spawner_closed);
        trp_spawner_close(l->spawner);
        l->spawner = NULL;
    }
    /* Elements keep their order links when the table is cleared. */
    struct trp_local_gang *g = l->gangs, *next_gang;
    struct trp_local_stage *s = l->stages, *next_stage;
    HASH_CLEAR(hh, l->gangs);
    HASH_CLEAR(hh, l->stages);
    for (; g; g = next_gang) {
        next_gang = g->hh.next;
        trp_room_leave(l->room, &g->ticket.request);
        free_gang(g);
    }
    for (; s; s = next_stage) {
        next_stage = s->hh.next;
        free(s);
    }
}
