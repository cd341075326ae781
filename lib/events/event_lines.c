/*
 * A line is looked at as text before it is parsed: most lines of a log are of no
 * interest.
 */
#include "events/event_lines.h"
#include "os/held.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *file;
    const struct trp_event_line_kind *kinds;
    size_t nkinds;
    void *context;
};

static int take_line(const struct reader *r, const char *line, size_t n,
                     json_error_t *why)
{
    bool of_interest = false;
    int rc = 0;
    for (size_t i = 0; i < r->nkinds; i++)
        of_interest |=
            memmem(line, n, r->kinds[i].word, strlen(r->kinds[i].word)) != NULL;
    if (!of_interest && n > 0 && line[0] == '{')
        return 0;
    json_t *event = json_loadb(line, n, 0, why);
    if (!event)
        return TRP_EPROTO;
    const char *word = json_string_value(json_object_get(event, "Event"));
    for (size_t i = 0; word && i < r->nkinds && rc == 0; i++)
        if (strcmp(word, r->kinds[i].word) == 0)
            rc = r->kinds[i].take(r->context, event);
    json_decref(event);
    return word ? rc : TRP_EINVAL;
}

static int read_lines(const struct reader *r, FILE *in, trp_error *err)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    unsigned long number = 0;
    int rc = 0;
    while (rc == 0 && (n = getline(&line, &cap, in)) > 0) {
        json_error_t why = {.text = ""};
        number++;
        bool whole = line[n - 1] == '\n';
        rc = take_line(r, line, (size_t)n - whole, &why);
        if (rc < 0 && !whole) /* left by a crash */
            rc = 0;
        if (rc == TRP_EPROTO)
            rc = trp_error_set(err, TRP_EINVAL, "%s:%lu: not JSON: %s", r->file, number,
                               why.text);
        else if (rc == TRP_EINVAL)
            trp_error_set(err, rc, "%s:%lu: not an event of Spark's or Troupe's",
                          r->file, number);
        else if (rc < 0)
            trp_error_set(err, rc, "%s: out of memory", r->file);
    }
    if (rc == 0 && ferror(in))
        rc = trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %m", r->file);
    free(line);
    return rc;
}

int trp_event_lines_read(const char *file, const struct trp_event_line_kind *kinds,
                         size_t nkinds, void *context, trp_error *err)
{
    const struct reader r = {
        .file = file, .kinds = kinds, .nkinds = nkinds, .context = context};
    FILE *in = trp_held_fopen(file, "r");
    if (!in)
        return trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %m", file);
    int rc = read_lines(&r, in, err);
    fclose(in);
    return rc;
}

int64_t trp_event_ms(const json_t *number)
{
    json_int_t ms = json_integer_value(number);
    return ms > 0 && ms < INT64_MAX / 1000000 ? ms * 1000000 : 0;
}
