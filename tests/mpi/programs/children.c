/* children blocked|handled|ignored|taken|early: what a program may do with SIGCHLD and with
 * all of its children. A task's first attempt ends its executor by SIGKILL. Prints "count 2".
 * `early` is blocked, and its executors end before they have called. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "troupe.h"

TRP_FUNCTION(die);
int die(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)arg;
    if (trp_task_index(t) == 0 && trp_task_attempt(t) == 0)
        raise(SIGKILL);
    return trp_emit(out, NULL, 0, trp_value(in, 0, NULL), 8);
}

static void on_child(int signal)
{
    (void)signal;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    const char *what = argc > 1 ? argv[1] : "";
    const void *n = NULL;
    uint64_t count = 0;
    sigset_t all;
    sigfillset(&all);
    if (strcmp(what, "early") == 0 && getenv("TROUPE_EXECUTOR"))
        return 3;
    /* the usual beginning of a program that has threads */
    if (strcmp(what, "blocked") == 0 || strcmp(what, "early") == 0)
        sigprocmask(SIG_BLOCK, &all, NULL);
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (strcmp(what, "handled") == 0)
        signal(SIGCHLD, on_child);
    if (strcmp(what, "ignored") == 0)
        signal(SIGCHLD, SIG_IGN);
    trp_job *j =
        trp_count_async(trp_transform(trp_range(ctx, 0, 2, 2), die, NULL, 0), NULL);
    for (int i = 0; strcmp(what, "taken") == 0 && i < 1000; i++) {
        if (waitpid(-1, NULL, WNOHANG) > 0) /* the library may be faster */
            break;
        usleep(1000);
    }
    if (trp_job_wait(j, &n, NULL) == 0)
        memcpy(&count, n, sizeof(count));
    else
        fprintf(stderr, "children: %s\n", trp_error_text(ctx));
    printf("count %llu\n", (unsigned long long)count);
    return trp_finalize(ctx);
}
