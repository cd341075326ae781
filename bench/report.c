/*
 * report [--json|--rows] < SAMPLES: what bench/run collected, as a table (--rows:
 * without its header) or as JSON. A sample is one line of
 *
 *     NAME CASE UNIT VALUE BASELINE MUST NOTE
 *
 * separated by tabs; the samples of a case need not stand together. BASELINE "-": none.
 * MUST is "<= X", ">= X" or "-"; it holds the ratio where there is a baseline, else the
 * value. The figures of a case are the medians over its samples, each sample compared
 * with the baseline beside it. Exit status: 1 when a must is missed.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { CASES = 256, RUNS = 256, FIELDS = 7, LINE = 1024 };

struct result {
    char name[32], label[128], unit[32], must[32], note[256];
    double values[RUNS], baselines[RUNS], ratios[RUNS];
    size_t n;
    bool compared;
    double value, baseline, ratio, min, max;
    bool ok;
};

static struct result results[CASES];
static size_t nresults;

static void refuse(const char *why, const char *line)
{
    fprintf(stderr, "report: %s: %s\n", why, line);
    exit(2);
}

static double number(const char *text, const char *line)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x))
        refuse("no number", line);
    return x;
}

static void put(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
}

static struct result *result_of(char *const *field)
{
    for (size_t i = 0; i < nresults; i++) {
        if (strcmp(results[i].name, field[0]) == 0 &&
            strcmp(results[i].label, field[1]) == 0)
            return &results[i];
    }
    if (nresults == CASES)
        refuse("too many cases", field[1]);
    struct result *r = &results[nresults++];
    put(r->name, sizeof r->name, field[0]);
    put(r->label, sizeof r->label, field[1]);
    put(r->unit, sizeof r->unit, field[2]);
    put(r->must, sizeof r->must, field[5]);
    r->compared = strcmp(field[4], "-") != 0;
    return r;
}

static void take(char *line)
{
    char *field[FIELDS], *rest = line;
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++) {
        field[i] = strsep(&rest, "\t");
        if (!field[i])
            refuse("too few fields", line);
    }
    struct result *r = result_of(field);
    if (r->n == RUNS)
        refuse("too many samples", field[1]);
    put(r->note, sizeof r->note, field[6]);
    r->values[r->n] = number(field[3], field[1]);
    r->baselines[r->n] = r->compared ? number(field[4], field[1]) : 1;
    r->ratios[r->n] = r->values[r->n] / r->baselines[r->n];
    r->n++;
}

static bool holds(const char *must, double x)
{
    if (strncmp(must, "<= ", 3) == 0)
        return x <= number(must + 3, must);
    if (strncmp(must, ">= ", 3) == 0)
        return x >= number(must + 3, must);
    return true;
}

static void settle(struct result *r)
{
    r->ratio = trp_bench_quantile(r->ratios, r->n, 0.5);
    r->min = r->ratios[0];
    r->max = r->ratios[r->n - 1];
    r->value = trp_bench_quantile(r->values, r->n, 0.5);
    r->baseline = trp_bench_quantile(r->baselines, r->n, 0.5);
    r->ok = holds(r->must, r->ratio);
}

/* Three digits that say something, whole numbers whole. */
static const char *text_of(double x, char *buf, size_t size)
{
    if (fabs(x) >= 100 || x == floor(x))
        snprintf(buf, size, "%.0f", x);
    else
        snprintf(buf, size, "%.3g", x);
    return buf;
}

static void print_row(const struct result *r)
{
    char value[32], baseline[32], ratio[32], min[32], max[32], range[112];
    snprintf(range, sizeof range, "%s (%s to %s)",
             text_of(r->ratio, ratio, sizeof ratio), text_of(r->min, min, sizeof min),
             text_of(r->max, max, sizeof max));
    printf("%-8s %-36s %12s %-12s %12s  %-26s %-9s %s\n", r->name, r->label,
           text_of(r->value, value, sizeof value), r->unit,
           r->compared ? text_of(r->baseline, baseline, sizeof baseline) : "",
           r->compared ? range : "", strcmp(r->must, "-") ? r->must : "",
           strcmp(r->must, "-") == 0 ? ""
           : r->ok                   ? "ok"
                                     : "MISSED");
}

static void print_table(bool header)
{
    if (header)
        printf("%-8s %-36s %12s %-12s %12s  %-26s %-9s %s\n", "name", "case", "value",
               "unit", "baseline", "ratio (min to max)", "must", "");
    for (size_t i = 0; i < nresults; i++)
        print_row(&results[i]);
    for (size_t i = 0; i < nresults; i++) {
        if (*results[i].note)
            printf("%s, %s: %s\n", results[i].name, results[i].label, results[i].note);
    }
}

/* Names and notes are bench/run's own: no character of them needs an escape. */
static void print_json(void)
{
    for (size_t i = 0; i < nresults; i++) {
        const struct result *r = &results[i];
        printf("%s{\"name\":\"%s\",\"case\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",",
               i ? ",\n " : "[", r->name, r->label, r->value, r->unit);
        if (r->compared)
            printf("\"baseline\":%.6g,\"ratio\":%.6g,\"min\":%.6g,\"max\":%.6g,",
                   r->baseline, r->ratio, r->min, r->max);
        else
            printf("\"baseline\":null,\"ratio\":null,");
        if (strcmp(r->must, "-"))
            printf("\"must\":\"%s\",\"ok\":%s", r->must, r->ok ? "true" : "false");
        else
            printf("\"must\":null,\"ok\":true");
        if (*r->note)
            printf(",\"note\":\"%s\"", r->note);
        printf("}");
    }
    printf("%s]\n", nresults ? "" : "[");
}

int main(int argc, char **argv)
{
    static char line[LINE];
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    bool rows = argc == 2 && strcmp(argv[1], "--rows") == 0;
    if (argc > 1 && !json && !rows) {
        fprintf(stderr, "usage: report [--json|--rows] < SAMPLES\n");
        return 2;
    }
    while (fgets(line, sizeof line, stdin))
        take(line);
    bool ok = true;
    for (size_t i = 0; i < nresults; i++) {
        settle(&results[i]);
        ok = ok && results[i].ok;
    }
    if (json)
        print_json();
    else
        print_table(!rows);
    return ok ? 0 : 1;
}
