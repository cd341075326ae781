/*
 * Unit tests: what holds, and how that is seen. All of a file run in their order.
 *
 *     TEST("a set of one has a first that is its last")
 *     {
 *         g_assert_cmpint(first(&one), ==, last(&one));
 *     }
 *
 * A file with something around its tests has a main of its own, which calls unit_run.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <glib.h>

void unit_add(const char *file, const char *sentence, void (*test)(void));
/* Its exit status. */
int unit_run(int argc, char **argv);

#define TEST(sentence) TEST_AT(sentence, __LINE__)
#define TEST_AT(sentence, line) TEST_OF(sentence, line)
#define TEST_OF(sentence, line)                                                        \
    static void test_##line(void);                                                     \
    static void __attribute__((constructor)) add_test_##line(void)                     \
    {                                                                                  \
        unit_add(__FILE__, sentence, test_##line);                                     \
    }                                                                                  \
    static void test_##line(void)

#endif
