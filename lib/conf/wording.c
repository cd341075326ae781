/*
 * What is shown of a person's text is cut, never changed: trp_error_set replaces what
 * cannot be printed.
 */
#include "conf/wording.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/profile/profile.h"

enum { SHOWN_BYTES = 60 };

/* The largest length <= n that ends between characters of UTF-8 text. */
static size_t cut(const char *text, size_t n)
{
    while (n > 0 && trp_utf8_goes_on(text[n]))
        n--;
    return n;
}

struct trp_shown trp_show(const char *text)
{
    struct trp_shown s;
    size_t n = strnlen(text, SHOWN_BYTES + 1);
    bool whole = n <= SHOWN_BYTES;
    n = whole ? n : cut(text, SHOWN_BYTES);
    snprintf(s.text, sizeof(s.text), "%.*s%s", (int)n, text, whole ? "" : "…");
    return s;
}

bool trp_is_in_line(const char *text)
{
    for (; *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f ||
            ((unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0))
            return false;
    return true;
}

struct trp_shown trp_did_you_mean(const struct trp_nearest *n)
{
    struct trp_shown s = {""};
    if (n->best)
        snprintf(s.text, sizeof(s.text), "; did you mean \"%s\"?", n->best);
    return s;
}

void trp_name_list_add(struct trp_name_list *l, const char *name)
{
    size_t used = strlen(l->text);
    size_t room = sizeof(l->text) - used - sizeof("…") - 2;
    const char *between = used ? ", " : "";
    if (l->full)
        return;
    if (strlen(name) > room) {
        l->full = true;
        name = "…";
    }
    snprintf(l->text + used, sizeof(l->text) - used, "%s%s", between, name);
}

static bool all_of(const char *text, const char *first, const char *rest, size_t max)
{
    size_t n = strnlen(text, max + 1);
    return n > 0 && n <= max && strchr(first, text[0]) && strspn(text, rest) == n;
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS "0123456789"

bool trp_is_name(const char *text)
{
    return all_of(text, LETTERS DIGITS, LETTERS DIGITS ".-", TRP_PROFILE_NAME_MAX);
}

bool trp_is_resource_name(const char *text)
{
    return all_of(text, LETTERS, LETTERS DIGITS ".-", TRP_RESOURCE_NAME_MAX - 1);
}

bool trp_is_variable(const char *text)
{
    return all_of(text, LETTERS, LETTERS DIGITS, INT32_MAX);
}

char *trp_name_stem(const char *name, char *buf, size_t size)
{
    size_t n = strlen(name), stem = n;
    while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9')
        stem--;
    snprintf(buf, size, "%.*s%s", (int)stem, name, stem < n ? "*" : "");
    return buf;
}
