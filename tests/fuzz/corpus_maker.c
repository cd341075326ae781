/*
 * Makes what fuzzing starts from out of sources, so that nothing that is kept breaks when
 * the engine gets another event, or a trace another field.
 *
 *     fuzz_corpus_maker FOLDER FILE.moves…    inputs of `engine` into FOLDER/engine, and
 *                                             the traces of their runs into FOLDER/trace
 *     fuzz_corpus_maker --replay FOLDER/trace TAP: each is decided the same again
 *
 * A .moves file is one input as lines: `config` with its bytes, then moves by their names
 * (tests/fuzz/engine.c) with theirs, as FUZZ_TELL=1 tells them of any input. Its comment
 * says what it shows. The line
 *
 *     random NAME N SIZE [features]
 *
 * makes N inputs NAME-1, … of so many bytes each, always the same ones.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "../property/rng.h"
#include "engine_moves.h"
#include "sim/run/replay.h"

enum { INPUT_MAX = 4096, TRACES = 4 /* of random inputs of one line */ };

struct input {
    uint8_t bytes[INPUT_MAX];
    size_t n;
};

static void fail(const char *what, const char *name)
{
    fprintf(stderr, "fuzz_corpus_maker: %s: %s\n", name, what);
    exit(1);
}

static void save(const char *file, const void *bytes, size_t n)
{
    FILE *f = fopen(file, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        fail(strerror(errno), file);
}

/* The records of a trace, not compressed: a fuzzer cannot change what is. */
static void unpack(const char *file)
{
    static uint8_t in[1 << 20], out[1 << 22];
    FILE *f = fopen(file, "rb");
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!f || !z)
        fail("cannot be read", file);
    ZSTD_inBuffer from = {in, fread(in, 1, sizeof in, f), 0};
    ZSTD_outBuffer to = {out, sizeof out, 0};
    fclose(f);
    while (from.pos < from.size)
        if (ZSTD_isError(ZSTD_decompressStream(z, &to, &from)) || to.pos == to.size)
            fail("is no trace, or a large one", file);
    ZSTD_freeDStream(z);
    save(file, out, to.pos);
}

static void make(const char *folder, const char *name, const struct input *input,
                 bool trace)
{
    char file[4096];
    snprintf(file, sizeof file, "%s/engine/%s", folder, name);
    save(file, input->bytes, input->n);
    if (!trace)
        return;
    snprintf(file, sizeof file, "%s/trace/%s", folder, name);
    fuzz_play(input->bytes, input->n, file);
    if (access(file, R_OK) == 0)
        unpack(file);
}

static void make_random(const char *folder, const char *line)
{
    char name[64], file[80], words[16] = "";
    unsigned n, size;
    if (sscanf(line, "random %63s %u %u %15s", name, &n, &size, words) < 3 ||
        size > INPUT_MAX)
        fail("not a line of a .moves file", line);
    for (unsigned i = 1; i <= n; i++) {
        struct input input = {.n = size};
        struct rng r = {size * UINT64_C(1000003) + i};
        for (unsigned k = 0; k < size; k++)
            input.bytes[k] = (uint8_t)rng_next(&r);
        if (*words)
            input.bytes[0] = (uint8_t)(0xc0 | (input.bytes[0] & 0x1f));
        snprintf(file, sizeof file, "%s-%u", name, i);
        make(folder, file, &input, i <= TRACES);
    }
}

/* A move and its bytes. */
static void add_line(struct input *input, const char *file, char *line)
{
    char *rest = NULL, *word = strtok_r(line, " \n", &rest);
    if (strcmp(word, "config") != 0) {
        int number = fuzz_move_number(word);
        if (number < 0)
            fail("there is no such move", file);
        input->bytes[input->n++] = (uint8_t)number;
    }
    while ((word = strtok_r(NULL, " \n", &rest)) && input->n < INPUT_MAX - 1)
        input->bytes[input->n++] = (uint8_t)atoi(word);
}

static void make_from(const char *folder, const char *file)
{
    struct input input = {.n = 0};
    const char *slash = strrchr(file, '/');
    char name[64], line[1024];
    FILE *f = fopen(file, "r");
    if (!f)
        fail(strerror(errno), file);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "random ", 7) == 0)
            make_random(folder, line);
        else if (*line != '#' && *line != '\n')
            add_line(&input, file, line);
    fclose(f);
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : file);
    name[strcspn(name, ".")] = '\0';
    if (input.n)
        make(folder, name, &input, true);
}

/* ---- replaying ---- */

static int not_hidden(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static bool is_the_same(const char *folder, const char *name)
{
    char from[4096], file[] = "/tmp/troupe-trace-XXXXXX", *said = NULL;
    static uint8_t in[1 << 22], out[1 << 22];
    size_t nsaid;
    trp_error err = {0};
    snprintf(from, sizeof from, "%s/%s", folder, name);
    FILE *f = fopen(from, "rb"), *to = open_memstream(&said, &nsaid);
    if (!f || !to || close(mkstemp(file)) < 0)
        fail(strerror(errno), from);
    size_t n = ZSTD_compress(out, sizeof out, in, fread(in, 1, sizeof in, f), 1);
    fclose(f);
    save(file, out, n);
    int rc = trp_sim_replay(file, to, &err);
    fclose(to);
    unlink(file);
    if (rc < 0)
        printf("# %s# %s\n", said, err.text);
    free(said);
    return rc == 0;
}

static int replay(const char *folder)
{
    struct dirent **names;
    int n = scandir(folder, &names, not_hidden, alphasort), bad = 0;
    if (n <= 0)
        fail("no traces", folder);
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        bool same = is_the_same(folder, names[i]->d_name);
        printf("%sok %d - %s is decided the same again\n", same ? "" : "not ", i + 1,
               names[i]->d_name);
        bad += !same;
        free(names[i]);
    }
    free(names);
    return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--replay") == 0)
        return replay(argv[2]);
    if (argc < 3) {
        fprintf(stderr, "usage: fuzz_corpus_maker FOLDER FILE.moves...\n"
                        "       fuzz_corpus_maker --replay FOLDER\n");
        return 2;
    }
    for (int i = 2; i < argc; i++)
        make_from(argv[1], argv[i]);
    return 0;
}
