/*
 * Writing JSON text into a growing buffer, in the order it is to have, without blanks.
 *
 * Not by jansson: it refuses strings that are no valid UTF-8, and names of files and
 * error texts of commands may be any bytes. Here a byte that belongs to no valid
 * sequence becomes U+FFFD. Also a task's two lines are made a million times a run, and
 * most of their text is constant: it is copied, not built.
 *
 *     struct trp_buf b = {0};
 *     TRP_JSON(&b, "{\"Event\":\"TroupeMessage\"");
 *     TRP_JSON_TEXT(&b, "Text", text);
 *     TRP_JSON(&b, "}\n");
 */
#ifndef TRP_EVENTS_JSON_TEXT_H
#define TRP_EVENTS_JSON_TEXT_H

#include "core/base/amount.h"
#include "core/base/bytes.h"

/* A constant piece of text. */
#define TRP_JSON(b, literal) trp_put_raw((b), "" literal, sizeof(literal) - 1)
/* `,"NAME":` and its value: a member that is not the first. `name` is constant. */
#define TRP_JSON_INT(b, name, v) TRP_JSON_MEMBER(b, name, int, (int64_t)(v))
#define TRP_JSON_QUOTED(b, name, v) TRP_JSON_MEMBER(b, name, quoted, (int64_t)(v))
#define TRP_JSON_TEXT(b, name, v) TRP_JSON_MEMBER(b, name, text, v)
#define TRP_JSON_BOOL(b, name, v) TRP_JSON_MEMBER(b, name, bool, v)
#define TRP_JSON_AMOUNT(b, name, v) TRP_JSON_MEMBER(b, name, amount, v)
#define TRP_JSON_MEMBER(b, name, kind, v)                                              \
    (TRP_JSON(b, ",\"" name "\":"), trp_json_##kind(b, v))

/* A comma, unless the text, or the array or object in it, has only begun. */
void trp_json_comma(struct trp_buf *b);

/* `n` bytes as a quoted, escaped string. */
void trp_json_string(struct trp_buf *b, const char *s, size_t n);
void trp_json_text(struct trp_buf *b, const char *s); /* to the NUL; NULL: "" */
void trp_json_int(struct trp_buf *b, int64_t v);
void trp_json_quoted(struct trp_buf *b, int64_t v); /* "7": ids of Spark's executors */
void trp_json_bool(struct trp_buf *b, bool v);
/* As a decimal fraction ("0.5", "2.0"), whatever the locale. */
void trp_json_amount(struct trp_buf *b, trp_amount v);

#endif
