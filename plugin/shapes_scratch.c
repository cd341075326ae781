/*
 * `scratch` stands before all limits and profiles (launcher/site_shapes.c): only the
 * beginning is read. Of the whole file root needs nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin/shapes.h"

enum { LINES = 3 };

/* TRP_ENOENT: not in these lines. */
static int read_lines(FILE *f, char ret_path[PATH_MAX])
{
    static const char first[] = "troupe-shapes 1\n", key[] = "scratch ";
    char line[PATH_MAX + sizeof key - 1]; /* with its newline */
    for (int i = 0; i < LINES && fgets(line, sizeof line, f); i++) {
        char *end = strchr(line, '\n');
        if (!end || (i == 0 && strcmp(line, first) != 0))
            return TRP_EPROTO;
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        *end = '\0';
        snprintf(ret_path, PATH_MAX, "%s", line + sizeof key - 1);
        return 0;
    }
    return TRP_ENOENT;
}

int trp_shapes_scratch(const char *file, char ret_path[PATH_MAX], trp_error *err)
{
    FILE *f = fopen(file, "re");
    if (!f && errno == ENOENT)
        return trp_error_set(err, TRP_ENOENT, "there is no %s", file);
    if (!f)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %m", file);
    int code = read_lines(f, ret_path);
    fclose(f);
    return code == TRP_EPROTO
               ? trp_error_set(err, code,
                               "%s: not shapes of this version of Troupe; make it "
                               "again: troupe site-shape --all --output %s",
                               file, file)
               : code;
}
