/*
 * Users of files that are temp.
 *
 * Links of `after` are looked at once each. Only a stage that says what it reads is asked
 * about the stages further above, and only where one of them has such files: its patterns are
 * compared (os/glob.h) after a look at how they begin, which tells most of them apart.
 *
 * A task's files may go with the tasks that need them, one by one, where nothing can make
 * those run again as a whole: a barrier stage does when one of its tasks fails, and a stage
 * whose own output was not made is not done.
 */
#include "driver/temp_users.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "driver/makers.h"
#include "os/glob.h"
#include "os/output_pattern.h"

struct finding {
    const trp_pipeline *p;
    struct trp_temp_users *u;
    char ***made;   /* of each stage, what is temp as patterns; NULL: nothing is */
    uint32_t *seen; /* of each stage, who met it last, and one more */
    uint32_t *left;
    bool failed; /* out of memory */
};

bool trp_stage_has_temp(const struct trp_pipeline_stage *s, bool own)
{
    for (uint32_t i = 0; s->temp_mark.line && i < s->noutputs; i++)
        if (s->temp[i] && trp_output_of_task(s->outputs[i]) == own)
            return true;
    return false;
}

static bool goes_by_task(const struct trp_pipeline_stage *maker,
                         const struct trp_pipeline_stage *s)
{
    bool whole = maker->spec.barrier || s->spec.barrier || s->always ||
                 trp_stage_has_temp(maker, false);
    for (uint32_t i = 0; i < s->noutputs && !whole; i++)
        whole = !s->optional[i] && !trp_output_of_task(s->outputs[i]);
    return !whole;
}

static void add(struct finding *f, struct trp_temp_user one)
{
    if (!TRP_ARRAY_GROW(f->u->v, f->u->n, f->u->capacity))
        f->failed = true;
    else
        f->u->v[f->u->n++] = one;
}

static void add_direct(struct finding *f, uint32_t i)
{
    const struct trp_pipeline_stage *s = &f->p->stages[i];
    for (uint32_t a = 0; a < s->nafter; a++) {
        uint32_t maker = s->after[a].index;
        bool each = s->after[a].each && !s->after[a].by;
        if (f->p->stages[maker].temp_mark.line)
            add(f, (struct trp_temp_user){
                       maker, i, each, each && goes_by_task(&f->p->stages[maker], s)});
    }
}

/* ---- who is further below ---- */

/* Whether the two can begin alike. */
static bool begin_alike(const char *a, const char *b)
{
    size_t n = strcspn(a, "*?[\\"), m = strcspn(b, "*?[\\");
    return strncmp(a, b, n < m ? n : m) == 0;
}

/* Whether some path matches both, or lies in a folder that matches one. */
static bool overlap(const char *a, const char *b)
{
    static const char below[] = "/**";
    const char *const pair[][2] = {
        {a, b},
        {b, a}
    };
    if (!begin_alike(a, b))
        return false;
    bool may = trp_glob_overlap(a, b);
    for (int k = 0; k < 2 && !may; k++) {
        char *in = malloc(strlen(pair[k][0]) + sizeof below);
        if (!in)
            return true;
        size_t n = strlen(strcpy(in, pair[k][0]));
        while (n > 1 && in[n - 1] == '/')
            in[--n] = '\0';
        may = trp_glob_overlap(strcat(in, below), pair[k][1]);
        free(in);
    }
    return may;
}

static bool may_be_made(const struct finding *f, uint32_t maker, const char *pattern)
{
    const struct trp_pipeline_stage *s = &f->p->stages[maker];
    char **made = f->made[maker];
    for (uint32_t i = 0; i < s->noutputs; i++)
        if (made[i] && overlap(made[i], pattern))
            return true;
    return false;
}

/* The patterns of what a stage says it reads, one by one; NULL: there are no more. */
static char *reads(struct finding *f, const struct trp_pipeline_stage *s, uint32_t at)
{
    const char *text = "";
    char *pattern;
    if (at < s->ninputs)
        pattern = trp_made_pattern(s, s->inputs[at]);
    else if (at == s->ninputs)
        pattern = strdup(s->pattern ? s->pattern : text);
    else if (at - s->ninputs - 1 < s->nparts)
        pattern = strdup(s->parts[at - s->ninputs - 1].pattern
                             ? s->parts[at - s->ninputs - 1].pattern
                             : text);
    else
        return NULL;
    f->failed = f->failed || !pattern;
    return pattern;
}

static bool may_read(struct finding *f, uint32_t maker, uint32_t i)
{
    char *pattern;
    bool may = false;
    for (uint32_t k = 0; !may && (pattern = reads(f, &f->p->stages[i], k)); k++) {
        may = *pattern && may_be_made(f, maker, pattern);
        free(pattern);
    }
    return may;
}

static void add_further(struct finding *f, uint32_t i)
{
    const struct trp_pipeline_stage *s = &f->p->stages[i];
    uint32_t n = 0;
    if (!s->ninputs && !s->pattern && !s->nparts)
        return;
    f->left[n++] = i;
    for (bool direct = true; n > 0; direct = false) {
        const struct trp_pipeline_stage *at = &f->p->stages[f->left[--n]];
        for (uint32_t a = 0; a < at->nafter; a++) {
            uint32_t above = at->after[a].index;
            if (f->seen[above] == i + 1)
                continue;
            f->seen[above] = i + 1;
            f->left[n++] = above;
            if (!direct && f->made[above] && may_read(f, above, i))
                add(f, (struct trp_temp_user){above, i, false, false});
        }
    }
}

/* ---- all ---- */

static bool make_patterns(struct finding *f, uint32_t i)
{
    const struct trp_pipeline_stage *s = &f->p->stages[i];
    if (!s->temp_mark.line)
        return false;
    f->made[i] = calloc((size_t)s->noutputs + 1, sizeof *f->made[i]);
    f->failed = f->failed || !f->made[i];
    for (uint32_t k = 0; f->made[i] && k < s->noutputs; k++)
        if (s->temp[k] && !(f->made[i][k] = trp_made_pattern(s, s->outputs[k])))
            f->failed = true;
    return true;
}

static int by_maker(const void *a, const void *b)
{
    const struct trp_temp_user *x = a, *y = b;
    if (x->maker != y->maker)
        return x->maker < y->maker ? -1 : 1;
    return x->stage < y->stage ? -1 : x->stage > y->stage;
}

static void find(struct finding *f)
{
    uint32_t n = f->p->nstages;
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        any = make_patterns(f, i) || any;
    for (uint32_t i = 0; any && i < n && !f->failed; i++) {
        add_direct(f, i);
        add_further(f, i);
    }
    if (f->u->n)
        qsort(f->u->v, f->u->n, sizeof *f->u->v, by_maker);
    for (uint32_t i = 0, k = 0; i <= n; i++) {
        while (k < f->u->n && f->u->v[k].maker < i)
            k++;
        f->u->first[i] = k;
    }
}

int trp_temp_users_make(const trp_pipeline *p, struct trp_temp_users *ret,
                        trp_error *err)
{
    size_t n = p->nstages;
    struct finding f = {.p = p, .u = ret};
    *ret = (struct trp_temp_users){.first = calloc(n + 2, sizeof *ret->first)};
    f.made = calloc(n + 1, sizeof *f.made);
    f.seen = calloc(n + 1, sizeof *f.seen);
    f.left = calloc(n + 1, sizeof *f.left);
    f.failed = !ret->first || !f.made || !f.seen || !f.left;
    if (!f.failed)
        find(&f);
    for (size_t i = 0; f.made && i < n; i++) {
        for (uint32_t k = 0; f.made[i] && k < p->stages[i].noutputs; k++)
            free(f.made[i][k]);
        free(f.made[i]);
    }
    free(f.made);
    free(f.seen);
    free(f.left);
    if (!f.failed)
        return 0;
    trp_temp_users_free(ret);
    return trp_error_set(err, TRP_ENOMEM, "out of memory for %zu stages", n);
}

void trp_temp_users_free(struct trp_temp_users *u)
{
    free(u->first);
    free(u->v);
    *u = (struct trp_temp_users){0};
}
