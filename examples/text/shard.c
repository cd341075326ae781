/*
 * text-shard ROOT PARTS MOST_MIB DIR — lists the texts below ROOT (doc, man, common-
 * licenses) and deals them into at most PARTS lists DIR/000, DIR/001, … of about the
 * same work; the names of the lists go to stdout.
 *
 * Each file, the largest first, goes to the list that has least so far. Compressed text
 * counts four times its size, and every file a little for being opened. Where there is
 * more than MOST_MIB, a sample is taken, of other texts before manual pages and
 * licences; the hash of a path says whether it is in it. Symbolic links are other names
 * of manual pages and licences, and nothing elsewhere.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"
#include "words.h"

enum { PARTS_MAX = 999, OPEN_COST = 4096, GZ_FACTOR = 4, FILES_MAX = 4 << 20 };

struct file {
    char *path;
    uint64_t cost;
    unsigned part;
    bool refers; /* may refer to others: a manual page, licence, or copyright file */
};

static struct {
    struct file *all;
    size_t n, capacity;
} files; /* nftw has no argument to pass on */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Names that never are texts for people. */
static bool is_other(const char *path)
{
    static const char *const ends[] = {".png", ".gif", ".jpg", ".svg", ".svgz", ".js",
                                       ".css", ".tar", ".pdf", ".ps",  ".tgz",  ".zip",
                                       ".jar", ".so",  ".map", ".json"};
    char text[4096];
    snprintf(text, sizeof(text), "%s", path);
    if (ends_with(text, ".gz"))
        text[strlen(text) - 3] = '\0';
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (ends_with(text, ends[i]))
            return true;
    return strchr(path, '\n') != NULL;
}

static int take(const char *path, const struct stat *st, int type, struct FTW *at)
{
    char name[TEXT_NAME_MAX];
    (void)at;
    enum text_kind kind = text_name_of(path, name);
    bool link = type == FTW_SL;
    if ((type != FTW_F && !link) || is_other(path) || (link && kind == TEXT_OTHER))
        return 0;
    if (files.n == FILES_MAX)
        text_fail("more than %d files", FILES_MAX);
    if (files.n == files.capacity) {
        files.capacity = files.capacity ? 2 * files.capacity : 4096;
        files.all = reallocarray(files.all, files.capacity, sizeof(*files.all));
    }
    char *copy = strdup(path);
    if (!files.all || !copy)
        text_fail("out of memory");
    uint64_t size = link ? 0 : (uint64_t)st->st_size;
    if (ends_with(path, ".gz"))
        size *= GZ_FACTOR;
    if (size > TEXT_SIZE_MAX)
        size = TEXT_SIZE_MAX;
    files.all[files.n++] =
        (struct file){.path = copy,
                      .cost = size + OPEN_COST,
                      .refers = kind != TEXT_OTHER || ends_with(path, "/copyright")};
    return 0;
}

/* Keeps a sample of the files that refer to others or do not; returns what it costs. */
static uint64_t sample(bool refers, uint64_t most)
{
    uint64_t cost = 0, kept_cost = 0;
    size_t kept = 0, before = files.n;
    for (size_t i = 0; i < files.n; i++)
        cost += files.all[i].refers == refers ? files.all[i].cost : 0;
    double share = cost > most ? (double)most / (double)cost : 1;
    for (size_t i = 0; i < files.n; i++) {
        struct file *f = &files.all[i];
        if (f->refers == refers && words_hash(f->path) >= share * 4294967296.0) {
            free(f->path);
            continue;
        }
        kept_cost += f->refers == refers ? f->cost : 0;
        files.all[kept++] = *f;
    }
    files.n = kept;
    if (kept < before)
        fprintf(stderr, "text-shard: %zu files of %s are left out\n", before - kept,
                refers ? "manual pages and licences" : "other texts");
    return kept_cost;
}

static int largest_first(const void *a, const void *b)
{
    const struct file *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return strcmp(x->path, y->path);
}

static void deal(unsigned parts)
{
    static uint64_t load[PARTS_MAX];
    for (size_t i = 0; i < files.n; i++) {
        unsigned least = 0;
        for (unsigned k = 1; k < parts; k++)
            if (load[k] < load[least])
                least = k;
        files.all[i].part = least;
        load[least] += files.all[i].cost;
    }
}

static void write_lists(unsigned parts, const char *dir)
{
    char path[4096];
    for (unsigned k = 0; k < parts; k++) {
        snprintf(path, sizeof(path), "%s/%03u", dir, k);
        FILE *f = text_open(path, "we");
        for (size_t i = 0; i < files.n; i++)
            if (files.all[i].part == k)
                fprintf(f, "%s\n", files.all[i].path);
        text_close(f, path);
        printf("%03u\n", k);
    }
}

int main(int argc, char **argv)
{
    static const char *const folders[] = {"common-licenses", "doc", "man"};
    if (argc != 5)
        text_fail("usage: text-shard ROOT PARTS MOST_MIB DIR");
    unsigned long parts = strtoul(argv[2], NULL, 10);
    unsigned long long most = strtoull(argv[3], NULL, 10);
    if (parts < 1 || parts > PARTS_MAX || most < 1 || most > 1 << 20)
        text_fail("parts are 1 to %d, MiB at least 1", PARTS_MAX);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", argv[1], folders[i]);
        if (stat(path, &st) == 0)
            nftw(path, take, 32, FTW_PHYS);
    }
    uint64_t cost = sample(true, (uint64_t)most << 20);
    sample(false, cost < (uint64_t)most << 20 ? ((uint64_t)most << 20) - cost : 0);
    if (files.n == 0)
        text_fail("no text below %s", argv[1]);
    qsort(files.all, files.n, sizeof(*files.all), largest_first);
    if (parts > files.n)
        parts = files.n;
    deal((unsigned)parts);
    write_lists((unsigned)parts, argv[4]);
    for (size_t i = 0; i < files.n; i++)
        free(files.all[i].path);
    free(files.all);
    if (fflush(stdout) != 0)
        text_fail("cannot write the names of the lists");
    return 0;
}
