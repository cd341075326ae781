/*
 * One pass, line by line: words are cut in place. The file is an admin's, but whoever
 * reads it may be every srun of a site: nothing is believed that does not fit.
 */
#include "plugin/shapes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/wording.h"

struct reading {
    const char *file, *name;
    struct trp_shape *shape;
    struct trp_nearest near;
    struct trp_name_list all;
    bool begun, ended, found, inside; /* inside: lines are of the wanted profile */
    unsigned line;
    trp_error *err;
};

static int wrong(const struct reading *r, const char *what)
{
    return trp_error_set(r->err, TRP_EPROTO,
                         "%s:%u: %s; make it again: troupe site-shape --all --output "
                         "%s",
                         r->file, r->line, what, r->file);
}

/* The next word of *at, which is moved behind it; NULL: there is none. */
static char *word(char **at)
{
    char *w = strsep(at, " ");
    return w && *w ? w : NULL;
}

static bool number(const char *text, uint32_t *ret)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    *ret = (uint32_t)n;
    return *text >= '0' && *text <= '9' && !*end && !errno && n <= UINT32_MAX;
}

static int read_profile(struct reading *r, char *rest)
{
    const char *name = word(&rest);
    if (!name || rest || !trp_is_name(name))
        return wrong(r, "not a name of a profile");
    r->inside = strcmp(name, r->name) == 0;
    r->found |= r->inside;
    trp_nearest_try(&r->near, name);
    trp_name_list_add(&r->all, name);
    return 0;
}

static int read_resource(struct reading *r, char *rest)
{
    const char *name = word(&rest), *kind = word(&rest), *count = word(&rest);
    const char *variable = word(&rest);
    struct trp_shape_resource x = {0};
    if (!name || !kind || !count || !variable || rest || !trp_is_resource_name(name) ||
        !number(count, &x.count) || strlen(variable) >= sizeof x.variable ||
        strchr(variable, '='))
        return wrong(r, "not a resource");
    if (!r->inside)
        return 0;
    if (r->shape->nresources == TRP_PROFILE_RESOURCES)
        return wrong(r, "too many resources");
    x.gres = strcmp(kind, "gres") == 0;
    strcpy(x.name, name);
    strcpy(x.variable, strcmp(variable, "-") == 0 ? "" : variable);
    r->shape->resources[r->shape->nresources++] = x;
    return 0;
}

static int read_line(struct reading *r, char *line)
{
    char *rest = line;
    const char *key = word(&rest);
    r->line++;
    if (!r->begun) {
        r->begun = strcmp(line, "troupe-shapes") == 0 && rest && strcmp(rest, "1") == 0;
        return r->begun ? 0 : wrong(r, "not shapes of this version of Troupe");
    }
    if (r->ended)
        return wrong(r, "something behind the end");
    if (!key || *key == '#')
        return 0;
    if (strcmp(key, "end") == 0)
        r->ended = true;
    else if (strcmp(key, "profile") == 0)
        return read_profile(r, rest);
    else if (strcmp(key, "resource") == 0)
        return read_resource(r, rest);
    else if (strcmp(key, "never") == 0 && r->inside)
        snprintf(r->shape->never, sizeof r->shape->never, "%s", rest ? rest : "");
    return 0;
}

int trp_shapes_parse(const char *file, char *text, size_t size, const char *name,
                     struct trp_shape *ret, trp_error *err)
{
    struct trp_shape shape = {0};
    struct reading r = {.file = file,
                        .name = name,
                        .shape = &shape,
                        .near = trp_nearest_of(name),
                        .err = err};
    char *rest = text;
    if (memchr(text, '\0', size)) {
        r.line = 1;
        return wrong(&r, "a NUL byte");
    }
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!rest && !*line)
            break;
        int code = read_line(&r, line);
        if (code < 0)
            return code;
    }
    if (!r.ended)
        return wrong(&r, "it is cut, \"end\" is missing");
    if (!r.found)
        return trp_error_set(err, TRP_ENOENT, "unknown profile \"%s\"%s%s %s%s",
                             trp_show(name).text, trp_did_you_mean(&r.near).text,
                             r.near.best ? " there are:" : "; there are:",
                             *r.all.text ? r.all.text : "none in ",
                             *r.all.text ? "" : file);
    *ret = shape;
    return 0;
}

int trp_shapes_find(const char *file, const char *name, struct trp_shape *ret,
                    trp_error *err)
{
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    size_t size = 0;
    char *text = is_file && st.st_size <= TRP_SHAPES_SIZE_MAX
                     ? malloc((size_t)st.st_size + 1)
                     : NULL;
    ssize_t n = text ? 1 : -1;
    while (n > 0 && size < (size_t)st.st_size &&
           (n = read(fd, text + size, (size_t)st.st_size - size)) > 0)
        size += (size_t)n;
    int code;
    if (n < 0) {
        code = trp_error_set(err, TRP_ESYSTEM,
                             "%s: %s; the administrator makes it: troupe site-shape "
                             "--all --output %s",
                             file, is_file || fd < 0 ? strerror(errno) : "not a file",
                             file);
    } else {
        text[size] = '\0';
        code = trp_shapes_parse(file, text, size, name, ret, err);
    }
    free(text);
    if (fd >= 0)
        close(fd);
    return code;
}
