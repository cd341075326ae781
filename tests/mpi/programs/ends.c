/* ends HOW: counts ten numbers, prints "counted" and then
 *
 *     away     does something else until the file `go` is there, and ends in order
 *     handles  the same, and ends in order when SIGTERM comes as well
 *     ignores  the same, and ignores SIGTERM
 *     after    ends in order, and is killed by SIGKILL behind trp_finalize
 *     late     ends in order, waits for `go`, and returns 7
 *     heap     frees what was freed */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "troupe.h"

static volatile sig_atomic_t asked;

static void on_term(int sig)
{
    (void)sig;
    asked = 1;
}

static void wait_for_go(void)
{
    while (!asked && access("go", F_OK) < 0)
        usleep(20000);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    uint64_t n;
    const char *how = argc > 1 ? argv[1] : "";
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (strcmp(how, "handles") == 0)
        signal(SIGTERM, on_term);
    if (strcmp(how, "ignores") == 0)
        signal(SIGTERM, SIG_IGN);
    if (trp_count(trp_range(ctx, 0, 10, 2), &n) == 0 && n == 10)
        puts("counted");
    fflush(stdout);
    if (strcmp(how, "after") != 0 && strcmp(how, "late") != 0 &&
        strcmp(how, "heap") != 0)
        wait_for_go();
    if (strcmp(how, "heap") == 0) {
        void *volatile p = malloc(100);
        free(p);
        free(p);
    }
    int status = trp_finalize(ctx);
    if (strcmp(how, "after") == 0)
        raise(SIGKILL);
    if (strcmp(how, "late") != 0)
        return status;
    wait_for_go();
    return 7;
}
