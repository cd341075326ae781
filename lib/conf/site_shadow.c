/*
 * Rules of `route:` that no request reaches.
 *
 * A rule takes a box: an interval for each subject of any rule. A rule is reached when
 * its box has a point that is in no box before it. To find one, the box is cut along
 * the sides of the first box that it meets; the pieces outside are looked at against
 * the boxes that follow. That is exact, also where several rules together take all. The
 * cutting is exponential in the worst case, so it has a budget; a rule on which the
 * budget runs out is taken to be reached.
 */
#include <stdio.h>
#include <string.h>

#include "conf/site_load.h"

enum {
    SUBJECTS = 24, /* different ones in all rules; with more nothing is looked for */
    BUDGET = 20000,
};

struct box {
    int64_t least[SUBJECTS], most[SUBJECTS];
};

struct shadow {
    const trp_site *s;
    const char *subject[SUBJECTS];
    uint32_t n;
    struct box *boxes; /* of the rules */
    uint32_t budget;
};

static uint32_t subject_index(struct shadow *w, const char *name)
{
    uint32_t i = 0;
    while (i < w->n && strcmp(w->subject[i], name) != 0)
        i++;
    if (i == w->n && w->n < SUBJECTS)
        w->subject[w->n++] = name;
    return i;
}

static bool collect_subjects(struct shadow *w)
{
    for (uint32_t i = 0; i < w->s->nroutes; i++) {
        const struct trp_site_route *r = &w->s->routes[i];
        for (uint32_t k = 0; k < r->nwhen; k++) {
            if (subject_index(w, r->when[k].subject) == SUBJECTS)
                return false;
        }
    }
    return true;
}

/* What a request can be at all: it has a core and memory, and nothing that is denied.
 */
static void whole_box(const struct shadow *w, struct box *b)
{
    for (uint32_t i = 0; i < w->n; i++) {
        bool own = !strcmp(w->subject[i], "cores") || !strcmp(w->subject[i], "memory");
        b->least[i] = own ? 1 : 0;
        b->most[i] = trp_site_denies(w->s, w->subject[i]) ? 0 : INT64_MAX;
    }
}

/* False: it is empty. */
static bool make_box(struct shadow *w, const struct trp_site_route *r, struct box *b)
{
    bool any = true;
    whole_box(w, b);
    for (uint32_t k = 0; k < r->nwhen; k++) {
        uint32_t i = subject_index(w, r->when[k].subject);
        if (r->when[k].least > b->least[i])
            b->least[i] = r->when[k].least;
        if (r->when[k].most < b->most[i])
            b->most[i] = r->when[k].most;
        any &= b->least[i] <= b->most[i];
    }
    return any;
}

static bool boxes_meet(const struct shadow *w, const struct box *a, const struct box *b)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (a->least[i] > b->most[i] || b->least[i] > a->most[i])
            return false;
    }
    return true;
}

/* Has `b` a point outside of the boxes from `from` to below `end`? At most as deep as
 * there are rules. */
static bool is_reached(struct shadow *w, struct box b, uint32_t from, uint32_t end)
{
    if (w->budget == 0)
        return true;
    w->budget--;
    while (from < end && !boxes_meet(w, &b, &w->boxes[from]))
        from++;
    if (from == end)
        return true;
    const struct box *taken = &w->boxes[from];
    for (uint32_t i = 0; i < w->n; i++) {
        struct box piece = b;
        if (b.least[i] < taken->least[i]) {
            piece.most[i] = taken->least[i] - 1;
            if (is_reached(w, piece, from + 1, end))
                return true;
            b.least[i] = taken->least[i];
        }
        piece = b;
        if (b.most[i] > taken->most[i]) {
            piece.least[i] = taken->most[i] + 1;
            if (is_reached(w, piece, from + 1, end))
                return true;
            b.most[i] = taken->most[i];
        }
    }
    return false;
}

static void warn(trp_yaml *y, trp_site *s, struct trp_mark mark, const char *text)
{
    char *copy = trp_conf_arena_text(trp_yaml_keep(y), text, strlen(text));
    if (copy)
        s->warnings[s->nwarnings++] = (struct trp_site_warning){mark, copy};
    else
        trp_yaml_no_memory(y);
}

/* The one rule before `i` that takes all of it, or nroutes. */
static uint32_t shadowed_by(struct shadow *w, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        w->budget = BUDGET;
        if (!is_reached(w, w->boxes[i], k, k + 1))
            return k;
    }
    return w->s->nroutes;
}

static void check_route(trp_yaml *y, struct shadow *w, trp_site *s, uint32_t i)
{
    const struct trp_site_route *r = &s->routes[i];
    char text[200];
    if (!make_box(w, r, &w->boxes[i])) {
        /* An empty box: it meets no other. */
        w->boxes[i].least[0] = INT64_MAX;
        w->boxes[i].most[0] = -1;
        warn(y, s, r->mark,
             "this route can never match: nothing is like that, or it is denied under "
             "limits:; correct its when:, or remove it");
        return;
    }
    w->budget = BUDGET;
    if (is_reached(w, w->boxes[i], 0, i))
        return;
    uint32_t by = shadowed_by(w, i);
    if (by < s->nroutes)
        snprintf(text, sizeof(text),
                 "this route can never match: the one at line %u comes first and takes "
                 "all of it; put this one before it, or remove it",
                 s->routes[by].mark.line);
    else
        snprintf(text, sizeof(text),
                 "this route can never match: those before it take all of it; put it "
                 "further up, or remove it");
    warn(y, s, r->mark, text);
}

void trp_site_warn_shadowed(trp_yaml *y, trp_site *s)
{
    struct shadow w = {.s = s};
    if (s->nroutes == 0 || !collect_subjects(&w))
        return;
    w.boxes = trp_yaml_alloc(y, s->nroutes, sizeof(*w.boxes));
    s->warnings = trp_yaml_alloc(y, s->nroutes, sizeof(*s->warnings));
    if (!w.boxes || !s->warnings)
        return;
    for (uint32_t i = 0; i < s->nroutes; i++)
        check_route(y, &w, s, i);
}
