/*
 * Joins two tables: text files whose lines have fields between colons.
 *
 *     troupe run -- build/examples/join --fact 4 --dimension 3 /etc/passwd /etc/group out
 *
 * leaves in out/part-00000 and so on for each user that has a group a line: the key (the
 * fourth field of the one, the third of the other), a tab, the other fields of the
 * first table, a colon, those of the second. --left: also lines of the first that have
 * no partner, with a - in its place; --outer: those of the second, too. Either table may
 * be a pattern of many files. The first is taken to be the larger: it is read in more
 * tasks, and of the second all lines of one key are held in memory.
 */
#include <troupe.h>

#include "example.h"

enum { FACTS = 16, DIMENSIONS = 2, PARTS = 4 };

/* One line without its field number `wanted`, from 1, which becomes the key. */
static int emit_line(trp_task *t, trp_writer *out, const char *line, size_t n,
                     int64_t wanted)
{
    const char *end = line + n, *field = line, *stop = memchr(line, ':', n);
    for (; wanted > 1 && stop; wanted--) {
        field = stop + 1;
        stop = memchr(field, ':', (size_t)(end - field));
    }
    if (wanted > 1) {
        trp_task_error(t, "a line has no such field: %.*s", (int)n, line);
        return -1;
    }
    size_t nfield = (size_t)((stop ? stop : end) - field);
    size_t before = (size_t)(field - line), after = n - before - nfield;
    char *others = malloc(n + 1);
    if (!others)
        return -1;
    memcpy(others, line, before);
    memcpy(others + before, field + nfield, after);
    /* one of the colons around it goes, too */
    const bool first = before == 0 && after > 0;
    const size_t left = before + after - (before + after > 0);
    if (!first && before > 0 && after > 0)
        memmove(others + before, others + before + 1, after - 1);
    int rc = trp_emit(out, field, nfield, others + first, left);
    free(others);
    return rc;
}

TRP_FUNCTION(by_field); /* lines become a field → the others; arg: its number */
int by_field(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    for (size_t i = 0, n; i < in->count; i++) {
        const char *line = trp_value(in, i, &n);
        if (emit_line(t, out, line, n, *(const int64_t *)arg) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(as_text); /* pairs become "FACT:DIMENSION" */
int as_text(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0, na, nb, nkey; i < in->count; i++) {
        const char *a = trp_left(in, i, &na), *b = trp_right(in, i, &nb);
        const void *key = trp_key(in, i, &nkey);
        char *text = malloc(na + nb + 4);
        if (!text)
            return -1;
        int n = sprintf(text, "%.*s:%.*s", a ? (int)na : 1, a ? a : "-",
                        b ? (int)nb : 1, b ? b : "-");
        int rc = trp_emit(out, key, nkey, text, (size_t)n);
        free(text);
        if (rc < 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int64_t fact = 1, dimension = 1;
    bool left = false, outer = false;
    const struct example_option options[] = {
        {"--fact",      &fact,      NULL, NULL  },
        {"--dimension", &dimension, NULL, NULL  },
        {"--left",      NULL,       NULL, &left },
        {"--outer",     NULL,       NULL, &outer},
        {NULL,          NULL,       NULL, NULL  }
    };
    const char *usage = "join [--fact FIELD] [--dimension FIELD] [--left | --outer] "
                        "FACTS DIMENSIONS FOLDER";
    char **tables = argv + example_options(argc, argv, options, 3, usage);
    trp_context *ctx;
    trp_profile *read, *pair;
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    trp_profile_from(ctx, "read", "cores=2 memory=300m", &read);
    trp_profile_from(ctx, "pair", "cores=1 memory=400m", &pair);

    trp_dataset *facts = trp_text_files(ctx, tables[0], FACTS);
    trp_dataset *dimensions = trp_text_files(ctx, tables[1], DIMENSIONS);
    facts = trp_transform(facts, by_field, &fact, sizeof(fact));
    facts = trp_named(trp_with_resources(facts, read), "facts");
    dimensions = trp_transform(dimensions, by_field, &dimension, sizeof(dimension));
    dimensions = trp_named(trp_with_resources(dimensions, read), "dimensions");
    trp_dataset *d = trp_join(facts, dimensions,
                              outer  ? TRP_OUTER
                              : left ? TRP_LEFT
                                     : TRP_INNER,
                              PARTS);
    d = trp_map(d, as_text, NULL, 0);
    if (trp_save(trp_named(trp_with_resources(d, pair), "pairs"), tables[2]) < 0)
        fprintf(stderr, "join: %s\n", trp_error_text(ctx));
    return trp_finalize(ctx);
}
