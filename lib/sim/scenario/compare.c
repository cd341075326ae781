/*
 * Entries of a list may be partial (`{task: 0}` matches several launches), so taking
 * the first that matches is not enough: a maximum matching is searched by augmenting
 * paths (Kuhn). The table of what matches what is made once; in nearly all cases the
 * first choice of each entry is free and the search is a scan.
 */
#include "sim/scenario/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/scalars.h"
#include "core/base/amount.h"
#include "core/profile/profile.h"
#include "sim/scenario/case.h"

/* ---- scalars ---- */

/* "3", "-0.5", "1/3", "1e3"; false: not a number. */
static bool read_number(const char *text, double *ret)
{
    int64_t whole;
    trp_amount amount;
    const char *slash = strchr(text, '/');
    char above[32];
    double a, b;
    if (trp_whole_parse(text, &whole)) {
        *ret = (double)whole;
        return true;
    }
    if (*text == '-' && text[1] != '-' && read_number(text + 1, ret)) {
        *ret = -*ret;
        return true;
    }
    if (slash && (size_t)(slash - text) < sizeof(above)) {
        snprintf(above, sizeof(above), "%.*s", (int)(slash - text), text);
        if (!trp_number_parse(above, &a) || !trp_number_parse(slash + 1, &b) || b == 0)
            return false;
        *ret = a / b;
        return true;
    }
    if (trp_number_parse(text, ret))
        return true;
    if (trp_amount_parse(text, &amount, NULL) < 0)
        return false;
    *ret = trp_amount_to_double(amount);
    return true;
}

static bool is_number(const struct trp_yaml_node *wanted, const json_t *got)
{
    int64_t whole;
    double v;
    if (json_is_integer(got) && trp_whole_parse(wanted->text, &whole))
        return whole == json_integer_value(got);
    if (read_number(wanted->text, &v))
        return fabs(v - json_number_value(got)) <= 1e-9;
    if (json_is_integer(got) && trp_memory_parse(wanted->text, &whole, NULL) == 0)
        return whole == json_integer_value(got);
    return false;
}

static bool is_nothing(const struct trp_yaml_node *wanted)
{
    static const char words[] = "none null never ~ false False FALSE 0 0.0";
    if (wanted->kind != TRP_YAML_SCALAR)
        return wanted->count == 0;
    return wanted->size == 0 || trp_sim_is_word(words, wanted->text, wanted->size);
}

static bool scalar_matches(const struct trp_yaml_node *wanted, const json_t *got)
{
    bool truth;
    double a, b;
    if (strlen(wanted->text) != wanted->size)
        return false;
    if (json_is_boolean(got))
        return trp_bool_parse(wanted->text, &truth) && truth == json_is_true(got);
    if (json_is_number(got))
        return is_number(wanted, got);
    if (!json_is_string(got))
        return json_is_null(got) && is_nothing(wanted);
    if (!strcmp(wanted->text, json_string_value(got)))
        return true;
    return read_number(wanted->text, &a) && read_number(json_string_value(got), &b) &&
           a == b;
}

bool trp_sim_contains(const char *text, const char *part)
{
    size_t n = strlen(part);
    for (; *text; text++) {
        if (strncasecmp(text, part, n) == 0)
            return true;
    }
    return n == 0;
}

/* ---- lists ---- */

struct matching {
    size_t n;
    const bool *fits; /* wanted × got */
    size_t *taken_by; /* got → wanted, n: free */
    bool *seen;
};

static bool augment(struct matching *m, size_t wanted)
{
    for (size_t got = 0; got < m->n; got++) {
        if (!m->fits[wanted * m->n + got] || m->seen[got])
            continue;
        m->seen[got] = true;
        if (m->taken_by[got] == m->n || augment(m, m->taken_by[got])) {
            m->taken_by[got] = wanted;
            return true;
        }
    }
    return false;
}

static bool all_matched(size_t n, const bool *fits)
{
    struct matching m = {.n = n, .fits = fits};
    bool all = true;
    m.taken_by = malloc(n * sizeof(*m.taken_by));
    m.seen = malloc(n * sizeof(*m.seen));
    for (size_t i = 0; m.taken_by && i < n; i++)
        m.taken_by[i] = n;
    for (size_t i = 0; all && i < n; i++) {
        if (!m.taken_by || !m.seen) {
            all = false;
            break;
        }
        memset(m.seen, 0, n * sizeof(*m.seen));
        all = augment(&m, i);
    }
    free(m.taken_by);
    free(m.seen);
    return all;
}

static bool set_matches(const struct trp_yaml_node *wanted, const json_t *got,
                        struct trp_sim_compare how)
{
    size_t n = wanted->count, i = 0;
    bool *fits = calloc(n, n * sizeof(*fits));
    if (!fits)
        return false;
    for (const struct trp_yaml_node *w = wanted->first; w; w = w->next, i++) {
        for (size_t j = 0; j < n; j++)
            fits[i * n + j] = trp_sim_matches(w, json_array_get(got, j), how);
    }
    bool all = all_matched(n, fits);
    free(fits);
    return all;
}

static bool list_matches(const struct trp_yaml_node *wanted, const json_t *got,
                         struct trp_sim_compare how)
{
    size_t i = 0;
    if (!json_is_array(got) || json_array_size(got) != wanted->count)
        return false;
    if (!how.in_order)
        return set_matches(wanted, got, how);
    for (const struct trp_yaml_node *w = wanted->first; w; w = w->next) {
        if (!trp_sim_matches(w, json_array_get(got, i++), how))
            return false;
    }
    return true;
}

/* ---- mappings ---- */

static bool mapping_matches(const struct trp_yaml_node *wanted, const json_t *got,
                            struct trp_sim_compare how)
{
    if (!json_is_object(got) || (how.whole && json_object_size(got) != wanted->count))
        return false;
    for (const struct trp_yaml_node *k = wanted->first; k; k = k->next->next) {
        struct trp_sim_compare below = how;
        if (k->kind != TRP_YAML_SCALAR)
            return false;
        if (how.ordered)
            below.in_order |= trp_sim_is_word(how.ordered, k->text, k->size);
        below.whole = how.wholes && trp_sim_is_word(how.wholes, k->text, k->size);
        if (!trp_sim_matches(k->next, json_object_get(got, k->text), below))
            return false;
    }
    return true;
}

bool trp_sim_matches(const struct trp_yaml_node *wanted, const json_t *got,
                     struct trp_sim_compare how)
{
    if (!got || json_is_null(got))
        return is_nothing(wanted) && !how.whole;
    switch (wanted->kind) {
    case TRP_YAML_SCALAR:
        return scalar_matches(wanted, got) ||
               (is_nothing(wanted) && json_is_array(got) && json_array_size(got) == 0);
    case TRP_YAML_LIST:
        return list_matches(wanted, got, how);
    case TRP_YAML_MAPPING:
        return mapping_matches(wanted, got, how);
    case TRP_YAML_REFUSED:
        break;
    }
    return false;
}

/* ---- for diagnostics ---- */

static json_t *json_of_scalar(const struct trp_yaml_node *node)
{
    int64_t whole;
    bool truth;
    if (node->plain && trp_whole_parse(node->text, &whole))
        return json_integer(whole);
    if (node->plain && trp_bool_parse(node->text, &truth))
        return json_boolean(truth);
    return json_stringn(node->text, node->size);
}

json_t *trp_sim_json_of(const struct trp_yaml_node *node)
{
    if (node->kind == TRP_YAML_SCALAR)
        return json_of_scalar(node);
    json_t *v = node->kind == TRP_YAML_LIST ? json_array() : json_object();
    for (const struct trp_yaml_node *n = node->first; n && v;) {
        bool pair = node->kind == TRP_YAML_MAPPING;
        json_t *below = trp_sim_json_of(pair ? n->next : n);
        if ((pair ? json_object_set_new(v, n->text, below)
                  : json_array_append_new(v, below)) != 0) {
            json_decref(v);
            return NULL;
        }
        n = pair ? n->next->next : n->next;
    }
    return v;
}

json_t *trp_sim_json_amount(trp_amount amount)
{
    return trp_amount_is_whole(amount) ? json_integer(amount / TRP_ONE)
                                       : json_real(trp_amount_to_double(amount));
}

json_t *trp_sim_json_time(int64_t ns)
{
    if (ns == INT64_MAX)
        return json_string("never");
    return ns % 1000000 == 0 ? json_integer(ns / 1000000) : json_real((double)ns / 1e6);
}
