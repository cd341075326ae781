/*
 * Written here, not getopt_long: its messages, its abbreviations (`--res` for
 * `--resume` until there is a second one) and its reordering are not what users get
 * elsewhere in Troupe.
 */
#include "args.h"

#include <string.h>

#include "conf/wording.h"

struct trp_args trp_args_of(const char *command, const struct trp_arg *table, int argc,
                            char **argv)
{
    return (struct trp_args){
        .command = command, .table = table, .argc = argc, .argv = argv, .at = 1};
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
    for (const struct trp_arg *o = a->table; o->name; o++)
        trp_nearest_try(&near, o->name);
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
    const struct trp_arg *o = a->table;
    while (o->name && (strlen(o->name) != length || memcmp(o->name, text, length) != 0))
        o++;
    if (!o->name)
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
    return o->what;
}

int trp_args_next(struct trp_args *a, const char **ret_value, trp_error *err)
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
    if (text[0] == '-' && text[1])
        return trp_error_set(err, TRP_EINVAL,
                             "%s: unknown option %s; see troupe %s --help", a->command,
                             trp_show(text).text, a->command);
    *ret_value = text;
    return TRP_ARG_WORD;
}
