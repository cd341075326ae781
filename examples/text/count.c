/*
 * text-count LIST BUCKETS WORDS LINKS SIZES — reads the texts that LIST names and
 * writes WORDS.0 … WORDS.(BUCKETS-1)  "WORD\tCOUNT\tFILES", sorted; the hash of a word
 * says which bucket it is in LINKS                        "FROM\tTO": what refers to
 * which page or licence, each once SIZES                        "FILES\tBYTES\tWORDS"
 * of all of it A symbolic link is another name: it refers to what it points at.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"
#include "words.h"

enum { BUCKETS_MAX = 64 };

struct counts {
    struct words words, links; /* a link is kept as the word "FROM\tTO" */
    uint64_t bytes, nwords;
    uint32_t files;
};

static void add_link(struct counts *c, const char *from, const char *to)
{
    char link[2 * TEXT_NAME_MAX + 1];
    if (strcmp(from, to) == 0 || strchr(from, '\t'))
        return;
    snprintf(link, sizeof(link), "%s\t%s", from, to);
    words_get(&c->links, link);
}

static void read_link(struct counts *c, const char *path, const char *name)
{
    char target[PATH_MAX], to[TEXT_NAME_MAX];
    if (realpath(path, target) && text_name_of(target, to) != TEXT_OTHER)
        add_link(c, name, to);
}

static void read_text(struct counts *c, const char *path, const char *name,
                      enum text_kind kind)
{
    char word[TEXT_WORD_MAX + 1], to[TEXT_NAME_MAX], *text;
    size_t size;
    int rc = text_read(path, &text, &size);
    if (rc < 0)
        text_fail("out of memory");
    if (rc == 0)
        return;
    c->files++;
    c->bytes += size;
    for (const char *at = text; text_next_word(&at, text + size, word);) {
        struct word *w = words_get(&c->words, word);
        w->count++;
        w->files += w->last != c->files;
        w->last = c->files;
        c->nwords++;
    }
    for (const char *at = text; text_next_reference(kind, &at, text + size, to);)
        add_link(c, name, to);
    free(text);
}

static void read_list(struct counts *c, const char *list)
{
    FILE *f = text_open(list, "re");
    char *path = NULL, name[TEXT_NAME_MAX];
    size_t capacity = 0;
    ssize_t n;
    while ((n = getline(&path, &capacity, f)) > 0) {
        struct stat st;
        if (path[n - 1] == '\n')
            path[n - 1] = '\0';
        enum text_kind kind = text_name_of(path, name);
        if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
            read_link(c, path, name);
        else
            read_text(c, path, name, kind);
    }
    free(path);
    fclose(f);
}

static void write_words(const struct words *words, unsigned buckets, const char *prefix)
{
    FILE *out[BUCKETS_MAX];
    char path[PATH_MAX];
    for (unsigned b = 0; b < buckets; b++) {
        snprintf(path, sizeof(path), "%s.%u", prefix, b);
        out[b] = text_open(path, "we");
    }
    for (size_t i = 0; i < words->n; i++) {
        const struct word *w = &words->all[i];
        fprintf(out[w->hash % buckets], "%s\t%" PRIu64 "\t%" PRIu32 "\n", w->text,
                w->count, w->files);
    }
    for (unsigned b = 0; b < buckets; b++)
        text_close(out[b], prefix);
}

static void write_links(const struct words *links, const char *path)
{
    FILE *f = text_open(path, "we");
    for (size_t i = 0; i < links->n; i++)
        fprintf(f, "%s\n", links->all[i].text);
    text_close(f, path);
}

int main(int argc, char **argv)
{
    struct counts c = {0};
    if (argc != 6)
        text_fail("usage: text-count LIST BUCKETS WORDS LINKS SIZES");
    unsigned long buckets = strtoul(argv[2], NULL, 10);
    if (buckets < 1 || buckets > BUCKETS_MAX)
        text_fail("buckets are 1 to %d", BUCKETS_MAX);
    read_list(&c, argv[1]);
    words_sort(&c.words);
    words_sort(&c.links);
    write_words(&c.words, (unsigned)buckets, argv[3]);
    write_links(&c.links, argv[4]);
    FILE *f = text_open(argv[5], "we");
    fprintf(f, "%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\n", c.files, c.bytes, c.nwords);
    text_close(f, argv[5]);
    printf("%" PRIu32 " texts, %" PRIu64 " words, %zu different, %zu references\n",
           c.files, c.nwords, c.words.n, c.links.n);
    words_free(&c.words);
    words_free(&c.links);
    return 0;
}
