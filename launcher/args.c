/*
 * Written here, not getopt_long: its messages, its abbreviations (`--res` for
 * `--resume` until there is a second one) and its reordering are not what users get
 * elsewhere in Troupe.
 */
#include "args.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf/wording.h"

struct trp_args trp_args_of(const char *command, const struct trp_arg *table, int argc,
                            char **argv)
{
    return (struct trp_args){
        .command = command, .table = table, .argc = argc, .argv = argv, .at = 1};
}

const struct trp_arg *trp_args_find(const struct trp_arg *table, const char *name,
                                    size_t length)
{
    for (const struct trp_arg *o = table; o->help; o++)
        if (o->name && strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

const char *trp_args_dashes(const struct trp_arg *o)
{
    return o->name[1] ? "--" : "-";
}

/* What other tools call the number of cores, where the command has its own way to say it. */
static bool is_cores(const struct trp_args *a, const char *word)
{
    static const char *const theirs[] = {"core",  "cores", "cpus", "jobs", "threads",
                                         "nproc", "j",     "n",    "c"};
    bool is = false;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        is = is || strcmp(word, theirs[i]) == 0;
    return is && trp_args_find(a->table, "local", strlen("local"));
}

static int unknown_option(const struct trp_args *a, const char *name, size_t length,
                          trp_error *err)
{
    char word[64];
    if (length >= sizeof word)
        length = sizeof word - 1;
    memcpy(word, name, length);
    word[length] = '\0';
    struct trp_nearest near = trp_nearest_of(word);
    for (const struct trp_arg *o = a->table; o->help; o++)
        if (o->name && o->name[1])
            trp_nearest_try(&near, o->name);
    if (is_cores(a, word))
        return trp_error_set(err, TRP_EINVAL,
                             "%s: unknown option --%s; --local=CORES runs on so many "
                             "cores of this machine",
                             a->command, word);
    if (near.best)
        return trp_error_set(err, TRP_EINVAL,
                             "%s: unknown option --%s; did you mean \"--%s\"?",
                             a->command, trp_show(word).text, near.best);
    return trp_error_set(err, TRP_EINVAL,
                         "%s: unknown option --%s; see troupe %s --help", a->command,
                         trp_show(word).text, a->command);
}

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static int take_option(struct trp_args *a, const char *text, const char **ret_value,
                       trp_error *err)
{
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const struct trp_arg *o = trp_args_find(a->table, text, length);
    if (!o || !o->name[1])
        return unknown_option(a, text, length, err);
    if (equals && o->kind == TRP_ARG_FLAG)
        return trp_error_set(err, TRP_EINVAL, "%s: --%s takes no value", a->command,
                             o->name);
    if (equals) {
        *ret_value = equals + 1;
    } else if (o->kind == TRP_ARG_VALUE) {
        if (a->at == a->argc)
            return trp_error_set(err, TRP_EINVAL, "%s: --%s needs a value", a->command,
                                 o->name);
        *ret_value = a->argv[a->at++];
    } else if (o->kind == TRP_ARG_OPTIONAL && a->at < a->argc &&
               is_number(a->argv[a->at])) {
        return trp_error_set(err, TRP_EINVAL, "%s: --%s %s: write --%s=%s", a->command,
                             o->name, a->argv[a->at], o->name, a->argv[a->at]);
    }
    if (o->to && o->kind == TRP_ARG_FLAG)
        *(bool *)o->to = true;
    else if (o->to)
        *(const char **)o->to = *ret_value;
    return o->what;
}

/* `-o VALUE`, `-oVALUE`; NULL: there is no such option of one letter. */
static const struct trp_arg *letter(const struct trp_args *a, const char *text)
{
    return text[0] == '-' && text[1] ? trp_args_find(a->table, text + 1, 1) : NULL;
}

static int take_letter(struct trp_args *a, const struct trp_arg *o, const char *text,
                       const char **ret_value, trp_error *err)
{
    if (!text[2] && a->at == a->argc)
        return trp_error_set(err, TRP_EINVAL, "%s: -%s needs a value", a->command,
                             o->name);
    *ret_value = text[2] ? text + 2 : a->argv[a->at++];
    if (o->to)
        *(const char **)o->to = *ret_value;
    return o->what;
}

static int next_argument(struct trp_args *a, const char **ret_value, trp_error *err)
{
    *ret_value = NULL;
    if (a->at >= a->argc)
        return TRP_ARG_END;
    const char *text = a->argv[a->at++];
    if (strcmp(text, "--") == 0)
        return TRP_ARG_REST;
    if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0)
        return TRP_ARG_HELP;
    if (strncmp(text, "--", 2) == 0)
        return take_option(a, text + 2, ret_value, err);
    const struct trp_arg *o = letter(a, text);
    if (o)
        return take_letter(a, o, text, ret_value, err);
    if (text[0] == '-' && text[1] && is_cores(a, (char[]){text[1], '\0'}))
        return trp_error_set(err, TRP_EINVAL,
                             "%s: unknown option %s; --local=CORES runs on so many "
                             "cores of this machine",
                             a->command, trp_show(text).text);
    if (text[0] == '-' && text[1])
        return trp_error_set(err, TRP_EINVAL,
                             "%s: unknown option %s; see troupe %s --help", a->command,
                             trp_show(text).text, a->command);
    *ret_value = text;
    return TRP_ARG_WORD;
}

/* ---- a whole line ---------------------------------------------------------------- */

enum { HELP_COLUMN = 21 };

static void print_option(const struct trp_arg *o)
{
    static const char *const forms[] = {[TRP_ARG_FLAG] = "  %s%s%s",
                                        [TRP_ARG_VALUE] = "  %s%s %s",
                                        [TRP_ARG_OPTIONAL] = "  %s%s[=%s]"};
    int column =
        printf(forms[o->kind], trp_args_dashes(o), o->name, o->value ? o->value : "");
    for (const char *at = o->help; *at; column = 0) {
        int n = (int)strcspn(at, "\n");
        printf("%*s%.*s\n", column < HELP_COLUMN ? HELP_COLUMN - column : 1, "", n, at);
        at += n + (at[n] == '\n');
    }
    if (!*o->help)
        putchar('\n');
}

static void print_help(const struct trp_line *l)
{
    fputs(l->synopsis, stdout);
    for (const struct trp_arg *o = l->table; o->help; o++) {
        if (o->name)
            print_option(o);
        else
            fputs(o->help, stdout);
    }
    fputs(l->closing, stdout);
}

static int take_word(const struct trp_line *l, int what, const char *value,
                     trp_error *err)
{
    for (int i = 0; i < 3 && l->words[i] && what == TRP_ARG_WORD; i++) {
        if (*l->words[i])
            continue;
        *l->words[i] = value;
        return 0;
    }
    return l->please ? trp_error_set(err, TRP_EINVAL, "%s: %s", l->command, l->please)
                     : what;
}

static int read_words(const struct trp_line *l, int argc, char **argv, trp_error *err)
{
    struct trp_args a = trp_args_of(l->command, l->table, argc, argv);
    const char *value;
    for (int what; (what = next_argument(&a, &value, err)) != TRP_ARG_END;) {
        if (what == TRP_ARG_HELP)
            return 1;
        if (what == TRP_ARG_TAKEN)
            continue;
        int code = what < 0  ? what
                   : l->take ? l->take(&a, what, value, err)
                             : take_word(l, what, value, err);
        if (code > 0)
            return trp_error_set(err, TRP_EINVAL, "%s: takes no arguments", l->command);
        if (code < 0)
            return code;
        if (what == TRP_ARG_REST)
            break;
    }
    return 0;
}

int trp_args_read(const struct trp_line *l, int argc, char **argv, trp_error *err)
{
    int code = l->read ? l->read(argc, argv, err) : read_words(l, argc, argv, err);
    if (code == 1)
        print_help(l);
    return code;
}
