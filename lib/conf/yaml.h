/*
 * YAML files as a tree that remembers where everything stands, and the checks that all
 * of our files share.
 *
 * Form. One document of mappings, lists and scalars. A key is a scalar and stands once
 * in its mapping. An alias is a copy of what its anchor names, `<<` is done
 * (yaml_alias.h). Refused, each with its place: tags, more than TRP_YAML_DEPTH levels
 * or TRP_YAML_VALUES values, a second document, bytes that are not UTF-8 text, a file
 * above TRP_PIPELINE_FILE_MAX.
 *
 * Errors. Bad syntax is told at once. Everything else is handed to trp_yaml_wrong,
 * which keeps the first TRP_YAML_WRONGS by place in the file, one a place, so readers go on
 * after an error and never pass one up; what a reader returns after an error is a
 * harmless value. trp_yaml_verdict tells at the end.
 *
 *     static TRP_YAML_READER(read_size) …
 *     if (trp_yaml_load(file, &arena, &y, err) < 0) …
 *     TRP_YAML_MAPPING(y, trp_yaml_root(y), "the file", &box,
 *                      TRP_YAML_READ("size", read_size, .required = true));
 *     code = trp_yaml_verdict(y, err);
 *     trp_yaml_free(y);
 */
#ifndef TRP_CONF_YAML_H
#define TRP_CONF_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/arena.h"
#include "conf/pipeline.h"
#include "core/base/error.h"

enum {
    TRP_YAML_DEPTH = 32,
    TRP_YAML_VALUES = 2000000, /* keys, values and items in a file */
    TRP_YAML_WRONGS = 20,      /* errors that are told */
};

enum trp_yaml_kind {
    TRP_YAML_SCALAR,
    TRP_YAML_LIST,
    TRP_YAML_MAPPING,
    TRP_YAML_REFUSED, /* its error is told already: readers say nothing more */
};

struct trp_yaml_node {
    enum trp_yaml_kind kind;
    bool plain; /* scalar without quotes: may be a number or true */
    struct trp_mark mark;
    const char *text; /* scalar: NUL-terminated, `size` bytes; "" otherwise */
    size_t size;
    uint32_t count; /* list: items; mapping: pairs */
    struct trp_yaml_node *first;
    struct trp_yaml_node *next; /* in a mapping: key, value, key, value, … */
};

typedef struct trp_yaml trp_yaml;

/* Reads and parses. `keep` is where readers put what outlives the tree. TRP_EINVAL: no
 * such file, a directory, too large, not text, bad syntax. TRP_ESYSTEM: the disk. */
int trp_yaml_load(const char *file, struct trp_conf_arena *keep, trp_yaml **ret,
                  trp_error *err);
/* The same from memory; `file` is for messages. */
int trp_yaml_parse(const char *file, const char *text, size_t size,
                   struct trp_conf_arena *keep, trp_yaml **ret, trp_error *err);
/* From memory where there is a text, else from the file. */
int trp_yaml_open(const char *file, const char *text, size_t size,
                  struct trp_conf_arena *keep, trp_yaml **ret, trp_error *err);
void trp_yaml_free(trp_yaml *y);
/* Reads another file beside it, whose nodes live as long and whose errors are told among
 * its own; `file` is kept by the caller. Its root, or NULL after an error. */
struct trp_yaml_node *trp_yaml_include(trp_yaml *y, const char *file, const char *text,
                                       size_t size);

const struct trp_yaml_node *trp_yaml_root(const trp_yaml *y);
/* The same, for what changes the tree before it is read. */
struct trp_yaml_node *trp_yaml_tree(trp_yaml *y);
/* Gives a node another value, a scalar; `plain` as in the node. The text is copied. */
void trp_yaml_set_text(trp_yaml *y, struct trp_yaml_node *node, const char *text,
                       size_t size, bool plain);
/* Where the `word` stands that begins at byte `offset` of a scalar, as it was read; the
 * scalar itself when it is written in another way (by escapes). */
struct trp_mark trp_yaml_place(trp_yaml *y, const struct trp_yaml_node *node,
                               size_t offset, const char *word, size_t size);
struct trp_conf_arena *trp_yaml_keep(trp_yaml *y);
/* Zeroed memory of it; NULL: none left, which the verdict tells. */
void *trp_yaml_alloc(trp_yaml *y, size_t count, size_t size);

/* Notes an error: "what is wrong; what to do". False, for readers to return. */
bool trp_yaml_wrong(trp_yaml *y, struct trp_mark at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What was told last is wrong with all of the value at `at`, wherever in it that is: what
 * a reader has to say of the value comes after it. */
void trp_yaml_wrong_of(trp_yaml *y, struct trp_mark at);
/* Would an error at `at` be told? Ask before costly wording. */
bool trp_yaml_would_tell(const trp_yaml *y, struct trp_mark at);
/* Tells of keys that stand twice in a mapping, or are none. */
void trp_yaml_check_keys(trp_yaml *y, const struct trp_yaml_node *mapping);
/* An allocation failed: the verdict is TRP_ENOMEM whatever else is wrong. */
void trp_yaml_no_memory(trp_yaml *y);
/* 0, or the first error. */
int trp_yaml_verdict(const trp_yaml *y, trp_error *err);
/* The same for who can tell several: all but the last are told, which is in `err`. `tell` may be
 * NULL. */
typedef void trp_yaml_tell(void *context, const char *text);
int trp_yaml_verdict_told(const trp_yaml *y, trp_yaml_tell *tell, void *context,
                          trp_error *err);

/* `code` with the text "FILE:LINE:COL: …"; for errors found after the tree is gone. */
int trp_error_at(trp_error *err, int code, const char *file, struct trp_mark at,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* a stands before b. */
bool trp_mark_before(struct trp_mark a, struct trp_mark b);

/* ---- readers (yaml_read.c). `what` names the thing in errors: "tasks". ---- */

/* A reader of a key. */
#define TRP_YAML_READER(name)                                                          \
    void name(trp_yaml *y, __attribute__((unused)) const struct trp_yaml_node *key,    \
              const struct trp_yaml_node *value,                                       \
              __attribute__((unused)) void *context)
#define TRP_YAML_COUNT(keys) (sizeof(keys) / sizeof((keys)[0]))

/* A key of a mapping. Its value is read by `read`, or by `into` into one member of the
 * context. Offsets are from the context's start; of marks 0: there is none. */
struct trp_yaml_key {
    const char *name;
    bool required;
    TRP_YAML_READER((*read));
    void (*into)(trp_yaml *y, const struct trp_yaml_key *key,
                 const struct trp_yaml_node *value, void *member);
    size_t at;                   /* the member's offset */
    uint32_t min, max;           /* of a number */
    size_t key_mark, value_mark; /* of the trp_mark that gets the place of one */
};

/* Entries of a table of keys; what follows are members as above. */
#define TRP_YAML_READ(name_, reader, ...)                                              \
    {                                                                                  \
        .name = (name_), .read = (reader), __VA_ARGS__                                 \
    }
#define TRP_YAML_INTO(name_, how, context, member, ...)                                \
    {                                                                                  \
        .name = (name_), .into = trp_yaml_into_##how, .at = offsetof(context, member), \
        __VA_ARGS__                                                                    \
    }

/* For `into`, by the readers of the same names below. The member is a char * (word,
 * text), uint32_t (count), double (number), bool (flag), or int64_t (time, ns). */
void trp_yaml_into_word(trp_yaml *y, const struct trp_yaml_key *key,
                        const struct trp_yaml_node *value, void *member);
void trp_yaml_into_text(trp_yaml *y, const struct trp_yaml_key *key,
                        const struct trp_yaml_node *value, void *member);
void trp_yaml_into_count(trp_yaml *y, const struct trp_yaml_key *key,
                         const struct trp_yaml_node *value, void *member);
void trp_yaml_into_number(trp_yaml *y, const struct trp_yaml_key *key,
                          const struct trp_yaml_node *value, void *member);
void trp_yaml_into_flag(trp_yaml *y, const struct trp_yaml_key *key,
                        const struct trp_yaml_node *value, void *member);
void trp_yaml_into_time(trp_yaml *y, const struct trp_yaml_key *key,
                        const struct trp_yaml_node *value, void *member);

/* Calls the reader of each key, in the order of the file. False: not a mapping, or a
 * key is unknown; what is missing is then not told, for it may be the misspelt one. */
bool trp_yaml_mapping(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                      const struct trp_yaml_key *keys, size_t nkeys, void *context);
/* The same with these keys. */
#define TRP_YAML_MAPPING(y, node, what, context, ...)                                  \
    trp_yaml_mapping(y, node, what, (const struct trp_yaml_key[]){__VA_ARGS__},        \
                     TRP_YAML_COUNT(((const struct trp_yaml_key[]){__VA_ARGS__})),     \
                     context)
bool trp_yaml_is_key(const struct trp_yaml_node *key, const char *name);
/* Is it a mapping (list)? Tells when not. */
bool trp_yaml_is_mapping(trp_yaml *y, const struct trp_yaml_node *node,
                         const char *what);
bool trp_yaml_is_list(trp_yaml *y, const struct trp_yaml_node *node, const char *what);
/* Has it at most so many entries? */
bool trp_yaml_is_bounded(trp_yaml *y, const struct trp_yaml_node *node,
                         const char *what, uint32_t most);
bool trp_yaml_is_scalar(trp_yaml *y, const struct trp_yaml_node *node,
                        const char *what);

/* The version of a kind of files, by its key: it must be 1. */
void trp_yaml_version(trp_yaml *y, const struct trp_yaml_node *node, const char *kind,
                      const char *key);

/* A scalar as written, kept; without NUL bytes. NULL after an error. */
char *trp_yaml_text(trp_yaml *y, const struct trp_yaml_node *node, const char *what);
/* The same, and not empty. */
char *trp_yaml_word(trp_yaml *y, const struct trp_yaml_node *node, const char *what);
/* A list of scalars as written; NULL when empty or wrong. */
char **trp_yaml_texts(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                      uint32_t *ret_count);
/* A mapping of names to scalars as written; marks are the values'. */
struct trp_pair *trp_yaml_pairs(trp_yaml *y, const struct trp_yaml_node *node,
                                const char *what, uint32_t *ret_count);
/* False after an error; *ret is then as it was. */
bool trp_yaml_whole(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                    int64_t min, int64_t max, int64_t *ret);
/* The same of what fits. */
bool trp_yaml_count(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                    uint32_t min, uint32_t max, uint32_t *ret);
bool trp_yaml_number(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                     double min, double max, double *ret);
bool trp_yaml_bool(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                   bool *ret);
bool trp_yaml_memory(trp_yaml *y, const struct trp_yaml_node *node, const char *what,
                     int64_t *ret_mib);

#endif
