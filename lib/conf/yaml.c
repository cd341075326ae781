/*
 * The tree is built from libfyaml's events, in one pass without recursion. Rejected:
 * libfyaml's own documents, which look keys up linearly, and drop or refuse a double key
 * without our wording.
 *
 * Before libfyaml sees it, the text is read through once (yaml_text.c): a wrong byte
 * gets its place, and columns are counted by us in characters (libfyaml's marks stand
 * behind an opening quote and below a `|`). Double keys are found by sorting each
 * mapping's keys: O(n log n) for any file.
 *
 * Memory: tree and texts in one arena, freed with the trp_yaml; what readers keep goes
 * to the arena of the caller. Teardown: parser, diagnostics, then the tree.
 */
#include "conf/yaml.h"

#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "conf/wording.h"
#include "conf/yaml_alias.h"
#include "conf/yaml_text.h"
#include "core/base/array.h"

enum { FILE_NAME_SHOWN = 500 };

struct key_of_mapping {
    const struct trp_yaml_node *node;
};

/* A mapping or list whose end has not come yet. */
struct open_node {
    struct trp_yaml_node *node;
    struct trp_yaml_node *last;
    uint32_t children;
    bool flow;
};

struct anchor {
    struct trp_yaml_node *node;
    UT_hash_handle hh; /* by its name */
};

/* An error, of the value at `of`. */
struct wrong {
    struct trp_mark at, of;
    const char *text;
};

struct trp_yaml {
    const char *file;
    const char *included_as; /* the same of an included one; NULL: it is not */
    trp_yaml *next;          /* included files, owned by the first */
    struct trp_yaml_text text;
    struct trp_conf_arena tree;
    struct trp_conf_arena *keep;
    struct trp_yaml_node *root;
    struct open_node stack[TRP_YAML_DEPTH];
    uint32_t depth, values;
    struct trp_yaml_node *previous; /* the node made last */
    struct key_of_mapping *keys;
    uint32_t keys_cap;
    struct anchor *anchors;
    size_t copied; /* bytes of texts that aliases repeat */
    bool stop;     /* nothing behind this can be trusted */
    bool no_memory;
    struct wrong wrong[TRP_YAML_WRONGS]; /* by place */
    uint32_t nwrong;
    struct wrong *told; /* what was told last; NULL: it was not kept */
};

/* ---- errors ---- */

bool trp_mark_before(struct trp_mark a, struct trp_mark b)
{
    if (a.file != b.file) /* of several files the including one comes first */
        return !a.file;
    return a.line != b.line ? a.line < b.line : a.column < b.column;
}

static int error_at(trp_error *err, int code, const char *own, struct trp_mark at,
                    const char *fmt, va_list args)
{
    const char *file = trp_mark_file(own, at);
    char what[TRP_ERROR_TEXT];
    size_t n = strlen(file);
    bool whole = n <= FILE_NAME_SHOWN; /* else its end, so that room is left */
    vsnprintf(what, sizeof(what), fmt, args);
    return trp_error_set(err, code, "%s%s:%u:%u: %s", whole ? "" : "…",
                         whole ? file : file + n - FILE_NAME_SHOWN, at.line, at.column,
                         what);
}

int trp_error_at(trp_error *err, int code, const char *file, struct trp_mark at,
                 const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_at(err, code, file, at, fmt, args);
    va_end(args);
    return code;
}

static bool is_at(struct trp_mark a, struct trp_mark b)
{
    return a.file == b.file && a.line == b.line && a.column == b.column;
}

bool trp_yaml_would_tell(const trp_yaml *y, struct trp_mark at)
{
    for (uint32_t i = 0; i < y->nwrong; i++)
        if (is_at(y->wrong[i].at, at) || is_at(y->wrong[i].of, at))
            return false;
    return y->nwrong < TRP_YAML_WRONGS ||
           trp_mark_before(at, y->wrong[TRP_YAML_WRONGS - 1].at);
}

/* Keeps it among the others; the last one goes when there is no room. */
static void keep_wrong(trp_yaml *y, struct wrong w)
{
    uint32_t i = 0, last = y->nwrong < TRP_YAML_WRONGS ? y->nwrong++ : y->nwrong - 1;
    while (i < last && !trp_mark_before(w.at, y->wrong[i].at))
        i++;
    memmove(&y->wrong[i + 1], &y->wrong[i], (last - i) * sizeof w);
    y->wrong[i] = w;
    y->told = &y->wrong[i];
}

bool trp_yaml_wrong(trp_yaml *y, struct trp_mark at, const char *fmt, ...)
{
    va_list args;
    trp_error e;
    y->told = NULL;
    if (!trp_yaml_would_tell(y, at))
        return false;
    va_start(args, fmt);
    error_at(&e, TRP_EINVAL, y->file, at, fmt, args);
    va_end(args);
    const char *text = trp_conf_arena_text(&y->tree, e.text, strlen(e.text));
    if (text)
        keep_wrong(y, (struct wrong){at, at, text});
    else
        trp_yaml_no_memory(y);
    return false;
}

void trp_yaml_wrong_of(trp_yaml *y, struct trp_mark at)
{
    if (y->told)
        y->told->of = at;
}

void trp_yaml_no_memory(trp_yaml *y)
{
    y->no_memory = true;
    y->stop = true;
}

int trp_yaml_verdict(const trp_yaml *y, trp_error *err)
{
    if (y->no_memory)
        return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", y->file);
    return y->nwrong ? trp_error_set(err, TRP_EINVAL, "%s", y->wrong[0].text) : 0;
}

int trp_yaml_verdict_told(const trp_yaml *y, trp_yaml_tell *tell, void *context,
                          trp_error *err)
{
    if (y->no_memory || !y->nwrong || !tell)
        return trp_yaml_verdict(y, err);
    for (uint32_t i = 0; i + 1 < y->nwrong; i++)
        tell(context, y->wrong[i].text);
    return trp_error_set(err, TRP_EINVAL, "%s", y->wrong[y->nwrong - 1].text);
}

/* An error that is told whatever else was found, and ends the reading. */
static void fatal(trp_yaml *y, struct trp_mark at, const char *what)
{
    y->nwrong = 0;
    trp_yaml_wrong(y, at, "%s", what);
    y->stop = true;
}

/* Where a value is written, given where libfyaml says that its content begins. */
static struct trp_mark written_at(trp_yaml *y, size_t at, enum fy_node_style style)
{
    bool quoted = style == FYNS_DOUBLE_QUOTED || style == FYNS_SINGLE_QUOTED;
    if ((quoted || style == FYNS_ALIAS) && at > 0)
        at--;
    else if (style == FYNS_LITERAL || style == FYNS_FOLDED)
        at = trp_yaml_text_block(&y->text, at, style == FYNS_LITERAL ? '|' : '>');
    return trp_yaml_text_mark(&y->text, at);
}

/* ---- the tree ---- */

static struct trp_yaml_node *add_node(trp_yaml *y, enum trp_yaml_kind kind,
                                      struct trp_mark mark)
{
    if (++y->values > TRP_YAML_VALUES) {
        fatal(y, mark,
              "more than 2000000 values; put items into a list file (foreach: {lines: "
              "FILE})");
        return NULL;
    }
    struct trp_yaml_node *node = trp_conf_arena_alloc(&y->tree, 1, sizeof(*node));
    if (!node) {
        trp_yaml_no_memory(y);
        return NULL;
    }
    node->kind = kind;
    node->mark = mark;
    node->mark.file = y->included_as;
    node->text = "";
    y->previous = node;
    if (y->depth == 0) {
        if (y->root) {
            fatal(y, mark, "a second document; write one document in a file");
            return NULL;
        }
        y->root = node;
        return node;
    }
    struct open_node *parent = &y->stack[y->depth - 1];
    if (parent->last)
        parent->last->next = node;
    else
        parent->node->first = node;
    parent->last = node;
    parent->children++;
    return node;
}

/* libfyaml takes lines as deep as the keys around for the text of an empty block, and
 * so swallows the keys behind it. */
static void check_block(trp_yaml *y, const struct trp_yaml_node *node, size_t content)
{
    const char *p = y->text.data + content;
    if (y->depth == 0 || strspn(node->text, "\n") == node->size)
        return;
    size_t blanks = strspn(p, " ");
    while (p[blanks] == '\n' || p[blanks] == '\r') {
        p += blanks + 1;
        blanks = strspn(p, " ");
    }
    if (blanks < y->stack[y->depth - 1].node->mark.column)
        trp_yaml_wrong(
            y, trp_yaml_text_mark(&y->text, (size_t)(p - y->text.data) + blanks),
            "a line of a text block (| or >) is no deeper than its key; "
            "indent it more");
}

/* Where a value is that is not written at all: at its key; libfyaml says that since 0.8
 * in another way. */
static struct trp_mark missing_at(const trp_yaml *y, struct trp_mark mark)
{
    const struct open_node *parent = y->depth > 0 ? &y->stack[y->depth - 1] : NULL;
    if (!parent)
        return (struct trp_mark){.line = mark.line, .column = 1};
    bool value = parent->node->kind == TRP_YAML_MAPPING && parent->children % 2 == 1;
    return value ? parent->last->mark : mark;
}

static void add_scalar(trp_yaml *y, struct fy_event *event, struct trp_mark mark)
{
    struct fy_token *token = fy_event_get_token(event);
    const struct fy_mark *m = fy_event_start_mark(event);
    enum fy_node_style style = fy_event_get_node_style(event);
    bool block = m && (style == FYNS_LITERAL || style == FYNS_FOLDED);
    bool plain = style == FYNS_PLAIN || style == FYNS_ANY;
    size_t size = 0;
    const char *text = token ? fy_token_get_text(token, &size) : NULL;
    struct trp_yaml_node *node =
        add_node(y, TRP_YAML_SCALAR, plain && size == 0 ? missing_at(y, mark) : mark);
    if (!node)
        return;
    if (!text || (block && m->input_pos >= y->text.size))
        size = 0; /* libfyaml reads a NUL behind a block at the end of the file */
    node->plain = plain;
    node->text = trp_conf_arena_text(&y->tree, text ? text : "", size);
    node->size = size;
    if (!node->text) {
        node->text = "";
        trp_yaml_no_memory(y);
    } else if (block) {
        check_block(y, node, m->input_pos);
    }
}

static void add_collection(trp_yaml *y, enum trp_yaml_kind kind, struct trp_mark mark,
                           bool flow)
{
    struct trp_yaml_node *node = add_node(y, kind, mark);
    if (!node)
        return;
    if (y->depth == TRP_YAML_DEPTH) {
        fatal(y, mark, "nested too deeply; at most 32 levels are read");
        return;
    }
    y->stack[y->depth++] = (struct open_node){.node = node, .flow = flow};
}

static int by_text_then_place(const void *a, const void *b)
{
    const struct trp_yaml_node *x = ((const struct key_of_mapping *)a)->node;
    const struct trp_yaml_node *z = ((const struct key_of_mapping *)b)->node;
    size_t common = x->size < z->size ? x->size : z->size;
    int order = memcmp(x->text, z->text, common);
    if (order == 0)
        order = (x->size > z->size) - (x->size < z->size);
    if (order == 0)
        order = trp_mark_before(x->mark, z->mark) ? -1 : 1;
    return order;
}

/* The end of a mapping: each key must be a scalar, and the only one of its kind. */
void trp_yaml_check_keys(trp_yaml *y, const struct trp_yaml_node *mapping)
{
    uint32_t n = 0;
    if (!TRP_ARRAY_RESERVE(y->keys, y->keys_cap, mapping->count)) {
        trp_yaml_no_memory(y);
        return;
    }
    for (struct trp_yaml_node *key = mapping->first; key; key = key->next->next) {
        if (key->kind == TRP_YAML_SCALAR)
            y->keys[n++].node = key;
        else if (key->kind != TRP_YAML_REFUSED)
            trp_yaml_wrong(y, key->mark, "a key is a mapping or list; write a name");
    }
    if (n > 1)
        qsort(y->keys, n, sizeof(*y->keys), by_text_then_place);
    for (uint32_t i = 1; i < n; i++) {
        const struct trp_yaml_node *a = y->keys[i - 1].node, *b = y->keys[i].node;
        if (a->size == b->size && !memcmp(a->text, b->text, a->size))
            trp_yaml_wrong(y, b->mark,
                           "key \"%s\" stands twice, first in line %u; remove one",
                           trp_show(b->text).text, a->mark.line);
    }
}

static void refuse_tag(trp_yaml *y, struct fy_event *event)
{
    struct fy_token *tag = fy_event_get_tag_token(event);
    const struct fy_mark *m = tag ? fy_token_start_mark(tag) : NULL;
    if (m)
        trp_yaml_wrong(y, trp_yaml_text_mark(&y->text, m->input_pos),
                       "tags (!) are not read; write the value without it, or in "
                       "quotes");
}

/* ---- anchors and aliases ---- */

/* The node made last has a name when the event has one; the same name again is another
 * node from there on. */
static void note_anchor(trp_yaml *y, struct fy_event *event)
{
    struct fy_token *token = fy_event_get_anchor_token(event);
    struct anchor *a = NULL;
    size_t size = 0;
    const char *name = token ? fy_token_get_text(token, &size) : NULL;
    if (!name || y->stop)
        return;
    HASH_FIND(hh, y->anchors, name, size, a);
    if (!a) {
        a = trp_conf_arena_alloc(&y->tree, 1, sizeof *a);
        char *copy = a ? trp_conf_arena_text(&y->tree, name, size) : NULL;
        if (!copy) {
            trp_yaml_no_memory(y);
            return;
        }
        HASH_ADD_KEYPTR(hh, y->anchors, copy, size, a);
    }
    a->node = y->previous;
}

static bool is_open(const trp_yaml *y, const struct trp_yaml_node *node)
{
    for (uint32_t i = 0; i < y->depth; i++)
        if (y->stack[i].node == node)
            return true;
    return false;
}

/* Fills `to`, which is in its place, with a copy of what the alias names. */
static void take_alias(trp_yaml *y, struct fy_event *event, struct trp_mark mark)
{
    struct trp_yaml_node *to = add_node(y, TRP_YAML_REFUSED, mark);
    struct fy_token *token = fy_event_get_token(event);
    struct anchor *a = NULL;
    size_t size = 0;
    const char *name = token ? fy_token_get_text(token, &size) : NULL;
    if (!to)
        return;
    if (name)
        HASH_FIND(hh, y->anchors, name, size, a);
    if (!a || is_open(y, a->node)) {
        trp_yaml_wrong(y, mark,
                       "the alias *%.*s names %s; put a text that begins with * in "
                       "quotes",
                       (int)(size < 40 ? size : 40), name ? name : "",
                       a ? "what it stands in" : "no anchor (&) above it");
        return;
    }
    struct trp_yaml_copying c = {&y->tree, &y->values, y->copied, NULL};
    struct trp_yaml_node *copy = trp_yaml_copy(&c, a->node, y->depth);
    y->copied = c.bytes;
    if (!copy && c.wrong)
        fatal(y, mark, c.wrong);
    else if (!copy)
        trp_yaml_no_memory(y);
    else
        *to = *copy;
}

/* The keys that `<<` brings, then each key must be the only one of its kind. */
static void end_mapping(trp_yaml *y, struct trp_yaml_node *mapping)
{
    bool merges = false;
    const struct trp_yaml_node *wrong = NULL;
    for (struct trp_yaml_node *key = mapping->first; key; key = key->next->next)
        merges = merges || trp_yaml_is_merge(key);
    int r = merges ? trp_yaml_merge(mapping, &wrong) : 0;
    if (r == TRP_ENOMEM)
        trp_yaml_no_memory(y);
    else if (r < 0 && wrong->kind != TRP_YAML_REFUSED)
        trp_yaml_wrong(y, wrong->mark,
                       "<< takes a mapping, or a list of them; write <<: *NAME");
    trp_yaml_check_keys(y, mapping);
}

static void end_collection(trp_yaml *y)
{
    struct open_node *open = &y->stack[--y->depth];
    struct trp_yaml_node *node = open->node;
    node->count = open->children;
    y->previous = node;
    if (node->kind == TRP_YAML_MAPPING) {
        node->count /= 2;
        end_mapping(y, node);
    }
}

static void take_event(trp_yaml *y, struct fy_event *event)
{
    const struct fy_mark *m = fy_event_start_mark(event);
    enum fy_node_style style = fy_event_get_node_style(event);
    struct trp_mark nowhere = {.line = 1, .column = 1};
    /* An empty value has no place of its own: it is told at its key. */
    struct trp_mark mark = m             ? written_at(y, m->input_pos, style)
                           : y->previous ? y->previous->mark
                                         : nowhere;
    switch (event->type) {
    case FYET_SCALAR:
        refuse_tag(y, event);
        add_scalar(y, event, mark);
        note_anchor(y, event);
        break;
    case FYET_SEQUENCE_START:
        refuse_tag(y, event);
        add_collection(y, TRP_YAML_LIST, mark, style == FYNS_FLOW);
        note_anchor(y, event);
        break;
    case FYET_MAPPING_START:
        refuse_tag(y, event);
        add_collection(y, TRP_YAML_MAPPING, mark, style == FYNS_FLOW);
        note_anchor(y, event);
        break;
    case FYET_SEQUENCE_END:
    case FYET_MAPPING_END:
        end_collection(y);
        break;
    case FYET_ALIAS:
        take_alias(y, event, mark);
        break;
    default:
        break; /* starts and ends of stream and documents */
    }
}

/* ---- parsing ---- */

/* The last `${` without a quote in front, in the line of `at` up to there; NULL: none. */
static const char *bare_reference(const trp_yaml *y, struct trp_mark at)
{
    const char *found = NULL, *end = y->text.data + trp_yaml_text_offset(&y->text, at);
    const char *from = y->text.data + y->text.lines[at.line - 1];
    for (; from <= end && (from = strstr(from, "${")) && from <= end; from++)
        if (from > y->text.data && from[-1] != '"' && from[-1] != '\'')
            found = from;
    return found;
}

/* libfyaml stopped: its first message and place. An end of file inside brackets is told
 * where the innermost bracket opens. */
static void syntax_error(trp_yaml *y, struct fy_diag *diag)
{
    void *iterator = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(diag, &iterator);
    const struct open_node *open = y->depth > 0 ? &y->stack[y->depth - 1] : NULL;
    struct trp_mark at =
        y->previous ? y->previous->mark : (struct trp_mark){.line = 1, .column = 1};
    const char *message = e && e->msg ? e->msg : "it cannot be read";
    if (e && e->line > 0 && e->column > 0)
        at =
            (struct trp_mark){.line = (uint32_t)e->line, .column = (uint32_t)e->column};
    bool at_end =
        at.line > y->text.nlines || (at.line == y->text.nlines &&
                                     y->text.lines[y->text.nlines - 1] >= y->text.size);
    if (at_end && open && open->flow) {
        at = open->node->mark;
        message = "this bracket is not closed";
    } else if (at.line > y->text.nlines) {
        at = trp_yaml_text_mark(&y->text, y->text.size);
    }
    const char *bare = open && open->flow ? bare_reference(y, at) : NULL;
    if (bare) {
        fatal(y, trp_yaml_text_mark(&y->text, (size_t)(bare - y->text.data)),
              "not YAML: inside {} and [] a value with ${NAME} stands in quotes, "
              "\"${NAME}\"");
        return;
    }
    char what[256];
    snprintf(what, sizeof(what),
             "not YAML: %s; check indentation, quotes and brackets up to here",
             message);
    fatal(y, at, what);
}

static void run_parser(trp_yaml *y, struct fy_parser *parser, struct fy_diag *diag)
{
    if (fy_parser_set_string(parser, y->text.data, y->text.size) != 0) {
        trp_yaml_no_memory(y);
        return;
    }
    struct fy_event *event;
    while (!y->stop && (event = fy_parser_parse(parser))) {
        take_event(y, event);
        fy_parser_event_free(parser, event);
    }
    if (!y->stop && fy_parser_get_stream_error(parser))
        syntax_error(y, diag);
    if (!y->stop && !y->root) {
        struct trp_mark begin = {.line = 1, .column = 1};
        fatal(y, begin, "the file is empty; write a YAML mapping");
    }
}

static void build_tree(trp_yaml *y)
{
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL; /* nothing is printed */
    diag_cfg.output_fn = NULL;
    diag_cfg.colorize = false;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (!diag) {
        trp_yaml_no_memory(y);
        return;
    }
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg cfg = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2 |
                 FYPCF_JSON_NONE,
        .diag = diag,
    };
    struct fy_parser *parser = fy_parser_create(&cfg);
    if (parser)
        run_parser(y, parser, diag);
    else
        trp_yaml_no_memory(y);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
}

/* Takes a copy of the text (libfyaml borrows it, and ours ends in NUL) and reads it. */
static void read_text(trp_yaml *y, const char *text, size_t size)
{
    static const char bom[] = "\xEF\xBB\xBF";
    bool marked = size >= 3 && !memcmp(text, bom, 3);
    size_t skip = marked ? 3 : 0, bad = 0;
    char *copy = trp_conf_arena_text(&y->tree, text + skip, size - skip);
    int code =
        copy ? trp_yaml_text_scan(&y->text, copy, size - skip, &bad) : TRP_ENOMEM;
    if (code == TRP_ENOMEM)
        trp_yaml_no_memory(y);
    else if (code == TRP_ELIMIT)
        fatal(
            y, trp_yaml_text_mark(&y->text, bad),
            "more than 1000000 brackets, commas and colons up to here; put items into "
            "a list file (foreach: {lines: FILE})");
    else if (code < 0)
        fatal(y, trp_yaml_text_mark(&y->text, bad),
              "this byte is not UTF-8 text; name a YAML file");
    else
        build_tree(y);
}

int trp_yaml_parse(const char *file, const char *text, size_t size,
                   struct trp_conf_arena *keep, trp_yaml **ret, trp_error *err)
{
    struct trp_mark begin = {.line = 1, .column = 1};
    if (size > TRP_PIPELINE_FILE_MAX)
        return trp_error_at(err, TRP_EINVAL, file, begin,
                            "the file is larger than %d MiB; split the work, or put "
                            "items into a list file (foreach: {lines: FILE})",
                            TRP_PIPELINE_FILE_MAX >> 20);
    trp_yaml *y = calloc(1, sizeof(*y));
    if (!y)
        return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", file);
    y->file = file;
    y->keep = keep;
    read_text(y, text, size);
    int code = y->stop ? trp_yaml_verdict(y, err) : 0;
    if (code < 0) {
        trp_yaml_free(y);
        return code;
    }
    *ret = y;
    return 0;
}

struct trp_yaml_node *trp_yaml_include(trp_yaml *y, const char *file, const char *text,
                                       size_t size)
{
    trp_yaml *in = calloc(1, sizeof(*in));
    if (!in || size > TRP_PIPELINE_FILE_MAX) {
        free(in);
        if (!in)
            trp_yaml_no_memory(y);
        else
            trp_yaml_wrong(y, (struct trp_mark){1, 1, file},
                           "the file is larger than %d MiB; split the work",
                           TRP_PIPELINE_FILE_MAX >> 20);
        return NULL;
    }
    in->file = in->included_as = file;
    in->keep = y->keep;
    in->values = y->values; /* the bounds are those of all files together */
    in->copied = y->copied;
    in->next = y->next;
    y->next = in;
    read_text(in, text, size);
    y->values = in->values;
    y->copied = in->copied;
    if (in->no_memory)
        trp_yaml_no_memory(y);
    for (uint32_t i = 0; i < in->nwrong; i++) {
        struct wrong w = in->wrong[i]; /* its text lives as long */
        w.at.file = w.of.file = file;
        if (trp_yaml_would_tell(y, w.at))
            keep_wrong(y, w);
    }
    return in->stop ? NULL : in->root;
}

void trp_yaml_free(trp_yaml *y)
{
    if (!y)
        return;
    for (trp_yaml *in = y->next, *next; in; in = next) {
        next = in->next;
        in->next = NULL;
        trp_yaml_free(in);
    }
    HASH_CLEAR(hh, y->anchors);
    trp_conf_arena_free(&y->tree);
    trp_yaml_text_free(&y->text);
    free(y->keys);
    free(y);
}

const struct trp_yaml_node *trp_yaml_root(const trp_yaml *y)
{
    return y->root;
}

struct trp_yaml_node *trp_yaml_tree(trp_yaml *y)
{
    return y->root;
}

void trp_yaml_set_text(trp_yaml *y, struct trp_yaml_node *node, const char *text,
                       size_t size, bool plain)
{
    char *copy = trp_conf_arena_text(&y->tree, text ? text : "", size);
    if (!copy) {
        trp_yaml_no_memory(y);
        return;
    }
    node->kind = TRP_YAML_SCALAR;
    node->plain = plain;
    node->text = copy;
    node->size = size;
    node->count = 0;
    node->first = NULL;
}

struct trp_mark trp_yaml_place(trp_yaml *y, const struct trp_yaml_node *node,
                               size_t offset, const char *word, size_t size)
{
    while (y->next && y->included_as != node->mark.file)
        y = y->next;
    const char *at = node->text, *in = y->text.data, *end = in + y->text.size;
    const char *found = in + trp_yaml_text_offset(&y->text, node->mark);
    for (; at && found; at++, found++) {
        at = memmem(at, node->size - (size_t)(at - node->text), word, size);
        found = memmem(found, (size_t)(end - found), word, size);
        if (!at || !found || at >= node->text + offset)
            break;
    }
    if (!found)
        return node->mark;
    struct trp_mark place = trp_yaml_text_mark(&y->text, (size_t)(found - in));
    place.file = node->mark.file;
    return place;
}

struct trp_conf_arena *trp_yaml_keep(trp_yaml *y)
{
    return y->keep;
}

void *trp_yaml_alloc(trp_yaml *y, size_t count, size_t size)
{
    void *p = trp_conf_arena_alloc(y->keep, count, size);
    if (!p)
        trp_yaml_no_memory(y);
    return p;
}
