/*
 * What the benchmark programs share: a clock, order statistics, and how they say what
 * they measured. A program measures one thing once and prints it, one line a figure,
 *
 *     KEY<TAB>VALUE
 *
 * to stdout; bench/run runs it again and again, beside its baseline, and compares.
 *
 *     int64_t begin = trp_bench_now();
 *     …
 *     trp_bench_print("per_second", n * 1e9 / (double)(trp_bench_now() - begin));
 */
#ifndef TRP_BENCH_BENCH_H
#define TRP_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

/* Monotonic time in ns. */
int64_t trp_bench_now(void);

void trp_bench_sleep(int64_t ns);

/* The p-quantile (0 to 1, nearest rank) of n > 0 values, which are sorted by it. */
double trp_bench_quantile(double *values, size_t n, double p);

/* Ends the program with a message when out of memory. */
void *trp_bench_alloc(size_t n, size_t size);

/* A whole number of 1 to `max` from the command line; ends the program with status 2
 * and a message that names it otherwise. */
uint32_t trp_bench_number(const char *what, const char *text, uint32_t max);

void trp_bench_print(const char *key, double value);

/* Most memory this process ever had resident (VmHWM), in KiB. */
uint64_t trp_bench_peak_kib(void);

#endif
