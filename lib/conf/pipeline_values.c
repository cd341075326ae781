/*
 * Values from outside: `${NAME}` in the tree becomes what it stands for before any
 * reader sees the tree, so that a param can stand wherever a value can, numbers
 * included. Names of one task stay, in the form that core/base/template.h reads, and
 * only in values of one task.
 *
 * Params are resolved in the order of the file, each from those above it: no cycle can
 * be written. What grows by it is bounded by VALUES_MAX.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/pipeline_load.h"
#include "conf/wording.h"
#include "core/base/bytes.h"
#include "core/base/template.h"

enum { VALUES_MAX = 64 << 20 };

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define NAME_CHARACTERS LETTERS "0123456789_."

struct param {
    const char *name;
    struct trp_yaml_node *value;
    uint32_t place; /* in the file, from 0 */
};

struct values {
    trp_yaml *y;
    trp_pipeline *p;
    struct param *params; /* by name */
    uint32_t nparams;
    uint32_t above; /* params from this place on may not be named */
    bool of_task;   /* this is a value of one task … */
    bool is_output; /* … and a pattern of outputs */
    bool has_items; /* … of a stage with foreach */
    bool table;     /* its items have columns that a table knows … */
    bool group;     /* … and are groups of its rows */
    uint32_t word;  /* of argv this is, from 1; 0: none */
    const struct trp_yaml_node *product; /* … columns that are its parts; or NULL */
    struct trp_column_use **use;         /* where the stage's next one goes */
    size_t made;                         /* bytes */
    struct trp_buf b;                    /* the value that is being made */
    bool dollar;                         /* it ends with a `$` that is yet to be put */
    const struct trp_yaml_node *node;    /* whose value it is */
    bool told;                           /* something is wrong with it */
    /* What a shell would expand and nothing here does: */
    const struct trp_yaml_node *stage; /* its name; NULL: it has none */
    const char *key;                   /* whose value this is; NULL: a shell reads it */
    bool noted;
};

/* ---- params ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct param *)a)->name, ((const struct param *)b)->name);
}

static struct param *find_param(const struct values *v, const char *name)
{
    struct param key = {.name = name};
    return v->nparams ? bsearch(&key, v->params, v->nparams, sizeof *v->params, by_name)
                      : NULL;
}

static void check_param(trp_yaml *y, const struct trp_yaml_node *key)
{
    size_t n = strspn(key->text, LETTERS "0123456789_");
    if (n == 0 || n != key->size)
        trp_yaml_wrong(y, key->mark,
                       "\"%s\" is not a parameter's name; write letters, digits and "
                       "'_', for it becomes a variable TROUPE_PARAM_NAME",
                       trp_show(key->text).text);
    else if (trp_template_is_name(key->text, key->size))
        trp_yaml_wrong(y, key->mark,
                       "\"%s\" is a name of each task, no param can have it; write "
                       "another",
                       key->text);
}

/* Room for them, sorted; false: out of memory. */
static bool list_params(struct values *v, const struct trp_yaml_node *params)
{
    v->params = calloc((size_t)params->count + 1, sizeof *v->params);
    if (!v->params)
        return false;
    for (struct trp_yaml_node *key = params->first; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue;
        check_param(v->y, key);
        v->params[v->nparams] = (struct param){key->text, key->next, v->nparams};
        v->nparams++;
    }
    qsort(v->params, v->nparams, sizeof *v->params, by_name);
    v->p->in_values =
        trp_yaml_alloc(v->y, (size_t)v->nparams + 1, sizeof *v->p->in_values);
    return true;
}

/* ---- one value ---- */

/* Puts what stands for itself, which in a value of one task must not look like a name
 * of it. */
static void put_literal(struct values *v, const char *text, size_t n)
{
    for (size_t i = 0; i < n && v->of_task; i++) {
        if (v->dollar)
            trp_put_raw(&v->b, text[i] == '{' ? "${}" : "$", text[i] == '{' ? 3 : 1);
        v->dollar = text[i] == '$';
        if (!v->dollar)
            trp_put_raw(&v->b, text + i, 1);
    }
    if (!v->of_task)
        trp_put_raw(&v->b, text, n);
}

static void put_name(struct values *v, const char *name, size_t n)
{
    if (v->dollar)
        trp_put_raw(&v->b, "${}", 3);
    v->dollar = false;
    trp_put_raw(&v->b, "${", 2);
    trp_put_raw(&v->b, name, n);
    trp_put_raw(&v->b, "}", 1);
}

/* Is it one `${…}` and no more? */
static bool is_one(const struct trp_yaml_node *node)
{
    return node->size > 3 && !strncmp(node->text, "${", 2) &&
           strcspn(node->text, "}") == node->size - 1;
}

/* The place of what is wrong with the value, at `text` of it; false: do not tell. */
static bool is_wrong(struct values *v, const char *text, struct trp_mark *ret)
{
    if (v->told || !trp_yaml_would_tell(v->y, v->node->mark))
        return false;
    v->told = true;
    *ret = is_one(v->node)
               ? v->node->mark
               : trp_yaml_place(v->y, v->node, (size_t)(text - v->node->text), "${", 2);
    return true;
}

static const char *keep_text(struct values *v, const char *text)
{
    const char *copy = trp_conf_arena_text(trp_yaml_keep(v->y), text, strlen(text));
    return copy ? copy : "";
}

static void try_columns(struct values *v, struct trp_nearest *near,
                        struct trp_name_list *all)
{
    char name[128];
    const struct trp_yaml_node *key = v->product ? v->product->first : NULL;
    for (; key; key = key->next->next) {
        if (key->kind != TRP_YAML_SCALAR)
            continue;
        snprintf(name, sizeof name, "col.%.100s", key->text);
        trp_nearest_try(near, keep_text(v, name));
        trp_name_list_add(all, trp_show(name).text);
    }
    if (v->table)
        trp_name_list_add(all, "col.NAME of a column of its table");
}

/* Whether the items have the column at `text`, as far as that can be told; it is noted
 * where its table has to tell. */
static bool has_column(struct values *v, const char *text, const char *column,
                       bool rows)
{
    const struct trp_yaml_node *key = v->product ? v->product->first : NULL;
    for (; key; key = key->next->next)
        if (key->kind == TRP_YAML_SCALAR && !strcmp(key->text, column))
            return true;
    struct trp_column_use *use = v->table ? trp_yaml_alloc(v->y, 1, sizeof *use) : NULL;
    if (!use || !v->use)
        return v->table; /* out of memory, which is told */
    use->name = keep_text(v, column);
    use->rows = rows;
    use->mark = trp_yaml_place(v->y, v->node, (size_t)(text - v->node->text), "${", 2);
    *v->use = use;
    v->use = &use->next;
    return true;
}

static void unknown_name(struct values *v, const char *text, const char *name)
{
    static const char *const of_task[] = {"task", "item", "dir", "name", "stem", "ext"};
    struct trp_nearest near = trp_nearest_of(name);
    struct trp_name_list all = {0};
    struct trp_mark at;
    if (!is_wrong(v, text, &at))
        return;
    for (uint32_t i = 0; i < v->nparams; i++) {
        bool below = v->params[i].place >= v->above;
        if (below && strcmp(v->params[i].name, name) == 0) {
            trp_yaml_wrong(v->y, at,
                           "${%s}: a param can be made only of those above it",
                           trp_show(name).text);
            return;
        }
        if (below)
            continue;
        trp_nearest_try(&near, v->params[i].name);
        trp_name_list_add(&all, trp_show(v->params[i].name).text);
    }
    for (size_t i = 0; i < sizeof of_task / sizeof *of_task && v->of_task; i++) {
        trp_nearest_try(&near, of_task[i]);
        trp_name_list_add(&all, of_task[i]);
    }
    if (v->of_task)
        try_columns(v, &near, &all);
    if (near.best)
        trp_yaml_wrong(v->y, at, "${%s} stands for nothing%s", trp_show(name).text,
                       trp_did_you_mean(&near).text);
    else
        trp_yaml_wrong(
            v->y, at, "${%s} stands for nothing; %s%s, and $${ is a literal ${",
            trp_show(name).text,
            *all.text ? "the names are " : "the file has no params", all.text);
}

/* `${TROUPE_ITEM}`: what it is called here, where it stands for something. */
static bool is_variable(struct values *v, const char *text, const char *name)
{
    char value[128];
    struct trp_mark at;
    trp_pipeline_value_of(name, value, sizeof value);
    if (!*value || !(v->of_task || find_param(v, value)))
        return false;
    if (is_wrong(v, text, &at))
        trp_yaml_wrong(v->y, at, "${%s} stands for nothing; write ${%s}",
                       trp_show(name).text, trp_show(value).text);
    return true;
}

/* `$TROUPE_…` in a value that no shell reads. */
static void note_variable(struct values *v, const char *text)
{
    char name[128], value[128];
    size_t n = strspn(text + 1, LETTERS "0123456789_");
    if (!v->key || v->noted || n >= sizeof name)
        return;
    v->noted = true;
    memcpy(name, text + 1, n);
    name[n] = '\0';
    trp_pipeline_value_of(name, value, sizeof value);
    bool command = !strcmp(v->key, "argv") || !strcmp(v->key, "wrap");
    trp_pipeline_warn(
        v->y, v->p,
        trp_yaml_place(v->y, v->node, (size_t)(text - v->node->text), "$TROUPE_", 8),
        "stage %s: $%s in %s stays as it is, for no shell reads it; %s%s%s",
        v->stage ? trp_show(v->stage->text).text : "", name, v->key,
        *value    ? "write ${"
        : command ? "run has one"
                  : "nothing stands for it here",
        value, *value ? "}" : "");
}

/* `${rows.NAME}`: a word of argv that becomes one word a row. */
static void take_rows(struct values *v, const char *name, size_t n, const char *copy)
{
    struct trp_mark at;
    size_t size;
    bool is_name = trp_template_rows(v->node->text, &size) && is_one(v->node);
    if (v->word > 1 && is_name && v->group && has_column(v, name - 2, copy + 5, true))
        put_name(v, name, n);
    else if (is_wrong(v, name - 2, &at))
        trp_yaml_wrong(v->y, at,
                       v->word > 1 && is_name
                           ? "${%s}: the stage has no groups of rows; write foreach: "
                             "{table: FILE, group: COLUMN}"
                           : "${%s} is one word a row; it can only be a whole word of "
                             "argv, behind the program",
                       trp_show(copy).text);
}

static void take_name(struct values *v, const char *name, size_t n)
{
    struct trp_mark at;
    char copy[128];
    memcpy(copy, name, n);
    copy[n] = '\0';
    const struct param *p = find_param(v, copy);
    if (v->is_output &&
        (!strcmp(copy, "TROUPE_TASK") || !strcmp(copy, "TROUPE_ITEM"))) {
        put_name(v, copy[7] == 'T' ? "task" : "item", 4);
    } else if (p && p->place < v->above) {
        if (v->p->in_values)
            v->p->in_values[p->place] = true;
        v->made += p->value->size;
        if (v->made <= VALUES_MAX)
            put_literal(v, p->value->text, p->value->size);
    } else if (!strncmp(copy, "rows.", 5)) {
        take_rows(v, name, n, copy);
    } else if (!trp_template_is_name(name, n)) {
        if (!is_variable(v, name - 2, copy))
            unknown_name(v, name - 2, copy);
    } else if (!v->of_task) {
        if (is_wrong(v, name - 2, &at))
            trp_yaml_wrong(
                v->y, at,
                "${%s} is of one task; it can stand in argv, env, cwd, inputs, "
                "outputs and prefer",
                trp_show(copy).text);
    } else if (!v->has_items && trp_template_is_of_item(name, n)) {
        if (is_wrong(v, name - 2, &at))
            trp_yaml_wrong(v->y, at, "${%s}: the stage has no foreach, so no items",
                           trp_show(copy).text);
    } else if (!strncmp(copy, "col.", 4) && !has_column(v, name - 2, copy + 4, false)) {
        if (v->product)
            unknown_name(v, name - 2, copy);
        else if (is_wrong(v, name - 2, &at))
            trp_yaml_wrong(v->y, at,
                           "${%s}: its items have no columns; those of a table or a "
                           "product have some",
                           trp_show(copy).text);
    } else {
        put_name(v, name, n);
    }
}

/* `$TROUPE_TASK` and `$TROUPE_ITEM` as a shell reads them, in outputs: their bytes. */
static size_t shell_name(struct values *v, const char *at)
{
    if (!v->is_output ||
        (strncmp(at, "$TROUPE_TASK", 12) != 0 && strncmp(at, "$TROUPE_ITEM", 12) != 0))
        return 0;
    if (at[12] && strchr(LETTERS "0123456789_", at[12]))
        return 0;
    put_name(v, at[8] == 'T' ? "task" : "item", 4);
    return 12;
}

/* One `${…}` of a value; returns its bytes. */
static size_t take_reference(struct values *v, const char *at)
{
    size_t n = strspn(at + 2, NAME_CHARACTERS);
    struct trp_mark place;
    if (at[2 + n] == '}' && n > 0 && n < 128) {
        take_name(v, at + 2, n);
        return n + 3;
    }
    if (is_wrong(v, at, &place))
        trp_yaml_wrong(v->y, place,
                       strchr(at, '}')
                           ? "\"%s\" is not of the form ${NAME}; $${ is a "
                             "literal ${"
                           : "\"%s\" has no end; write ${NAME}, or $${ for a "
                             "literal ${",
                       trp_show(at).text);
    return 2;
}

static void resolve(struct values *v, struct trp_yaml_node *node)
{
    const char *from = node->text, *end = node->text + node->size;
    if (!memchr(from, '$', node->size) || v->made > VALUES_MAX)
        return;
    trp_buf_clear(&v->b);
    v->dollar = v->told = v->noted = false;
    v->node = node;
    bool plain = node->plain || is_one(node);
    while (from < end) {
        size_t n = 1;
        if (!strncmp(from, "$${", 3)) {
            n = 3;
            put_literal(v, "${", 2);
        } else if (!strncmp(from, "${", 2)) {
            n = take_reference(v, from);
        } else if (v->is_output && from[0] == '\\' && from + 1 < end) {
            n = 2; /* the pattern's own way to say that a character is itself */
            put_literal(v, from, 2);
        } else if (!(n = shell_name(v, from))) {
            n = 1;
            if (!strncmp(from, "$TROUPE_", 8))
                note_variable(v, from);
            put_literal(v, from, 1);
        }
        from += n;
    }
    if (v->dollar)
        trp_put_raw(&v->b, "$", 1);
    if (v->told)
        trp_yaml_wrong_of(v->y, node->mark);
    v->made += v->b.size;
    if (v->made > VALUES_MAX)
        trp_yaml_wrong(v->y, node->mark,
                       "values grow to more than %d MiB; put less into params",
                       VALUES_MAX >> 20);
    else if (v->b.failed)
        trp_yaml_no_memory(v->y);
    else
        trp_yaml_set_text(v->y, node, (const char *)v->b.data, v->b.size, plain);
}

/* ---- the tree ---- */

/* Whether the word behind this one of a command is a shell's text: `-c`, `-lc`. */
static bool is_for_shell(const struct trp_yaml_node *word)
{
    return word->kind == TRP_YAML_SCALAR && word->size > 1 && word->text[0] == '-' &&
           word->text[1] != '-' && word->text[word->size - 1] == 'c';
}

/* The words of a command. */
static void walk_words(struct values *v, struct trp_yaml_node *list)
{
    const char *key = v->key;
    uint32_t n = 0;
    for (struct trp_yaml_node *at = list->first; at; at = at->next) {
        v->word = v->of_task ? ++n : 0; /* wrap is of no task */
        if (at->kind == TRP_YAML_SCALAR)
            resolve(v, at);
        v->key = is_for_shell(at) ? NULL : key;
    }
    v->word = 0;
    v->key = key;
}

/* At most TRP_YAML_DEPTH deep. */
static void walk(struct values *v, struct trp_yaml_node *node)
{
    bool key = node->kind == TRP_YAML_MAPPING;
    if (node->kind == TRP_YAML_SCALAR)
        resolve(v, node);
    for (struct trp_yaml_node *at = node->first; at; at = at->next)
        walk(v, key ? (at = at->next) : at);
}

static bool is_of_task(const struct trp_yaml_node *key)
{
    static const char *const keys[] = {"argv",   "env",     "cwd",
                                       "inputs", "outputs", "prefer"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (trp_yaml_is_key(key, keys[i]))
            return true;
    return false;
}

static struct trp_yaml_node *find_value(struct trp_yaml_node *root, const char *name)
{
    if (root->kind != TRP_YAML_MAPPING)
        return NULL;
    for (struct trp_yaml_node *key = root->first; key; key = key->next->next)
        if (trp_yaml_is_key(key, name))
            return key->next;
    return NULL;
}

/* What columns the items have: those of a product are its parts; a table, also as one of
 * these, has its own. */
static void look_at_foreach(struct values *v, struct trp_yaml_node *foreach)
{
    struct trp_yaml_node *product = find_value(foreach, "product");
    v->table = find_value(foreach, "table") != NULL;
    v->group = v->table && find_value(foreach, "group");
    v->product = product && product->kind == TRP_YAML_MAPPING ? product : NULL;
    struct trp_yaml_node *key = v->product ? v->product->first : NULL;
    for (; key; key = key->next->next)
        v->table = v->table || find_value(key->next, "table");
}

static void walk_stage(struct values *v, struct trp_yaml_node *stage,
                       struct trp_column_use **use)
{
    if (stage->kind != TRP_YAML_MAPPING)
        return;
    struct trp_yaml_node *foreach = find_value(stage, "foreach");
    v->stage = find_value(stage, "name");
    v->has_items = foreach;
    v->product = NULL;
    v->table = v->group = false;
    v->use = use;
    if (foreach)
        look_at_foreach(v, foreach);
    for (struct trp_yaml_node *key = stage->first; key; key = key->next->next) {
        if (trp_yaml_is_key(key, "run") || trp_yaml_is_key(key, "prelude"))
            continue;
        bool command = trp_yaml_is_key(key, "argv") || trp_yaml_is_key(key, "wrap");
        v->of_task = is_of_task(key);
        v->is_output = trp_yaml_is_key(key, "outputs");
        v->key = v->of_task || command ? key->text : NULL;
        if (command && key->next->kind == TRP_YAML_LIST)
            walk_words(v, key->next);
        else
            walk(v, key->next);
    }
    v->of_task = v->is_output = false;
    v->key = NULL;
}

/* Puts what was given in place of what is written, then resolves the params in the
 * order of the file. */
static void resolve_params(struct values *v, struct trp_yaml_node *params,
                           const struct trp_pipeline_inputs *in)
{
    for (uint32_t i = 0; i < in->nparams; i++) {
        struct param *p = find_param(v, in->params[i].key);
        if (p)
            trp_yaml_set_text(v->y, p->value, in->params[i].value,
                              strlen(in->params[i].value), true);
    }
    v->above = 0;
    for (struct trp_yaml_node *key = params->first; key; key = key->next->next) {
        bool given = false;
        for (uint32_t i = 0; i < in->nparams; i++)
            given = given || trp_yaml_is_key(key, in->params[i].key);
        if (!given && key->next->kind == TRP_YAML_SCALAR)
            resolve(v, key->next);
        v->above += key->kind == TRP_YAML_SCALAR;
    }
}

void trp_pipeline_values(trp_yaml *y, const struct trp_pipeline_inputs *in,
                         trp_pipeline *p)
{
    struct trp_column_use **uses;
    uint32_t i = 0;
    struct trp_yaml_node *root = trp_yaml_tree(y);
    struct trp_yaml_node *params = root ? find_value(root, "params") : NULL;
    struct values v = {.y = y, .p = p};
    if (!root || root->kind != TRP_YAML_MAPPING)
        return;
    if (params && params->kind == TRP_YAML_MAPPING) {
        if (list_params(&v, params))
            resolve_params(&v, params, in);
        else
            trp_yaml_no_memory(y);
    }
    v.above = v.nparams;
    for (struct trp_yaml_node *key = root->first; key; key = key->next->next) {
        if (trp_yaml_is_key(key, "params") || trp_yaml_is_key(key, "include"))
            continue;
        if (!trp_yaml_is_key(key, "stages") || key->next->kind != TRP_YAML_LIST) {
            walk(&v, key->next);
            continue;
        }
        uses = trp_yaml_alloc(y, (size_t)key->next->count + 1, sizeof *uses);
        p->uses = uses;
        for (struct trp_yaml_node *s = key->next->first; s; s = s->next)
            walk_stage(&v, s, uses ? &uses[i++] : NULL);
    }
    trp_buf_free(&v.b);
    free(v.params);
}
