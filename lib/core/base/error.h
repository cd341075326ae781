/*
 * Errors: one closed set of codes, and a text for the person who has to act.
 *
 * Every function that can fail returns 0 (or a count) or one of the negative codes
 * below. A failed call changes nothing, unless its own contract says otherwise: that is
 * the rule of the whole tree and is not repeated at each function.
 *
 * What parses input or crosses a process takes a last `trp_error *err` and fills it
 * with a text that says where (FILE:LINE:COL, stage, executor), what was wanted, what
 * was there, and what to do. `err` may be NULL everywhere.
 *
 *     trp_error err;
 *     if (trp_profile_builder_task(&b, "gpu", amount, &err) < 0)
 *         fprintf(stderr, "troupe: %s\n", err.text);
 *
 * Threads: no shared state.
 */
#ifndef TRP_CORE_BASE_ERROR_H
#define TRP_CORE_BASE_ERROR_H

enum {
    TRP_OK = 0,
    TRP_EINVAL = -1,      /* wrong call, wrong file, wrong value: exit status 2 */
    TRP_ENOMEM = -2,      /* out of memory */
    TRP_EWAIT = -3,       /* not now; may become possible by itself */
    TRP_ENEVER = -4,      /* can never be satisfied here: exit status 3 */
    TRP_EEXIST = -5,      /* already there */
    TRP_ENOENT = -6,      /* not there */
    TRP_ELIMIT = -7,      /* beyond a limit on what a user can size */
    TRP_ESYSTEM = -8,     /* the platform failed (disk, MPI, fork): exit status 4 */
    TRP_EPROTO = -9,      /* a peer sent what no peer of ours would send */
    TRP_ECANCELLED = -10, /* cancelled from outside: exit status 130 */
    TRP_EFAILED = -11,    /* the application failed (a stage gave up): exit status 1 */
    TRP_ESTATE = -12,     /* not allowed in this state */
    TRP_ETIME = -13,      /* time is up: exit status 75 */
};

enum { TRP_ERROR_TEXT = 1024 };

typedef struct trp_error {
    int code;                  /* one of the codes above, 0 when unset */
    char text[TRP_ERROR_TEXT]; /* one line, no newline, no "troupe: " in front */
} trp_error;

/* Fills `err` (may be NULL) and returns `code`, so that a failure is one statement:
 * `return trp_error_set(err, TRP_EINVAL, "task cpus %d above executor cores %d", …);`
 * The arguments may point into err->text. What is no printable UTF-8 becomes '?'; a
 * text that is too long is cut and ends in "...". */
int trp_error_set(trp_error *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The exit status that contract.md gives a code: 0, 1, 2, 3, 4, 75 or 130. */
int trp_error_exit_status(int code);

#endif
