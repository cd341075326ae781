/*
 * A stage's command, made ready once: environment, program and log folder, so that an
 * attempt adds a dozen short strings and copies nothing of the rest, however large.
 *
 * The stage's environment loses what an attempt sets itself. The list that exec gets
 * has the attempt's places in front and the stage's strings behind; attempts run one
 * after the other through the same places, since exec has copied them by the time the
 * spawner goes on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/array.h"
#include "executor/spawner_internal.h"

/* Strings of an attempt besides resources and columns: executor.h, the token, a gang's
 * ranks. */
enum { OWN_STRINGS = 21, MAX_RESOURCES = 256 };

/* Of a command, looked at for an MPI's program: a shell's text may be a whole script. */
enum { WORDS_MAX = 100 };

static const char *const own_names[] = {
    "TROUPE_TASK",      "TROUPE_ATTEMPT",   "TROUPE_STAGE_ATTEMPT", "TROUPE_TASKS",
    "TROUPE_STAGE",     "TROUPE_PROFILE",   "TROUPE_CPUS",          "TROUPE_EXECUTOR",
    "TROUPE_RUN",       "TROUPE_RUN_DIR",   "TROUPE_SCRATCH",       "TROUPE_TOKEN",
    "TROUPE_RANK",      "TROUPE_RANKS",     "TROUPE_ITEM",          "TROUPE_ITEM_DIR",
    "TROUPE_ITEM_NAME", "TROUPE_ITEM_STEM", "TROUPE_ITEM_EXT",      "TROUPE_ROWS",
};

static bool is_name(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* An entry that the attempt sets, or leaves out on purpose. */
static bool is_own(const struct trp_command *c, const char *entry)
{
    if (strncmp(entry, "TROUPE_RESOURCE_", 16) == 0 ||
        strncmp(entry, "TROUPE_COL_", 11) == 0)
        return true;
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++)
        if (is_name(entry, own_names[i]))
            return true;
    for (uint32_t i = 1; i < c->nresource_env; i += 2)
        if (is_name(entry, c->resource_env[i]))
            return true;
    return false;
}

static bool make_environment(struct trp_command_stage *s)
{
    const struct trp_command *c = &s->command;
    s->nown = OWN_STRINGS + c->nresource_env / 2 + MAX_RESOURCES + TRP_COLUMNS_MAX;
    s->env = calloc((size_t)s->nown + c->nenv + 1, sizeof *s->env);
    if (!s->env)
        return false;
    size_t n = s->nown;
    for (uint32_t i = 0; i < c->nenv; i++)
        if (!is_own(c, c->env[i]))
            s->env[n++] = c->env[i];
    return true;
}

static const char *search_path(const struct trp_command *c)
{
    for (uint32_t i = 0; i < c->nenv; i++)
        if (strncmp(c->env[i], "PATH=", 5) == 0)
            return c->env[i] + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* What to try to exec: the name itself when it has a slash, else each folder of PATH
 * (an empty one is the working folder). */
static bool make_program(struct trp_command_stage *s)
{
    const char *name = s->argv[0], *path = search_path(&s->command);
    size_t n = 1;
    if (!strchr(name, '/'))
        for (const char *p = path; (p = strchr(p, ':')); p++)
            n++;
    s->program = calloc(n + 1, sizeof *s->program);
    if (!s->program)
        return false;
    if (strchr(name, '/'))
        return (s->program[0] = strdup(name)) != NULL;
    for (size_t i = 0; i < n; i++) {
        size_t folder = strcspn(path, ":");
        if (asprintf(&s->program[i], "%.*s/%s", folder ? (int)folder : 1,
                     folder ? path : ".", name) < 0) {
            s->program[i] = NULL;
            return false;
        }
        path += folder + (path[folder] == ':');
    }
    return true;
}

static void program_free(struct trp_command_stage *s)
{
    for (size_t i = 0; s->program && s->program[i]; i++)
        free(s->program[i]);
    free(s->program);
    s->program = NULL;
}

/* ---- templates ------------------------------------------------------------------- */

/* `*at` is a text of the stage: one that differs by task is put on the list. */
static void take_text(struct trp_command_stage *s, const char **at)
{
    if (trp_template_names_task(*at))
        s->templates[s->ntemplates++] = (struct trp_command_text){at, *at};
    else
        trp_template_settle((char *)(uintptr_t)*at);
}

static bool find_templates(struct trp_command_stage *s)
{
    const struct trp_command *c = &s->command;
    size_t nenv = 0;
    while (s->env[s->nown + nenv])
        nenv++;
    s->argv = calloc((size_t)c->nargv + 1, sizeof *s->argv);
    s->templates = calloc(c->nargv + nenv + 1, sizeof *s->templates);
    if (!s->argv || !s->templates)
        return false;
    s->cwd = c->cwd;
    take_text(s, &s->cwd);
    for (uint32_t i = 0; i < c->nargv; i++) {
        size_t n;
        bool rows = trp_template_rows(c->argv[i], &n);
        s->argv[i] = c->argv[i];
        s->has_rows = s->has_rows || rows;
        if (!rows)
            take_text(s, &s->argv[i]);
    }
    for (size_t i = 0; i < nenv; i++)
        take_text(s, &s->env[s->nown + i]);
    return true;
}

static bool add_word(struct trp_command_stage *s, uint32_t *n, const char *word)
{
    if (!TRP_ARRAY_GROW(s->words, *n, s->words_cap))
        return false;
    s->words[(*n)++] = word;
    return true;
}

/* Those of an item's rows; they stay where they are, each with a NUL behind it. */
static bool add_rows(struct trp_command_stage *s, uint32_t *n, const char *name,
                     size_t size, const struct trp_task_values *v)
{
    const char *end = v->item + v->item_size;
    size_t length;
    for (const char *at = v->item; v->item && at < end; at += length + 1) {
        length = strnlen(at, (size_t)(end - at));
        if (length > size + 1 && at[0] == '*' && at[size + 1] == '=' &&
            memcmp(at + 1, name, size) == 0 && !add_word(s, n, at + size + 2))
            return false;
    }
    return true;
}

static bool fill_words(struct trp_command_stage *s, const struct trp_task_values *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->command.nargv; i++) {
        size_t size;
        const char *name = trp_template_rows(s->command.argv[i], &size);
        if (!(name ? add_rows(s, &n, name, size, v) : add_word(s, &n, s->argv[i])))
            return false;
    }
    return add_word(s, &n, NULL);
}

bool trp_command_stage_fill(struct trp_command_stage *s, struct trp_buf *b,
                            const struct trp_task_values *v)
{
    trp_buf_clear(b);
    for (uint32_t i = 0; i < s->ntemplates; i++) {
        size_t begin = b->size;
        trp_template_put(b, s->templates[i].text, v);
        bool relative = !b->failed && (b->size == begin || b->data[begin] != '/');
        if (s->templates[i].at == &s->cwd && relative) {
            b->size = begin;
            trp_put_raw(b, s->command.base, strlen(s->command.base));
            trp_put_u8(b, '/');
            trp_template_put(b, s->templates[i].text, v);
        }
        trp_put_u8(b, 0);
    }
    const char *text = (const char *)b->data;
    for (uint32_t i = 0; i < s->ntemplates && !b->failed; i++, text += strlen(text) + 1)
        *s->templates[i].at = text;
    if (b->failed || (s->has_rows && !fill_words(s, v)))
        return false;
    if (!s->own_program)
        return true;
    program_free(s);
    return make_program(s);
}

/* `k`: NULL, the stage never had logs. */
static void stage_free(struct trp_keeper *k, struct trp_command_stage *s)
{
    if (k)
        trp_logs_close(k, s);
    trp_stage_stream_close(s);
    program_free(s);
    free(s->env);
    free(s->argv);
    free(s->words);
    free(s->templates);
    trp_places_free(&s->places);
    trp_command_free(&s->command);
    trp_stage_message_free(&s->message);
    free(s);
}

static struct trp_command_stage *stage_new(void)
{
    struct trp_command_stage *s = calloc(1, sizeof *s);
    if (s)
        s->logs = s->stream = s->index = -1;
    return s;
}

static int stage_read(struct trp_command_stage *s, const void *message, size_t size)
{
    int r = trp_stage_message_get(message, size, &s->message);
    if (r < 0)
        return r;
    if (s->message.work != TRP_WORK_COMMAND)
        return TRP_EPROTO;
    r = trp_command_get(s->message.body, s->message.body_size, &s->command);
    if (r < 0)
        return r;
    if (s->command.nargv == 0 || !s->command.argv[0][0])
        return TRP_EPROTO;
    free((void *)(uintptr_t)s->message.body); /* read, and as large as all the rest */
    s->message.body = NULL;
    if (!make_environment(s) || !find_templates(s))
        return TRP_ENOMEM;
    s->own_program = trp_template_names_task(s->command.argv[0]);
    return s->own_program || make_program(s) ? TRP_OK : TRP_ENOMEM;
}

int trp_command_stage_add(struct trp_keeper *k, const void *message, size_t size)
{
    struct trp_command_stage *s = stage_new();
    if (!s)
        return TRP_ENOMEM;
    int r = stage_read(s, message, size);
    if (r < 0) {
        stage_free(NULL, s);
        return r;
    }
    struct trp_command_stage *old = trp_command_stage_find(k, s->message.stage.n);
    if (old)
        trp_command_stage_forget(k, old);
    s->id = s->message.stage.n;
    HASH_ADD(hh, k->stages, id, sizeof s->id, s);
    if (!trp_command_stage_find(k, s->id)) {
        stage_free(NULL, s);
        return TRP_ENOMEM;
    }
    return TRP_OK;
}

/* That of the first file that there is of the program. */
static enum trp_linked_mpi program_mpi(const struct trp_command_stage *s)
{
    enum trp_linked_mpi mpi = TRP_LINKED_NONE;
    bool found = false;
    for (char **p = s->program; p && *p && !found; p++) {
        char *path;
        const char *folder = **p == '/' ? "" : s->cwd;
        if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", *p) < 0)
            break;
        found = access(path, X_OK) == 0;
        mpi = found ? trp_linked_mpi(path) : mpi;
        free(path);
    }
    return mpi;
}

/* Of the first word of the text that names such a program; *words are looked at at
 * most. */
static enum trp_linked_mpi words_mpi(struct trp_command_stage *s, const char *text,
                                     int *words)
{
    static const char between[] = " \t\n;&|()<>{}\"'`";
    enum trp_linked_mpi mpi = TRP_LINKED_NONE;
    char *copy = strdup(text), *rest = copy;
    while (*words > 0 && !mpi && rest) {
        char *word = strsep(&rest, between);
        if (!*word)
            continue;
        --*words;
        program_free(s);
        s->argv[0] = word;
        mpi = make_program(s) ? program_mpi(s) : mpi;
    }
    free(copy);
    return mpi;
}

/* A shell, or what else is put before a program, has it among its arguments. */
enum trp_linked_mpi trp_command_linked_mpi(const void *message, size_t size)
{
    enum trp_linked_mpi mpi = TRP_LINKED_NONE;
    struct trp_command_stage *s = stage_new();
    if (s && stage_read(s, message, size) == 0) {
        int words = WORDS_MAX;
        mpi = program_mpi(s);
        for (uint32_t i = 1; i < s->command.nargv && !mpi; i++)
            mpi = words_mpi(s, s->argv[i], &words);
    }
    if (s)
        stage_free(NULL, s);
    return mpi;
}

struct trp_command_stage *trp_command_stage_find(struct trp_keeper *k, uint32_t id)
{
    struct trp_command_stage *s;
    HASH_FIND(hh, k->stages, &id, sizeof id, s);
    return s;
}

void trp_command_stage_forget(struct trp_keeper *k, struct trp_command_stage *s)
{
    HASH_DEL(k->stages, s);
    s->forgotten = true;
    if (s->attempts == 0)
        stage_free(k, s);
}

void trp_command_stage_release(struct trp_keeper *k, struct trp_command_stage *s)
{
    s->attempts--;
    if (s->forgotten && s->attempts == 0)
        stage_free(k, s);
    else
        trp_logs_rest(k, s);
}
