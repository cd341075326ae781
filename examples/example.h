/* What the examples share that has nothing to do with datasets: their command lines, and
 * numbers that look random. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --NAME N, --NAME TEXT, or --NAME alone, by which of the three is not NULL. */
struct example_option {
    const char *name;
    int64_t *number;
    const char **text;
    bool *flag;
};

/* Takes one option, and its value; false: it is none of these. */
static inline bool example_option(const struct example_option *o, int argc, char **argv,
                                  int *at)
{
    char *end;
    while (o->name && strcmp(o->name, argv[*at]) != 0)
        o++;
    if (!o->name || (!o->flag && *at + 1 == argc))
        return false;
    if (o->flag)
        *o->flag = true;
    else if (o->text)
        *o->text = argv[++*at];
    else {
        *o->number = strtoll(argv[++*at], &end, 10);
        return *o->number >= 0 && *argv[*at] && !*end;
    }
    return true;
}

/* Reads a command line, whose options come first; the table ends with {0}. The number
 * of the first of the words behind them, of which there are `least` or more. Else the
 * program ends, with what it wants on stderr. */
static inline int example_options(int argc, char **argv, const struct example_option *o,
                                  int least, const char *usage)
{
    int at = 1;
    bool good = true;
    for (; good && at < argc && argv[at][0] == '-'; at++)
        good = example_option(o, argc, argv, &at);
    if (!good || argc - at < least) {
        fprintf(stderr, "usage: %s\n", usage);
        exit(2);
    }
    return at;
}

/* A number that depends on a seed and a place alone: so any task makes its part of the
 * data, and makes the same when it runs again. (splitmix64) */
static inline uint64_t example_random(uint64_t seed, uint64_t place)
{
    uint64_t z = seed + (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

#endif
