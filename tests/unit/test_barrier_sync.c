/*
 * Global sync: barrier() and allGather() of the tasks of a barrier stage attempt.
 */
#include <glib.h>
#include <string.h>

#include "core/sched/barrier_sync.h"
#include "unit.h"

#define S INT64_C(1000000000)

static struct trp_sync_call barrier(uint32_t epoch, uint32_t partition)
{
    return (struct trp_sync_call){.stage = 3,
                                  .epoch = epoch,
                                  .ntasks = 3,
                                  .partition = partition,
                                  .who = 100 + partition};
}

static struct trp_sync_call gather(uint32_t epoch, uint32_t partition, const char *text)
{
    struct trp_sync_call call = barrier(epoch, partition);
    call.kind = TRP_SYNC_ALL_GATHER;
    call.message.data = text;
    call.message.size = strlen(text);
    return call;
}

static struct trp_sync_answer ask(trp_barrier_sync *b, int64_t now,
                                  struct trp_sync_call call)
{
    struct trp_sync_answer a;
    trp_error err = {0};
    g_assert_cmpint(trp_barrier_sync_call(b, now, &call, &a, &err), ==, 0);
    return a;
}

static void waits(trp_barrier_sync *b, int64_t now, struct trp_sync_call call)
{
    struct trp_sync_answer a = ask(b, now, call);
    g_assert_cmpuint(a.n, ==, 0);
}

static void fails(trp_barrier_sync *b, struct trp_sync_call call, int code,
                  uint32_t epoch, const char *text)
{
    struct trp_sync_answer a = ask(b, 0, call);
    g_assert_cmpuint(a.n, ==, 1);
    g_assert_cmpuint(a.who[0], ==, call.who);
    g_assert_cmpint(a.code, ==, code);
    g_assert_cmpuint(a.epoch, ==, epoch);
    g_assert_nonnull(strstr(a.text, text));
    g_assert_null(a.messages);
}

TEST("all are answered when all have called")
{
    trp_barrier_sync *b = trp_barrier_sync_new(INT64_MAX);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        waits(b, 0, barrier(epoch, 2));
        waits(b, 0, barrier(epoch, 0));
        struct trp_sync_answer a = ask(b, 0, barrier(epoch, 1));
        g_assert_cmpint(a.code, ==, 0);
        g_assert_cmpuint(a.stage, ==, 3);
        g_assert_cmpuint(a.attempt, ==, 0);
        g_assert_cmpuint(a.epoch, ==, epoch);
        g_assert_cmpuint(a.n, ==, 3);
        g_assert_cmpstr(a.text, ==, "");
        g_assert_cmpuint(a.nmessages, ==, 3);
        for (uint32_t i = 0; i < 3; i++) {
            g_assert_cmpuint(a.who[i], ==, 100 + i);
            g_assert_cmpuint(a.messages[i].size, ==, 0);
        }
    }
    trp_barrier_sync_free(b);
    trp_barrier_sync_free(NULL);
}

TEST("messages come back by partition")
{
    static const char *const texts[] = {"zero", "", "two"};
    trp_barrier_sync *b = trp_barrier_sync_new(S);
    char first[] = "zero";
    waits(b, 0, gather(0, 2, "two"));
    waits(b, 0, gather(0, 0, first));
    memset(first, 'x', 4); /* was copied */
    struct trp_sync_answer a = ask(b, 0, gather(0, 1, ""));
    g_assert_cmpuint(a.nmessages, ==, 3);
    for (int i = 0; i < 3; i++)
        g_assert_cmpmem(a.messages[i].data, a.messages[i].size, texts[i],
                        strlen(texts[i]));
    waits(b, 0, gather(1, 2, "again"));
    waits(b, 0, gather(1, 0, ""));
    trp_barrier_sync_free(b);
}

TEST("one task does not wait")
{
    trp_barrier_sync *b = trp_barrier_sync_new(S);
    struct trp_sync_call call = gather(0, 0, "alone");
    call.ntasks = 1;
    struct trp_sync_answer a = ask(b, 0, call);
    g_assert_cmpuint(a.n, ==, 1);
    g_assert_cmpint(a.code, ==, 0);
    g_assert_cmpmem(a.messages[0].data, a.messages[0].size, "alone", 5);
    trp_barrier_sync_free(b);
}

TEST("two kinds in a sync fail all")
{
    trp_barrier_sync *b = trp_barrier_sync_new(S);
    waits(b, 0, gather(0, 0, "a"));
    waits(b, 0, gather(0, 2, "c"));
    struct trp_sync_answer a = ask(b, 0, barrier(0, 1));
    g_assert_cmpint(a.code, ==, TRP_EINVAL);
    g_assert_cmpuint(a.n, ==, 3);
    g_assert_cmpuint(a.who[0], ==, 100);
    g_assert_cmpuint(a.who[1], ==, 102);
    g_assert_cmpuint(a.who[2], ==, 101);
    g_assert_nonnull(strstr(a.text, "barrier and allGather"));
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, INT64_MAX);
    fails(b, barrier(0, 1), TRP_ESTATE, 0, "has already failed");
    fails(b, barrier(1, 2), TRP_ESTATE, 1, "has already finished");
    struct trp_sync_call retry = barrier(0, 0);
    retry.attempt = 1; /* the next attempt of the stage starts anew */
    waits(b, 0, retry);
    trp_barrier_sync_free(b);
}

TEST("a wrong epoch fails alone")
{
    trp_barrier_sync *b = trp_barrier_sync_new(S);
    for (uint32_t i = 0; i < 3; i++)
        ask(b, 0, barrier(0, i));
    waits(b, 0, gather(1, 0, "x"));
    fails(b, barrier(0, 1), TRP_ESTATE, 0, "number 0 of stage 3 (attempt 0) has");
    fails(b, gather(7, 2, "y"), TRP_ESTATE, 7, "partition 2 was not properly killed");
    waits(b, 0, gather(1, 1, "x")); /* the others are not disturbed */
    g_assert_cmpuint(ask(b, 0, gather(1, 2, "x")).n, ==, 3);
    trp_barrier_sync_free(b);
}

static void refused(trp_barrier_sync *b, struct trp_sync_call call, int code,
                    const char *text)
{
    struct trp_sync_answer a;
    trp_error err = {0};
    g_assert_cmpint(trp_barrier_sync_call(b, 0, &call, &a, &err), ==, code);
    g_assert_nonnull(strstr(err.text, text));
    g_assert_cmpuint(a.n, ==, 0);
}

TEST("impossible calls are refused")
{
    trp_barrier_sync *b = trp_barrier_sync_new(S);
    struct trp_sync_call call = barrier(0, 3);
    refused(b, call, TRP_EINVAL, "partition 3 called a global sync of 3 tasks");
    call.ntasks = 0;
    refused(b, call, TRP_EINVAL, "of 0 tasks");
    waits(b, 0, barrier(0, 0));
    refused(b, barrier(0, 0), TRP_EEXIST, "partition 0 waits already");
    call = barrier(0, 3);
    call.ntasks = 4;
    refused(b, call, TRP_EINVAL, "of 4 tasks, the others one of 3");
    waits(b, 0, barrier(0, 1));
    g_assert_cmpuint(ask(b, 0, barrier(0, 2)).n, ==, 3);
    trp_barrier_sync_free(b);
}

TEST("a timeout fails who waits")
{
    trp_barrier_sync *b = trp_barrier_sync_new(10 * S);
    struct trp_sync_answer a;
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, INT64_MAX);
    waits(b, 5 * S, barrier(0, 1));
    waits(b, 9 * S, barrier(0, 0)); /* the first call's time counts */
    struct trp_sync_call other = barrier(0, 2);
    other.stage = 4;
    waits(b, 7 * S, other);
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, 15 * S);
    trp_barrier_sync_expire(b, 15 * S - 1, &a);
    g_assert_cmpuint(a.n, ==, 0);
    trp_barrier_sync_expire(b, 20 * S, &a);
    g_assert_cmpint(a.code, ==, TRP_ETIME);
    g_assert_cmpuint(a.stage, ==, 3);
    g_assert_cmpuint(a.epoch, ==, 0);
    g_assert_cmpuint(a.n, ==, 2);
    g_assert_cmpuint(a.who[0], ==, 100);
    g_assert_cmpuint(a.who[1], ==, 101);
    g_assert_nonnull(strstr(a.text, "only 2 of 3 tasks of stage 3"));
    g_assert_nonnull(strstr(a.text, "10.000 s"));
    trp_barrier_sync_expire(b, 20 * S, &a);
    g_assert_cmpuint(a.stage, ==, 4);
    g_assert_cmpuint(a.n, ==, 1);
    trp_barrier_sync_expire(b, 20 * S, &a);
    g_assert_cmpuint(a.n, ==, 0);
    waits(b, 30 * S, barrier(0, 2)); /* nothing is left of it */
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, 40 * S);
    trp_barrier_sync_free(b);
}

TEST("the timer starts with each first call")
{
    trp_barrier_sync *b = trp_barrier_sync_new(10 * S);
    for (uint32_t i = 0; i < 3; i++)
        ask(b, 0, barrier(0, i));
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, INT64_MAX);
    waits(b, 8 * S, barrier(1, 0));
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, 18 * S);
    struct trp_sync_answer a;
    trp_barrier_sync_expire(b, 18 * S, &a);
    g_assert_cmpuint(a.epoch, ==, 1);
    trp_barrier_sync_free(b);

    b = trp_barrier_sync_new(INT64_MAX);
    waits(b, S, barrier(0, 0)); /* beyond the end of time is never */
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, INT64_MAX);
    trp_barrier_sync_expire(b, INT64_MAX, &a);
    g_assert_cmpuint(a.n, ==, 0);
    trp_barrier_sync_free(b);
}

TEST("the end of an attempt forgets it")
{
    trp_barrier_sync *b = trp_barrier_sync_new(S);
    waits(b, 0, gather(0, 0, "message"));
    trp_barrier_sync_end(b, 3, 1);
    trp_barrier_sync_end(b, 3, 0);
    trp_barrier_sync_end(b, 3, 0);
    g_assert_cmpint(trp_barrier_sync_next_timer(b), ==, INT64_MAX);
    waits(b, 0, gather(0, 0, "left behind"));
    trp_barrier_sync_free(b);
}
