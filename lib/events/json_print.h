/* JSON for who reads it: an object or array to a file. */
#ifndef TRP_EVENTS_JSON_PRINT_H
#define TRP_EVENTS_JSON_PRINT_H

#include <jansson.h>
#include <stdio.h>

/* For jansson's flags: as many digits of a number as a double keeps of what was written,
 * so that 0.1 is 0.1. */
#define TRP_JSON_NUMBERS JSON_REAL_PRECISION(15)

/* A line, or with JSON_INDENT(n) as `layout` several. -1: it could not be written. */
int trp_json_print(const json_t *document, size_t layout, FILE *out);

#endif
