/* Records of 100 bytes, as sort.c makes them and sort_check.h makes them once more. */
#ifndef SORT_RECORDS_H
#define SORT_RECORDS_H

#include <inttypes.h>
#include <troupe.h>

#include "example.h"

/* As a line: a key of 10 letters, a tab, its number as 16 hexadecimal digits, 72 letters
 * more. All of it follows from a seed and the number. */
enum { KEY = 10, NUMBER = 16, FILLER = 72, VALUE = NUMBER + FILLER };

static inline void letters(char *at, size_t n, uint64_t *seed)
{
    for (uint64_t bits = 0, i = 0; i < n; i++, bits /= 26) {
        if (i % 10 == 0)
            bits = *seed = example_random(*seed, i);
        at[i] = (char)('A' + bits % 26);
    }
}

static inline void make_record(uint64_t seed, uint64_t number, char *key, char *value)
{
    char digits[NUMBER + 1];
    uint64_t state = example_random(seed, number);
    letters(key, KEY, &state);
    snprintf(digits, sizeof(digits), "%016" PRIx64, number);
    memcpy(value, digits, NUMBER);
    letters(value + NUMBER, FILLER, &state);
}

#endif
