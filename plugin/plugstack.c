/*
 * A table of keys and places. A path that is not absolute would mean another file in
 * each daemon, so it is refused. Where troupe is follows from where the plugin lies, so
 * that what is installed can be moved as a whole.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/wording.h"
#include "plugin/plugin.h"

#define SITE "/etc/troupe/site.yaml"

static const struct key {
    const char *name, *standard;
    size_t at;
} keys[] = {
    {"site",   SITE, offsetof(struct trp_plugin, site)   },
    {"shapes", "",   offsetof(struct trp_plugin, shapes) },
    {"troupe", "",   offsetof(struct trp_plugin, command)},
};
enum { KEYS = sizeof keys / sizeof *keys };

static char *place(struct trp_plugin *p, const struct key *k)
{
    return (char *)p + k->at;
}

static int read_argument(struct trp_plugin *p, const char *word, trp_error *err)
{
    const char *value = strchr(word, '=');
    for (int i = 0; value && i < KEYS; i++) {
        size_t n = strlen(keys[i].name);
        if (n != (size_t)(value - word) || strncmp(keys[i].name, word, n) != 0)
            continue;
        if (value[1] != '/' || strlen(value + 1) >= PATH_MAX)
            return trp_error_set(err, TRP_EINVAL,
                                 "plugstack.conf: \"%s\": want an absolute path",
                                 trp_show(word).text);
        snprintf(place(p, &keys[i]), PATH_MAX, "%s", value + 1);
        return 0;
    }
    return trp_error_set(err, TRP_EINVAL,
                         "plugstack.conf: unknown argument \"%s\"; there are: "
                         "site=FILE, shapes=FILE, troupe=PROGRAM",
                         trp_show(word).text);
}

/* The shapes are beside the site file. */
static void default_shapes(struct trp_plugin *p)
{
    const char *slash = strrchr(p->site, '/');
    snprintf(p->shapes, sizeof p->shapes, "%.*sshapes", (int)(slash + 1 - p->site),
             p->site);
}

/* The troupe that was installed with this plugin. */
static void default_command(struct trp_plugin *p)
{
    static const char way[] = TROUPE_FROM_PLUGIN;
    char plugin[PATH_MAX] = "", path[PATH_MAX + sizeof way];
    Dl_info own;
    if (way[0] != '/' && dladdr(keys, &own) && realpath(own.dli_fname, plugin))
        strrchr(plugin, '/')[1] = '\0';
    snprintf(path, sizeof path, "%s%s", plugin, way);
    if (!realpath(path, p->command) && strlen(path) < sizeof p->command)
        strcpy(p->command, path);
}

int trp_plugin_settings(int argc, char **argv, struct trp_plugin *ret, trp_error *err)
{
    int code = 0;
    trp_error ignored;
    memset(ret, 0, sizeof *ret);
    for (int i = 0; i < KEYS; i++)
        snprintf(place(ret, &keys[i]), PATH_MAX, "%s", keys[i].standard);
    for (int i = 0; i < argc; i++) {
        int rc = read_argument(ret, argv[i], code == 0 ? err : &ignored);
        code = code == 0 ? rc : code;
    }
    if (!ret->shapes[0])
        default_shapes(ret);
    if (!ret->command[0])
        default_command(ret);
    return code;
}
