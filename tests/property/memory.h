/*
 * How many bytes the code under test holds: malloc and its kin are wrapped by the
 * linker (--wrap), so that memory can be compared with what it was before.
 */
#ifndef TESTS_PROPERTY_MEMORY_H
#define TESTS_PROPERTY_MEMORY_H

#include <stdint.h>

/* May be below 0: what others allocated is freed here too. */
int64_t memory_held(void);

#endif
