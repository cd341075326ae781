/*
 * One poll loop over stdin, signals and a deadline. Ending by force: the executor
 * (mpirun's children) first, so that its spawner sees that, kills all commands and
 * removes scratch folders; mpirun and what else is in its session KILL_AFTER_MS later.
 * What leaves the session is ended by Slurm with the step.
 *
 * It takes no name of its own: Slurm tells its tasks, to which alone it passes signals,
 * by the parent in /proc/PID/stat, which it does not find behind a name with a space.
 *
 * An additional job belongs to nobody when the driver is gone: its executors end it,
 * after an end that the driver did not ask for, when nobody listens at its address. One
 * that cannot be reached may be cut off: that is borne for network.timeout.
 *
 * SIGTERM comes from Slurm alone, when the job or the step is being ended. The driver
 * hears of it too and ends its executors in order; after TERM_MS this end does not wait
 * for it any longer.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpirun.h"
#include "cluster/slurm/helper/line.h"
#include "cluster/slurm/shared/step_folder.h"
#include "cluster/slurm/steps/step.h"
#include "core/base/time.h"
#include "executor/discover.h"
#include "executor/executor.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/held.h"
#include "os/log_tail.h"
#include "os/private_folder.h"
#include "os/processes.h"

enum {
    KILL_AFTER_MS = 700,
    LINGER_MS = 1000,
    TERM_MS = 5000,
    LOOK_MS = 20,
    CONNECT_MS = 3000,
    DYING_MS = 1000,
    HANG_UP_MS = 100,
    LIST_MAX = 1024, /* a line has room for it */
};

struct step {
    struct trp_executor_shape shape;
    char folder[TRP_PRIVATE_FOLDER];
    char scratch[sizeof(((struct trp_executor_shape *)0)->scratch)]; /* the site's */
    char *const *program; /* mpirun …, or over sockets the executor itself */
    int signals, log;
    pid_t pid; /* of that; 0: not running */
    int status;
    bool additional; /* the job is not the driver's */
    bool dismissed;  /* the driver has said so */
    bool cut_off;    /* it cannot be said any more: the driver, or srun, is gone */
    bool killing;
    int64_t kill_at, hard_at; /* INT64_MAX: not yet */
    int64_t start_by;         /* when mpirun is looked at; then INT64_MAX */
    char group[TRP_CGROUP_PATH];
    bool v2;
    const char
        *resources[TRP_PROFILE_RESOURCES]; /* whose addresses scripts have told */
    char *lists[TRP_PROFILE_RESOURCES];
    uint32_t nlists;
};

/* ---- beginning ---- */

static int fail(const char *fmt, const char *what)
{
    char text[5000];
    int error = errno;
    snprintf(text, sizeof text, fmt, what, strerror(error));
    trp_slurm_line_begin(stdout, 0, "failed");
    trp_slurm_line_put(stdout, "text", text);
    trp_slurm_line_end(stdout);
    fflush(stdout);
    return 1;
}

static int read_shape(struct step *s)
{
    trp_error err;
    const char *text = getenv("TROUPE_EXECUTOR");
    if (!text || trp_shape_parse(text, &s->shape, &err) < 0)
        return fail("%s: %s", text ? err.text : "TROUPE_EXECUTOR is not set");
    int64_t limit;
    if (trp_cgroup_own_memory("", s->group, &s->v2, &limit) && limit > 0 &&
        limit <= s->shape.memory_mib) {
        snprintf(s->shape.cgroup, sizeof s->shape.cgroup, "%s", s->group);
        s->shape.in_cgroup = 1;
    } else {
        s->group[0] = '\0';
    }
    return 0;
}

/* What steps before left here that were killed, in a process of its own: it may be
 * much. It goes with this step at the latest. */
static void sweep(const struct step *s)
{
    if (fork() != 0)
        return;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    trp_private_folders_sweep(s->folder);
    if (s->scratch[0])
        trp_private_folders_sweep_in(s->scratch, NULL);
    _exit(0);
}

static int make_folder(struct step *s)
{
    trp_error err;
    char owner[TRP_PRIVATE_OWNER];
    trp_slurm_step_owner(s->shape.run_id, s->shape.id, owner);
    if (trp_private_folder(owner, s->folder, &err) < 0)
        return fail("%s", err.text);
    strcpy(s->scratch, s->shape.scratch);
    if (!s->shape.scratch[0])
        snprintf(s->shape.scratch, sizeof s->shape.scratch, "%s/scratch", s->folder);
    sweep(s);
    return 0;
}

static const char *log_path(const struct step *s)
{
    static char path[4300];
    snprintf(path, sizeof path, "%s/state/executors/%u.log", s->shape.run_dir,
             s->shape.id);
    return path;
}

static int open_log(const struct step *s)
{
    const char *path = log_path(s);
    trp_error err;
    int code = trp_held_folder(s->shape.run_dir, s->shape.run_id, &err);
    if (code < 0 && code != TRP_ENOENT) {
        fail("%s", err.text);
        return -1;
    }
    int fd = trp_held_open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0)
        fail("cannot open %s here (%s): a run's folder must be on a file system that "
             "all nodes share; call troupe run in a folder there",
             path);
    return fd;
}

/* ---- discovery scripts ---- */

/* Runs the script of a word RESOURCE=COUNT=VARIABLE=PATH, which is taken apart, unless
 * the variable says it. Ends when the driver has changed its mind: nothing but that is
 * to be read from it before it has heard "started". */
static int discover(struct step *s, char *word)
{
    static const int driver = 0;
    trp_error err;
    const char *resource = strsep(&word, "="), *count = strsep(&word, "="),
               *variable = strsep(&word, "=");
    if (!word || s->nlists == TRP_PROFILE_RESOURCES)
        return fail("%s: a discovery script that cannot be read", resource);
    const char *value = *variable ? getenv(variable) : NULL;
    if (value && *value)
        return 0;
    struct trp_discovery q = {.resource = resource,
                              .script = word,
                              .amount = (uint32_t)strtoul(count, NULL, 10),
                              .stop = &driver};
    if (trp_discover(&q, &s->lists[s->nlists], &err) < 0)
        return fail("%s", err.text);
    if (strlen(s->lists[s->nlists]) > LIST_MAX)
        return fail("discovery script %s says more addresses than can be told",
                    q.script);
    s->resources[s->nlists++] = resource;
    return 0;
}

static int discover_all(struct step *s, char **specs, int n)
{
    for (int i = 0; i < n; i++)
        if (discover(s, specs[i]) != 0)
            return 1;
    return 0;
}

static void tell_start(const struct step *s, char **devices, int n)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const char *step = getenv("SLURM_STEP_ID");
    trp_slurm_line_begin(stdout, 0, "started");
    trp_slurm_line_put(stdout, "step", step ? step : "");
    trp_slurm_line_put_number(stdout, "pid", getpid());
    trp_slurm_line_put(stdout, "host", host);
    for (int i = 0; i < n; i++) {
        const char *value = getenv(devices[i]);
        trp_slurm_line_put(stdout, devices[i], value ? value : "");
    }
    for (uint32_t i = 0; i < s->nlists; i++) {
        char key[TRP_RESOURCE_NAME_MAX + sizeof TRP_SLURM_DISCOVERED];
        snprintf(key, sizeof key, TRP_SLURM_DISCOVERED "%s", s->resources[i]);
        trp_slurm_line_put(stdout, key, s->lists[i]);
    }
    trp_slurm_line_end(stdout);
    fflush(stdout);
}

/* Whether the driver says "go". Else it says "end", or is gone. */
static bool await_go(struct step *s)
{
    char word[8];
    size_t n = 0;
    while (n < sizeof word) {
        ssize_t got = read(0, word + n, 1);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        if (got > 0 && word[n++] == '\n')
            break;
    }
    bool go = n == 3 && memcmp(word, "go\n", 3) == 0;
    s->dismissed = !go;
    return go;
}

static _Noreturn void become(const struct step *s, char **env)
{
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(s->log, 1) < 0 || dup2(s->log, 2) < 0)
        _exit(126);
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvpe(s->program[0], s->program, env);
    dprintf(2, "troupe: cannot start %s: %m\n", s->program[0]);
    _exit(127);
}

static int start_mpirun(struct step *s)
{
    char *entry = NULL, *text = trp_shape_put(&s->shape);
    if (!text || asprintf(&entry, "TROUPE_EXECUTOR=%s", text) < 0)
        entry = NULL;
    free(text);
    const char *more[] = {entry, NULL};
    char **env = entry ? trp_mpirun_environ(environ, s->folder, more) : NULL;
    if (env)
        s->pid = fork();
    if (env && s->pid == 0)
        become(s, env);
    if (!env || s->pid < 0)
        fail("cannot start %s: %s", s->program[0]);
    trp_argv_free(env);
    free(entry);
    return s->pid > 0 ? 0 : 1;
}

/* ---- running and ending ---- */

static void kill_at(struct step *s, int64_t at)
{
    s->kill_at = trp_earlier(s->kill_at, at);
}

static void on_signals(struct step *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGTERM)
            continue;
        kill_at(s, trp_clock_ms() + TERM_MS);
        trp_slurm_line_begin(stdout, 0, "leaving");
        trp_slurm_line_end(stdout);
        fflush(stdout);
    }
    if (waitpid(s->pid, &s->status, WNOHANG) == s->pid)
        s->pid = 0;
}

/* Kills the executor; an mpirun that is alone then, or hangs, as well. */
static void kill_step(struct step *s)
{
    int64_t now = trp_clock_ms();
    if (!s->killing) {
        s->killing = true;
        s->hard_at = now + KILL_AFTER_MS;
        trp_mpirun_kill_program(s->pid, !s->shape.sockets);
    }
    if (now >= s->hard_at || trp_session_signal(s->pid, 0) <= 1)
        trp_session_signal(s->pid, SIGKILL);
    s->kill_at = now + LOOK_MS;
}

/* It lives and is about to go, told to or not. May be said twice. */
static void tell_ending(void)
{
    trp_slurm_line_begin(stdout, 0, "ending");
    trp_slurm_line_end(stdout);
    fflush(stdout);
}

static void look_at_start(struct step *s)
{
    s->start_by = INT64_MAX;
    if (s->killing || trp_children_signal(s->pid, 0) > 0)
        return;
    dprintf(s->log, TRP_MPIRUN_LATE);
    kill_at(s, trp_clock_ms());
}

static int64_t time_left(const struct step *s)
{
    int64_t at = s->kill_at < s->start_by ? s->kill_at : s->start_by,
            now = trp_clock_ms();
    return at == INT64_MAX ? -1 : at > now ? at - now : 0;
}

static void supervise_mpirun(struct step *s)
{
    bool driver = true;
    s->start_by = s->shape.sockets ? INT64_MAX : trp_clock_ms() + TRP_MPIRUN_START_MS;
    while (s->pid) {
        struct pollfd v[] = {
            {.fd = s->signals,      .events = POLLIN},
            {.fd = driver ? 0 : -1, .events = POLLIN}
        };
        char bytes[64];
        ssize_t got = 0;
        int n = poll(v, 2, (int)time_left(s));
        if (n > 0 && v[1].revents && (got = read(0, bytes, sizeof bytes)) <= 0) {
            driver = false;
            s->cut_off = true;
            tell_ending();
            kill_at(s, trp_clock_ms());
        }
        s->dismissed |= got > 0;
        if (n > 0 && v[0].revents)
            on_signals(s);
        if (s->pid && s->start_by <= trp_clock_ms())
            look_at_start(s);
        if (s->pid && s->kill_at <= trp_clock_ms())
            kill_step(s);
    }
}

static void end_rest(pid_t session)
{
    int64_t hard = trp_clock_ms() + LINGER_MS, end = hard + LINGER_MS;
    while (trp_clock_ms() < end &&
           trp_session_signal(session, trp_clock_ms() > hard ? SIGKILL : 0) > 0)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
}

static void tell_end(const struct step *s)
{
    uint64_t kills = s->group[0] ? trp_cgroup_oom_kills(s->group, s->v2) : 0;
    trp_slurm_line_begin(stdout, 0, "ended");
    trp_slurm_line_put_number(stdout, "status",
                              WIFEXITED(s->status) ? WEXITSTATUS(s->status) : 0);
    trp_slurm_line_put_number(stdout, "signal",
                              WIFSIGNALED(s->status) ? WTERMSIG(s->status) : 0);
    trp_slurm_line_put_number(stdout, "kills", (int64_t)kills);
    trp_slurm_line_put_number(stdout, "peak",
                              s->group[0] ? trp_cgroup_peak_mib(s->group, s->v2) : 0);
    trp_slurm_line_end(stdout);
    fflush(stdout);
}

enum answer { LISTENS, REFUSES, SILENT };

static enum answer answer_at(const struct addrinfo *a)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = ETIMEDOUT;
    socklen_t n = sizeof error;
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        error = 0;
    else if (fd < 0 || errno != EINPROGRESS)
        error = errno;
    else if (poll(&p, 1, CONNECT_MS) > 0)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
    if (fd >= 0)
        close(fd);
    return error == 0 ? LISTENS : error == ECONNREFUSED ? REFUSES : SILENT;
}

static enum answer answer_of(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    enum answer answer = SILENT;
    if (getaddrinfo(host, port, &hints, &list) != 0)
        return SILENT;
    for (struct addrinfo *a = list; a && answer != LISTENS; a = a->ai_next)
        answer = answer_at(a);
    freeaddrinfo(list);
    return answer;
}

/* What comes from the driver's address. A host that is silent, or has no address, may be
 * cut off: it is asked again for so long. A driver that hung up may be dying, and listens
 * until the kernel has closed all that it had open. */
static enum answer answer_of_driver(const struct step *s, int64_t silence_ms)
{
    const struct trp_executor_shape *shape = &s->shape;
    char host[300];
    const char *colon = strrchr(shape->driver, ':');
    int64_t now = trp_clock_ms(), silent_until = now + silence_ms,
            dead_by = now + (s->cut_off && !s->dismissed ? DYING_MS : 0);
    if (!colon || (size_t)(colon - shape->driver) >= sizeof host)
        return REFUSES;
    memcpy(host, shape->driver, (size_t)(colon - shape->driver));
    host[colon - shape->driver] = '\0';
    bool told = false;
    for (;;) {
        enum answer answer = answer_of(host, colon + 1);
        now = trp_clock_ms();
        if (answer == SILENT && now < silent_until) {
            if (!told)
                dprintf(s->log,
                        "troupe: the driver at %s does not answer; it is asked again\n",
                        shape->driver);
            told = true;
            sleep(1);
        } else if (answer == LISTENS && now < dead_by)
            nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        else
            return answer;
    }
}

/* Whether nobody listens there, for as long as the silence of a driver is borne. */
static bool driver_is_gone(const struct step *s)
{
    enum answer answer = answer_of_driver(s, s->shape.network_timeout_ns / 1000000);
    if (answer != LISTENS)
        dprintf(s->log, "troupe: the driver at %s %s: job %s is ended\n",
                s->shape.driver, answer == REFUSES ? "is gone" : "does not answer",
                getenv("SLURM_JOB_ID"));
    return answer != LISTENS;
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* An executor that died may have died with its driver, whose end comes through srun. */
static void await_hang_up(struct step *s)
{
    char bytes[64];
    struct pollfd p = {.fd = 0, .events = POLLIN};
    if (poll(&p, 1, HANG_UP_MS) <= 0)
        return;
    s->cut_off = read(0, bytes, sizeof bytes) <= 0;
    s->dismissed = !s->cut_off;
}

/* The run's files here, when the executor was killed since the run is over, or with its
 * driver, and no other one lives here that will remove them. */
static void remove_run_files(const struct step *s)
{
    char owner[TRP_PRIVATE_OWNER];
    const char *owners[] = {owner, s->scratch};
    trp_slurm_step_owner(s->shape.run_id, TRP_NONE, owner);
    if (s->cut_off && !s->dismissed && answer_of_driver(s, 0) == REFUSES)
        trp_private_folders_tidy(owners, s->scratch[0] ? 2 : 1, 0);
}

/* What an executor that was killed together with its spawner has left in a folder which
 * stays. */
static void remove_scratch(const struct step *s)
{
    const char *job = trp_job_folder();
    const char *parent = job ? job : s->scratch;
    if (parent[0])
        trp_private_folders_sweep_in(parent, s->shape.run_dir);
}

int trp_slurm_step_main(int argc, char **argv)
{
    static struct step s = {.kill_at = INT64_MAX};
    int dashes = 0, variables = 0; /* behind argv[0]; scripts come after them */
    while (dashes < argc && strcmp(argv[dashes], "--") != 0)
        dashes++;
    if (dashes < 1 || dashes + 1 >= argc) {
        fputs("troupe-rank: step: only troupe calls it, below srun\n", stderr);
        return 2;
    }
    s.program = argv + dashes + 1;
    s.additional = strcmp(argv[0], "additional") == 0;
    s.signals = open_signals();
    if (s.signals < 0 || read_shape(&s) != 0 || (s.log = open_log(&s)) < 0)
        return 1;
    while (variables < dashes - 1 && !strchr(argv[1 + variables], '='))
        variables++;
    if (discover_all(&s, argv + 1 + variables, dashes - 1 - variables) != 0)
        return 1;
    tell_start(&s, argv + 1, variables);
    int status = 1;
    pid_t session = 0;
    if (await_go(&s) && make_folder(&s) == 0 && start_mpirun(&s) == 0) {
        session = s.pid;
        supervise_mpirun(&s);
        tell_ending(); /* what follows may take a while */
        end_rest(session);
        if (s.status != 0 && !s.dismissed && !s.cut_off)
            await_hang_up(&s);
        if (s.dismissed || s.killing)
            trp_log_drop_banners(log_path(&s));
        status = WIFEXITED(s.status) ? WEXITSTATUS(s.status) : 1;
    }
    if (s.folder[0])
        trp_private_folder_remove(s.folder);
    remove_run_files(&s);
    if (session && status != 0)
        remove_scratch(&s);
    if (session)
        tell_end(&s);
    bool in_order = s.dismissed || (session && status == 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL); /* what Slurm ends now need not wait */
    if (s.additional && !in_order && driver_is_gone(&s))
        trp_slurm_end_own_job();
    return status;
}
