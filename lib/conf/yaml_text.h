/*
 * The text of a YAML file, and where its bytes stand: line and column in characters.
 */
#ifndef TRP_CONF_YAML_TEXT_H
#define TRP_CONF_YAML_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/pipeline.h"

struct trp_yaml_text {
    const char *data; /* NUL-terminated, borrowed */
    size_t size;
    size_t *lines; /* offset of each line's first byte */
    uint32_t nlines, capacity;
    size_t last; /* the offset asked for last, and its column */
    uint32_t last_line, last_column;
};

enum {
    /* Brackets, braces, commas, colons and question marks in a file; two quotes count
     * as one. libfyaml needs up to 600 bytes for each before it tells the first value.
     */
    TRP_YAML_SIGNS = 1000000,
};

/* Reads the text through. TRP_EINVAL: a byte that is not UTF-8, or a control character;
 * TRP_ELIMIT: more than TRP_YAML_SIGNS signs; *ret_bad is the offset. TRP_ENOMEM. Free
 * with trp_yaml_text_free in any case. */
int trp_yaml_text_scan(struct trp_yaml_text *t, const char *data, size_t size,
                       size_t *ret_bad);
void trp_yaml_text_free(struct trp_yaml_text *t);

/* The place of a byte. Cost: the distance from the one asked for last, in a line. */
struct trp_mark trp_yaml_text_mark(struct trp_yaml_text *t, size_t offset);
/* The byte at a place. */
size_t trp_yaml_text_offset(const struct trp_yaml_text *t, struct trp_mark at);
/* Where a block scalar (`|` or `>`, as `sign`) is announced whose content begins at
 * `content`. */
size_t trp_yaml_text_block(const struct trp_yaml_text *t, size_t content, char sign);

#endif
