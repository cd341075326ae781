/*
 * An inverted index: which files have which words.
 *
 *     troupe run -- build/examples/index words                   # of /usr/share/doc
 *     troupe run -- build/examples/index words 'notes-?.txt'
 *
 * Leaves words/part-00000 and so on: a line for each word, in the order of words, with
 * the files that have it in the order of their paths, parted by blanks. A word is three
 * letters or more.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <troupe.h>

enum { SHORTEST = 3, LONGEST = 64, PARTS = 16 };

/* Lines, whose key is their file, become words with the file. */
TRP_FUNCTION(words);
int words(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    char word[LONGEST];
    (void)t, (void)arg;
    for (size_t i = 0, size, nfile; i < in->count; i++) {
        const unsigned char *line = trp_value(in, i, &size);
        const char *file = trp_key(in, i, &nfile);
        for (size_t k = 0, n = 0; k <= size; k++) {
            if (k < size && isalpha(line[k])) {
                if (n < LONGEST)
                    word[n] = (char)tolower(line[k]);
                n++;
                continue;
            }
            if (n >= SHORTEST && n <= LONGEST &&
                trp_emit(out, word, n, file, nfile) < 0)
                return -1;
            n = 0;
        }
    }
    return 0;
}

struct file {
    const char *name;
    size_t size;
};

static int by_name(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    int c = memcmp(x->name, y->name, x->size < y->size ? x->size : y->size);
    return c ? c : (x->size > y->size) - (x->size < y->size);
}

/* The files of one word become one text: "a b c". */
static int emit_list(trp_writer *out, const trp_batch *in, size_t i)
{
    trp_group_values v = trp_group(in, i);
    size_t nword, size, n = 0, bytes = 0;
    const char *word = trp_key(in, i, &nword), *name;
    while (trp_group_next(&v, &size)) {
        n++;
        bytes += size + 1;
    }
    struct file *files = malloc((n + 1) * sizeof(*files));
    char *text = malloc(bytes + 1), *end = text;
    int rc = files && text ? 0 : -1;
    v = trp_group(in, i);
    for (n = 0; rc == 0 && (name = trp_group_next(&v, &size)); n++)
        files[n] = (struct file){name, size};
    if (rc == 0)
        qsort(files, n, sizeof(*files), by_name);
    for (size_t k = 0; rc == 0 && k < n; k++) {
        memcpy(end, files[k].name, files[k].size);
        end += files[k].size;
        *end++ = ' ';
    }
    if (rc == 0)
        rc = trp_emit(out, word, nword, text, bytes - 1);
    free(files);
    free(text);
    return rc;
}

TRP_FUNCTION(lists);
int lists(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0; i < in->count; i++)
        if (emit_list(out, in, i) < 0)
            return -1;
    return 0;
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_profile *read, *gather;
    if (argc < 2) {
        fprintf(stderr, "usage: index FOLDER [PATTERN]\n");
        return 2;
    }
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_profile_from(ctx, "read", "cores=2 memory=400m", &read);
    trp_profile_from(ctx, "gather", "cores=1 memory=400m", &gather);

    trp_dataset *d =
        trp_text_files(ctx, argc > 2 ? argv[2] : "/usr/share/doc/*/*", PARTS);
    d = trp_transform(d, words, NULL, 0);
    d = trp_named(trp_with_resources(d, read), "words");
    d = trp_distinct(d, PARTS); /* a word that a file has twice */
    d = trp_named(trp_with_resources(d, gather), "words of files");
    d = trp_transform(trp_group_by_key(d, PARTS), lists, NULL, 0);
    d = trp_named(trp_with_resources(d, gather), "files of words");
    d = trp_sort_by_key(d, TRP_BYTES, PARTS);
    d = trp_named(trp_with_resources(d, gather), "in order");
    if (trp_save(d, argv[1]) < 0)
        fprintf(stderr, "index: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
