/*
 * Finding and loading modules. They are looked for beside the object that has this code,
 * so an installation may be moved as a whole.
 */
#include "os/module.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seen from libtroupe, a program in bin or in libexec/troupe, a test. */
static const char *const places[] = {"troupe/", "../lib/troupe/",
                                     "../" TROUPE_LIBDIR "/troupe/",
                                     "../../" TROUPE_LIBDIR "/troupe/"};

/* The file that has this code; NULL: out of memory. */
static char *own_file(void)
{
    Dl_info info;
    bool library =
        dladdr(&places, &info) != 0 && strstr(info.dli_fname, "/libtroupe.so");
    return realpath(library ? info.dli_fname : "/proc/self/exe", NULL);
}

bool trp_module_find(const char *name, char *ret_path, size_t size)
{
    char *self = own_file();
    const char *slash = self ? strrchr(self, '/') : NULL;
    bool found = false;
    for (size_t i = 0; slash && !found && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(ret_path, size, "%.*s/%s%s.so", (int)(slash - self), self,
                         places[i], name);
        found = n > 0 && (size_t)n < size && access(ret_path, R_OK) == 0;
    }
    free(self);
    return found;
}

int trp_module_load(const char *path, bool global, const void **ret_table,
                    trp_error *err)
{
    void *handle = dlopen(path, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!handle)
        return trp_error_set(err, TRP_ENEVER, "cannot load %s: %s", path, dlerror());
    const struct trp_module *m = dlsym(handle, "trp_module");
    if (!m || strcmp(m->build, TROUPE_VERSION) != 0)
        return trp_error_set(err, TRP_ENEVER, "%s is of another build of Troupe", path);
    *ret_table = m;
    return TRP_OK;
}

int trp_module_get(const char *name, const void **ret_table, trp_error *err)
{
    char path[4200];
    if (!trp_module_find(name, path, sizeof path))
        return trp_error_set(err, TRP_ENEVER,
                             "Troupe is not installed as a whole: there is no "
                             "lib/troupe/%s.so beside it; install it again",
                             name);
    return trp_module_load(path, false, ret_table, err);
}
