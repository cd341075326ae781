/*
 * text-score DEVICE DEVICES ROOT LIST TOP OUT VOCABULARY… — for each text that TOP
 * names
 * ("NAME\t…" lines, found below ROOT): which text of LIST is the most like it. Manual
 * pages are compared with manual pages, licences with all other texts.
 *
 * Texts are compared as usual for documents: each word of a text weighs (1 + log of how
 * often) × log(all texts / texts that have the word); how alike two texts are is the
 * cosine between these vectors. That is a product of a matrix (the texts of TOP) and
 * vectors (all others), so work for an accelerator.
 *
 * The accelerator is pretended: the file DEVICES/DEVICE with SEATS seats, which are
 * locks on its bytes. A task that finds no free seat fails: if the scheduler ever gave
 * a device to more tasks than fit, this stage could not succeed.
 *
 * OUT has lines "NAME\tSIMILARITY\tTEXT\tDEVICE".
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text.h"
#include "words.h"

enum { SEATS = 2, TOP_MAX = 64 };

struct hub { /* a text of TOP, and the one most like it so far */
    char name[TEXT_NAME_MAX], best[TEXT_NAME_MAX];
    enum text_kind kind;
    double similarity;
};

struct scores {
    struct words vocabulary;
    double ntexts;
    uint32_t *counts; /* of each word of the vocabulary in the present text */
    struct hub hubs[TOP_MAX];
    size_t nhubs;
    float *matrix; /* TOP_MAX columns, a row for each word: what is on the device */
};

struct vector { /* a sparse one */
    struct cell {
        uint32_t word;
        float weight;
    } * cells;
    size_t n, capacity;
};

/* Takes a seat, which is given back when the program ends. */
static void take_seat(const char *folder, const char *device)
{
    char path[4096];
    if (strchr(device, '/') || strchr(device, ','))
        text_fail("'%s' is no single device", device);
    snprintf(path, sizeof(path), "%s/%s", folder, device);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        text_fail("cannot open device %s: %s", path, strerror(errno));
    for (int seat = 0; seat < SEATS; seat++) {
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = seat, .l_len = 1};
        if (fcntl(fd, F_SETLK, &lock) == 0)
            return;
    }
    text_fail("device %s has %d users already", device, SEATS);
}

static void load_vocabulary(struct scores *s, char **paths, int n)
{
    for (int i = 0; i < n; i++)
        words_load(&s->vocabulary, paths[i]);
    /* The commonest word is in about every text. */
    for (size_t i = 0; i < s->vocabulary.n; i++)
        if (s->vocabulary.all[i].files > s->ntexts)
            s->ntexts = s->vocabulary.all[i].files;
    s->counts = calloc(s->vocabulary.n + 1, sizeof(*s->counts));
    s->matrix = calloc((s->vocabulary.n + 1) * TOP_MAX, sizeof(*s->matrix));
    if (!s->counts || !s->matrix)
        text_fail("out of memory");
}

/* Counts the text's words: v has those that it has, without weights. */
static void count_words(struct scores *s, const char *text, size_t size,
                        struct vector *v)
{
    char word[TEXT_WORD_MAX + 1];
    v->n = 0;
    for (const char *at = text; text_next_word(&at, text + size, word);) {
        const struct word *known = words_find(&s->vocabulary, word);
        if (!known)
            continue;
        size_t i = (size_t)(known - s->vocabulary.all);
        if (s->counts[i]++)
            continue;
        if (v->n == v->capacity) {
            v->capacity = v->capacity ? 2 * v->capacity : 1024;
            v->cells = reallocarray(v->cells, v->capacity, sizeof(*v->cells));
            if (!v->cells)
                text_fail("out of memory");
        }
        v->cells[v->n++].word = (uint32_t)i;
    }
}

/* The vector of a text, of length 1. */
static void make_vector(struct scores *s, const char *text, size_t size,
                        struct vector *v)
{
    double square = 0;
    count_words(s, text, size, v);
    for (size_t i = 0; i < v->n; i++) {
        uint32_t word = v->cells[i].word;
        double weight = (1 + log((double)s->counts[word])) *
                        log(s->ntexts / s->vocabulary.all[word].files);
        s->counts[word] = 0;
        v->cells[i].weight = (float)weight;
        square += weight * weight;
    }
    for (size_t i = 0; i < v->n && square > 0; i++)
        v->cells[i].weight /= (float)sqrt(square);
}

/* The text of a file that is no other name of one; as text_read. */
static int read_file(const char *path, char **ret_text, size_t *ret_size)
{
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    int rc = text_read(path, ret_text, ret_size);
    if (rc < 0)
        text_fail("out of memory");
    return rc;
}

static void load_hubs(struct scores *s, const char *root, const char *top)
{
    FILE *f = text_open(top, "re");
    char *line = NULL, path[4096], *text;
    size_t capacity = 0, size;
    struct vector v = {0};
    while (s->nhubs < TOP_MAX && getline(&line, &capacity, f) > 0) {
        struct hub *hub = &s->hubs[s->nhubs];
        line[strcspn(line, "\t\n")] = '\0';
        snprintf(hub->name, sizeof(hub->name), "%s", line);
        hub->kind = text_kind_of(line);
        if (!text_find(root, line, path, sizeof(path)) ||
            read_file(path, &text, &size) != 1)
            continue; /* referred to, but not here */
        make_vector(s, text, size, &v);
        for (size_t i = 0; i < v.n; i++)
            s->matrix[(size_t)v.cells[i].word * TOP_MAX + s->nhubs] = v.cells[i].weight;
        s->nhubs++;
        free(text);
    }
    free(v.cells);
    free(line);
    fclose(f);
}

/* What the device does: the matrix times the vector. */
static void multiply(const struct scores *s, const struct vector *v,
                     float product[TOP_MAX])
{
    memset(product, 0, TOP_MAX * sizeof(*product));
    for (size_t i = 0; i < v->n; i++) {
        const float *row = s->matrix + (size_t)v->cells[i].word * TOP_MAX;
        for (size_t h = 0; h < s->nhubs; h++)
            product[h] += row[h] * v->cells[i].weight;
    }
}

static void compare(struct scores *s, const char *name, enum text_kind kind,
                    const struct vector *v)
{
    float product[TOP_MAX];
    multiply(s, v, product);
    for (size_t h = 0; h < s->nhubs; h++) {
        struct hub *hub = &s->hubs[h];
        if ((hub->kind == TEXT_MANUAL) != (kind == TEXT_MANUAL) ||
            strcmp(hub->name, name) == 0 || (double)product[h] <= hub->similarity)
            continue;
        hub->similarity = (double)product[h];
        snprintf(hub->best, sizeof(hub->best), "%s", name);
    }
}

static size_t score_list(struct scores *s, const char *list)
{
    FILE *f = text_open(list, "re");
    char *path = NULL, name[TEXT_NAME_MAX], *text;
    size_t capacity = 0, size, texts = 0;
    struct vector v = {0};
    ssize_t n;
    while ((n = getline(&path, &capacity, f)) > 0) {
        if (path[n - 1] == '\n')
            path[n - 1] = '\0';
        if (read_file(path, &text, &size) != 1)
            continue;
        make_vector(s, text, size, &v);
        enum text_kind kind = text_name_of(path, name);
        compare(s, name, kind, &v);
        free(text);
        texts++;
    }
    free(v.cells);
    free(path);
    fclose(f);
    return texts;
}

int main(int argc, char **argv)
{
    static struct scores s;
    if (argc < 8)
        text_fail("usage: text-score DEVICE DEVICES ROOT LIST TOP OUT VOCABULARY…");
    take_seat(argv[2], argv[1]);
    load_vocabulary(&s, argv + 7, argc - 7);
    load_hubs(&s, argv[3], argv[5]);
    size_t texts = score_list(&s, argv[4]);
    FILE *f = text_open(argv[6], "we");
    for (size_t h = 0; h < s.nhubs; h++)
        if (s.hubs[h].similarity > 0)
            fprintf(f, "%s\t%.4f\t%s\t%s\n", s.hubs[h].name, s.hubs[h].similarity,
                    s.hubs[h].best, argv[1]);
    text_close(f, argv[6]);
    printf("%zu texts compared with %zu on device %s\n", texts, s.nhubs, argv[1]);
    words_free(&s.vocabulary);
    free(s.counts);
    free(s.matrix);
    return 0;
}
