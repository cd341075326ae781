#include "os/binding.h"
#include "unit.h"

#include <errno.h>
#include <glib.h>
#include <sched.h>

static int count(void)
{
    cpu_set_t set;
    g_assert_cmpint(sched_getaffinity(0, sizeof set, &set), ==, 0);
    return CPU_COUNT(&set);
}

static gpointer count_when_asked(gpointer queue)
{
    g_async_queue_pop(queue);
    return GINT_TO_POINTER(count());
}

/* Libraries may have made threads before main, and they are bound as well. */
TEST("all threads are bound")
{
    cpu_set_t before, one;
    g_autoptr(GAsyncQueue) asked = g_async_queue_new();
    g_assert_cmpint(sched_getaffinity(0, sizeof before, &before), ==, 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    GThread *other = g_thread_new("other", count_when_asked, asked);
    g_autofree char *list = g_strdup_printf("%d-%d,65535", cpu, cpu);
    g_assert_true(trp_bind_process(list));
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cpu_set_t after;
    g_assert_cmpint(sched_getaffinity(0, sizeof after, &after), ==, 0);
    g_assert_true(CPU_EQUAL(&one, &after));
    g_async_queue_push(asked, asked);
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(other)), ==, 1);
    g_assert_cmpint(sched_setaffinity(0, sizeof before, &before), ==, 0);
}

TEST("what is no list binds nothing")
{
    static const char *const bad[] = {
        "",        "a",    "1-",    "-1",   "2-1",
        "0,",      ",0",   "0 ",    "0x1",  "65536",
        "0-65536", "0,,1", "65535", "1--2", "99999999999999999999"};
    int before = count();
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        errno = 0;
        g_assert_false(trp_bind_process(bad[i]));
        g_assert_cmpint(errno, ==, EINVAL);
        g_assert_cmpint(count(), ==, before);
    }
}
