/*
 * A pattern of `outputs` has values of tasks in it, which are known when there are tasks: so
 * patterns are compared (os/glob.h). Where a file is *missing* if nobody makes it, a value may
 * be anything; where a stage is *refused* if somebody does, it is one part of a path, or
 * what the stage's own `foreach` matches.
 *
 * The stages above one are found anew for each question. Questions are about what is not
 * there, which is told, or about `each`; both are few.
 */
#include "driver/makers.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/template.h"
#include "os/glob.h"

/* What the value can be that stands at `at` of a pattern, as a pattern. */
static const char *value_pattern(const struct trp_pipeline_stage *s, const char *at,
                                 bool any)
{
    bool item = s->foreach == TRP_FOREACH_FILES && !strncmp(at, "${item}", 7);
    return any ? "**" : item ? s->pattern : "*";
}

/* What a template of a stage can be, as a pattern. */
static void put_pattern(struct trp_buf *b, const struct trp_pipeline_stage *s,
                        const char *template, bool any)
{
    struct trp_template_part part;
    const char *at = template, *from = at;
    trp_buf_clear(b);
    for (; trp_template_next(&at, &(struct trp_task_values){0}, &part); from = at) {
        const char *text = part.value ? value_pattern(s, from, any) : part.text;
        trp_put_raw(b, text, part.value ? strlen(text) : part.size);
    }
    trp_put_u8(b, 0);
}

char *trp_made_pattern(const struct trp_pipeline_stage *s, const char *template)
{
    struct trp_buf b = {0};
    put_pattern(&b, s, template, true);
    char *pattern = b.failed ? NULL : strdup((const char *)b.data);
    trp_buf_free(&b);
    return pattern;
}

/* Whether it says that it makes what the pattern matches. */
static bool makes(const struct trp_pipeline_stage *s, const char *pattern, bool any)
{
    struct trp_buf b = {0};
    bool made = false;
    for (uint32_t k = 0; k < s->noutputs && !made; k++) {
        put_pattern(&b, s, s->outputs[k], any);
        made = b.failed || trp_glob_overlap((const char *)b.data, pattern);
    }
    trp_buf_free(&b);
    return made;
}

bool trp_made_at_all(const trp_pipeline *p, const char *pattern)
{
    for (uint32_t i = 0; i < p->nstages; i++)
        if (makes(&p->stages[i], pattern, true))
            return true;
    return false;
}

/* Calls `see` for each stage above, by `each` alone where that is asked for, until it says
 * true: that stage, or NULL. */
static const struct trp_pipeline_stage *
above(const trp_pipeline *p, const struct trp_pipeline_stage *s, bool each,
      bool (*see)(const struct trp_pipeline_stage *above, const char *pattern),
      const char *pattern)
{
    bool *seen = calloc((size_t)p->nstages + 1, sizeof *seen);
    uint32_t *left = calloc((size_t)p->nstages + 1, sizeof *left), n = 0;
    const struct trp_pipeline_stage *found = NULL, *at = s;
    while (seen && left && at && !found) {
        for (uint32_t k = 0; k < at->nafter && !found; k++) {
            uint32_t parent = at->after[k].index;
            if (seen[parent] || (each && !at->after[k].each))
                continue;
            seen[parent] = true;
            left[n++] = parent;
            if (see(&p->stages[parent], pattern))
                found = &p->stages[parent];
        }
        at = n > 0 ? &p->stages[left[--n]] : NULL;
    }
    free(seen);
    free(left);
    return found;
}

static bool may_make(const struct trp_pipeline_stage *s, const char *pattern)
{
    return makes(s, pattern, true);
}

static bool must_make(const struct trp_pipeline_stage *s, const char *pattern)
{
    return makes(s, pattern, false);
}

static bool says_nothing(const struct trp_pipeline_stage *s, const char *pattern)
{
    (void)pattern;
    return s->noutputs == 0;
}

enum trp_made trp_made_above(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                             const char *pattern)
{
    if (above(p, s, false, may_make, pattern))
        return TRP_MADE_YES;
    return above(p, s, false, says_nothing, pattern) ? TRP_MADE_MAYBE : TRP_MADE_NO;
}

const struct trp_pipeline_stage *trp_made_meanwhile(const trp_pipeline *p,
                                                    const struct trp_pipeline_stage *s,
                                                    const char *pattern)
{
    return above(p, s, true, must_make, pattern);
}
