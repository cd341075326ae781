/*
 * ngrams — which words and which phrases of three words are the most frequent in the
 * texts that every Debian machine has: licences, copyright files and manual pages, each
 * section of the manual apart.
 *
 *     troupe run -- build/examples/ngrams
 *     troupe run -- build/examples/ngrams --top 20 '/usr/share/man/man[238]/a[a-z]*.gz'
 *     mpirun -n 3 build/examples/ngrams          (all stages in one shape then)
 *
 * Two stages, in two shapes:
 *   tokenise  many small tasks on executors with several cores and little memory. Each
 *             task reads its part of the texts (compressed ones too), takes the troff
 *             requests out of manual pages, and counts words and trigrams of each batch
 *             of lines. What it found goes into one record for each *shard*: an n-gram
 *             belongs to the shard that its hash says.
 *   model     few tasks with much memory on executors with one core, one task a shard:
 *             it has all counts of its n-grams, adds them up and keeps the most
 *             frequent ones of each section. These short lists are reduced to one, in
 *             the tasks and then on the driver.
 * Between them the driver puts the records of each shard together (trp_collect, then
 * trp_records): a shuffle by hand.
 *
 * A trigram that a batch of lines has only once is left out there (--min), which keeps
 * the tables small: counts of rare phrases are therefore a little low.
 */
#include <ctype.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table.h"
#include "troupe.h"

enum { SHARDS_MAX = 4096, SECTIONS = 11, WORD_MAX = 64 };

static const char *const section_names[SECTIONS] = {
    "licences",
    "copyright files",
    "manual 1, commands",
    "manual 2, system calls",
    "manual 3, functions",
    "manual 4, devices",
    "manual 5, file formats",
    "manual 6, games",
    "manual 7, overviews",
    "manual 8, administration",
    "other texts",
};

struct settings { /* goes with the functions to the executors */
    uint32_t shards, min, top;
};

/* ---- tokenise ---- */

/* Which section a file belongs to, by its path. */
static uint8_t section_of(const char *path, size_t size)
{
    char text[4096];
    if (size >= sizeof(text))
        return SECTIONS - 1;
    memcpy(text, path, size);
    text[size] = '\0';
    const char *man = strstr(text, "/man/man");
    if (man && man[8] >= '1' && man[8] <= '8')
        return (uint8_t)(man[8] - '1' + 2);
    if (strstr(text, "/common-licenses/"))
        return 0;
    return strstr(text, "/copyright") ? 1 : SECTIONS - 1;
}

/* Words that say nothing about a text, sorted. */
static bool is_stop_word(const char *word)
{
    static const char *const words[] = {
        "all",  "and",   "any",  "are",  "but",   "can", "for",  "from",
        "has",  "have",  "its",  "may",  "not",   "one", "only", "other",
        "such", "that",  "the",  "then", "this",  "use", "used", "was",
        "when", "which", "will", "with", "would", "you", "your",
    };
    size_t lo = 0, hi = sizeof(words) / sizeof(*words);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int order = strcmp(word, words[mid]);
        if (order == 0)
            return true;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return false;
}

/* The text being read: the last words, and where counts go. */
struct reader {
    struct table table;
    uint8_t section;
    char words[3][WORD_MAX + 1]; /* the last three, newest last */
    uint32_t known;              /* how many of them there are */
};

static int take_word(struct reader *r, const char *word, size_t size)
{
    memmove(r->words[0], r->words[1], 2 * sizeof(r->words[0]));
    memcpy(r->words[2], word, size);
    r->words[2][size] = '\0';
    if (size == 1 && word[0] != 'a')
        r->known = 0; /* a name or what is left of a table: no phrase goes on over it */
    else
        r->known += r->known < 3;
    if (table_add(&r->table, r->section, 0, "", 0, 1) < 0)
        return -1;
    if (size > 2 && !is_stop_word(r->words[2]) &&
        table_add(&r->table, r->section, 1, word, size, 1) < 0)
        return -1;
    if (r->known < 3)
        return 0;
    char phrase[3 * (WORD_MAX + 1)];
    int n = snprintf(phrase, sizeof(phrase), "%s %s %s", r->words[0], r->words[1],
                     r->words[2]);
    return table_add(&r->table, r->section, 3, phrase, (size_t)n, 1);
}

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Bytes of the troff escape that begins at `p`: \fB, \f(CW, \m[blue], \s-1, \-,
 * \(em, \[em], \*(lq, … */
static size_t escape_size(const char *p, const char *end)
{
    size_t left = (size_t)(end - p), n = 1;
    if (left > n && strchr("fgkmnsFMVY*", p[n]))
        n++;
    if (left > n && p[n] == '[') {
        const char *close = memchr(p, ']', left);
        return close ? (size_t)(close - p) + 1 : left;
    }
    if (left > n && p[n] == '(')
        n += 3;
    else
        n += left > n && (p[n] == '+' || p[n] == '-') && n == 2 ? 2 : 1;
    return n < left ? n : left;
}

/* Is the line a request that has no text: a comment, a definition, a condition? */
static bool is_silent(const char *line, size_t size)
{
    static const char *const requests[] = {"\\\"", "de", "ds", "ie", "if", "el",
                                           "nr",   "tr", "so", "TH", "ft", "ig"};
    for (size_t i = 0; size > 2 && i < sizeof(requests) / sizeof(*requests); i++)
        if (memcmp(line + 1, requests[i], 2) == 0)
            return true;
    return false;
}

static int take_line(struct reader *r, const char *line, size_t size, bool troff)
{
    const char *end = line + size;
    char word[WORD_MAX];
    size_t n = 0;
    if (troff && size && (line[0] == '.' || line[0] == '\'')) {
        if (is_silent(line, size))
            return 0;
        while (line < end && *line != ' ')
            line++; /* the request itself */
    }
    for (const char *p = line; p <= end;) {
        if (p < end && troff && *p == '\\') {
            p += escape_size(p, end);
            continue;
        }
        if (p < end && is_letter(*p)) {
            if (n < WORD_MAX)
                word[n] = (char)tolower((unsigned char)*p);
            n++;
        } else {
            if (n > 0 && n < WORD_MAX && take_word(r, word, n) < 0)
                return -1;
            n = 0;
        }
        p++;
    }
    return 0;
}

/* One record for each shard: its number, then its entries. */
static int emit_shards(const struct table *t, const struct settings *s, trp_writer *out)
{
    struct bytes *shards = calloc(s->shards, sizeof(*shards));
    int rc = shards ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < s->shards; i++)
        rc = bytes_put(&shards[i], &i, sizeof(i));
    for (size_t i = 0; rc == 0 && i < t->ngrams; i++) {
        const struct ngram *g = &t->grams[i];
        if (g->n < 3 || g->count >= s->min)
            rc = bytes_put_ngram(&shards[(g->hash >> 8) % s->shards], t, g);
    }
    for (uint32_t i = 0; shards && i < s->shards; i++) {
        if (rc == 0 && shards[i].size > sizeof(i))
            rc = trp_emit(out, NULL, 0, shards[i].data, shards[i].size);
        free(shards[i].data);
    }
    free(shards);
    return rc;
}

TRP_FUNCTION(tokenise);
int tokenise(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    struct reader r = {0};
    const char *path = NULL;
    size_t path_size = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->count; i++) {
        size_t n, nk;
        const char *line = trp_value(in, i, &n), *key = trp_key(in, i, &nk);
        if (!path || nk != path_size || memcmp(key, path, nk) != 0) {
            r.section = section_of(key, nk);
            r.known = 0; /* phrases do not reach over files */
            path = key;
            path_size = nk;
        }
        rc = take_line(&r, line, n, r.section >= 2 && r.section < SECTIONS - 1);
    }
    if (rc == 0)
        rc = emit_shards(&r.table, arg, out);
    table_free(&r.table);
    if (rc < 0)
        trp_task_error(t, "out of memory for the words of %zu lines", in->count);
    return rc;
}

/* ---- model ---- */

static int emit_top(struct table *t, uint32_t top, trp_writer *out)
{
    struct bytes b = {0};
    int rc = table_top(t, top, &b);
    if (rc == 0)
        rc = trp_emit(out, NULL, 0, b.data, b.size);
    free(b.data);
    return rc;
}

TRP_FUNCTION(model);
int model(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    const struct settings *s = arg;
    struct table table = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < in->count; i++) {
        size_t n;
        const void *entries = trp_value(in, i, &n);
        rc = table_add_bytes(&table, entries, n);
    }
    if (rc == 0)
        rc = emit_top(&table, s->top, out);
    table_free(&table);
    if (rc < 0)
        trp_task_error(t, "a shard's counts are broken, or memory is out");
    return rc;
}

/* Two lists of the most frequent n-grams become one. */
TRP_COMBINE(merge_tops);
int merge_tops(const void *a, size_t na, const void *b, size_t nb, trp_writer *out,
               const void *arg)
{
    const struct settings *s = arg;
    struct table table = {0};
    int rc = table_add_bytes(&table, a, na);
    if (rc == 0)
        rc = table_add_bytes(&table, b, nb);
    if (rc == 0)
        rc = emit_top(&table, s->top, out);
    table_free(&table);
    return rc;
}

/* ---- the driver ---- */

/* The records of each shard, one behind the other, as one record a shard. */
static trp_dataset *regroup(trp_context *ctx, const trp_batch *b, uint32_t shards)
{
    uint64_t *offsets = calloc(shards + 1, sizeof(*offsets));
    uint64_t *at = calloc(shards, sizeof(*at));
    char *all = NULL;
    trp_dataset *d = NULL;
    size_t n;
    uint32_t shard;
    if (!offsets || !at)
        goto end;
    for (size_t i = 0; i < b->count; i++) {
        memcpy(&shard, trp_value(b, i, &n), sizeof(shard));
        offsets[shard + 1] += n - sizeof(shard);
    }
    for (uint32_t i = 0; i < shards; i++) {
        at[i] = offsets[i];
        offsets[i + 1] += offsets[i];
    }
    all = malloc(offsets[shards] + 1);
    if (!all)
        goto end;
    for (size_t i = 0; i < b->count; i++) {
        const char *value = trp_value(b, i, &n);
        memcpy(&shard, value, sizeof(shard));
        memcpy(all + at[shard], value + sizeof(shard), n - sizeof(shard));
        at[shard] += n - sizeof(shard);
    }
    d = trp_records(ctx, all, offsets, shards, shards);
end:
    free(offsets);
    free(at);
    free(all);
    return d;
}

/* "1,234,567" */
static const char *grouped(uint64_t n, char *buf, size_t size)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    size_t out = 0;
    for (int i = 0; i < len && out + 2 < size; i++) {
        if (i && (len - i) % 3 == 0)
            buf[out++] = ',';
        buf[out++] = digits[i];
    }
    buf[out] = '\0';
    return buf;
}

static void print_tops(const char *data, size_t size)
{
    const char *at = data, *text;
    struct ngram g;
    int section = -1, n = -1;
    char number[40];
    while (ngram_next(&at, data + size, &g, &text)) {
        if (g.n == 0) {
            printf("%s\n%s: %s words", section < 0 ? "" : "\n",
                   section_names[g.section < SECTIONS ? g.section : SECTIONS - 1],
                   grouped(g.count, number, sizeof(number)));
            section = g.section;
            n = 0;
            continue;
        }
        if (g.n != n)
            printf("\n  %-8s ", g.n == 1 ? "words" : "phrases");
        printf("%s%.*s (%s)", g.n == n ? ", " : "", (int)g.size, text,
               grouped(g.count, number, sizeof(number)));
        n = g.n;
    }
    printf("\n");
}

/* A profile, or NULL with a line that says why all runs in the default shape. */
static trp_profile *shape(trp_context *ctx, const char *name, int64_t cores,
                          const char *memory)
{
    trp_profile *p;
    if (trp_profile_new(ctx, name, &p) == 0 &&
        trp_profile_executor(p, "cores", cores) == 0 &&
        trp_profile_executor_text(p, "memory", memory) == 0 &&
        trp_profile_task(p, "cpus", 1) == 0 && trp_profile_build(p) == 0)
        return p;
    fprintf(stderr, "ngrams: %s; this stage runs in the default shape\n",
            trp_error_text(ctx));
    trp_error_clear(ctx); /* it does not make the run a failure */
    return NULL;
}

static trp_dataset *in_shape(trp_dataset *d, trp_profile *p)
{
    return p ? trp_with_resources(d, p) : d;
}

struct options {
    struct settings settings;
    uint32_t partitions, cores;
    const char *model_memory;
    const char *const *patterns;
    uint32_t npatterns;
};

static int run(trp_context *ctx, const struct options *o)
{
    const struct settings *s = &o->settings;
    trp_profile *wide = shape(ctx, "tokenise", o->cores, "512m");
    trp_profile *fat = shape(ctx, "model", 1, o->model_memory);
    trp_dataset *texts = NULL;
    for (uint32_t i = 0; i < o->npatterns; i++) {
        uint32_t parts = o->partitions / o->npatterns;
        trp_dataset *d = trp_text_files(ctx, o->patterns[i], parts ? parts : 1);
        texts = i ? trp_union(texts, d) : d;
    }
    trp_dataset *counts = trp_transform(in_shape(texts, wide), tokenise, s, sizeof(*s));
    trp_rows *rows;
    if (trp_collect(counts, &rows) < 0)
        return -1;
    trp_dataset *shards = regroup(ctx, trp_rows_batch(rows), s->shards);
    trp_rows_free(rows);
    trp_dataset *tops = trp_transform(in_shape(shards, fat), model, s, sizeof(*s));
    void *value;
    size_t size;
    if (trp_reduce(tops, merge_tops, s, sizeof(*s), &value, &size) < 0)
        return -1;
    print_tops(value, size);
    free(value);
    return 0;
}

static void usage(FILE *to)
{
    fprintf(
        to,
        "usage: troupe run -- ngrams [OPTION…] [PATTERN…]\n"
        "The most frequent words and phrases of three words in each section of the\n"
        "texts that match the patterns (by default Debian's licences, copyright\n"
        "files and manual pages).\n"
        "  -t, --top N           how many of each are printed (6)\n"
        "  -p, --partitions N    tasks of the stage that reads (96)\n"
        "  -s, --shards N        tasks of the stage that adds up (8)\n"
        "  -m, --min N           phrases that N lines in a row have less often are\n"
        "                        left out there (2)\n"
        "      --cores N         of an executor that reads (2, or what is there)\n"
        "      --model-memory M  of an executor that adds up (1g)\n"
        "  -h, --help\n");
}

/* A number of 1 to `most`, or exits. */
static uint32_t number(const char *text, uint32_t most)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || !isdigit((unsigned char)*text) || n < 1 || n > most) {
        fprintf(stderr, "ngrams: '%s' is no number from 1 to %u\n", text, most);
        exit(2);
    }
    return (uint32_t)n;
}

static void parse(int argc, char **argv, struct options *o)
{
    static const char *const everything[] = {"/usr/share/common-licenses/*",
                                             "/usr/share/doc/**/copyright",
                                             "/usr/share/man/man?/*.gz"};
    static const struct option longs[] = {
        {"top",    1, NULL, 't'},
        {"partitions",    1, NULL, 'p'},
        {"shards",        1, NULL, 's'},
        {"min",    1, NULL, 'm'},
        {"cores",     1, NULL, 'c'},
        {"model-memory", 1, NULL, 'M'},
        {"help",    0, NULL, 'h'},
        {0       }
    };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (struct options){
        .settings = {.shards = 8, .min = 2, .top = 6},
        .partitions = 96,
        .cores = cores > 1 ? 2 : 1,
        .model_memory = "1g",
        .patterns = everything,
        .npatterns = sizeof(everything) / sizeof(*everything)
    };
    for (int c; (c = getopt_long(argc, argv, "t:p:s:m:h", longs, NULL)) != -1;) {
        if (c == 't')
            o->settings.top = number(optarg, 1000);
        else if (c == 'p')
            o->partitions = number(optarg, 1000000);
        else if (c == 's')
            o->settings.shards = number(optarg, SHARDS_MAX);
        else if (c == 'm')
            o->settings.min = number(optarg, 1000000);
        else if (c == 'c')
            o->cores = number(optarg, 4096);
        else if (c == 'M')
            o->model_memory = optarg;
        else {
            usage(c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) {
        o->patterns = (const char *const *)argv + optind;
        o->npatterns = (uint32_t)(argc - optind);
    }
}

int main(int argc, char **argv)
{
    struct options o;
    trp_context *ctx;
    parse(argc, argv, &o);
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    if (run(ctx, &o) < 0)
        fprintf(stderr, "ngrams: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
