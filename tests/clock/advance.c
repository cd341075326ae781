/*
 * advance TIME [PID…]: moves the clock in the file TROUPE_CLOCK, which is made when it is
 * not there. How is said in clock.c. TIME is a number with ms, s, m or h. The processes PID
 * do not have this clock but are on the way between those that do. There is no limit on how
 * long it takes; every 5 s it says whom it waits for, and at the end how many waits of all
 * threads have ended in that time. --hold and --release in the place of
 * TIME hold the clock and let it go on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "page.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)
#define GRAIN (100 * MS)
#define TELL (5 * SECOND)

enum { PROCESSES = 4096 };

static struct trp_clock_page *page;
static int32_t pids[PROCESSES];
static size_t npids, nothers;
static char mover[256]; /* who was not still when it was looked at last */

static int64_t real_now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void add_pid(int32_t pid)
{
    for (size_t i = 0; i < npids; i++) {
        if (pids[i] == pid)
            return;
    }
    if (npids < PROCESSES)
        pids[npids++] = pid;
}

/* Frees the slots of threads that have ended and of processes that run another program now. */
static void find_processes(void)
{
    npids = nothers;
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
        struct trp_clock_slot *s = &page->slots[i];
        int32_t tid = s->tid;
        if (tid <= 0)
            continue;
        char path[64];
        struct stat info;
        snprintf(path, sizeof path, "/proc/%d/task/%d/exe", s->pid, tid);
        if (stat(path, &info) == 0 && info.st_ino == s->program)
            add_pid(s->pid);
        else if (stat(path, &info) == 0 || errno == ENOENT || errno == ESRCH)
            atomic_compare_exchange_strong(&s->tid, &tid, 0);
    }
}

static struct trp_clock_slot *slot_of(int32_t tid)
{
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
        if (page->slots[i].tid == tid)
            return &page->slots[i];
    }
    return NULL;
}

/* What /proc says of a thread: its state, and how often it has had a core. */
static bool look_at(int32_t pid, int32_t tid, char *ret_state, uint64_t *ret_ran)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    *ret_state = 'R';
    *ret_ran = 0;
    while (fgets(line, sizeof line, f)) {
        uint64_t n;
        if (sscanf(line, "State: %c", ret_state) == 1)
            continue;
        if (sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &n) == 1)
            *ret_ran += n;
    }
    fclose(f);
    return true;
}

static bool thread_is_still(int32_t pid, int32_t tid, uint64_t *sum)
{
    char state;
    uint64_t ran;
    struct trp_clock_slot *s = slot_of(tid);
    if (!look_at(pid, tid, &state, &ran) || strchr("ZX", state))
        return true;
    bool sleeps = s && s->state != TRP_CLOCK_AWAKE;
    if (strchr("tT", state)) { /* it looks at the clock when it goes on */
        if (sleeps && s->seen != page->moves)
            syscall(SYS_tgkill, pid, tid, SIGURG);
        return true;
    }
    *sum = *sum * 31 + (sleeps ? s->turns : ran);
    if (state == 'S' && !(sleeps && s->seen != page->moves))
        return true;
    if (sleeps && s->state == TRP_CLOCK_ASLEEP && s->seen != page->moves)
        syscall(SYS_tgkill, pid, tid, SIGURG);
    snprintf(mover, sizeof mover, "thread %d of process %d (%c%s)", tid, pid, state,
             sleeps ? ", by an older time" : "");
    return false;
}

static bool process_is_still(int32_t pid, uint64_t *sum)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    bool still = true;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] != '.')
            still = thread_is_still(pid, atoi(e->d_name), sum) && still;
    }
    if (d)
        closedir(d);
    return still;
}

/* All sleep; *ret_sum changes with each turn that one has had. */
static bool is_still(uint64_t *ret_sum)
{
    find_processes();
    *ret_sum = npids;
    bool still = true;
    for (size_t i = 0; i < npids; i++)
        still = process_is_still(pids[i], ret_sum) && still;
    return still;
}

static void until_still(void)
{
    uint64_t before, after;
    for (int64_t tell = real_now(CLOCK_MONOTONIC) + TELL;;) {
        if (is_still(&before)) {
            nanosleep(&(struct timespec){.tv_nsec = MS / 5}, NULL);
            if (is_still(&after) && after == before)
                return;
        }
        if (real_now(CLOCK_MONOTONIC) >= tell) {
            fprintf(stderr, "advance: waits for %s\n", mover);
            tell += TELL;
        }
        nanosleep(&(struct timespec){.tv_nsec = MS / 2}, NULL);
    }
}

/* Nobody sleeps by an older time any more. */
static void until_seen(void)
{
    for (bool all = false; !all;) {
        all = true;
        find_processes();
        for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
            const struct trp_clock_slot *s = &page->slots[i];
            char state = 0;
            uint64_t ran;
            if (s->tid <= 0 || s->state == TRP_CLOCK_AWAKE || s->seen == page->moves)
                continue;
            if (syscall(SYS_tgkill, s->pid, s->tid, SIGURG) == 0 &&
                look_at(s->pid, s->tid, &state, &ran) && !strchr("tTZX", state))
                all = false;
        }
        nanosleep(&(struct timespec){.tv_nsec = MS / 2}, NULL);
    }
}

/* The earliest moment for which a thread sleeps. */
static int64_t next_deadline(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++) {
        struct trp_clock_slot *s = &page->slots[i];
        if (s->tid > 0 && s->state != TRP_CLOCK_AWAKE && s->deadline < next)
            next = s->deadline;
    }
    return next;
}

/* A clock that goes on is not waited for: there may be much to do. */
static void set(bool held, int64_t offset)
{
    const struct trp_clock_setting *old = &page->settings[page->moves % 2];
    struct trp_clock_setting *s = &page->settings[(page->moves + 1) % 2];
    int64_t monotonic = real_now(CLOCK_MONOTONIC);
    s->held = held;
    s->offset = offset;
    s->held_monotonic = old->held ? old->held_monotonic : monotonic;
    s->held_real = old->held ? old->held_real : real_now(CLOCK_REALTIME);
    if (old->held && !held)
        s->offset += old->held_monotonic - monotonic;
    page->moves++;
    if (held)
        until_still();
    else
        until_seen();
}

static const struct trp_clock_setting *setting(void)
{
    return &page->settings[page->moves % 2];
}

/* How often threads have woken. */
static uint64_t turns(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < TRP_CLOCK_SLOTS; i++)
        sum += page->slots[i].turns;
    return sum;
}

static void advance(int64_t ns)
{
    bool held = setting()->held;
    set(true, setting()->offset);
    uint64_t before = turns();
    for (int64_t end = setting()->offset + ns; setting()->offset < end;) {
        int64_t offset = setting()->offset, now = setting()->held_monotonic + offset;
        int64_t step = next_deadline() - now - page->crept;
        step = step < GRAIN ? GRAIN : step;
        set(true, end - offset < step ? end : offset + step);
    }
    printf("%" PRIu64 " waits ended\n", turns() - before);
    if (!held)
        set(false, setting()->offset);
}

static void open_page(void)
{
    const char *file = getenv("TROUPE_CLOCK");
    umask(0); /* runs of other users have it too */
    int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    void *at =
        fd < 0 || ftruncate(fd, sizeof *page) < 0
            ? MAP_FAILED
            : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        perror("advance: TROUPE_CLOCK");
        exit(2);
    }
    page = at;
}

static int64_t duration_of(const char *text)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"ms", MS           },
        {"s",  SECOND       },
        {"m",  60 * SECOND  },
        {"h",  3600 * SECOND}
    };
    char *unit;
    double n = strtod(text, &unit);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (unit != text && n >= 0 && strcmp(unit, units[i].name) == 0)
            return (int64_t)(n * (double)units[i].ns);
    }
    fprintf(stderr, "advance: %s is no time; wanted is one such as 6s\n", text);
    exit(2);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: advance TIME|--hold|--release [PID...]\n");
        return 2;
    }
    bool hold = strcmp(argv[1], "--hold") == 0,
         release = strcmp(argv[1], "--release") == 0;
    int64_t ns = hold || release ? 0 : duration_of(argv[1]);
    open_page();
    for (int i = 2; i < argc; i++)
        add_pid(atoi(argv[i]));
    nothers = npids;
    if (hold || release)
        set(hold, setting()->offset);
    else
        advance(ns);
    return 0;
}
