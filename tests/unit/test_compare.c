/*
 * What a scenario wants against what was got.
 */
#include <glib.h>
#include <string.h>

#include "sim/scenario/compare.h"
#include "unit.h"

/* `wanted` is YAML, `got` JSON (NULL: nothing). */
static bool matches(const char *wanted, const char *got, struct trp_sim_compare how)
{
    struct trp_conf_arena keep = {0};
    trp_yaml *y;
    trp_error err = {0};
    g_assert_cmpint(trp_yaml_parse("w", wanted, strlen(wanted), &keep, &y, &err), ==,
                    0);
    json_t *j = got ? json_loads(got, JSON_DECODE_ANY, NULL) : NULL;
    g_assert_true(j || !got);
    bool same = trp_sim_matches(trp_yaml_root(y), j, how);
    json_decref(j);
    trp_yaml_free(y);
    trp_conf_arena_free(&keep);
    return same;
}

#define SAME(wanted, got) g_assert_true(matches(wanted, got, plain))
#define DIFFERENT(wanted, got) g_assert_false(matches(wanted, got, plain))

static const struct trp_sim_compare plain;

TEST("numbers in any spelling, words, truth")
{
    SAME("3", "3");
    SAME("3.0", "3");
    SAME("\"3\"", "3");
    SAME("3e0", "3");
    SAME("6/2", "3");
    SAME("-3", "-3");
    SAME("61000000", "61000000");
    SAME("9007199254740993", "9007199254740993");
    DIFFERENT("9007199254740992", "9007199254740993");
    DIFFERENT("3", "4");
    DIFFERENT("three", "3");
    DIFFERENT("1/0", "3");
    DIFFERENT("nan", "3");
    SAME("4g", "4096");
    SAME("true", "true");
    DIFFERENT("true", "false");
    DIFFERENT("1", "true");
    SAME("e1", "\"e1\"");
    DIFFERENT("e1", "\"e2\"");
    SAME("1.0", "\"1\"");
    DIFFERENT("[1]", "1");
    DIFFERENT("{a: 1}", "1");
}

TEST("amounts are exact but for what was cut")
{
    SAME("1/3", "0.333333333333");
    SAME("2/3", "0.666666666667");
    SAME("0", "0.000000000001");
    SAME("0.01", "0.01");
    SAME(".01", "0.01");
    SAME("1e-2", "0.01");
    DIFFERENT("0.01", "0.010001");
    DIFFERENT("1/3", "0.33");
}

TEST("nothing is empty, none, 0")
{
    static const char *const empty[] = {"none", "[]", "{}", "0", "false", "never", "~"};
    for (size_t i = 0; i < G_N_ELEMENTS(empty); i++) {
        SAME(empty[i], NULL);
        SAME(empty[i], "null");
    }
    SAME("[]", "[]");
    SAME("none", "[]");
    SAME("none", "\"none\"");
    SAME("{}", "{}");
    SAME("{}", "{\"a\": 1}");
    DIFFERENT("[]", "[1]");
    DIFFERENT("[1]", "[]");
    DIFFERENT("1", NULL);
    DIFFERENT("{a: 1}", NULL);
    DIFFERENT("[]", "\"none\"");
}

TEST("lists are sets unless in order")
{
    const struct trp_sim_compare ordered = {.in_order = true};
    SAME("[a, b]", "[\"b\", \"a\"]");
    DIFFERENT("[a, a]", "[\"b\", \"a\"]");
    DIFFERENT("[a]", "[\"a\", \"a\"]");
    g_assert_true(matches("[a, b]", "[\"a\", \"b\"]", ordered));
    g_assert_false(matches("[a, b]", "[\"b\", \"a\"]", ordered));
    g_assert_false(matches("{x: [[a, b]]}", "{\"x\": [[\"b\", \"a\"]]}", ordered));
}

/* The first entry matches both; only the second choice leaves one for the other. */
TEST("partial entries find the entry they need")
{
    SAME("[{set: A}, {set: A, task: 0}]",
         "[{\"set\": \"A\", \"task\": 0}, {\"set\": \"A\", \"task\": 1}]");
    SAME("[{set: A}, {}, {task: 0}]",
         "[{\"set\": \"A\", \"task\": 0}, {\"set\": \"A\", "
         "\"task\": 1}, {\"set\": \"B\", \"task\": 1}]");
    DIFFERENT("[{task: 0}, {task: 0}]",
              "[{\"set\": \"A\", \"task\": 0}, {\"set\": \"A\", \"task\": 1}]");
}

/* n entries of which entry i matches what was got from i on, last one first. */
TEST("a thousand entries")
{
    const int n = 1000;
    GString *wanted = g_string_new("["), *got = g_string_new("[");
    for (int i = 0; i < n; i++) {
        g_string_append_printf(wanted, "%s{%s: 1}", i ? "," : "", i % 2 ? "a" : "b");
        g_string_append_printf(got, "%s{\"a\": %d, \"b\": %d}", i ? "," : "", i < n / 2,
                               i >= n / 2 - 1);
    }
    g_string_append(wanted, "]");
    g_string_append(got, "]");
    SAME(wanted->str, got->str);
    g_string_free(wanted, TRUE);
    g_string_free(got, TRUE);
}

TEST("keys that are written, or all")
{
    const struct trp_sim_compare how = {.ordered = "levels assigned",
                                        .wholes = "executor task"};
    SAME("{a: 1}", "{\"a\": 1, \"b\": 2}");
    DIFFERENT("{c: 1}", "{\"a\": 1}");
    SAME("{c: []}", "{\"a\": 1}");
    SAME("{c: 0}", "{\"a\": 1}");
    DIFFERENT("{a: 1}", "[1]");
    SAME("{0: [h1]}", "{\"0\": [\"h1\"]}");
    g_assert_true(matches("{executor: {cores: 1}, x: {y: 1}}",
                          "{\"executor\": {\"cores\": 1}, \"x\": {\"y\": 1, \"z\": 2}}",
                          how));
    g_assert_false(matches("{executor: {cores: 1}}",
                           "{\"executor\": {\"cores\": 1, \"gpu\": 2}}", how));
    g_assert_false(matches("{executor: {}}", "{\"executor\": {\"cores\": 1}}", how));
    g_assert_false(matches("{executor: {}}", "{}", how));
    g_assert_false(
        matches("{levels: {A: [x, y]}}", "{\"levels\": {\"A\": [\"y\", \"x\"]}}", how));
    g_assert_true(
        matches("{tasks: {A: [x, y]}}", "{\"tasks\": {\"A\": [\"y\", \"x\"]}}", how));
}

TEST("texts whatever their case")
{
    g_assert_true(trp_sim_contains("Disk full on h1", "disk FULL"));
    g_assert_true(trp_sim_contains("ab", "b"));
    g_assert_true(trp_sim_contains("", ""));
    g_assert_false(trp_sim_contains("ab", "abc"));
    g_assert_false(trp_sim_contains("", "a"));
}

TEST("what was wanted is shown as JSON")
{
    static const char text[] = "{a: [1, x, \"1\", true], b: {c: 1/3}}";
    struct trp_conf_arena keep = {0};
    trp_yaml *y;
    trp_error err;
    g_assert_cmpint(trp_yaml_parse("w", text, strlen(text), &keep, &y, &err), ==, 0);
    json_t *j = trp_sim_json_of(trp_yaml_root(y));
    char *out = json_dumps(j, JSON_COMPACT);
    g_assert_cmpstr(out, ==, "{\"a\":[1,\"x\",\"1\",true],\"b\":{\"c\":\"1/3\"}}");
    free(out);
    json_decref(j);
    trp_yaml_free(y);
    trp_conf_arena_free(&keep);
}
