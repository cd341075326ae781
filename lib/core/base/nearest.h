/*
 * The known name that is nearest to one that a person wrote.
 *
 *     struct trp_nearest near = trp_nearest_of("naem");
 *     trp_nearest_try(&near, "name");
 *     if (near.best) …did you mean near.best?…
 */
#ifndef TRP_CORE_BASE_NEAREST_H
#define TRP_CORE_BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

struct trp_nearest {
    const char *word;
    const char *best; /* NULL: nothing is near */
    size_t distance;
};
struct trp_nearest trp_nearest_of(const char *word);
/* Borrows `candidate`. The first of equally near ones stays. */
void trp_nearest_try(struct trp_nearest *n, const char *candidate);

/* Is `word` the beginning of `whole`, upper and lower case being the same letter? */
bool trp_begins(const char *word, const char *whole);

#endif
