#include "conf/option_places.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/pipeline_load.h"
#include "os/whole_file.h"

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

/* What is in it decides what programs are run: nobody else may write it. */
static int check_owner(int fd, const char *file, trp_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %m", file);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return trp_error_set(err, TRP_EINVAL,
                             "%s: belongs to another user (%u); remove it, or set "
                             "XDG_CONFIG_HOME to a folder of your own",
                             file, (unsigned)st.st_uid);
    if (st.st_mode & S_IWOTH)
        return trp_error_set(err, TRP_EINVAL,
                             "%s: every user may write it; chmod o-w it", file);
    return 0;
}

static int read_own(const char *file, char **ret, size_t *ret_size, trp_error *err)
{
    int fd = trp_file_open_regular(file);
    if (fd < 0)
        return trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %m", file);
    int code = check_owner(fd, file, err);
    int reason =
        code == 0 ? trp_file_read(fd, TRP_PIPELINE_FILE_MAX, ret, ret_size) : 0;
    close(fd);
    return reason ? trp_error_set(err, reason == ENOMEM ? TRP_ENOMEM : TRP_EINVAL,
                                  "%s: cannot be read: %s", file, strerror(reason))
                  : code;
}

static int from_file(trp_options *o, const char *file, trp_error *err)
{
    struct trp_conf_arena arena = {0};
    struct trp_pair *pairs = NULL;
    uint32_t n = 0;
    trp_yaml *y = NULL;
    char *text = NULL;
    size_t size = 0;
    int code = read_own(file, &text, &size, err);
    if (code == 0)
        code = trp_yaml_parse(file, text, size, &arena, &y, err);
    free(text);
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
