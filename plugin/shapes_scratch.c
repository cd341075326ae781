/*
 * `scratch` stands before all limits and profiles (launcher/site_shapes.c): only the
 * beginning is read. Of the whole file root needs nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plugin/shapes.h"

enum { LINES = 3 };

int trp_shapes_scratch(const char *file, char ret_path[PATH_MAX], trp_error *err)
{
    static const char key[] = "scratch ";
    char line[PATH_MAX + sizeof key - 1]; /* with its newline */
    int code = TRP_ENOENT;
    FILE *f = fopen(file, "re");
    if (!f && errno != ENOENT)
        return trp_error_set(err, TRP_ESYSTEM, "%s: %s", file, strerror(errno));
    for (int i = 0; f && i < LINES && fgets(line, sizeof line, f); i++) {
        char *end = strchr(line, '\n');
        if (strncmp(line, key, sizeof key - 1) != 0 || !end)
            continue;
        *end = '\0';
        snprintf(ret_path, PATH_MAX, "%s", line + sizeof key - 1);
        code = 0;
    }
    if (f)
        fclose(f);
    return code;
}
