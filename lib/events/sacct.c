#include "events/sacct.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"

enum { ID, STATE, EXIT, CPUS, ELAPSED, CPU, RSS, START, NAME, FIELDS };

static const char *const names[FIELDS] = {"JobIDRaw",  "State",      "ExitCode",
                                          "AllocCPUS", "ElapsedRaw", "TotalCPU",
                                          "MaxRSS",    "Start",      "JobName"};

/* Digits only, all of them up to `end`. */
static bool whole(const char *text, const char *end, int64_t *ret)
{
    int64_t n = 0;
    if (text == end)
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || n > (INT64_MAX - 9) / 10)
            return false;
        n = 10 * n + (*text - '0');
    }
    *ret = n;
    return true;
}

static bool whole_text(const char *text, int64_t *ret)
{
    return whole(text, text + strlen(text), ret);
}

/* "12", "12.3", "12.batch". */
static bool read_id(const char *text, struct trp_sacct_row *r)
{
    const char *dot = strchrnul(text, '.');
    int64_t job;
    r->is_job = !*dot;
    r->step = TRP_SACCT_NO_STEP;
    if (!whole(text, dot, &job) || job == 0 || job >= UINT32_MAX)
        return false;
    r->job = (uint32_t)job;
    if (*dot && !whole_text(dot + 1, &r->step))
        return dot[1] >= 'a' && dot[1] <= 'z';
    return true;
}

/* "3:0": status and signal. */
static bool read_exit(const char *text, struct trp_sacct_row *r)
{
    const char *colon = strchr(text, ':');
    int64_t status, signal;
    if (!colon || !whole(text, colon, &status) || !whole_text(colon + 1, &signal) ||
        status > INT32_MAX || signal > INT32_MAX)
        return false;
    r->exit_status = (int)status;
    r->signal = (int)signal;
    return true;
}

/* [[DAYS-]HOURS:]MINUTES:SECONDS[.THOUSANDTHS] */
static bool read_time(const char *text, double *ret)
{
    const char *dash = strchr(text, '-');
    int64_t days = 0, part, sum = 0, thousandths = 0;
    int parts = 0;
    if (dash && !whole(text, dash, &days))
        return false;
    for (text = dash ? dash + 1 : text;; text++) {
        size_t n = strcspn(text, ":.");
        if (++parts > 3 || !whole(text, text + n, &part) || part > 1000000)
            return false;
        sum = sum * 60 + part;
        text += n;
        if (*text != ':')
            break;
    }
    if (*text && (strlen(text) != 4 || !whole_text(text + 1, &thousandths)))
        return false;
    *ret = (double)days * 86400 + (double)sum + (double)thousandths / 1000;
    return parts >= 2;
}

/* "7968K"; "" where nothing was measured. */
static bool read_memory(const char *text, int64_t *ret_kib)
{
    static const char units[] = "KMGT";
    size_t n = strspn(text, "0123456789");
    const char *unit = text[n] ? strchr(units, text[n]) : NULL;
    *ret_kib = 0;
    if (!*text)
        return true;
    if (!whole(text, text + n, ret_kib) || *ret_kib >> 40 || (text[n] && !unit) ||
        (unit && text[n + 1]))
        return false;
    if (unit)
        *ret_kib <<= 10 * (unit - units);
    else
        *ret_kib = (*ret_kib + 1023) / 1024; /* bytes */
    return true;
}

static bool read_start(const char *text, int64_t *ret)
{
    *ret = 0;
    return strcmp(text, "Unknown") == 0 || strcmp(text, "None") == 0 ||
           whole_text(text, ret);
}

static bool is_state(const char *text)
{
    size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return n > 0 && (!text[n] || text[n] == ' ' || text[n] == '+');
}

/* The number of a wrong field; FIELDS: none. */
static int read_fields(char *const *field, struct trp_sacct_row *r)
{
    int64_t cpus;
    if (!read_id(field[ID], r))
        return ID;
    if (!is_state(field[STATE]))
        return STATE;
    if (!read_exit(field[EXIT], r))
        return EXIT;
    if (!whole_text(field[CPUS], &cpus))
        return CPUS;
    if (!whole_text(field[ELAPSED], &r->elapsed_s))
        return ELAPSED;
    if (!read_time(field[CPU], &r->cpu_s))
        return CPU;
    if (!read_memory(field[RSS], &r->rss_kib))
        return RSS;
    r->cpus = (uint64_t)cpus;
    return read_start(field[START], &r->start_s) ? FIELDS : START;
}

/* Cuts the line up. */
static int read_row(char *line, unsigned number, struct trp_sacct *s, trp_error *err)
{
    struct trp_sacct_row r = {0};
    char *field[FIELDS] = {line};
    int n = 1, wrong;
    for (char *bar; n < FIELDS && (bar = strchr(field[n - 1], '|')); n++) {
        *bar = '\0';
        field[n] = bar + 1;
    }
    if (n < FIELDS)
        return trp_error_set(err, TRP_EINVAL,
                             "line %u of sacct's has %d fields instead of %d", number,
                             n, FIELDS);
    wrong = read_fields(field, &r);
    if (wrong < FIELDS)
        return trp_error_set(err, TRP_EINVAL, "line %u of sacct's: no %s: \"%.60s\"",
                             number, names[wrong], field[wrong]);
    field[STATE][strcspn(field[STATE], " +")] = '\0';
    r.state = strdup(field[STATE]);
    r.name = strdup(field[NAME]);
    if (!r.state || !r.name || !TRP_ARRAY_GROW(s->rows, s->n, s->capacity)) {
        free(r.state);
        free(r.name);
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    s->rows[s->n++] = r;
    return 0;
}

int trp_sacct_parse(const char *text, struct trp_sacct *ret, trp_error *err)
{
    unsigned number = 0;
    int code = 0;
    char *copy = strdup(text), *line = copy;
    *ret = (struct trp_sacct){0};
    if (!copy)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    while (code == 0 && *line) {
        char *end = strchrnul(line, '\n'), *next = *end ? end + 1 : end;
        *end = '\0';
        code = read_row(line, ++number, ret, err);
        line = next;
    }
    free(copy);
    if (code < 0)
        trp_sacct_free(ret);
    return code;
}

void trp_sacct_free(struct trp_sacct *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        free(s->rows[i].state);
        free(s->rows[i].name);
    }
    free(s->rows);
    *s = (struct trp_sacct){0};
}

bool trp_sacct_is_over(const struct trp_sacct_row *r)
{
    static const char *const on[] = {"PENDING", "RUNNING", "SUSPENDED", "REQUEUED",
                                     "RESIZING"};
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        if (strcmp(r->state, on[i]) == 0)
            return false;
    return true;
}
