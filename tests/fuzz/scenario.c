/*
 * Scenario files: any bytes are run, or are an error with its place. What they say may
 * be wrong, so points may fail; but TAP stays TAP, a trace is a JSON object a line, and
 * the same file says the same again.
 */
#include <jansson.h>
#include <string.h>

#include "conf_error.h"
#include "sim/scenario/scenario.h"

struct told {
    char *text;
    size_t size;
    struct trp_sim_totals totals;
};

/* False: it is no scenario. */
static bool run(const uint8_t *data, size_t size, bool trace, struct told *ret)
{
    trp_error err = {0};
    *ret = (struct told){
        .totals = {.points = 3, .failed = 1}
    };
    FILE *out = open_memstream(&ret->text, &ret->size);
    if (!out)
        abort();
    int rc = trp_sim_scenario("s.yaml", (const char *)data, size, trace, out,
                              &ret->totals, &err);
    fclose(out);
    if (rc == 0)
        return true;
    conf_check_error(rc, &err, "s.yaml:");
    FUZZ_CHECK(ret->size == 0 && ret->totals.points == 3 && ret->totals.failed == 1,
               "what is no scenario says something");
    return false;
}

static void check_tap(const struct told *t)
{
    uint32_t points = 3, failed = 1, number;
    for (const char *line = t->text; *line; line = strchr(line, '\n') + 1) {
        bool good = strncmp(line, "ok ", 3) == 0,
             bad = strncmp(line, "not ok ", 7) == 0;
        FUZZ_CHECK(good || bad || *line == '#' || *line == ' ', "not TAP: %s", line);
        FUZZ_CHECK(strchr(line, '\n'), "a line without an end: %s", line);
        if (!good && !bad)
            continue;
        points++;
        failed += bad;
        FUZZ_CHECK(sscanf(line + (good ? 3 : 7), "%u - ", &number) == 1 &&
                       number == points,
                   "point %u is another: %s", points, line);
    }
    FUZZ_CHECK(points == t->totals.points && failed == t->totals.failed,
               "%u points, %u failed; %u and %u are counted", points, failed,
               t->totals.points, t->totals.failed);
    FUZZ_CHECK(points > 3, "a scenario without a point");
}

static void check_trace(const struct told *t)
{
    for (char *line = t->text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        FUZZ_CHECK(end, "a line without an end: %s", line);
        json_t *j =
            json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        FUZZ_CHECK(json_is_object(j), "not JSON: %s", line);
        json_decref(j);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct told first, again, trace;
    bool sound = run(data, size, false, &first);
    if (sound) {
        check_tap(&first);
        FUZZ_CHECK(run(data, size, false, &again) && again.size == first.size &&
                       memcmp(again.text, first.text, first.size) == 0,
                   "the same scenario says something else");
        free(again.text);
    }
    FUZZ_CHECK(run(data, size, true, &trace) == sound, "a trace of no scenario");
    check_trace(&trace);
    free(trace.text);
    free(first.text);
    return 0;
}
