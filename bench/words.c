/*
 * Counting words without Troupe: one thread, one hash table.
 *
 *     words FILE     words are what spaces, tabs and ends of lines leave between them
 *
 * Prints how many different words there are and how long it took. The bytes of the
 * words stay where they were read, so a word costs a hash, a look and an addition.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "bench.h"

struct word {
    const char *text;
    uint32_t size, hash;
    uint64_t count; /* 0: nobody is here */
};

struct table {
    struct word *words;
    size_t capacity, used; /* at most half of it; a power of two */
};

static void grow(struct table *t)
{
    struct table larger = {.capacity = t->capacity ? t->capacity * 2 : 1 << 16,
                           .used = t->used};
    larger.words = trp_bench_alloc(larger.capacity, sizeof *larger.words);
    for (size_t i = 0; i < t->capacity; i++) {
        size_t at = t->words[i].hash;
        if (t->words[i].count == 0)
            continue;
        while (larger.words[at & (larger.capacity - 1)].count > 0)
            at++;
        larger.words[at & (larger.capacity - 1)] = t->words[i];
    }
    free(t->words);
    *t = larger;
}

static void count(struct table *t, const char *text, size_t size)
{
    uint32_t hash = (uint32_t)XXH3_64bits(text, size);
    for (size_t at = hash;; at++) {
        struct word *w = &t->words[at & (t->capacity - 1)];
        if (w->count == 0) {
            *w = (struct word){text, (uint32_t)size, hash, 1};
            if (++t->used * 2 > t->capacity)
                grow(t);
            return;
        }
        if (w->hash == hash && w->size == size && memcmp(w->text, text, size) == 0) {
            w->count++;
            return;
        }
    }
}

static void count_all(struct table *t, const char *text, size_t size)
{
    const char *from = text, *end = text + size;
    for (const char *at = text; at < end; at++) {
        if (*at != ' ' && *at != '\t' && *at != '\n')
            continue;
        if (at > from)
            count(t, from, (size_t)(at - from));
        from = at + 1;
    }
    if (end > from)
        count(t, from, (size_t)(end - from));
}

static char *read_file(const char *path, size_t *ret_size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        perror(path);
        exit(4);
    }
    char *text = trp_bench_alloc((size_t)st.st_size + 1, 1);
    for (*ret_size = 0; *ret_size < (size_t)st.st_size;) {
        ssize_t n = read(fd, text + *ret_size, (size_t)st.st_size - *ret_size);
        if (n <= 0) {
            perror(path);
            exit(4);
        }
        *ret_size += (size_t)n;
    }
    close(fd);
    return text;
}

int main(int argc, char **argv)
{
    struct table t = {0};
    size_t size;
    if (argc != 2) {
        fprintf(stderr, "usage: words FILE\n");
        return 2;
    }
    int64_t begin = trp_bench_now();
    char *text = read_file(argv[1], &size);
    grow(&t);
    count_all(&t, text, size);
    trp_bench_print("seconds", (double)(trp_bench_now() - begin) / 1e9);
    trp_bench_print("words", (double)t.used);
    free(t.words);
    free(text);
    return 0;
}
