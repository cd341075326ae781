/*
 * Runs a fuzz target over files without a fuzzer, so that everything that was once
 * found stays a test: TAP, one point a file.
 *
 *     fuzz_wire FOLDER|FILE…
 *
 * The name of a file is told before it is run: a crash ends the program there. Bytes
 * are given in memory of exactly their size, for the sanitizers.
 */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

struct names {
    char **v;
    size_t n;
};

static void add(struct names *l, const char *folder, const char *name)
{
    char *path = NULL;
    l->v = reallocarray(l->v, l->n + 1, sizeof *l->v);
    if (!l->v || asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0)
        abort();
    l->v[l->n++] = path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A folder's files, or the file itself. */
static void find(struct names *l, const char *path)
{
    DIR *d = opendir(path);
    size_t first = l->n;
    if (!d) {
        add(l, "", path);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (e->d_type == DT_DIR && *e->d_name != '.') {
            char *below = NULL;
            if (asprintf(&below, "%s/%s", path, e->d_name) < 0)
                abort();
            find(l, below);
            free(below);
        } else if (*e->d_name != '.') {
            add(l, path, e->d_name);
        }
    closedir(d);
    qsort(l->v + first, l->n - first, sizeof *l->v, by_name);
}

static int run(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;
    if (f && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size >= 0) {
        rewind(f);
        data = malloc((size_t)size);
    }
    int rc = -1;
    if (size == 0 || (data && fread(data, 1, (size_t)size, f) == (size_t)size)) {
        LLVMFuzzerTestOneInput(data, (size_t)size);
        rc = 0;
    }
    free(data);
    if (f)
        fclose(f);
    return rc;
}

int main(int argc, char **argv)
{
    struct names files = {0};
    for (int i = 1; i < argc; i++)
        find(&files, argv[i]);
    printf("1..%zu\n", files.n);
    for (size_t i = 0; i < files.n; i++) {
        const char *slash = strrchr(files.v[i], '/');
        printf("# %s\n", files.v[i]);
        fflush(stdout);
        printf("%s %zu - %s\n", run(files.v[i]) == 0 ? "ok" : "not ok", i + 1,
               slash ? slash + 1 : files.v[i]);
        free(files.v[i]);
    }
    free(files.v);
    return 0;
}
