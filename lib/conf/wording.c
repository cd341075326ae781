/*
 * The distance of two names is the number of letters to add, drop, change or swap
 * (optimal string alignment), upper and lower case being the same letter. A name counts
 * as near up to a third of the word's length, so that "gpu" is not taken for "cpus" in
 * a long shot. Names longer than 63 bytes are near to nothing: the tables are on the
 * stack.
 */
#include "conf/wording.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/profile/profile.h"

enum { SHOWN_BYTES = 60, NEAR_BYTES = 63 };

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

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static uint8_t least(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    uint8_t d[NEAR_BYTES + 1][NEAR_BYTES + 1];
    for (size_t i = 0; i <= na; i++)
        d[i][0] = (uint8_t)i;
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= na; i++) {
        for (size_t j = 1; j <= nb; j++) {
            int change = lower(a[i - 1]) != lower(b[j - 1]);
            uint8_t v = (uint8_t)(d[i - 1][j - 1] + change);
            v = least(v, (uint8_t)(d[i - 1][j] + 1));
            v = least(v, (uint8_t)(d[i][j - 1] + 1));
            bool swap = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                        lower(a[i - 2]) == lower(b[j - 1]);
            d[i][j] = swap ? least(v, (uint8_t)(d[i - 2][j - 2] + 1)) : v;
        }
    }
    return d[na][nb];
}

struct trp_nearest trp_nearest_of(const char *word)
{
    return (struct trp_nearest){.word = word, .distance = SIZE_MAX};
}

void trp_nearest_try(struct trp_nearest *n, const char *candidate)
{
    size_t nw = strnlen(n->word, NEAR_BYTES + 1);
    size_t nc = strnlen(candidate, NEAR_BYTES + 1);
    if (nw > NEAR_BYTES || nc > NEAR_BYTES)
        return;
    size_t far = 1 + nw / 3;
    if ((nw > nc ? nw - nc : nc - nw) > far)
        return;
    size_t d = distance(n->word, nw, candidate, nc);
    if (d <= far && d < nw && d < n->distance) {
        n->best = candidate;
        n->distance = d;
    }
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
