/*
 * A line is looked at as text before it is parsed: most lines of a log are of no
 * interest. Ours begin with the event's word; in one that does not, it is looked for
 * everywhere.
 *
 * One table says what each field is called and which events have it. An event is
 * decoded as a whole, also for a reader that wants little of it: that takes a small part
 * of what its line takes to be parsed.
 */
#include "events/log_event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/engine.h"
#include "os/held.h"

/* Stage infos of a job of 100,000 stages are 50 MB. */
enum { LINE_FIRST = 16384, LINE_MOST = 64 << 20 };

/* ---- kinds ---- */

static const struct {
    const char *word, *info, *time;
} kinds[] = {
#define KIND(kind, word, info, time) {word, info, time},
    TRP_LOG_KINDS(KIND)
#undef KIND
};

/* TRP_LOG_EVENTS: none that is known. */
static enum trp_log_kind kind_of(const char *word, size_t n)
{
    int i = 0;
    while (i < TRP_LOG_EVENTS &&
           (strlen(kinds[i].word) != n || memcmp(kinds[i].word, word, n) != 0))
        i++;
    return i;
}

/* ---- fields ---- */

/* The objects that an event may have, each behind the one that it is in. */
enum { SELF, INFO, PROPERTIES, RESULT, REASON, PAST, USE, IN, OUT, READ, WRITE, CACHE };
static const struct {
    int in;
    const char *name; /* NULL: as its kind says */
} objects[] = {
    {SELF, NULL                   },
    {SELF, NULL                   },
    {SELF, "Properties"           },
    {SELF, "Job Result"           },
    {SELF, "Task End Reason"      },
    {SELF, "Troupe Next"          },
    {SELF, "Task Metrics"         },
    {USE,  "Input Metrics"        },
    {USE,  "Output Metrics"       },
    {USE,  "Shuffle Read Metrics" },
    {USE,  "Shuffle Write Metrics"},
    {USE,  "Troupe Cache"         },
};
enum { OBJECTS = sizeof objects / sizeof *objects };

#define OF(kind) (1 << TRP_LOG_##kind)
_Static_assert(TRP_LOG_EVENTS < 31, "a set of kinds is an int");
enum {
    RUN = OF(APPLICATION) | OF(APPLICATION_END),
    PROFILE = OF(PROFILE),
    JOBS = OF(JOB) | OF(JOB_END),
    STAGES = OF(STAGE) | OF(STAGE_END) | OF(STAGE_SKIPPED) | OF(STAGE_WAITS),
    EXECUTORS = OF(EXECUTOR) | OF(EXECUTOR_END) | OF(EXECUTOR_ASKED) |
                OF(EXECUTOR_DROPPED) | OF(EXECUTOR_RELABELLED),
    TASKS = OF(TASK) | OF(TASK_END),
    END = OF(TASK_END),
    LOST = OF(TASK_GIVEN_UP) | OF(TASK_SKIPPED),
    NAMES = OF(TASK_NAMES),
    SUMS = OF(SUMMARY_BEGIN) | OF(SUMMARY),
    SLURM = OF(SLURM_JOB) | OF(SLURM_QUEUED) | OF(SLURM_ENDED) | OF(SLURM_STEP),
    OTHER = OF(NODES) | OF(MOVED) | OF(COSTS) | OF(MESSAGE),
};

static const struct field {
    int kinds, in;
    enum type { ID, COUNT, INT, TIME, TEXT, TRUE, JSON } type;
    size_t at;
    const char *name;
} fields[] = {
#define FIELD(kinds, in, type, member, name)                                           \
    {kinds, in, type, offsetof(struct trp_log_event, member), name},
    TRP_LOG_FIELDS(FIELD)
#undef FIELD
};

static const struct {
    int in;
    const char *name, *sum;
} flows[] = {
#define FLOW(flow, in, name, sum) {in, name, sum},
    TRP_LOG_FLOWS(FLOW)
#undef FLOW
};

/* ---- decoding ---- */

uint32_t trp_log_id(const json_t *number)
{
    json_int_t n = json_is_integer(number) ? json_integer_value(number) : -1;
    return n >= 0 && n < UINT32_MAX ? (uint32_t)n : TRP_NONE;
}

uint32_t trp_log_executor(const char *name)
{
    char *end = NULL;
    unsigned long n = name ? strtoul(name, &end, 10) : 0;
    if (name && *name && !*end && n < TRP_LOG_NOBODY)
        return (uint32_t)n;
    return name && strcmp(name, "driver") == 0 ? TRP_LOG_DRIVER : TRP_LOG_NOBODY;
}

/* Milliseconds as nanoseconds; 0 when it is none that can be. */
static int64_t time_of(const json_t *number)
{
    json_int_t ms = json_integer_value(number);
    return ms > 0 && ms < INT64_MAX / 1000000 ? ms * 1000000 : 0;
}

static uint8_t level_of(const char *name)
{
    for (int i = 0; name && i < TRP_LEVELS; i++)
        if (strcmp(trp_level_name(i), name) == 0)
            return (uint8_t)i;
    return TRP_ANY;
}

static void take(const struct field *f, json_t *v, struct trp_log_event *ret)
{
    void *to = (char *)ret + f->at;
    uint32_t id = trp_log_id(v);
    switch (f->type) {
    case ID:
        *(uint32_t *)to = id;
        break;
    case COUNT:
        *(uint32_t *)to = id == TRP_NONE ? 0 : id;
        break;
    case INT:
        *(int64_t *)to = json_integer_value(v);
        break;
    case TIME:
        *(int64_t *)to = time_of(v);
        break;
    case TEXT:
        *(const char **)to = json_string_value(v);
        break;
    case TRUE:
        *(bool *)to = json_is_true(v);
        break;
    case JSON:
        *(json_t **)to = v;
        break;
    }
}

static json_t *get(json_t *const *in, int object, const char *name)
{
    json_t *v = json_object_get(in[object], name);
    return v || object != INFO ? v : json_object_get(in[SELF], name);
}

static void take_flows(json_t *const *in, struct trp_log_event *ret)
{
    bool sum = ret->kind == TRP_LOG_SUMMARY;
    for (int i = 0; i < TRP_FLOWS; i++) {
        int64_t v =
            json_integer_value(sum ? json_object_get(in[SELF], flows[i].sum)
                                   : json_object_get(in[flows[i].in], flows[i].name));
        ret->flow[i] = v > 0 ? (uint64_t)v : 0;
    }
    uint64_t *read = &ret->flow[TRP_FLOW_READ];
    if (!sum) /* that was of this host alone */
        *read += ret->flow[TRP_FLOW_REMOTE];
    *read = *read > INT64_MAX ? INT64_MAX : *read;
}

static void decode(json_t *json, json_t *info, enum trp_log_kind kind,
                   struct trp_log_event *ret)
{
    json_t *in[OBJECTS] = {json, info};
    *ret = (struct trp_log_event){.kind = kind, .json = json, .info = info};
    for (int i = INFO + 1; i < OBJECTS; i++)
        in[i] = json_object_get(in[objects[i].in], objects[i].name);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].kinds >> kind & 1)
            take(&fields[i], get(in, fields[i].in, fields[i].name), ret);
    /* A start tells of the first one again. */
    ret->at = time_of(ret->resumed ? ret->resumed : get(in, INFO, kinds[kind].time));
    ret->executor = trp_log_executor(ret->executor_name);
    ret->level = level_of(ret->level_name);
    ret->ran_ns = json_is_integer(ret->exact) ? json_integer_value(ret->exact)
                                              : ret->at - ret->launched;
    if (kind == TRP_LOG_TASK_END || kind == TRP_LOG_SUMMARY)
        take_flows(in, ret);
}

int trp_log_event_decode(json_t *json, struct trp_log_event *ret)
{
    json_t *word = json_object_get(json, "Event");
    if (!json_is_string(word))
        return TRP_EINVAL;
    enum trp_log_kind kind = kind_of(json_string_value(word), json_string_length(word));
    if (kind == TRP_LOG_EVENTS)
        return TRP_ENOENT;
    const char *info = kinds[kind].info;
    decode(json, info ? json_object_get(json, info) : json, kind, ret);
    return 0;
}

void trp_log_stage_of(json_t *info, struct trp_log_event *ret)
{
    decode(info, info, TRP_LOG_STAGE, ret);
}

void trp_log_profile_name(const struct trp_log_event *e, char *buf, size_t size)
{
    if (e->profile_name)
        snprintf(buf, size, "%s", e->profile_name);
    else /* Spark's have none */
        snprintf(buf, size, "%u", e->profile);
}

double trp_log_amount(const json_t *request)
{
    const json_t *ours = json_object_get(request, "Troupe Amount");
    return json_number_value(ours ? ours : json_object_get(request, "Amount"));
}

bool trp_log_is_device(const char *request)
{
    static const char *const others[] = {"memory",         "memoryOverhead", "offHeap",
                                         "pyspark.memory", "cores",          "cpus"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], request) == 0)
            return false;
    return true;
}

/* ---- lines ---- */

struct lines {
    const char *file;
    const struct trp_log_reader *readers;
    size_t n;
};

static bool is_wanted(const struct lines *l, enum trp_log_kind kind)
{
    bool wanted = false;
    for (size_t i = 0; i < l->n && kind < TRP_LOG_EVENTS; i++)
        wanted |= l->readers[i].take[kind] != NULL;
    return wanted;
}

static bool is_of_interest(const struct lines *l, const char *line, size_t n)
{
    static const char begin[] = "{\"Event\":\"";
    const size_t skip = sizeof begin - 1;
    if (n == 0 || line[0] != '{')
        return true;
    if (n > skip && memcmp(line, begin, skip) == 0) {
        const char *end = memchr(line + skip, '"', n - skip);
        return end && is_wanted(l, kind_of(line + skip, (size_t)(end - line) - skip));
    }
    for (int i = 0; i < TRP_LOG_EVENTS; i++)
        if (is_wanted(l, i) && memmem(line, n, kinds[i].word, strlen(kinds[i].word)))
            return true;
    return false;
}

int trp_log_nothing(void *context, const struct trp_log_event *e)
{
    (void)context;
    (void)e;
    return 0;
}

static int hand_out(const struct lines *l, const struct trp_log_event *e)
{
    int rc = 0;
    for (size_t i = 0; i < l->n && rc == 0; i++) {
        const struct trp_log_reader *r = &l->readers[i];
        if (!r->take[e->kind])
            continue;
        if (r->before)
            rc = r->before(r->context, e);
        if (rc == 0)
            rc = r->take[e->kind](r->context, e);
    }
    return rc;
}

/* A log may be a stranger's, and what it says goes to a terminal: control characters, in
 * JSON's escapes or as they are, become "?". Tabs and line breaks stay. */
static void make_plain(char *line, size_t n)
{
    static const char *const ends[] = {"b", "f", "r"};
    for (size_t i = 0; i + 1 < n; i++) {
        unsigned char *c = (unsigned char *)line + i;
        if (c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0)) {
            c[1] = c[0] == 0x7f ? c[1] : '?';
            c[0] = '?';
        }
        if (c[0] != '\\')
            continue;
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            if (c[1] == (unsigned char)*ends[k])
                c[0] = c[1] = '?';
        int high = c[1] == 'u' && i + 6 <= n && c[2] == '0' && c[3] == '0'
                       ? trp_hex_byte(line + i + 4)
                       : -1;
        if ((high >= 0 && high < 0x20 && high != '\t' && high != '\n') ||
            (high >= 0x7f && high < 0xa0))
            memcpy(c + 2, "003f", 4);
        i++; /* what is escaped begins nothing */
    }
}

static int take_line(const struct lines *l, char *line, size_t n, json_error_t *why)
{
    struct trp_log_event e;
    if (!is_of_interest(l, line, n))
        return 0;
    make_plain(line, n);
    json_t *json = json_loadb(line, n, 0, why);
    if (!json)
        return TRP_EPROTO;
    int rc = trp_log_event_decode(json, &e);
    if (rc == 0)
        rc = hand_out(l, &e);
    json_decref(json);
    return rc == TRP_ENOENT ? 0 : rc;
}

struct source {
    FILE *in;
    size_t at, n;
    char buf[LINE_FIRST];
};

/* Room for one byte more than `n`. */
static bool has_room(char **line, size_t *cap, size_t n)
{
    size_t more = *cap ? *cap : LINE_FIRST;
    while (more <= n)
        more *= 2;
    char *grown = more == *cap ? *line : realloc(*line, more);
    if (!grown)
        return false;
    *line = grown;
    *cap = more;
    return true;
}

/* As getline, but little more than LINE_MOST bytes. 0: there is no more; -1: out of
 * memory. */
static ssize_t read_line(struct source *s, char **line, size_t *cap)
{
    size_t n = 0;
    for (const char *end = NULL; !end && n <= LINE_MOST;) {
        if (s->at == s->n) {
            s->at = 0;
            s->n = fread(s->buf, 1, sizeof s->buf, s->in);
        }
        if (s->n == 0)
            break;
        end = memchr(s->buf + s->at, '\n', s->n - s->at);
        size_t some = end ? (size_t)(end - s->buf) + 1 - s->at : s->n - s->at;
        if (!has_room(line, cap, n + some))
            return -1;
        memcpy(*line + n, s->buf + s->at, some);
        n += some;
        s->at += some;
    }
    return (ssize_t)n;
}

static int read_lines(const struct lines *l, FILE *in, trp_error *err)
{
    struct source source = {.in = in};
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    unsigned long number = 0;
    int rc = 0;
    while (rc == 0 && (n = read_line(&source, &line, &cap)) != 0) {
        json_error_t why = {.text = ""};
        number++;
        if (n < 0 || n > LINE_MOST) {
            rc = n < 0 ? trp_error_set(err, TRP_ENOMEM, "%s: out of memory", l->file)
                       : trp_error_set(err, TRP_EINVAL,
                                       "%s:%lu: a line of more than %d MiB; it is no "
                                       "event log",
                                       l->file, number, LINE_MOST >> 20);
            break;
        }
        bool whole = line[n - 1] == '\n';
        rc = take_line(l, line, (size_t)n - whole, &why);
        if (rc < 0 && !whole) /* left by a crash */
            rc = 0;
        if (rc == TRP_EPROTO)
            rc = trp_error_set(err, TRP_EINVAL, "%s:%lu: not JSON: %s", l->file, number,
                               why.text);
        else if (rc == TRP_EINVAL)
            trp_error_set(err, rc, "%s:%lu: not an event of Spark's or Troupe's",
                          l->file, number);
        else if (rc < 0)
            trp_error_set(err, rc, "%s: out of memory", l->file);
    }
    if (rc == 0 && ferror(in))
        rc = trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %m", l->file);
    free(line);
    return rc;
}

int trp_log_events_read(const char *file, const struct trp_log_reader *readers,
                        size_t n, trp_error *err)
{
    const struct lines l = {.file = file, .readers = readers, .n = n};
    FILE *in = trp_held_fopen(file, "r");
    if (!in)
        return trp_error_set(err, TRP_EINVAL, "%s: cannot be read: %m", file);
    int rc = read_lines(&l, in, err);
    fclose(in);
    return rc;
}
