/*
 * What all fuzz targets share: the entry that libFuzzer (or corpus_main.c) calls, a
 * check that ends the program, and a reader that makes choices of bytes.
 *
 * A target takes any bytes, leaves nothing behind (no memory, no descriptor, no state
 * that the next input would see) and is fast: most inputs take below a millisecond.
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
 *     {
 *         struct fuzz_bytes b = {data, data + size};
 *         while (b.at < b.end)
 *             move(fuzz_byte(&b) % 7);
 *         FUZZ_CHECK(left == 0, "%u are left", left);
 *         return 0;
 *     }
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data,
                                                                  size_t size);

/* Else a sentence, and the end of the program, which is what a fuzzer sees. */
#define FUZZ_CHECK(holds, ...)                                                         \
    do {                                                                               \
        if (!(holds)) {                                                                \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                            \
            fprintf(stderr, __VA_ARGS__);                                              \
            fputc('\n', stderr);                                                       \
            abort();                                                                   \
        }                                                                              \
    } while (0)

struct fuzz_bytes {
    const uint8_t *at, *end;
};

/* 0 when there are none left. */
static inline uint8_t fuzz_byte(struct fuzz_bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

/* 0 to n - 1, of one byte. */
static inline uint32_t fuzz_below(struct fuzz_bytes *b, uint32_t n)
{
    return fuzz_byte(b) % n;
}

#endif
