/*
 * Starting a command.
 *
 * vfork and exec, because it costs the same however large the spawner is. posix_spawn
 * does the same underneath, but asks for the disposition of 64 signals one by one in
 * every child (ours are all default already) and does not tell which step failed; here
 * the child, which shares our memory until exec, writes step and errno into the very
 * struct it was started from. A started command costs 9 system calls in the child:
 * group, death signal, two logs (4), working folder, signal mask, exec. Its stdin is
 * the spawner's own, /dev/null.
 *
 * A command leads a process group, not a session: with CONFIG_SCHED_AUTOGROUP every
 * session is a scheduling group of its own, made and freed with each command (a tenth
 * of its cost), and competes as one with the whole of the executor.
 *
 * It inherits oom_score_adj 1000: ours is raised until it has execed, through a
 * descriptor that stays open (opening its own in /proc costs ten times as much). At all
 * other times the kernel must not choose the spawner, when a function in the executor
 * is the one that ate the memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/array.h"

#include "executor/spawner_internal.h"
#include "os/clock.h"

enum step { STEP_NONE, STEP_LOGS, STEP_CWD, STEP_EXEC };

struct start {
    char log[2][4400]; /* of stdout and stderr */
    int fd[2];
    const char *cwd;
    const char *const *argv, *const *env;
    char *const *program; /* NULL: look argv[0] up in our own PATH */
    int group;            /* of its memory; -1: none */
    volatile bool grouped;
    volatile enum step step;
    volatile int error;
};

/* ---- in the child: async-signal-safe, no memory of its own ---- */

static _Noreturn void fail(struct start *s, enum step step)
{
    s->error = errno;
    s->step = step;
    _exit(127);
}

/* exec wants char *const *, and changes none of them. */
static char *const *unconst(const char *const *list)
{
    return (char *const *)(uintptr_t)list;
}

int trp_exec_first(char *const *program, char *const *argv, char *const *env)
{
    int error = ENOENT;
    for (size_t i = 0; program[i]; i++) {
        execve(program[i], argv, env);
        int now = errno;
        /* A folder of PATH that may not be entered says nothing about the program. */
        if (now == ENOENT || now == ENOTDIR ||
            (now == EACCES && program[1] && access(program[i], F_OK) != 0))
            continue;
        error = now;
        if (now != EACCES)
            break;
    }
    return error;
}

static _Noreturn void run_child(struct start *s)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    s->grouped = s->group >= 0 && write(s->group, "0", 1) == 1;
    if (dup2(s->fd[0], 1) < 0 || dup2(s->fd[1], 2) < 0)
        fail(s, STEP_LOGS);
    if (chdir(s->cwd) != 0)
        fail(s, STEP_CWD);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!s->program)
        execvpe(s->argv[0], unconst(s->argv), unconst(s->env));
    if (s->program)
        errno = trp_exec_first(s->program, unconst(s->argv), unconst(s->env));
    fail(s, STEP_EXEC);
}

/* Without it the command is merely no preferred victim. */
static void set_oom_score(int fd, const char *score)
{
    ssize_t n = fd >= 0 ? pwrite(fd, score, strlen(score), 0) : 0;
    (void)n;
}

/* Apart, so that the parent's locals are not in the frame both run on. */
static __attribute__((noinline)) pid_t launch(const struct trp_keeper *k,
                                              struct start *s)
{
    set_oom_score(k->oom_score, "1000");
    pid_t pid = vfork();
    if (pid == 0)
        run_child(s);
    set_oom_score(k->oom_score, k->own_oom_score);
    return pid;
}

/* ---- the attempt's environment --------------------------------------------------- */

static void add_variable(struct trp_buf *b, const char *name, const char *value,
                         size_t n)
{
    trp_put_raw(b, name, strlen(name));
    trp_put_raw(b, "=", 1);
    trp_put_raw(b, value, n);
    trp_put_u8(b, 0);
}

static void add_text(struct trp_buf *b, const char *name, const char *value)
{
    add_variable(b, name, value, strlen(value));
}

static void add_number(struct trp_buf *b, const char *name, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    add_text(b, name, digits);
}

/* The addresses of `name` in "name=a,b\n…"; NULL: none. */
static const char *addresses(const struct trp_launch *l, const char *name,
                             size_t *ret_n)
{
    const char *at = (const char *)l->resources, *end = at + l->resources_size;
    size_t length = strlen(name);
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line)
            line = end;
        if ((size_t)(line - at) > length && memcmp(at, name, length) == 0 &&
            at[length] == '=') {
            *ret_n = (size_t)(line - at) - length - 1;
            return at + length + 1;
        }
        at = line + 1;
    }
    return NULL;
}

static uint32_t add_resources(struct trp_buf *b, const struct trp_launch *l,
                              const struct trp_command *c)
{
    uint32_t count = 0;
    const char *at = (const char *)l->resources, *end = at + l->resources_size;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line)
            line = end;
        if (line > at) {
            trp_put_raw(b, "TROUPE_RESOURCE_", 16);
            trp_put_raw(b, at, (size_t)(line - at));
            trp_put_u8(b, 0);
            count++;
        }
        at = line + 1;
    }
    for (uint32_t i = 0; i + 1 < c->nresource_env; i += 2) {
        size_t n = 0;
        const char *value = addresses(l, c->resource_env[i], &n);
        add_variable(b, c->resource_env[i + 1], value ? value : "", n);
        count++;
    }
    return count;
}

/* The item, its pieces as a path, its columns, and the file with its rows. */
static uint32_t add_item(struct trp_buf *b, const char *item, size_t size)
{
    static const char *const pieces[][2] = {
        {"TROUPE_ITEM_DIR",  "dir" },
        {"TROUPE_ITEM_NAME", "name"},
        {"TROUPE_ITEM_STEM", "stem"},
        {"TROUPE_ITEM_EXT",  "ext" },
    };
    const uint32_t npieces = sizeof pieces / sizeof *pieces;
    size_t text = trp_item_text_size(item, size), n = 0;
    uint32_t count = 1 + npieces;
    add_variable(b, "TROUPE_ITEM", item, text);
    for (uint32_t i = 0; i < npieces; i++) {
        const char *piece = trp_path_piece(pieces[i][1], item, text, &n);
        add_variable(b, pieces[i][0], piece, n);
    }
    for (size_t at = text; at < size; at += n) {
        at++; /* the NUL in front */
        n = trp_item_text_size(item + at, size - at);
        if (n && item[at] == '*') /* words of argv */
            continue;
        trp_put_raw(b, "TROUPE_COL_", n && item[at] == '=' ? 7 : 11);
        if (n && item[at] == '=')
            trp_put_raw(b, "ROWS", 4);
        trp_put_raw(b, item + at, n);
        trp_put_u8(b, 0);
        count++;
    }
    return count;
}

/* Writes the attempt's strings, puts them in front of the stage's, and returns the
 * whole list; NULL with `err`. */
static const char *const *make_environment(struct trp_keeper *k,
                                           const struct trp_running *r,
                                           const struct trp_launch *l, trp_error *err)
{
    const struct trp_command_stage *s = r->stage;
    struct trp_buf *b = &k->strings;
    char name[32], scratch[4300], token[64];
    trp_scratch_name(k, r, name, sizeof name);
    snprintf(scratch, sizeof scratch, "%s/%s", k->scratch_path, name);
    snprintf(token, sizeof token, "%s.%llx", k->token,
             (unsigned long long)l->attempt.n);
    trp_buf_clear(b);
    trp_put_raw(b, token, strlen(token) + 1);
    uint32_t count = 11;
    add_number(b, "TROUPE_TASK", l->task);
    add_number(b, "TROUPE_ATTEMPT", l->number);
    add_number(b, "TROUPE_STAGE_ATTEMPT", trp_stage_attempt_of(&s->message, l->number));
    add_number(b, "TROUPE_TASKS", s->message.ntasks);
    add_text(b, "TROUPE_STAGE", s->message.name);
    add_text(b, "TROUPE_PROFILE", s->message.profile);
    add_number(b, "TROUPE_CPUS", s->message.task_cpus);
    add_text(b, "TROUPE_RUN", s->command.run);
    add_text(b, "TROUPE_RUN_DIR", s->command.run_dir);
    add_text(b, "TROUPE_SCRATCH", scratch);
    if (k->config.executor != TRP_NONE) {
        add_number(b, "TROUPE_EXECUTOR", k->config.executor);
        count++;
    }
    if (l->has_item)
        count += add_item(b, l->extra ? (const char *)l->extra : "", l->extra_size);
    count += add_resources(b, l, &s->command);
    if (b->failed || count > s->nown) {
        trp_error_set(err, TRP_ELIMIT,
                      b->failed ? "out of memory" : "it was given too many resources");
        return NULL;
    }
    const char **env = s->env + (s->nown - count);
    const char *at = (const char *)b->data;
    for (uint32_t i = 0; i < count; i++, at += strlen(at) + 1)
        env[i] = at;
    return env;
}

/* ---- starting -------------------------------------------------------------------- */

/* A free entry of the table; NULL when out of memory. */
static struct trp_running *take_entry(struct trp_keeper *k)
{
    for (uint32_t i = 0; i < k->nrunning; i++)
        if (k->running[i].state == TRP_RUN_FREE)
            return &k->running[i];
    uint32_t first = k->nrunning;
    bool more = TRP_ARRAY_RESERVE_ZEROED(k->running, k->nrunning, (uint64_t)first + 1);
    return more ? &k->running[first] : NULL;
}

/* The word that stands behind the "#!" of a file: what execve looked for when the file is
 * there and still "No such file or directory". False: it has none. */
static bool read_interpreter(const struct start *s, const char *program, char *buf,
                             size_t size)
{
    int folder = open(s->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(folder, program, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                    ? read(fd, buf, size - 1)
                    : -1;
    if (fd >= 0)
        close(fd);
    if (folder >= 0)
        close(folder);
    if (n < 3 || buf[0] != '#' || buf[1] != '!')
        return false;
    buf[n] = '\0';
    char *word = buf + 2 + strspn(buf + 2, " \t");
    word[strcspn(word, " \t\n")] = '\0';
    memmove(buf, word, strlen(word) + 1);
    return *buf;
}

static void say_not_run(struct trp_keeper *k, const struct trp_running *r,
                        const struct start *s)
{
    const char *name = s->argv[0];
    char word[256];
    bool found = false;
    for (size_t i = 0; s->error == ENOENT && s->program && s->program[i] && !found; i++)
        found = read_interpreter(s, s->program[i], word, sizeof word);
    char *end = found ? strchr(word, '\r') : NULL;
    if (end)
        *end = '\0';
    if (found)
        trp_keeper_refuse(
            k, r->attempt,
            "cannot run %s: its first line names %s%s, which is not there%s", name,
            word, end ? "\\r" : "", end ? "; end its lines with LF, without CR" : "");
    else
        trp_keeper_refuse(k, r->attempt, "cannot run %s: %s", name, strerror(s->error));
}

static void say_failure(struct trp_keeper *k, const struct trp_running *r,
                        const struct start *s)
{
    const char *why = strerror(s->error);
    trp_attempt_id id = r->attempt;
    switch (s->step) {
    case STEP_LOGS:
        trp_keeper_refuse(k, id, "cannot open log %s: %s", s->log[s->fd[0] >= 0], why);
        break;
    case STEP_CWD:
        trp_keeper_refuse(k, id, "cannot enter working folder %s: %s", s->cwd, why);
        break;
    case STEP_EXEC:
        say_not_run(k, r, s);
        break;
    case STEP_NONE:
        trp_keeper_refuse(k, id, "cannot start a process: %s", why);
        break;
    }
}

/* Here and not in the child: a third cheaper, all else being warm on this core. */
static void open_logs(struct trp_keeper *k, struct trp_running *r, struct start *s)
{
    s->fd[0] = s->fd[1] = -1;
    for (int i = 0; i < 2 && s->step == STEP_NONE; i++) {
        s->fd[i] = trp_stage_log_open(k, r->stage, s->log[i]);
        if (s->fd[i] >= 0)
            continue;
        s->error = errno;
        s->step = STEP_LOGS;
    }
}

/* Starts what `s` says as the main process of `r`; false: refused. */
static bool start_process(struct trp_keeper *k, struct trp_running *r, struct start *s)
{
    pid_t pid = -1;
    s->step = STEP_NONE;
    s->group = trp_memory_group(k, r);
    s->grouped = false;
    r->started_ns = trp_clock_ns();
    k->births++;
    open_logs(k, r, s);
    if (s->step == STEP_NONE) {
        pid = launch(k, s);
        if (pid < 0)
            s->error = errno;
    }
    for (int i = 0; i < 2; i++)
        if (s->fd[i] >= 0)
            close(s->fd[i]);
    if (pid >= 0 && s->step == STEP_NONE) {
        r->pid = pid;
        r->births = k->births;
        r->grouped = s->grouped;
        return true;
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
    trp_logs_settle(k, r);
    say_failure(k, r, s);
    return false;
}

static bool start_task(struct trp_keeper *k, struct trp_running *r, struct start *s)
{
    s->argv = r->stage->has_rows ? r->stage->words : r->stage->argv;
    s->program = r->stage->program;
    s->cwd = r->stage->cwd;
    return start_process(k, r, s);
}

static bool start_gang(struct trp_keeper *k, struct trp_running *r, struct start *s,
                       const struct trp_gang_call *call, const char *log_prefix)
{
    struct trp_gang_start gang;
    trp_error err;
    if (trp_gang_prepare(k, r, call, log_prefix, s->env, &gang, &err) < 0) {
        trp_keeper_refuse(k, r->attempt, "%s", err.text);
        return false;
    }
    s->argv = gang.argv;
    s->env = gang.env;
    s->program = NULL;
    s->cwd = "/";
    bool good = start_process(k, r, s);
    trp_buf_free(&gang.text);
    if (!good)
        trp_gang_finish(k, r, NULL, NULL, 0);
    return good;
}

/* All of it but the entry's own state; false: refused. */
static bool start_entry(struct trp_keeper *k, struct trp_running *r,
                        const struct trp_launch *l, const struct trp_gang_call *call)
{
    struct start s;
    char prefix[4352], name[32];
    trp_error err;
    struct trp_command_stage *stage = r->stage;
    const char *item = l->extra ? (const char *)l->extra : "";
    const struct trp_task_values values = {
        .task = l->task,
        .item = l->has_item ? item : NULL,
        .item_size = l->extra_size,
    };
    if (!trp_log_prefix(prefix, sizeof prefix, &stage->command,
                        trp_stage_attempt_of(&stage->message, l->number), l->task,
                        l->number)) {
        trp_keeper_refuse(k, l->attempt, "the path of its log is too long");
        return false;
    }
    snprintf(s.log[0], sizeof s.log[0], "%s.out", prefix);
    snprintf(s.log[1], sizeof s.log[1], "%s.err", prefix);
    trp_scratch_name(k, r, name, sizeof name);
    if (k->scratch < 0 || trp_scratch_take(&r->scratch, k->scratch, name) < 0) {
        trp_keeper_refuse(k, l->attempt, "cannot make scratch folder %s/%s: %m",
                          k->scratch_path ? k->scratch_path : k->config.scratch, name);
        return false;
    }
    s.env = make_environment(k, r, l, &err);
    if (!s.env) {
        trp_keeper_refuse(k, l->attempt, "%s", err.text);
        return false;
    }
    if (!trp_outputs_of_attempt(&stage->command, &values, &r->outputs, err.text,
                                sizeof err.text)) {
        trp_keeper_refuse(k, l->attempt, "%s", err.text);
        return false;
    }
    trp_outputs_before(r);
    if ((stage->ntemplates || stage->has_rows) &&
        !trp_command_stage_fill(stage, &k->texts, &values)) {
        trp_keeper_refuse(k, l->attempt, "out of memory");
        return false;
    }
    return call->ranks ? start_gang(k, r, &s, call, prefix) : start_task(k, r, &s);
}

/* False: refused, which is reported. `l->resources` stay the caller's. */
static bool start_attempt(struct trp_keeper *k, struct trp_command_stage *stage,
                          const struct trp_launch *l, const struct trp_gang_call *call,
                          char *resources)
{
    struct trp_running *r = take_entry(k);
    if (!r) {
        trp_keeper_refuse(k, l->attempt, "out of memory");
        return false;
    }
    struct trp_scratch scratch = r->scratch;
    const struct trp_command_group group = r->group;
    uint32_t generation = r->generation;
    *r = (struct trp_running){
        .attempt = l->attempt,
        .stage = stage,
        .gang = call->ranks > 0,
        .ranks = call->ranks,
        .task = l->task,
        .number = l->number,
        .by_srun = call->by_srun,
        .timeout_at_ns = INT64_MAX,
        .begin_at_ns = INT64_MAX,
        .kill_at_ns = INT64_MAX,
        .look_at_ns = INT64_MAX,
        .scratch = scratch,
        .group = group,
        .generation = generation,
    };
    if (!start_entry(k, r, l, call)) {
        trp_outputs_forget(r);
        trp_logs_rest(k, stage);
        return false;
    }
    r->state = TRP_RUN_LIVE;
    r->resources = resources;
    if (stage->message.timeout_ns > 0)
        r->timeout_at_ns = r->started_ns + stage->message.timeout_ns;
    if (call->start_limit_ns > 0)
        r->begin_at_ns = r->started_ns + call->start_limit_ns;
    stage->attempts++;
    k->live++;
    trp_memory_begin(k, r);
    return true;
}

/* Starts a task that has a place; when it cannot be started the next one gets that. */
static void start_in_place(struct trp_keeper *k, struct trp_command_stage *stage,
                           struct trp_task_entry *t)
{
    for (bool next = true; next;) {
        struct trp_launch l = {
            .attempt = t->attempt,
            .stage = {stage->id},
            .task = t->task,
            .number = t->number,
            .has_item = t->has_item,
            .resources = (const uint8_t *)t->resources,
            .resources_size = t->resources ? (uint32_t)strlen(t->resources) : 0,
            .extra = t->extra,
            .extra_size = t->extra_size,
        };
        struct trp_task_entry head;
        if (start_attempt(k, stage, &l, &(struct trp_gang_call){0}, t->resources)) {
            t->resources = NULL;
            next = false;
        } else {
            next =
                trp_places_end(&stage->places, k->ends_made, &t->resources, &head) > 0;
        }
        trp_task_entry_free(t);
        if (next)
            *t = head;
    }
}

void trp_keeper_pass_place(struct trp_keeper *k, struct trp_command_stage *s,
                           char **resources)
{
    struct trp_task_entry head;
    int r = trp_places_end(&s->places, k->ends_made, resources, &head);
    if (r < 0)
        trp_keeper_end(k, true); /* out of memory; a lost place would hang the run */
    if (r > 0)
        start_in_place(k, s, &head);
}

/* A copy of what a launch brings; false: out of memory. */
static bool copy_launch(const struct trp_launch *l, struct trp_task_entry *ret)
{
    *ret = (struct trp_task_entry){
        .attempt = l->attempt,
        .task = l->task,
        .number = l->number,
        .has_item = l->has_item,
        .extra = l->extra,
        .extra_size = l->extra_size,
    };
    if (l->resources_size)
        ret->resources = strndup((const char *)l->resources, l->resources_size);
    if (l->queued && l->extra_size) {
        ret->bytes = malloc(sizeof *ret->bytes + l->extra_size);
        if (ret->bytes) {
            ret->bytes->users = 1;
            memcpy(ret->bytes->data, l->extra, l->extra_size);
            ret->extra = ret->bytes->data;
        }
    }
    return (!l->resources_size || ret->resources) &&
           (!l->queued || !l->extra_size || ret->bytes);
}

void trp_keeper_start(struct trp_keeper *k, const struct trp_launch *l,
                      const struct trp_gang_call *gang)
{
    struct trp_command_stage *stage = trp_command_stage_find(k, l->stage.n);
    struct trp_task_entry t;
    if (!stage) {
        trp_keeper_refuse(k, l->attempt, "its stage is not known here");
        return;
    }
    if (gang->ranks) {
        start_attempt(k, stage, l, gang, NULL);
        return;
    }
    int r = copy_launch(l, &t)
                ? trp_places_launch(&stage->places, l->seen, l->queued, &t)
                : TRP_ENOMEM;
    if (r < 0) {
        trp_task_entry_free(&t);
        trp_keeper_end(k, true);
    }
    if (r > 0)
        start_in_place(k, stage, &t);
}
