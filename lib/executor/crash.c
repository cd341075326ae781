/*
 * Last words of a crash, and of a function that calls exit().
 *
 * A handler for the signals of a crash writes down which attempt this thread runs, in
 * memory shared with the spawner, and lets the signal do its work: it was reset to the
 * default when the handler was entered, and is raised again. Nothing else is done in
 * the handler. Each thread has an alternate stack, so that a stack overflow is told as
 * well. What the C library says of an abort of its own (a heap that is broken, an
 * assertion) lies in __abort_msg.
 *
 * exit() runs its handlers in the thread that called it.
 *
 * Cost while nothing crashes: two stores a task.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "executor/executor_internal.h"

enum { STACK_SIZE = 64 * 1024 };

/* As glibc has it, for debuggers. */
struct abort_message {
    unsigned size;
    char text[];
};

static trp_spawner *told;                    /* whom */
static pid_t owner;                          /* a function may fork */
static struct abort_message *const *message; /* NULL: not in this C library */
static _Thread_local volatile bool inside;
static _Thread_local volatile uint64_t running;

static void say(enum trp_loss reason, int32_t code, const char *text)
{
    struct trp_last_words last_words = {.said = true, .reason = reason};
    last_words.has_culprit = inside;
    last_words.culprit.n = running;
    last_words.signal = code;
    for (size_t i = 0; i + 1 < sizeof last_words.text && text[i] && text[i] != '\n';
         i++)
        last_words.text[i] = text[i];
    if (told && getpid() == owner)
        trp_spawner_last_words(told, &last_words);
}

static void on_crash(int sig)
{
    say(TRP_LOSS_CRASHED, sig,
        sig == SIGABRT && message && *message ? (*message)->text : "");
    syscall(SYS_tgkill, getpid(), gettid(), sig);
}

static void at_exit(int status, void *unused)
{
    (void)unused;
    if (inside)
        say(TRP_LOSS_CALLED_EXIT, status & 0xff, "");
}

void trp_crash_install(trp_spawner *spawner)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_handler = on_crash,
                               .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    told = spawner;
    if (!owner) {
        message = dlsym(RTLD_DEFAULT, "__abort_msg");
        on_exit(at_exit, NULL);
    }
    owner = getpid();
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &action, NULL);
}

void trp_crash_thread(void)
{
    static _Thread_local char *stack; /* as long as the thread; few, so never freed */
    stack_t has;
    inside = false; /* touches the thread's variables before a handler has to */
    if (sigaltstack(NULL, &has) != 0 || !(has.ss_flags & SS_DISABLE))
        return; /* a sanitizer's, for instance, which it takes back itself */
    stack = malloc(STACK_SIZE);
    stack_t s = {.ss_sp = stack, .ss_size = STACK_SIZE};
    if (stack)
        sigaltstack(&s, NULL);
}

void trp_crash_running(trp_attempt_id attempt)
{
    running = attempt.n;
    inside = true;
}

void trp_crash_idle(void)
{
    inside = false;
}
