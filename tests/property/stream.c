/* Streams from seeds, to text and back. */
#include "stream.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

const struct subject *subject_by_name(const char *name)
{
    static const struct subject *const all[] = {&engine_subject, &data_subject,
                                                &reserve_subject, &oracle_subject};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

void stream_make(struct stream *s, const struct subject *subject, uint64_t seed)
{
    struct rng r = {seed};
    memset(s, 0, sizeof(*s));
    s->subject = subject;
    subject->make(s, &r);
}

void stream_write_step(const struct stream *s, uint32_t step, FILE *f)
{
    const struct step *t = &s->steps[step];
    fprintf(f, "%s", s->subject->kinds[t->kind]);
    for (int i = 0; i < STREAM_ARGS; i++)
        fprintf(f, " %u", t->arg[i]);
}

void stream_write(const struct stream *s, FILE *f)
{
    fprintf(f, "%s\n", s->subject->name);
    for (uint32_t i = 0; s->subject->knobs[i]; i++)
        if (s->knob[i])
            fprintf(f, "set %s %u\n", s->subject->knobs[i], s->knob[i]);
    for (uint32_t i = 0; i < s->nsteps; i++) {
        stream_write_step(s, i, f);
        fputc('\n', f);
    }
}

static int find_name(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static int read_line(struct stream *s, const char *line)
{
    char word[64], name[64];
    uint32_t a[STREAM_ARGS] = {0};
    if (sscanf(line, " %63s", word) != 1 || word[0] == '#')
        return 0;
    if (!s->subject)
        return (s->subject = subject_by_name(word)) ? 0 : -1;
    if (strcmp(word, "set") == 0) {
        int knob = -1;
        if (sscanf(line, " set %63s %u", name, &a[0]) == 2)
            knob = find_name(s->subject->knobs, name);
        if (knob >= 0)
            s->knob[knob] = a[0];
        return knob >= 0 ? 0 : -1;
    }
    int kind = find_name(s->subject->kinds, word);
    if (kind < 0 || s->nsteps == STREAM_STEPS)
        return -1;
    sscanf(line, " %*s %u %u %u %u", &a[0], &a[1], &a[2], &a[3]);
    s->steps[s->nsteps].kind = (uint32_t)kind;
    memcpy(s->steps[s->nsteps++].arg, a, sizeof(a));
    return 0;
}

int stream_read(struct stream *s, const char *file)
{
    FILE *f = fopen(file, "r");
    char line[256];
    int rc = 0, number = 0;
    if (!f) {
        perror(file);
        return -1;
    }
    memset(s, 0, sizeof(*s));
    while (rc == 0 && fgets(line, sizeof(line), f)) {
        number++;
        rc = read_line(s, line);
    }
    fclose(f);
    if (rc < 0)
        fprintf(stderr, "%s:%d: not a line of a stream: %s", file, number, line);
    else if (!s->subject)
        fprintf(stderr, "%s: no subject\n", file);
    return s->subject ? rc : -1;
}

void verdict_break(struct verdict *v, const char *broken, const char *fmt, ...)
{
    if (v->broken[0])
        return;
    va_list ap;
    va_start(ap, fmt);
    snprintf(v->broken, sizeof(v->broken), "%s", broken);
    vsnprintf(v->text, sizeof(v->text), fmt, ap);
    va_end(ap);
}

void stream_play(const struct stream *s,
                 uint64_t (*play_once)(const struct stream *s, FILE *explain,
                                       struct verdict *v),
                 bool twice, FILE *explain, struct verdict *ret)
{
    int64_t before = memory_held();
    memset(ret, 0, sizeof(*ret));
    uint64_t first = play_once(s, explain, ret);
    if (twice && !ret->broken[0] && play_once(s, NULL, ret) != first)
        verdict_break(ret, "the same events give the same actions", "they do not");
    if (memory_held() != before)
        verdict_break(ret, "everything is freed with the engine", "%lld bytes are left",
                      (long long)(memory_held() - before));
}
