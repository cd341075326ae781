/*
 * The closing summary of a run as text: a table of its stages and the totals. Where
 * each number comes from is in statistics.h, which rows there are in summary_rows.h.
 */
#ifndef TRP_EVENTS_SUMMARY_H
#define TRP_EVENTS_SUMMARY_H

#include <stdio.h>

#include "events/statistics.h"

/* Gives all time up to the last thing told to stages, and prints. `live`: the run goes
 * on, and so do stages that have not ended. `all`: a row a stage, however many. */
void trp_summary_print(struct trp_statistics *s, bool live, bool all, FILE *out);

/* "8.49", "115.2", "120391": seconds as the summary has them. */
void trp_seconds_text(double s, char *buf, size_t size);
/* "850us", "9.5ms", "1.25s", "2m05s", "3h04m". */
void trp_time_text(int64_t ns, char *buf, size_t size);
/* "17 bytes", "4.5 MiB". */
void trp_bytes_text(uint64_t n, char *buf, size_t size);

#endif
