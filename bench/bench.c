/*
 * Quantiles are by nearest rank over sorted values: a figure that is printed was
 * measured. A benchmark that cannot go on ends at once: bench/run says which it was.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t trp_bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void trp_bench_sleep(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double trp_bench_quantile(double *values, size_t n, double p)
{
    qsort(values, n, sizeof *values, compare);
    size_t rank = (size_t)(p * (double)n);
    return values[rank < n ? rank : n - 1];
}

void *trp_bench_alloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) {
        fprintf(stderr, "bench: out of memory\n");
        exit(4);
    }
    return p;
}

uint32_t trp_bench_number(const char *what, const char *text, uint32_t max)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || n < 1 || n > max) {
        fprintf(stderr, "bench: %s: %s is no number from 1 to %" PRIu32 "\n", what,
                text, max);
        exit(2);
    }
    return (uint32_t)n;
}

void trp_bench_print(const char *key, double value)
{
    printf("%s\t%.6g\n", key, value);
}

uint64_t trp_bench_peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t kib = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
            break;
    }
    if (f)
        fclose(f);
    return kib;
}
