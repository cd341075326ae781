/*
 * Sessions: what a user does goes on until there is nothing of his for half an hour. Lines are
 * "USER SECONDS", in any order; the sessions with most events are printed, as "USER START
 * EVENTS".
 */
#include <troupe.h>

#include "example.h"

enum { PAUSE = 1800 };

struct session {
    int64_t events, start;
    char user[32];
};

TRP_FUNCTION(events); /* lines in, the time for each user out */
int events(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)arg;
    for (size_t i = 0, size; i < in->count; i++) {
        const char *line = trp_value(in, i, &size);
        const char *blank = memchr(line, ' ', size);
        char number[24] = "", *end = number;
        size_t user = blank ? (size_t)(blank - line) : size;
        if (blank && size - user - 1 < sizeof number)
            memcpy(number, blank + 1, size - user - 1);
        int64_t seconds = strtoll(number, &end, 10);
        if (end == number || *end || user >= sizeof((struct session *)0)->user)
            return trp_task_error(t, "no event: %.*s", (int)size, line), -1;
        if (trp_emit_i64(out, line, user, seconds) < 0)
            return -1;
    }
    return 0;
}

TRP_FUNCTION(sessions); /* all times of a user in, in their order; his sessions out */
int sessions(trp_task *t, const trp_batch *in, trp_writer *out, const void *arg)
{
    (void)t, (void)arg;
    for (size_t i = 0, n, size; i < in->count; i++) {
        struct session s = {0};
        int64_t last = 0, now;
        trp_group_values times = trp_group(in, i);
        const char *user = trp_key(in, i, &n);
        memcpy(s.user, user, n);
        for (const void *v; (v = trp_group_next(&times, &size)); last = now) {
            memcpy(&now, v, sizeof now);
            if (s.events && now - last > PAUSE) {
                if (trp_emit(out, NULL, 0, &s, sizeof s) < 0)
                    return -1;
                s.events = 0;
            }
            s.start = s.events++ ? s.start : now;
        }
        if (trp_emit(out, NULL, 0, &s, sizeof s) < 0)
            return -1;
    }
    return 0;
}

/* Most events first, of as many the earlier, then by name. */
TRP_COMPARE(more);
int more(const void *a, size_t na, const void *b, size_t nb, const void *arg)
{
    struct session x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    (void)na, (void)nb, (void)arg;
    if (x.events != y.events)
        return x.events < y.events ? -1 : 1;
    if (x.start != y.start)
        return x.start > y.start ? -1 : 1;
    return -strcmp(x.user, y.user);
}

int main(int argc, char **argv)
{
    trp_context *ctx;
    trp_rows *rows = NULL;
    int64_t top = 10;
    const struct example_option options[] = {
        {"--top", &top, NULL, NULL},
        {0  }
    };
    if (trp_init(&argc, &argv, &ctx) < 0)
        return 2;
    int at = example_options(argc, argv, options, 1, "sessions [--top N] FILES");
    trp_dataset *d = trp_transform(trp_text_files(ctx, argv[at], 8), events, NULL, 0);
    d = trp_transform(trp_group_sorted(d, TRP_I64, 4), sessions, NULL, 0);
    if (trp_top(trp_named(d, "sessions"), (size_t)top, more, &rows) < 0)
        fprintf(stderr, "sessions: %s\n", trp_error_text(ctx));
    const trp_batch *b = rows ? trp_rows_batch(rows) : NULL;
    for (size_t i = 0; b && i < b->count; i++) {
        struct session s;
        if (TRP_GET(b, i, &s) == 0)
            printf("%s %lld %lld\n", s.user, (long long)s.start, (long long)s.events);
    }
    trp_rows_free(rows);
    return trp_finalize(ctx);
}
