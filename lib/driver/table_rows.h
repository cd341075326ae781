/*
 * Tables as text: a header line, then a row a line. Tab-separated values have no quotes
 * at all; comma-separated ones are as RFC 4180 says: a value in quotes may hold commas,
 * line ends and quotes (each written twice). Lines end with LF or CRLF, empty ones are
 * skipped, a byte order mark in front is no part of the first name.
 *
 * Rows are cut in place, so that one costs its bytes and 16 more.
 */
#ifndef TRP_DRIVER_TABLE_ROWS_H
#define TRP_DRIVER_TABLE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/pipeline.h"
#include "core/base/bytes.h"
#include "core/base/error.h"

struct trp_table_rows {
    char *at, *end; /* what is yet to be cut */
    bool csv;
    size_t line;     /* of the row that is cut next, from 1 */
    uint32_t ncells; /* of each row */
};

/* Cuts the header from `size` bytes and one more, which it may change: its names, each
 * [A-Za-z_][A-Za-z0-9_]* and no two the same, into *ret_names (malloc'ed, pointing into
 * `data`). TRP_EINVAL with "line N …". */
int trp_rows_open(struct trp_table_rows *t, char *data, size_t size, bool csv,
                  char ***ret_names, trp_error *err);
/* Cuts the next row, which ends in NUL; 1, 0 at the end, TRP_EINVAL with "line N …":
 * it has more or fewer values than the header, or is not as RFC 4180 says. */
int trp_rows_next(struct trp_table_rows *t, struct trp_text *ret, trp_error *err);
/* Appends the next value of a row, without quotes; false at the end of the row. */
bool trp_row_cell(const char **at, bool csv, struct trp_buf *b);

#endif
