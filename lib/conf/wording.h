/*
 * Words for errors about what a person wrote: a value shown safely, the nearest known
 * name, a list of the names there are. All plain values on the stack.
 *
 *     struct trp_nearest near = trp_nearest_of("naem");
 *     trp_nearest_try(&near, "name");
 *     trp_wrong(…, "unknown key \"%s\"%s", trp_show("naem").text,
 *               trp_did_you_mean(&near).text);
 */
#ifndef TRP_CONF_WORDING_H
#define TRP_CONF_WORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "core/base/nearest.h"

struct trp_shown {
    char text[96];
};

/* At most 60 bytes of `text`, cut between characters. (trp_error_set shows what is not
 * printable as "?".) */
struct trp_shown trp_show(const char *text);

/* Whether it can stand in a line of a script, a header or a protocol: it has no line break
 * and no other control character but tabs. */
bool trp_is_in_line(const char *text);

/* `; did you mean "best"?`, or "" when nothing is near. */
struct trp_shown trp_did_you_mean(const struct trp_nearest *n);

struct trp_name_list {
    char text[400]; /* "a, b, c", cut with "…" */
    bool full;
};
void trp_name_list_add(struct trp_name_list *l, const char *name);

/* A name with "*" in place of the digits at its end: "align-017" and "align-2" are both
 * "align-*". Others are copied. Returns buf. */
char *trp_name_stem(const char *name, char *buf, size_t size);

/* [A-Za-z0-9_][A-Za-z0-9._-]{0,63}: stages and profiles. */
bool trp_is_name(const char *text);
/* [A-Za-z_][A-Za-z0-9._-]*, shorter than TRP_RESOURCE_NAME_MAX. */
bool trp_is_resource_name(const char *text);
/* [A-Za-z_][A-Za-z0-9_]* */
bool trp_is_variable(const char *text);

#endif
