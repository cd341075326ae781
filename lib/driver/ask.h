/*
 * Asking a run what it does: the protocol, and the side that asks. The driver answers
 * (asked.h) on a Unix socket, RUN/state/asked, which lies in a folder that only the
 * run's user may enter; both sides also ask the kernel whose process the other one is.
 *
 * A connection is one *request*, a JSON object in one line of at most TRP_ASK_MAX
 * bytes, and one *answer*, a JSON object in one line of at most TRP_ASK_ANSWER_MAX,
 * after which the driver closes:
 *
 *     {"ask": "status"}             → what troupe status --json prints
 *     {"ask": "explain"}            → why stages wait; with "stage": "NAME" of one
 *     anything else                 → {"error": "…"}
 *
 * Keys that are not known are ignored, so that a request may come from a newer troupe.
 *
 *     struct trp_ask q = {.what = TRP_ASK_STATUS};
 *     if (trp_ask_call(run_dir, &q, &answer, &err) == 0) puts(answer);
 */
#ifndef TRP_DRIVER_ASK_H
#define TRP_DRIVER_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/bytes.h"
#include "core/base/error.h"

enum {
    TRP_ASK_MAX = 4096,            /* bytes of a request, with its newline */
    TRP_ASK_ANSWER_MAX = 32 << 20, /* … of an answer */
    TRP_ASK_WAIT_MS = 5000,        /* for each of: being heard, being answered */
    TRP_ASK_STAGE = 255,           /* bytes of a stage's name */
};

enum trp_ask_what { TRP_ASK_STATUS, TRP_ASK_EXPLAIN };

struct trp_ask {
    enum trp_ask_what what;
    char stage[TRP_ASK_STAGE + 1]; /* "": all */
};

/* Reads a request, with or without its newline. TRP_EINVAL with what is wrong. */
int trp_ask_read(const char *text, size_t size, struct trp_ask *ret, trp_error *err);
/* Appends a request as a line. */
void trp_ask_put(struct trp_buf *b, const struct trp_ask *q);

/* RUN/state/asked, opened for others (`run_dir` is held). -1 with errno: the file
 * system has no sockets, say. */
int trp_ask_listen(const char *run_dir);
void trp_ask_unlink(const char *run_dir);

/* Asks the driver of a run on this host. *ret_answer: its line without the newline,
 * malloc'ed. TRP_ENOENT: nobody answers there; TRP_EWAIT: not within TRP_ASK_WAIT_MS;
 * TRP_ESYSTEM: somebody else, or no whole answer. */
int trp_ask_call(const char *run_dir, const struct trp_ask *q, char **ret_answer,
                 trp_error *err);

/* `troupe-rank ask RUN_DIR`, on the driver's node: hands on requests, a line each, from
 * stdin, and answers on stdout, until stdin ends. {"nobody":TEXT} where no driver answers.
 * Returns the exit status. */
int trp_ask_main(const char *run_dir);

#endif
