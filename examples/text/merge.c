/*
 * text-merge MIN_FILES OUT COUNTS… — adds up lists of "WORD\tCOUNT\tFILES" and writes
 * the words that are in at least MIN_FILES files to OUT, sorted. How many different
 * words there were in all goes to stdout.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "text.h"
#include "words.h"

int main(int argc, char **argv)
{
    struct words words = {0};
    if (argc < 3)
        text_fail("usage: text-merge MIN_FILES OUT COUNTS…");
    unsigned long min = strtoul(argv[1], NULL, 10);
    for (int i = 3; i < argc; i++)
        words_load(&words, argv[i]);
    words_sort(&words);
    FILE *f = text_open(argv[2], "we");
    for (size_t i = 0; i < words.n; i++) {
        const struct word *w = &words.all[i];
        if (w->files >= min)
            fprintf(f, "%s\t%" PRIu64 "\t%" PRIu32 "\n", w->text, w->count, w->files);
    }
    text_close(f, argv[2]);
    printf("%zu\n", words.n);
    words_free(&words);
    return fflush(stdout) == 0 ? 0 : 1;
}
