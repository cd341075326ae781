/*
 * Patterns of outputs and inputs for one task.
 *
 * A value is put in with its special characters escaped. A pattern that needs what a task
 * does not have matches nothing, nor does one of which an empty value leaves a part of the
 * path empty: "out/${item}" would otherwise name the folder out/ itself, and removing
 * leftovers would take what other tasks have made.
 */
#include "os/output_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "os/glob.h"

bool trp_output_of_task(const char *pattern)
{
    return trp_template_names_task(pattern);
}

static bool append_text(char **to, const char *from, size_t n)
{
    size_t have = *to ? strlen(*to) : 0;
    char *s = realloc(*to, have + n + 1);
    if (!s)
        return false;
    memcpy(s + have, from, n);
    s[have + n] = '\0';
    *to = s;
    return true;
}

/* The value as a pattern of nothing else; malloc'ed. */
static char *literal(const struct trp_template_part *part)
{
    char *copy = strndup(part->text, part->size);
    char *escaped = copy ? trp_glob_escape(copy) : NULL;
    free(copy);
    return escaped;
}

/* Whether an empty value between them leaves a part of a path empty. */
static bool leaves_nothing(const char *before, const char *behind)
{
    size_t n = strlen(before);
    return (n == 0 || before[n - 1] == '/') &&
           (*behind == '\0' || *behind == '/' || *behind == '$');
}

char *trp_output_expand(const char *pattern, const struct trp_task_values *v,
                        bool *ret_none)
{
    struct trp_template_part part;
    char *made = NULL;
    bool good = append_text(&made, "", 0), none = false;
    while (good && !none && trp_template_next(&pattern, v, &part)) {
        char *value = part.value ? literal(&part) : NULL;
        none = part.missing ||
               (part.value && part.size == 0 && leaves_nothing(made, pattern));
        good = !part.value ? append_text(&made, part.text, part.size)
                           : value && append_text(&made, value, strlen(value));
        free(value);
    }
    *ret_none = none;
    if (good && !none)
        return made;
    free(made);
    return NULL;
}

bool trp_output_is_made(const char *pattern, const char *base,
                        const struct trp_task_values *v)
{
    bool none;
    char *of_task = trp_output_expand(pattern, v, &none);
    bool made = of_task && trp_glob_any(base, of_task);
    free(of_task);
    return made;
}
