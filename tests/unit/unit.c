/* The tests of a file, as constructors name them before main (unit.h). */
#include "unit.h"

#include <string.h>

enum { MOST = 256 };

static struct {
    const char *file, *sentence;
    void (*test)(void);
} tests[MOST];
static guint ntests;

void unit_add(const char *file, const char *sentence, void (*test)(void))
{
    g_assert_cmpuint(ntests, <, MOST);
    tests[ntests].file = file;
    tests[ntests].sentence = sentence;
    tests[ntests++].test = test;
}

/* /FILE/SENTENCE, of test_FILE.c. */
int unit_run(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < ntests; i++) {
        g_autofree char *name = g_path_get_basename(tests[i].file);
        name[strlen(name) - 2] = '\0';
        g_autofree char *path =
            g_strdup_printf("/%s/%s", name + strlen("test_"), tests[i].sentence);
        g_test_add_func(path, tests[i].test);
    }
    return g_test_run();
}
