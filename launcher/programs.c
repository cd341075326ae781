/*
 * An application is looked for here, although mpirun would do it too: mpirun's answer
 * to a name that is not there is a page of text, after the run folder was made.
 */
#include "programs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/wording.h"

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Beside this program, or in our folder of libexec; malloc'ed, NULL: nowhere, with
 * this program's path in `self`. */
static char *find_own(const char *name, char *self, size_t size)
{
    static const char *const places[] = {"", "../" TROUPE_LIBEXEC "/troupe/"};
    ssize_t n = readlink("/proc/self/exe", self, size - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        char *path;
        if (asprintf(&path, "%.*s/%s%s", (int)(slash - self), self, places[i], name) <
            0)
            return NULL;
        if (is_program(path))
            return path;
        free(path);
    }
    return NULL;
}

int trp_program_own(const char *name, char **ret_path, trp_error *err)
{
    char self[4096];
    *ret_path = find_own(name, self, sizeof self);
    return *ret_path
               ? 0
               : trp_error_set(err, TRP_ESYSTEM,
                               "%s is not where troupe is installed (%s)", name, self);
}

static char *find_in_path(const char *app)
{
    const char *at = getenv("PATH");
    for (at = at ? at : "/usr/bin:/bin"; *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        char *path;
        if (asprintf(&path, "%.*s/%s", n ? (int)n : 1, n ? at : ".", app) < 0)
            return NULL;
        if (is_program(path))
            return path;
        free(path);
        at += n;
    }
    return NULL;
}

int trp_program_find(const char *app, char **ret_path, trp_error *err)
{
    char *path = strchr(app, '/') ? strdup(app) : find_in_path(app);
    if (path && is_program(path)) {
        *ret_path = realpath(path, NULL);
        free(path);
        return *ret_path ? 0 : trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    int code =
        trp_error_set(err, TRP_EINVAL, "%s: %s", trp_show(app).text,
                      path && access(path, F_OK) == 0 ? "not a program that can be run"
                      : strchr(app, '/')              ? "no such program"
                                         : "no such program in PATH; a program in this "
                                           "folder is called ./NAME");
    free(path);
    return code;
}
