/*
 * include: profiles, params and stages of other files are strung behind those of the
 * file itself, before anything of it is read, so that double names are told and values
 * resolved as in one file. What a file includes comes right behind it, depth first.
 */
#include <stdlib.h>
#include <string.h>

#include "conf/pipeline_load.h"
#include "conf/wording.h"

enum { INCLUDES_MAX = 1000, DEEP_MAX = 32 };

struct including {
    trp_yaml *y;
    const struct trp_pipeline_inputs *in;
    struct trp_yaml_node *root;  /* of the pipeline */
    const char *chain[DEEP_MAX]; /* files that are being read, the pipeline first */
    uint32_t depth, count;
};

/* NAME beside the including file, kept. */
static char *beside(trp_yaml *y, const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');
    size_t folder = slash && *name != '/' ? (size_t)(slash - file) + 1 : 0;
    while (!strncmp(name, "./", 2))
        name += 2;
    char *path = trp_yaml_alloc(y, folder + strlen(name) + 1, 1);
    if (path) {
        memcpy(path, file, folder);
        strcpy(path + folder, name);
    }
    return path;
}

/* Moves the pairs or items of `from` behind those of the pipeline. */
static void string_behind(struct including *g, struct trp_yaml_node *key)
{
    struct trp_yaml_node *last = NULL, *value = key->next;
    for (struct trp_yaml_node *at = g->root->first; at; at = at->next->next) {
        last = at->next;
        if (!trp_yaml_is_key(at, key->text))
            continue;
        struct trp_yaml_node *own = at->next;
        if (own->kind != value->kind || value->kind == TRP_YAML_SCALAR) {
            trp_yaml_wrong(g->y, value->mark, "%s is not as in the including file",
                           key->text);
            return;
        }
        struct trp_yaml_node **to = &own->first;
        while (*to)
            to = &(*to)->next;
        *to = value->first;
        own->count += value->count;
        if (own->kind == TRP_YAML_MAPPING)
            trp_yaml_check_keys(g->y, own);
        return;
    }
    key->next = value;
    value->next = NULL;
    last->next = key;
    g->root->count++;
}

static void include_of(struct including *g, const struct trp_yaml_node *list);

static void take_root(struct including *g, struct trp_yaml_node *root)
{
    static const char *const keys[] = {"params", "profiles", "stages"};
    struct trp_yaml_node *list = NULL, *version = NULL;
    if (!trp_yaml_is_mapping(g->y, root, "an included file"))
        return;
    for (struct trp_yaml_node *key = root->first, *next; key; key = next) {
        bool known = false;
        next = key->next->next;
        if (trp_yaml_is_key(key, "include"))
            list = key->next;
        if (trp_yaml_is_key(key, "troupe"))
            version = key->next;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            known = known || trp_yaml_is_key(key, keys[i]);
        if (known)
            string_behind(g, key);
        else if (!trp_yaml_is_key(key, "include") && !trp_yaml_is_key(key, "troupe"))
            trp_yaml_wrong(
                g->y, key->mark,
                "\"%s\" in an included file; it has troupe, include, params, "
                "profiles and stages, the rest stands in the including one",
                trp_show(key->text).text);
    }
    if (version)
        trp_yaml_version(g->y, version, "pipeline", "troupe");
    else
        trp_yaml_wrong(
            g->y, root->mark,
            "an included file has no \"troupe\"; add the key, with the value "
            "1");
    if (list)
        include_of(g, list);
}

/* The path without its "NAME/.."; it may lead elsewhere where NAME is a link, so it is for
 * comparing only. */
static char *shortened(trp_yaml *y, const char *path)
{
    char *copy = trp_yaml_alloc(y, strlen(path) + 1, 1), *to = copy;
    while (copy && *path) {
        size_t n = strcspn(path, "/") + (strchr(path, '/') != NULL);
        char *last = to > copy ? to - 1 : copy;
        while (last > copy && last[-1] != '/')
            last--;
        if (!strncmp(path, "../", 3) && last < to && *last != '/' &&
            strncmp(last, "../", 3) != 0) {
            to = last;
        } else {
            memcpy(to, path, n);
            to += n;
        }
        path += n;
    }
    if (copy)
        *to = '\0';
    return copy;
}

/* Whether the file may be read here. */
static bool check_file(struct including *g, const struct trp_yaml_node *item,
                       const char *file)
{
    char *plain = shortened(g->y, file);
    for (uint32_t i = 0; i < g->depth; i++) {
        char *above = shortened(g->y, g->chain[i]);
        if (!plain || !above || strcmp(above, plain) != 0)
            continue;
        struct trp_name_list chain = {0};
        for (uint32_t k = i; k < g->depth; k++)
            trp_name_list_add(&chain, g->chain[k]);
        trp_yaml_wrong(g->y, item->mark, "%s includes itself: %s, %s; remove one",
                       trp_show(file).text, chain.text, trp_show(file).text);
        return false;
    }
    if (g->depth == DEEP_MAX || ++g->count > INCLUDES_MAX)
        trp_yaml_wrong(g->y, item->mark,
                       "more than %d files are included, or %d deep; put some together",
                       INCLUDES_MAX, DEEP_MAX - 1);
    return g->depth < DEEP_MAX && g->count <= INCLUDES_MAX;
}

static void include_file(struct including *g, const struct trp_yaml_node *item)
{
    char *name = trp_yaml_word(g->y, item, "a file of include"), *text = NULL;
    char *file = name ? beside(g->y, g->chain[g->depth - 1], name) : NULL;
    size_t size = 0;
    trp_error why;
    if (!file || !check_file(g, item, file))
        return;
    if (strstr(name, "${")) {
        trp_yaml_wrong(g->y, item->mark,
                       "include is read before params are; write the file's name");
        return;
    }
    int r = g->in->read
                ? g->in->read(g->in->context, file, &text, &size, &why)
                : trp_error_set(&why, TRP_EINVAL, "%s: cannot be read here", file);
    if (r < 0) {
        trp_yaml_wrong(g->y, item->mark, "included: %s", why.text);
        return;
    }
    struct trp_yaml_node *root = trp_yaml_include(g->y, file, text, size);
    free(text);
    g->chain[g->depth++] = file;
    if (root)
        take_root(g, root);
    g->depth--;
}

/* At most DEEP_MAX deep. */
static void include_of(struct including *g, const struct trp_yaml_node *list)
{
    if (!trp_yaml_is_list(g->y, list, "include"))
        return;
    for (const struct trp_yaml_node *item = list->first; item; item = item->next)
        include_file(g, item);
}

void trp_pipeline_include(trp_yaml *y, const char *file,
                          const struct trp_pipeline_inputs *in)
{
    struct including g = {.y = y, .in = in, .root = trp_yaml_tree(y)};
    g.chain[g.depth++] = file;
    const struct trp_yaml_node *list = NULL;
    if (!g.root || g.root->kind != TRP_YAML_MAPPING)
        return;
    for (const struct trp_yaml_node *key = g.root->first; key; key = key->next->next)
        if (trp_yaml_is_key(key, "include"))
            list = key->next;
    if (list)
        include_of(&g, list);
}
