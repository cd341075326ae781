#include "stage_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "asking.h"
#include "conf/wording.h"

enum { KEY_NAME = 200 }; /* bytes of a name in a wait row's key */

/* ---- stages ---- */

/* A member that may be null or not there: below zero then. */
static double number_of(const json_t *s, const char *key)
{
    const json_t *v = json_object_get(s, key);
    return json_is_number(v) ? json_number_value(v) : -1;
}

static void add(struct trp_stage_row *r, const json_t *s)
{
    int64_t began = trp_asking_int(s, "began"), ended = trp_asking_int(s, "ended");
    double rate = number_of(s, "rate"), left = number_of(s, "left");
    r->stages++;
    r->tasks += trp_asking_int(s, "tasks");
    r->done += trp_asking_int(s, "done");
    r->running += trp_asking_int(s, "running");
    r->pending += trp_asking_int(s, "pending");
    r->given_up += trp_asking_int(s, "given_up");
    r->skipped += trp_asking_int(s, "skipped");
    r->failures += trp_asking_int(s, "failures");
    if (began && began < r->began)
        r->began = began;
    if (ended > r->ended)
        r->ended = ended;
    r->open |= !ended;
    if (rate >= 0)
        r->rate = (r->rate > 0 ? r->rate : 0) + rate;
    if (!ended && (left < 0 || r->left < 0))
        r->left = -1;
    else if (!ended && (int64_t)left > r->left)
        r->left = (int64_t)left;
}

static struct trp_stage_row *row_of(struct trp_stage_row **table, const json_t *s,
                                    uint32_t place, bool together)
{
    struct trp_stage_row *r = NULL;
    char key[TRP_ROW_KEY], stem[TRP_ROW_NAME];
    const char *state = trp_asking_text(s, "state"), *name = trp_asking_text(s, "name");
    snprintf(stem, sizeof stem, "%s", name);
    if (together)
        trp_name_stem(name, stem, sizeof stem);
    snprintf(key, sizeof key, "%s/%s", state, stem);
    if (!together)
        snprintf(key, sizeof key, "%u", place);
    HASH_FIND_STR(*table, key, r);
    if (r) /* it is not alone any more */
        snprintf(r->name, sizeof r->name, "%s", stem);
    if (r || !(r = calloc(1, sizeof *r)))
        return r;
    strcpy(r->key, key);
    snprintf(r->name, sizeof r->name, "%s", name);
    r->state = state;
    r->profile = trp_asking_text(s, "profile");
    r->began = INT64_MAX;
    r->rate = -1;
    r->place = place;
    HASH_ADD_STR(*table, key, r);
    return r;
}

struct trp_stage_row *trp_stage_rows_make(const json_t *stages, enum trp_stages_as as)
{
    struct trp_stage_row *table = NULL;
    const json_t *s;
    size_t i;
    json_array_foreach(stages, i, s) {
        bool runs = strcmp(trp_asking_text(s, "state"), "running") == 0;
        bool together =
            as == TRP_STAGES_TOGETHER || (as == TRP_STAGES_RUNNING_EACH && !runs);
        struct trp_stage_row *r = row_of(&table, s, (uint32_t)i, together);
        if (r)
            add(r, s);
    }
    return table;
}

bool trp_stage_row_ended_well(const struct trp_stage_row *r)
{
    return strcmp(r->state, "succeeded") == 0;
}

void trp_stage_rows_free(struct trp_stage_row *take_rows)
{
    struct trp_stage_row *r, *next;
    HASH_ITER(hh, take_rows, r, next) {
        HASH_DEL(take_rows, r);
        free(r);
    }
}

struct trp_stage_sums trp_stage_sums_of(const json_t *stages)
{
    struct trp_stage_sums sums = {0};
    const json_t *s;
    size_t i;
    json_array_foreach(stages, i, s) {
        sums.stages++;
        sums.ended += trp_asking_int(s, "ended") != 0;
        sums.running += trp_asking_int(s, "running");
        sums.lost += trp_asking_int(s, "given_up") + trp_asking_int(s, "skipped");
        sums.failures += trp_asking_int(s, "failures");
    }
    return sums;
}

char *trp_run_line(const json_t *document, char *buf, size_t size)
{
    struct trp_stage_sums sums = trp_stage_sums_of(json_object_get(document, "stages"));
    char took[32], on[300] = "", status[48] = "", lost[64] = "";
    const char *host = trp_asking_text(document, "host");
    int64_t ended = trp_asking_int(document, "ended");
    trp_asking_time((ended ? ended : trp_asking_int(document, "now")) -
                        trp_asking_int(document, "started"),
                    took, sizeof took);
    if (*host)
        snprintf(on, sizeof on, " on %s", host);
    if (ended)
        snprintf(status, sizeof status, ", exit status %" PRId64,
                 trp_asking_int(document, "exit"));
    if (sums.lost)
        snprintf(lost, sizeof lost, ", %" PRId64 " given up or skipped", sums.lost);
    snprintf(buf, size,
             "%s: %s%s, %s%s%s; %" PRId64 " of %" PRId64 " tasks done, %" PRId64
             " running%s",
             trp_asking_text(document, "run"), trp_asking_text(document, "status"), on,
             ended ? "" : "for ", took, status, trp_asking_int(document, "done"),
             trp_asking_int(document, "tasks"), sums.running, lost);
    return buf;
}

/* ---- what is waited for ---- */

struct trp_stage_row *trp_wait_rows_make(const json_t *stages, bool each)
{
    struct trp_stage_row *table = NULL;
    const json_t *s;
    size_t i;
    json_array_foreach(stages, i, s) {
        char why[TRP_ROW_KEY], name[TRP_ROW_NAME], key[TRP_ROW_KEY];
        struct trp_stage_row *r = NULL;
        const char *text = trp_asking_text(s, "why");
        if (!*text)
            continue;
        snprintf(name, sizeof name, "%s", trp_asking_text(s, "name"));
        snprintf(why, sizeof why, "%.690s", text);
        if (!each) {
            trp_name_stem(trp_asking_text(s, "name"), name, sizeof name);
            trp_name_stem(text, why, sizeof why - 1);
        }
        snprintf(key, sizeof key, "%.*s: %.490s", KEY_NAME, name, why);
        HASH_FIND_STR(table, key, r);
        if (!r && (r = calloc(1, sizeof *r))) {
            strcpy(r->key, key);
            snprintf(r->name, sizeof r->name, "%s", trp_asking_text(s, "name"));
            r->state = text;
            HASH_ADD_STR(table, key, r);
        }
        if (r && r->stages++ == 1)
            snprintf(r->name, sizeof r->name, "%s", name);
    }
    return table;
}

const char *trp_wait_row_why(const struct trp_stage_row *r)
{
    return r->stages > 1 ? r->key + strnlen(r->name, KEY_NAME) + 2 : r->state;
}
