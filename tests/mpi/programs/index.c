/*
 * index PATTERN DIR [WRONG]: saves the words (of letters, made small) of the files, one
 * a line, in 4 parts by their first letters: each letter is a partition of its own
 * first, and so every word comes in order. What reads the files is 7 partitions in 3
 * tasks. With WRONG, any text, the partitions of letters are counted from 1.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "troupe.h"

enum { READS = 7, READERS = 3, LETTERS = 26, PARTS = 4 };

TRP_FUNCTION(words);
int words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        char word[256];
        size_t n, at = 0;
        const unsigned char *line = trp_value(in, i, &n);
        for (size_t k = 0; k <= n; k++) {
            if (k < n && line[k] < 128 && isalpha(line[k])) {
                if (at < sizeof(word))
                    word[at++] = (char)tolower(line[k]);
                continue;
            }
            if (at && trp_emit(out, word, at, word, at) < 0)
                return 1;
            at = 0;
        }
    }
    return 0;
}

TRP_FUNCTION(without_key);
int without_key(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t;
    (void)arg;
    for (size_t i = 0; i < in->count; i++) {
        size_t n;
        const void *word = trp_value(in, i, &n);
        if (trp_emit(out, NULL, 0, word, n) < 0)
            return 1;
    }
    return 0;
}

TRP_PARTITION(letter);
uint32_t letter(const void *key, size_t size, uint32_t partitions, const void *arg)
{
    (void)size;
    (void)partitions;
    char first;
    memcpy(&first, key, 1);
    return (uint32_t)(first - *(const char *)arg);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (argc < 3) {
        fprintf(stderr, "usage: index PATTERN DIR [WRONG]\n");
        return 2;
    }
    trp_dataset *d = trp_coalesce(trp_text_files(ctx, argv[1], READS), READERS);
    d = trp_transform(d, words, NULL, 0);
    d = trp_partition_by(d, letter, argc > 3 ? "`" : "a", 1, LETTERS);
    d = trp_transform(trp_coalesce(d, PARTS), without_key, NULL, 0);
    if (trp_save(d, argv[2]) < 0)
        fprintf(stderr, "index: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
