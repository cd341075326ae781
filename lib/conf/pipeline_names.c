/*
 * Variables of ours that a command names and no run sets: most often misspelt. Only what
 * the shell would expand is looked at, `$NAME` and `${NAME…`; what the command sets
 * itself, or its `env`, is its own; whether there is such a column its table says when it
 * is read (driver/foreach.c). And names that stand for something in other values,
 * in braces: ${item}.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "conf/pipeline_load.h"
#include "conf/wording.h"

#define COLUMN "TROUPE_COL_"
#define PARAM "TROUPE_PARAM_"
#define NAME_CHARACTERS                                                                \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static const char *const names[] = {
    "TROUPE_RUN",      "TROUPE_RUN_DIR",   "TROUPE_STAGE",     "TROUPE_STAGE_ATTEMPT",
    "TROUPE_TASK",     "TROUPE_TASKS",     "TROUPE_ATTEMPT",   "TROUPE_ITEM",
    "TROUPE_ITEM_DIR", "TROUPE_ITEM_NAME", "TROUPE_ITEM_STEM", "TROUPE_ITEM_EXT",
    "TROUPE_EXECUTOR", "TROUPE_PROFILE",   "TROUPE_CPUS",      "TROUPE_SCRATCH",
    "TROUPE_RANK",     "TROUPE_RANKS",     "TROUPE_TOKEN",     "TROUPE_RUNS",
    "TROUPE_SITE",     "TROUPE_INLINE",    "TROUPE_ROWS",
};

static bool starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A param or a column is near to others of its kind only. */
static bool try_name(struct trp_nearest *near, const char *word, const char *name)
{
    const char *kind = starts(word, PARAM) ? PARAM : starts(word, COLUMN) ? COLUMN : "";
    if (starts(name, kind))
        trp_nearest_try(near, name);
    return strcmp(word, name) == 0;
}

/* Whether its items have columns that only a table knows. */
static bool has_table(const struct trp_pipeline_stage *s)
{
    bool table = s->foreach == TRP_FOREACH_TABLE;
    for (uint32_t i = 0; i < s->nparts; i++)
        table = table || s->parts[i].kind == TRP_FOREACH_TABLE;
    return table;
}

/* Whether a run sets it, or may; else what is near. `room` holds the name that is. */
static bool is_set(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                   const char *word, struct trp_nearest *near, char room[128])
{
    bool set = starts(word, "TROUPE_RESOURCE_") || starts(word, "TROUPE_OPT_");
    char name[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        set = try_name(near, word, names[i]) || set;
    for (uint32_t i = 0; i < p->nparams + s->nparts && !set; i++) {
        const char *of = near->best;
        bool param = i < p->nparams;
        snprintf(name, sizeof name, "%s%s", param ? PARAM : COLUMN,
                 param ? p->params[i].key : s->parts[i - p->nparams].name);
        set = try_name(near, word, name);
        if (near->best != of)
            near->best = strcpy(room, name);
    }
    return set;
}

/* Whether the text gives the variable a value. */
static bool assigns(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n)
        if (at[n] == '=' || (at > text && at[-1] == ' ' && at[n] != '_'))
            return true;
    return false;
}

void trp_pipeline_warn(trp_yaml *y, trp_pipeline *p, struct trp_mark at,
                       const char *fmt, ...)
{
    char text[500];
    va_list args;
    if (p->nwarnings == TRP_PIPELINE_WARNINGS)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct trp_pipeline_warning *w = trp_yaml_alloc(y, 1, sizeof *w),
                                **to = &p->warnings;
    char *copy = w ? trp_conf_arena_text(trp_yaml_keep(y), text, strlen(text)) : NULL;
    if (!copy)
        return;
    *w = (struct trp_pipeline_warning){at, copy, NULL};
    for (; *to; to = &(*to)->next)
        if (!strcmp((*to)->text, text) && (*to)->mark.line == at.line)
            return;
    *to = w;
    p->nwarnings++;
}

/* Only its table can tell whether there is such a column. */
static void note_column(trp_yaml *y, struct trp_pipeline_stage *s, const char *name)
{
    struct trp_column_use *use = trp_yaml_alloc(y, 1, sizeof *use), **to = &s->columns;
    char *copy = use ? trp_conf_arena_text(trp_yaml_keep(y), name, strlen(name)) : NULL;
    if (!copy)
        return;
    *use = (struct trp_column_use){.name = copy, .in_run = true, .mark = s->run_mark};
    for (; *to; to = &(*to)->next)
        if ((*to)->in_run && !strcmp((*to)->name, name))
            return;
    *to = use;
}

static void check_text(trp_yaml *y, trp_pipeline *p, struct trp_pipeline_stage *s)
{
    char word[100], room[128];
    for (const char *at = s->run; (at = strstr(at, "TROUPE_")); at++) {
        size_t n = strspn(at, NAME_CHARACTERS);
        bool named =
            at > s->run &&
            (at[-1] == '$' || (at[-1] == '{' && at > s->run + 1 && at[-2] == '$'));
        if (!named || n >= sizeof word)
            continue;
        memcpy(word, at, n);
        word[n] = '\0';
        struct trp_nearest near = trp_nearest_of(word);
        if (is_set(p, s, word, &near, room) || assigns(s->run, word))
            continue;
        if (starts(word, COLUMN) && has_table(s))
            note_column(y, s, word + strlen(COLUMN));
        else
            trp_pipeline_warn(y, p, s->run_mark, "stage %s: no run sets %s%s", s->name,
                              word, trp_did_you_mean(&near).text);
    }
}

/* ---- names in braces ---- */

static const char *const of_task[][2] = {
    {"task", "TROUPE_TASK"     },
    {"item", "TROUPE_ITEM"     },
    {"dir",  "TROUPE_ITEM_DIR" },
    {"name", "TROUPE_ITEM_NAME"},
    {"stem", "TROUPE_ITEM_STEM"},
    {"ext",  "TROUPE_ITEM_EXT" },
};
enum { OF_TASK = sizeof of_task / sizeof *of_task };

char *trp_pipeline_value_of(const char *variable, char *buf, size_t size)
{
    *buf = '\0';
    for (size_t i = 0; i < OF_TASK; i++)
        if (strcmp(of_task[i][1], variable) == 0)
            snprintf(buf, size, "%s", of_task[i][0]);
    if (starts(variable, COLUMN))
        snprintf(buf, size, "col.%s", variable + strlen(COLUMN));
    else if (starts(variable, PARAM))
        snprintf(buf, size, "%s", variable + strlen(PARAM));
    return buf;
}

/* How a command has what ${NAME} stands for elsewhere; false: it stands for nothing. */
static bool in_command(const trp_pipeline *p, const char *word, char *buf, size_t size)
{
    bool column = starts(word, "col.");
    *buf = '\0';
    for (size_t i = 0; i < OF_TASK; i++)
        if (strcmp(of_task[i][0], word) == 0)
            snprintf(buf, size, "%s", of_task[i][1]);
    if (starts(word, "rows."))
        snprintf(buf, size, "TROUPE_ROWS");
    for (uint32_t i = 0; i < p->nparams && !*buf; i++)
        column = column || strcmp(p->params[i].key, word) == 0;
    if (column && !*buf)
        snprintf(buf, size, "%s%s", starts(word, "col.") ? COLUMN : PARAM,
                 starts(word, "col.") ? word + 4 : word);
    return *buf;
}

/* Whether it stands in the text otherwise than as $NAME or ${NAME: the command may give
 * it a value. */
static bool is_mentioned(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; at && (at = strstr(at, word)); at += n) {
        bool begins = at == text || !strchr(NAME_CHARACTERS "${", at[-1]);
        if (begins && !(at[n] && strchr(NAME_CHARACTERS, at[n])))
            return true;
    }
    return false;
}

static bool may_be_set(const struct trp_pipeline_stage *s, const char *word)
{
    bool set = is_mentioned(s->run, word) || s->prelude;
    for (uint32_t i = 0; i < s->nenv; i++)
        set = set || strcmp(s->env[i].key, word) == 0;
    return set;
}

/* A command is the shell's: there ${item} is a variable of its own, which is empty. */
static void check_braces(trp_yaml *y, trp_pipeline *p,
                         const struct trp_pipeline_stage *s)
{
    char word[100], instead[128];
    for (const char *at = s->run; (at = strstr(at, "${")); at += 2) {
        size_t n = strspn(at + 2, NAME_CHARACTERS ".");
        if (n == 0 || n >= sizeof word || at[2 + n] != '}' ||
            (at > s->run && (at[-1] == '$' || at[-1] == '\\')))
            continue;
        memcpy(word, at + 2, n);
        word[n] = '\0';
        if (!in_command(p, word, instead, sizeof instead) || may_be_set(s, word))
            continue;
        trp_pipeline_warn(
            y, p, s->run_mark,
            "stage %s: in run ${%s} is a variable of the shell; write $%s", s->name,
            word, instead);
    }
}

void trp_pipeline_check_names(trp_yaml *y, trp_pipeline *p)
{
    for (uint32_t i = 0; i < p->nstages; i++)
        if (p->stages[i].run && p->stages[i].name) {
            check_text(y, p, &p->stages[i]);
            check_braces(y, p, &p->stages[i]);
        }
}
