/* Places: who runs when an attempt ended, on both sides of a message that is under way.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "executor/places.h"
#include "unit.h"

static struct trp_places places;

static struct trp_task_entry task(uint64_t attempt)
{
    return (struct trp_task_entry){.attempt = {attempt}};
}

static int launch(uint64_t attempt, uint32_t seen, bool queued, char **ret_resources)
{
    struct trp_task_entry t = task(attempt);
    int r = trp_places_launch(&places, seen, queued, &t);
    if (r == 1 && ret_resources)
        *ret_resources = t.resources;
    return r;
}

/* The attempt that takes the place of the `number`-th end; 0: none. */
static uint64_t end(uint32_t number, const char *resources)
{
    struct trp_task_entry head;
    char *had = resources ? strdup(resources) : NULL;
    int r = trp_places_end(&places, number, &had, &head);
    g_assert_cmpint(r, >=, 0);
    g_assert_null(had);
    if (r == 0)
        return 0;
    g_assert_cmpstr(head.resources, ==, resources);
    trp_task_entry_free(&head);
    return head.attempt.n;
}

TEST("the head of the queue takes the place of an end")
{
    g_assert_cmpint(launch(1, 0, false, NULL), ==, 1);
    g_assert_cmpint(launch(2, 0, true, NULL), ==, 0);
    g_assert_cmpint(launch(3, 0, true, NULL), ==, 0);
    g_assert_cmpuint(end(1, "gpu=0\n"), ==, 2);
    g_assert_cmpuint(end(2, "gpu=0\n"), ==, 3);
    g_assert_cmpuint(end(3, "gpu=0\n"), ==, 0);
    trp_places_free(&places);
}

TEST("an attempt queued in ignorance takes the first newer place")
{
    /* 7 was queued by a driver that had heard of end 1, not of 2 and 3. */
    char *resources = NULL;
    end(1, "gpu=0\n");
    end(2, "gpu=1\n");
    end(3, "gpu=2\n");
    g_assert_cmpint(launch(7, 1, true, &resources), ==, 1);
    g_assert_cmpstr(resources, ==, "gpu=1\n");
    free(resources);
    /* The next heard of 2 as well: it gets the place of 3; one more has to wait. */
    g_assert_cmpint(launch(8, 2, true, &resources), ==, 1);
    g_assert_cmpstr(resources, ==, "gpu=2\n");
    free(resources);
    g_assert_cmpint(launch(9, 2, true, NULL), ==, 0);
    g_assert_cmpuint(end(4, NULL), ==, 9);
    trp_places_free(&places);
}

TEST("a place the driver has heard of is not taken")
{
    /* Places the driver has heard of are its own to give: nobody here takes them. */
    end(1, "gpu=0\n");
    end(2, "gpu=1\n");
    g_assert_cmpint(launch(5, 2, false, NULL), ==, 1);
    g_assert_cmpuint(places.vacant.count, ==, 0);
    g_assert_cmpint(launch(6, 2, true, NULL), ==, 0);
    trp_places_free(&places);
}

TEST("numbers of ends go round")
{
    end(UINT32_MAX, NULL);
    end(0, "gpu=3\n");
    char *resources = NULL;
    g_assert_cmpint(launch(5, UINT32_MAX, true, &resources), ==, 1);
    g_assert_cmpstr(resources, ==, "gpu=3\n");
    free(resources);
    trp_places_free(&places);
}

TEST("a ring keeps order, also when some are taken out")
{
    struct trp_task_ring ring = {0};
    struct trp_task_entry t;
    uint64_t next = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        t = task(i);
        g_assert_true(trp_task_ring_push(&ring, &t));
        if (i % 3 == 2) {
            g_assert_true(trp_task_ring_pop(&ring, &t));
            g_assert_cmpuint(t.attempt.n, ==, next++);
        }
    }
    for (uint64_t i = next; i < 1000; i += 2)
        g_assert_true(trp_task_ring_take(&ring, (trp_attempt_id){i}, &t));
    g_assert_false(trp_task_ring_take(&ring, (trp_attempt_id){next}, &t));
    for (uint64_t i = next + 1; i < 1000; i += 2) {
        g_assert_true(trp_task_ring_pop(&ring, &t));
        g_assert_cmpuint(t.attempt.n, ==, i);
    }
    g_assert_false(trp_task_ring_pop(&ring, &t));
    trp_task_ring_free(&ring);
}
