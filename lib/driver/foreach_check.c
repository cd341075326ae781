/*
 * What can be said of the tasks of stages before anything runs: a list or a table is read,
 * and told as wrong, when it is there and no stage makes it anew.
 *
 * A list that is not there may be made by a stage that says nothing of `outputs`: that is
 * a warning. So is what may be meant: bytes of items are bytes, whatever they look like.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/foreach_place.h"
#include "driver/kept_lists.h"
#include "driver/makers.h"
#include "os/glob.h"
#include "os/output_pattern.h"
#include "os/strings.h"

enum { INPUTS_TRIED = 1000 }; /* tasks whose inputs are looked for */

/* ---- what is most likely not meant ---- */

__attribute__((format(printf, 3, 4))) static void
warn(const struct trp_foreach_place *at, struct trp_mark mark, const char *fmt, ...)
{
    const struct trp_pipeline_listener *l = at->p->listener;
    char text[600];
    va_list args;
    if (!l)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    l->warn(l->context, mark, text);
}

/* Marks of an editor of another system: they are bytes of items. */
static void tell_lines(const struct trp_foreach_place *at, const struct trp_items *i)
{
    uint32_t returns = 0;
    for (uint32_t t = 0; t < i->ntasks; t++)
        returns += i->item[t].data[i->item[t].size - 1] == '\r';
    if (i->ntasks > 0 && strncmp(i->item[0].data, "\xEF\xBB\xBF", 3) == 0)
        warn(at, trp_foreach_mark(at->s),
             "stage %s: the list file %.300s begins with a byte order mark, which is "
             "part of its first item; save it without one",
             at->s->name, at->s->pattern);
    if (returns > 0)
        warn(at, trp_foreach_mark(at->s),
             "stage %s: %u line%s of the list file %.300s end%s in a carriage return, "
             "which is part of the item; write lines that end in LF alone",
             at->s->name, returns, returns == 1 ? "" : "s", at->s->pattern,
             returns == 1 ? "s" : "");
}

/* `run` names a column that there is not. */
static void tell_columns(const struct trp_foreach_place *at, const struct trp_items *i)
{
    for (const struct trp_column_use *u = at->s->columns; u && i->columns;
         u = u->next) {
        struct trp_nearest near = trp_nearest_of(u->name);
        struct trp_name_list all = {0};
        if (!u->in_run || trp_items_have_column(i, u->name))
            continue;
        trp_items_list_columns(i, &near, &all);
        warn(at, u->mark,
             "stage %s: no run sets TROUPE_COL_%s: there is no such column%s; the "
             "columns are %s",
             at->s->name, trp_show(u->name).text, trp_did_you_mean(&near).text,
             all.text);
    }
}

void trp_foreach_tell(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const struct trp_items *items)
{
    const struct trp_foreach_place at = {p, s, NULL, NULL, -1, false};
    if (s->foreach == TRP_FOREACH_LINES)
        tell_lines(&at, items);
    for (uint32_t k = 0; k < items->nparts; k++) {
        struct trp_pipeline_stage part = trp_foreach_part(s, k);
        if (part.foreach == TRP_FOREACH_LINES)
            tell_lines(&(struct trp_foreach_place){p, &part, NULL, NULL, (int)k, false},
                       &items->parts[k]);
    }
    tell_columns(&at, items);
}

/* ---- before anything runs ---- */

static bool reads_file(enum trp_foreach_kind kind)
{
    return kind == TRP_FOREACH_FILES || kind == TRP_FOREACH_LINES ||
           kind == TRP_FOREACH_TABLE;
}

/* What a stage above makes is not all there when the stage begins with its first task. */
static int check_each(const struct trp_foreach_place *at)
{
    const struct trp_pipeline_stage *maker =
        reads_file(at->s->foreach) ? trp_made_meanwhile(at->p, at->s, at->s->pattern)
                                   : NULL;
    if (!maker)
        return 0;
    return TRP_FOREACH_REFUSE(
        at, TRP_EINVAL,
        "%.300s is made by stage %s, which is not over when this one begins, "
        "for it comes after it by each; give it the foreach or tasks of %s "
        "and name the file of each task, or leave each out",
        at->s->pattern, maker->name, maker->name);
}

/* The list or table is not there. */
static int check_missing(const struct trp_foreach_place *at, const char *base)
{
    enum trp_foreach_kind kind = at->s->foreach;
    char *path = NULL;
    int code = 0;
    if ((kind != TRP_FOREACH_LINES && kind != TRP_FOREACH_TABLE) || at->s->allow_empty)
        return 0;
    if (!(path = trp_path_join(base, at->s->pattern)))
        return TRP_FOREACH_REFUSE(at, TRP_ENOMEM, "out of memory for its tasks");
    enum trp_made made = access(path, F_OK) == 0 || errno != ENOENT
                             ? TRP_MADE_YES
                             : trp_made_above(at->p, at->s, at->s->pattern);
    if (made == TRP_MADE_NO)
        code = TRP_FOREACH_REFUSE(
            at, TRP_EINVAL,
            "the %s %.300s is not there%s; make it before the run, or add "
            "`allow_empty: true`",
            trp_foreach_word(at), at->s->pattern,
            at->s->nafter ? ", and no stage before this one makes it" : "");
    else if (made == TRP_MADE_MAYBE)
        warn(at, trp_foreach_mark(at->s),
             "stage %s: the %s %.300s is not there; write into `outputs` which stage "
             "makes it",
             at->s->name, trp_foreach_word(at), at->s->pattern);
    free(path);
    return code;
}

/* Of the stage and of each part of its product. */
static int check_sources(const struct trp_foreach_place *at, const char *base)
{
    bool stored = at->p->kept_lists && at->p->kept_lists->takes;
    int r = check_each(at);
    if (r == 0 && !stored)
        r = check_missing(at, base);
    for (uint32_t k = 0; k < at->s->nparts && r == 0; k++) {
        struct trp_pipeline_stage part = trp_foreach_part(at->s, k);
        struct trp_foreach_place of = {at->p, &part, at->err, NULL, (int)k, false};
        r = check_each(&of);
        if (r == 0 && !stored)
            r = check_missing(&of, base);
    }
    return r;
}

/* ---- inputs ---- */

/* Tells of the first task whose input is not there and nobody makes. */
static void tell_inputs(const struct trp_foreach_place *at, const char *base,
                        const char *pattern, const struct trp_items *items)
{
    struct trp_buf columns = {0};
    bool own = trp_output_of_task(pattern), found = false;
    uint32_t n = !own ? 1 : items->ntasks < INPUTS_TRIED ? items->ntasks : INPUTS_TRIED;
    for (uint32_t t = 0; t < n && !found; t++) {
        struct trp_task_values v = {0};
        bool none;
        if (own && !trp_items_values(items, t, &columns, &v))
            break;
        char *file = trp_output_expand(pattern, &v, &none);
        found = file && !trp_glob_any(base, file) &&
                trp_made_above(at->p, at->s, file) == TRP_MADE_NO;
        if (found)
            warn(at, at->s->inputs_mark,
                 "stage %s: inputs: no file matches %.300s, and no stage before this "
                 "one "
                 "makes it",
                 at->s->name, file);
        free(file);
    }
    trp_buf_free(&columns);
}

/* `items`: its tasks where they are known already. */
static void check_inputs(const struct trp_foreach_place *at, const char *base,
                         const struct trp_items *items)
{
    struct trp_items own = {0};
    bool any = false;
    for (uint32_t k = 0; k < at->s->ninputs && at->p->listener; k++)
        any = any || trp_output_of_task(at->s->inputs[k]);
    if (any && !items)
        trp_foreach_look(at->p, at->s, base, &own);
    for (uint32_t k = 0; k < at->s->ninputs && at->p->listener; k++)
        tell_inputs(at, base, at->s->inputs[k], items ? items : &own);
    trp_items_free(&own);
}

/* Whether all that it evaluates is read, not made by a stage. */
static bool is_made(const trp_pipeline *p, const struct trp_pipeline_stage *s)
{
    bool made = reads_file(s->foreach) && trp_made_at_all(p, s->pattern);
    for (uint32_t k = 0; k < s->nparts; k++)
        made = made || (reads_file(s->parts[k].kind) &&
                        trp_made_at_all(p, s->parts[k].pattern));
    return made;
}

int trp_foreach_check(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const char *base, trp_error *err)
{
    trp_error why;
    bool absent = false;
    struct trp_foreach_place at = {p, s, &why, &absent, -1, s->ninputs > 0};
    const struct trp_foreach_place loud = {p, s, err, NULL, -1, false};
    struct trp_items items = {0};
    int r = check_sources(&loud, base);
    if (r < 0 || is_made(p, s))
        return r < 0 ? r : 1;
    if (s->foreach != TRP_FOREACH_LINES && s->foreach != TRP_FOREACH_TABLE &&
        s->foreach != TRP_FOREACH_PRODUCT) {
        check_inputs(&loud, base, NULL);
        return 0;
    }
    r = trp_foreach_read(&at, base, &items);
    if (r == 0 && !absent) {
        trp_foreach_tell(p, s, &items);
        check_inputs(&loud, base, &items);
    }
    trp_items_free(&items);
    if (r == 0 || absent)
        return absent;
    return trp_error_set(err, r == TRP_ELIMIT ? TRP_EINVAL : r, "%s", why.text);
}

bool trp_foreach_listed(const trp_pipeline *p, const struct trp_pipeline_stage *s)
{
    bool files = s->foreach == TRP_FOREACH_FILES;
    for (uint32_t k = 0; k < s->nparts; k++)
        files = files || s->parts[k].kind == TRP_FOREACH_FILES;
    return !files && !is_made(p, s);
}
