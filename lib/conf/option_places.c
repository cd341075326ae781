#include "conf/option_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conf/pipeline_load.h"

/* malloc'ed; NULL: this user has none. */
static int user_file(char **ret, trp_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    *ret = NULL;
    if (config && *config == '/') /* the XDG rules: a relative one does not count */
        n = asprintf(ret, "%s/troupe/options.yaml", config);
    else if (home && *home == '/')
        n = asprintf(ret, "%s/.config/troupe/options.yaml", home);
    if (n < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    if (*ret && access(*ret, F_OK) < 0) {
        free(*ret);
        *ret = NULL;
    }
    return 0;
}

static int from_file(trp_options *o, const char *file, trp_error *err)
{
    struct trp_conf_arena arena = {0};
    struct trp_pair *pairs = NULL;
    uint32_t n = 0;
    trp_yaml *y = NULL;
    int code = trp_yaml_load(file, &arena, &y, err);
    if (code == 0) {
        pairs = trp_options_read(y, trp_yaml_root(y), NULL, &n);
        code = trp_yaml_verdict(y, err);
    }
    if (code == 0)
        code = trp_options_set_pairs(o, pairs, n, TRP_ORIGIN_USER, file, err);
    trp_yaml_free(y);
    trp_conf_arena_free(&arena);
    return code;
}

int trp_options_from_places(trp_options *o, const trp_site *s, const trp_pipeline *p,
                            trp_error *err)
{
    char *file = NULL;
    int code = trp_site_options(s, o, err);
    if (code == 0)
        code = user_file(&file, err);
    if (code == 0 && file)
        code = from_file(o, file, err);
    if (code == 0 && p)
        code = trp_pipeline_options(p, o, err);
    free(file);
    return code < 0 ? code : trp_options_from_environment(o, environ, err);
}
