/*
 * The registry of functions: name ↔ pointer.
 *
 * Filled by constructors (TRP_FUNCTION) before main, so it must need nothing that is
 * set up later: a table in static memory, searched front to back. Programs have tens of
 * functions, and a search costs less than what it is for (a stage, a dataset); a hash
 * was not worth its code. Driver and executors run the same binary (the channel checks
 * its build id), so a name means the same function on both. What goes wrong here is
 * told by trp_init, since a constructor has nobody to tell.
 */
#include <stdio.h>
#include <string.h>

#include "api/api.h"

enum { FUNCTIONS_MAX = 4096 };

static struct {
    const char *name;
    void (*function)(void);
} table[FUNCTIONS_MAX];
static size_t used;
static char problem[TRP_FUNCTION_NAME_MAX + 128];

void trp_register(const char *name, void (*function)(void))
{
    if (strlen(name) > TRP_FUNCTION_NAME_MAX) {
        snprintf(problem, sizeof(problem), "the function name %.60s… is too long",
                 name);
        return;
    }
    void (*known)(void) = trp_registry_function(name);
    if (known == function)
        return;
    if (known) {
        snprintf(problem, sizeof(problem),
                 "two functions are registered as %s; give one another name", name);
        return;
    }
    if (used == FUNCTIONS_MAX) {
        snprintf(problem, sizeof(problem), "more than %d functions are registered",
                 FUNCTIONS_MAX);
        return;
    }
    table[used].name = name;
    table[used].function = function;
    used++;
}

const char *trp_registry_name(void (*function)(void))
{
    for (size_t i = 0; i < used; i++)
        if (table[i].function == function)
            return table[i].name;
    return NULL;
}

void (*trp_registry_function(const char *name))(void)
{
    for (size_t i = 0; i < used; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].function;
    return NULL;
}

const char *trp_registry_problem(void)
{
    return problem[0] ? problem : NULL;
}
