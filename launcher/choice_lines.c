/*
 * Of many stages, those of which the same is said and whose names differ in the number at
 * their end are a line, found by both in a hash table.
 */
#include "choice_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "conf/wording.h"

enum { LINES = 40 }; /* above that, stages are put together */

struct line {
    const char *name; /* of its first stage */
    uint32_t stages;
    char *key, *text; /* the text is the end of the key */
    UT_hash_handle hh;
};

/* What there is no memory for is left out. */
static void add(struct line **all, const struct trp_pipeline_stage *s,
                const struct trp_stage_choice *c, bool each)
{
    struct line *l = NULL;
    char name[80], text[440], *key = NULL;
    if (each)
        snprintf(name, sizeof name, "%s", s->name);
    else
        trp_name_stem(s->name, name, sizeof name);
    trp_stage_choice_words(c, text, sizeof text);
    if (asprintf(&key, "%s: %s", name, text) < 0)
        return;
    HASH_FIND_STR(*all, key, l);
    if (l) {
        l->stages++;
        free(key);
        return;
    }
    l = calloc(1, sizeof *l);
    if (!l) {
        free(key);
        return;
    }
    *l = (struct line){
        .name = s->name, .stages = 1, .key = key, .text = key + strlen(name) + 2};
    HASH_ADD_KEYPTR(hh, *all, l->key, strlen(l->key), l);
}

static void print_line(const struct line *l, const char *lead)
{
    if (l->stages == 1)
        printf("%s%s: %s\n", lead, l->name, l->text);
    else
        printf("%s%.*s ×%u: %s\n", lead, (int)(l->text - l->key - 2), l->key, l->stages,
               l->text);
}

void trp_choice_lines_print(const trp_pipeline *p,
                            const struct trp_stage_choice *choices,
                            const struct trp_choice_lines *how)
{
    struct line *all = NULL, *l, *next;
    bool each = how->each || p->nstages <= LINES;
    for (uint32_t i = 0; i < p->nstages; i++) {
        const struct trp_pipeline_stage *s = &p->stages[p->order[i]];
        if (!how->of || strcmp(how->of, s->name) == 0)
            add(&all, s, &choices[p->order[i]], each);
    }
    HASH_ITER(hh, all, l, next) {
        print_line(l, how->lead);
        HASH_DEL(all, l);
        free(l->key);
        free(l);
    }
}
