/* The baton: one holder at a time, robbed only when away for long. */
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "executor/baton.h"
#include "unit.h"

enum { THREADS = 4, TURNS = 2000 };

static trp_baton *baton;
static int holders, shared; /* guarded by the baton alone */
static atomic_int robberies;
static atomic_bool taken, over;

TEST("one thread takes, leaves, returns and gives")
{
    trp_baton *b = trp_baton_new();
    g_assert_true(trp_baton_try(b));
    g_assert_false(trp_baton_try(b));
    for (int i = 0; i < 1000; i++) {
        trp_baton_leave(b);
        g_assert_false(trp_baton_try(b));
        g_assert_true(trp_baton_return(b));
    }
    trp_baton_give(b);
    trp_baton_take(b);
    trp_baton_give(b);
    g_assert_true(trp_baton_try(b));
    trp_baton_free(b);
}

/* Takes it, is away for an instant, comes back or was robbed, gives it. */
static void *take_turns(void *context)
{
    (void)context;
    for (int i = 0; i < TURNS; i++) {
        trp_baton_take(baton);
        int inside = ++holders;
        shared++;
        --holders;
        trp_baton_leave(baton);
        if (!trp_baton_return(baton)) {
            robberies++;
            continue;
        }
        inside += holders++;
        shared++;
        holders--;
        trp_baton_give(baton);
        if (inside != 1)
            return baton; /* two at once */
    }
    return NULL;
}

TEST("many threads never hold it at once")
{
    pthread_t thread[THREADS];
    baton = trp_baton_new();
    shared = 0;
    robberies = 0;
    for (int i = 0; i < THREADS; i++)
        g_assert_cmpint(pthread_create(&thread[i], NULL, take_turns, NULL), ==, 0);
    for (int i = 0; i < THREADS; i++) {
        void *failure = NULL;
        pthread_join(thread[i], &failure);
        g_assert_null(failure);
    }
    g_assert_cmpint(shared, ==, 2 * THREADS * TURNS - robberies);
    trp_baton_free(baton);
}

static void *rob(void *context)
{
    (void)context;
    trp_baton_take(baton);
    taken = true;
    while (!over)
        sched_yield();
    trp_baton_give(baton);
    return NULL;
}

/* Away for ever after it was held so long: it is robbed. */
static void rob_after(gint64 held_us, void (*leave)(trp_baton *))
{
    pthread_t thread;
    baton = trp_baton_new();
    trp_baton_take(baton);
    g_assert_cmpint(pthread_create(&thread, NULL, rob, NULL), ==, 0);
    g_usleep((gulong)held_us);
    leave(baton);
    while (!taken)
        sched_yield();
    g_assert_false(trp_baton_return(baton));
    over = true;
    trp_baton_take(baton);
    trp_baton_give(baton);
    pthread_join(thread, NULL);
    trp_baton_free(baton);
    taken = over = false;
}

TEST("a holder who is away for long is robbed")
{
    rob_after(0, trp_baton_leave);
    rob_after(0, trp_baton_leave_shortly);
}

TEST("so is one who has held it for long before")
{
    rob_after(30000, trp_baton_leave);
    rob_after(30000, trp_baton_leave_shortly);
}

TEST("a holder who is away for short is not")
{
    pthread_t thread;
    baton = trp_baton_new();
    trp_baton_take(baton);
    g_assert_cmpint(pthread_create(&thread, NULL, rob, NULL), ==, 0);
    /* Away often, never for long: the taker sees another epoch at every look. */
    for (gint64 end = g_get_monotonic_time() + 15000; g_get_monotonic_time() < end;) {
        trp_baton_leave(baton);
        if (!trp_baton_return(baton)) {
            /* Only a pause of the whole thread between the two may do that. */
            g_test_message("robbed by a pause of this machine");
            over = true;
            break;
        }
    }
    if (!over) {
        g_assert_false(taken);
        over = true;
        trp_baton_give(baton);
    }
    pthread_join(thread, NULL);
    g_assert_true(taken);
    trp_baton_free(baton);
    taken = over = false;
}
