/*
 * The stages of a status document (asking.h) as rows of a table, and what they wait for.
 * Those whose names differ in the number at their end and that are in the same state can
 * be one row.
 *
 *     struct trp_stage_row *rows = trp_stage_rows_make(stages, TRP_STAGES_TOGETHER);
 *     HASH_SORT(rows, by_time);
 *     for (r = rows; r; r = r->hh.next) …
 *     trp_stage_rows_free(rows);
 */
#ifndef TRP_LAUNCHER_STAGE_ROWS_H
#define TRP_LAUNCHER_STAGE_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

enum { TRP_ROW_NAME = 300, TRP_ROW_KEY = 700 };

enum trp_stages_as {
    TRP_STAGES_EACH,         /* each in a row of its own */
    TRP_STAGES_TOGETHER,     /* those that are alike in one */
    TRP_STAGES_RUNNING_EACH, /* the same, but for those that run */
};

/* Texts are borrowed from the document. */
struct trp_stage_row {
    char key[TRP_ROW_KEY]; /* of wait rows: "NAME: WHY" */
    const char *state, *profile;
    char name[TRP_ROW_NAME]; /* or the stem of names */
    uint32_t stages;
    int64_t tasks, done, running, pending, given_up, skipped, failures;
    int64_t began, ended; /* ms: the first, the last; began INT64_MAX: none has */
    bool open;            /* one has not ended */
    double rate;          /* tasks a second, of those where it is known; < 0: of none */
    int64_t left;         /* ms: the longest; -1: of one that is open it is not known */
    uint32_t place;       /* of its first stage */
    bool shown;           /* for the caller */
    UT_hash_handle hh;
};

/* In the order of their first stages. NULL: there are none, or no memory. */
struct trp_stage_row *trp_stage_rows_make(const json_t *stages, enum trp_stages_as as);
/* What stages wait for, with `name` and, of one, its words in `state`, of several alike
 * (unless `each`) behind the name in `key`: trp_wait_row_why. */
struct trp_stage_row *trp_wait_rows_make(const json_t *stages, bool each);
const char *trp_wait_row_why(const struct trp_stage_row *r);
void trp_stage_rows_free(struct trp_stage_row *take_rows);

bool trp_stage_row_ended_well(const struct trp_stage_row *r);

/* Sums over all stages that are told. */
struct trp_stage_sums {
    int64_t stages, ended, running, lost, failures;
};
struct trp_stage_sums trp_stage_sums_of(const json_t *stages);

/* "RUN: running on HOST, for 3m05s; 4 of 9 tasks done, 2 running": of a status document.
 * Returns buf. */
char *trp_run_line(const json_t *document, char *buf, size_t size);

#endif
