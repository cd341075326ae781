/*
 * An executor that never gets as far as MPI: it says hello under an id that the driver
 * keeps for guards, and is a peer that sends heartbeats and gets them.
 */
#include "executor/job_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "executor/executor_internal.h"
#include "os/clock.h"

/* Until the driver is gone. */
static void stay(trp_channel *c)
{
    while (trp_channel_socket(c) >= 0) {
        struct epoll_event event;
        int64_t left = (trp_channel_next_timer(c) - trp_clock_ns()) / 1000000 + 1;
        epoll_wait(trp_channel_fd(c), &event, 1,
                   (int)(left < 1      ? 1
                         : left < 1000 ? left
                                       : 1000));
        trp_channel_progress(c, trp_clock_ns());
    }
}

/* Calls the driver. If the driver's host name cannot be resolved, it tries again for as
 * long as it would bear the driver's silence: the driver may live. */
static int call(const struct trp_executor_shape *shape, trp_channel **ret,
                trp_error *err)
{
    int64_t deadline = trp_clock_ns() + shape->network_timeout_ns;
    int code = trp_executor_call(shape, ret, err);
    while (code == TRP_ENOENT && trp_clock_ns() < deadline) {
        sleep(1);
        code = trp_executor_call(shape, ret, err);
    }
    return code;
}

int trp_job_guard_main(void)
{
    struct trp_executor_shape *shape = calloc(1, sizeof *shape);
    trp_channel *channel = NULL;
    trp_error err = {.code = TRP_EINVAL, .text = "TROUPE_EXECUTOR is not set"};
    const char *text = getenv("TROUPE_EXECUTOR");
    int code = shape && text ? trp_shape_parse(text, shape, &err) : err.code;
    if (code == 0)
        code = call(shape, &channel, &err);
    if (code == 0)
        stay(channel);
    else
        fprintf(stderr, "troupe: the guard of a job: %s\n", err.text);
    free(shape);
    return code == 0 ? 0 : trp_error_exit_status(code);
}
