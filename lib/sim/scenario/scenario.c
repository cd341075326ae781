/*
 * Runs one scenario: steps in order, timers before them, comparisons after them.
 *
 * What is printed goes to memory first, for an unreadable value may stand in the last
 * step and then the file has no points at all.
 *
 * A refused step must change nothing: all that the layer can tell of its state is asked
 * before and after it, and compared.
 */
#include "sim/scenario/scenario.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conf/scalars.h"
#include "sim/scenario/case.h"
#include "sim/scenario/compare.h"

/* A case, and what is printed of it. */
struct run {
    trp_sim_case *c;
    FILE *out;
    bool trace;
    struct trp_sim_totals t;
    uint32_t step; /* its number, from 1 */
    bool is_wrong; /* something was wrong beside what is expected; the first is kept */
    char wrong[TRP_ERROR_TEXT], wanted[TRP_ERROR_TEXT];
    uint32_t wrong_step, wrong_line;
};

/* ---- what was told ---- */

static void print_told(trp_sim_case *c, const char *word, json_t *value)
{
    json_t *line = json_object();
    json_object_set_new(line, "at", trp_sim_json_time(c->now));
    json_object_set(line, word, value);
    if (json_dumpf(line, c->trace, JSON_COMPACT | JSON_REAL_PRECISION(12)) != 0)
        c->no_memory = true;
    fputc('\n', c->trace);
    json_decref(line);
}

void trp_sim_tell(trp_sim_case *c, const char *word, json_t *take_value)
{
    if (!take_value || !TRP_ARRAY_GROW(c->told, c->ntold, c->told_cap)) {
        json_decref(take_value);
        c->no_memory = true;
        return;
    }
    trp_sim_work_json(c, take_value);
    c->told[c->ntold++] = (struct trp_sim_told){.word = word, .value = take_value};
    if (c->trace)
        print_told(c, word, take_value);
}

void trp_sim_say(trp_sim_case *c, const char *fmt, ...)
{
    char text[TRP_ERROR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trp_sim_tell(c, "message", json_string(text));
}

static void forget_told(trp_sim_case *c)
{
    for (uint32_t i = 0; i < c->ntold; i++)
        json_decref(c->told[i].value);
    c->ntold = 0;
}

/* All that was told under a word. */
static json_t *told(trp_sim_case *c, const char *word, size_t size)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->ntold; i++) {
        if (strlen(c->told[i].word) == size && !memcmp(c->told[i].word, word, size))
            json_array_append(list, c->told[i].value);
    }
    return list;
}

/* ---- expect ---- */

static bool message_matches(const struct trp_yaml_node *wanted, const json_t *texts)
{
    size_t i;
    json_t *text;
    json_array_foreach(texts, i, text) {
        if (trp_sim_contains(json_string_value(text), wanted->text))
            return true;
    }
    return false;
}

/* What was got for one key of `expect`. */
static json_t *got_for(trp_sim_case *c, const struct trp_yaml_node *key)
{
    static const size_t count = sizeof("_count") - 1;
    const struct trp_sim_layer *layer = c->layer;
    if (trp_sim_is_word(layer->states, key->text, key->size)) {
        json_t *v = layer->state(c->state, key->text, key->next);
        trp_sim_work_json(c, v);
        return v;
    }
    bool is_word = trp_sim_is_word("message", key->text, key->size) ||
                   trp_sim_is_word(layer->happened, key->text, key->size);
    json_t *all = told(c, key->text, is_word ? key->size : key->size - count);
    json_t *one = all;
    if (!is_word)
        one = json_integer((json_int_t)json_array_size(all));
    else if (key->next->kind != TRP_YAML_LIST && strcmp(key->text, "message") != 0)
        one = json_incref(json_array_get(all, json_array_size(all) - 1));
    if (one != all)
        json_decref(all);
    return one;
}

static void print_json(FILE *out, const char *name, const json_t *value)
{
    fprintf(out, "  %s: ", name);
    json_dumpf(value, out, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    fputc('\n', out);
}

/* A test point; `word` may be NULL. What TAP reads as a directive is written so that it
 * does not. */
static void print_point(struct run *r, bool ok, const char *word)
{
    r->t.points++;
    r->t.failed += !ok;
    if (r->trace)
        return;
    fprintf(r->out, "%sok %u - ", ok ? "" : "not ", r->t.points);
    for (const char *p = r->c->file; *p; p++)
        fprintf(r->out, *p == '#' ? "\\%c" : "%c", (unsigned char)*p < ' ' ? '?' : *p);
    fprintf(r->out, word ? ": %s\n" : "\n", word);
}

static void expect(struct run *r, const struct trp_sim_step *s)
{
    trp_sim_case *c = r->c;
    struct trp_sim_compare how = {.ordered = c->layer->ordered,
                                  .wholes = c->layer->whole};
    json_t *wanted = json_object(), *got = json_object();
    char word[64];
    for (const struct trp_yaml_node *k = s->expect->first; k; k = k->next->next) {
        if (!strcmp(k->text, "in_order"))
            trp_bool_parse(k->next->text, &how.in_order);
    }
    for (const struct trp_yaml_node *k = s->expect->first; k; k = k->next->next) {
        struct trp_sim_compare one = how;
        if (!strcmp(k->text, "in_order"))
            continue;
        json_t *v = got_for(c, k);
        one.in_order |= trp_sim_is_word(how.ordered, k->text, k->size);
        one.whole = trp_sim_is_word(how.wholes, k->text, k->size);
        if (!strcmp(k->text, "message") ? !message_matches(k->next, v)
                                        : !trp_sim_matches(k->next, v, one)) {
            json_object_set_new(wanted, k->text, trp_sim_json_of(k->next));
            json_object_set_new(got, k->text, v ? json_incref(v) : json_null());
        }
        json_decref(v);
    }
    bool ok = json_object_size(wanted) == 0;
    snprintf(word, sizeof(word), "step %u, %s", r->step, s->action);
    print_point(r, ok, word);
    if (!ok && !r->trace) {
        fputs("  ---\n", r->out);
        print_json(r->out, "wanted", wanted);
        print_json(r->out, "got", got);
        fprintf(r->out, "  step: %u\n  line: %u\n  ...\n", r->step, s->mark.line);
    }
    json_decref(wanted);
    json_decref(got);
}

/* ---- steps ---- */

/* Something is wrong with a step; the first is printed in the end. */
static void __attribute__((format(printf, 4, 5)))
wrong(struct run *r, const struct trp_sim_step *s, const char *wanted, const char *fmt,
      ...)
{
    va_list args;
    if (r->is_wrong)
        return;
    va_start(args, fmt);
    vsnprintf(r->wrong, sizeof(r->wrong), fmt, args);
    va_end(args);
    snprintf(r->wanted, sizeof(r->wanted), "%s", wanted);
    r->is_wrong = true;
    r->wrong_step = r->step;
    r->wrong_line = s ? s->mark.line : r->c->root->mark.line;
}

static void print_wrong(struct run *r)
{
    if (r->trace)
        return;
    json_t *wanted = json_string(r->wanted), *got = json_string(r->wrong);
    fputs("  ---\n", r->out);
    print_json(r->out, "wanted", wanted);
    print_json(r->out, "got", got);
    fprintf(r->out, "  step: %u\n  line: %u\n  ...\n", r->wrong_step, r->wrong_line);
    json_decref(wanted);
    json_decref(got);
}

/* Timers that are due before a step. */
static void fire_timers(struct run *r, const struct trp_sim_step *s)
{
    trp_sim_case *c = r->c;
    const struct trp_sim_layer *layer = c->layer;
    trp_error err = {0};
    if (!layer->next_timer)
        return;
    for (uint32_t n = 0;; n++) {
        int64_t due = layer->next_timer(c->state);
        if (due > s->at)
            return;
        if (n == TRP_SIM_TIMERS) {
            trp_sim_wrong(c, s->mark,
                          "more than %d timers before this step; put steps "
                          "nearer together",
                          TRP_SIM_TIMERS);
            return;
        }
        c->now = due > c->now ? due : c->now;
        trp_sim_work(c, c->entries);
        if (layer->fire(c->state, c->now, &err) < 0)
            wrong(r, s, "no error of a timer", "%s", err.text);
    }
}

/* All that the layer tells of its state. */
static json_t *snapshot(trp_sim_case *c)
{
    json_t *all = json_object();
    char word[64];
    for (const char *p = c->layer->states; *p;) {
        size_t n = strcspn(p, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, p);
        json_t *v = c->layer->state(c->state, word, NULL);
        trp_sim_work_json(c, v);
        json_object_set_new(all, word, v ? v : json_null());
        p += n + (p[n] == ' ');
    }
    return all;
}

/* Performs a step that must be refused. */
static void step_refused(struct run *r, const struct trp_sim_step *s)
{
    trp_sim_case *c = r->c;
    trp_error err = {0};
    uint32_t told_before = c->ntold;
    json_t *before = snapshot(c);
    int code = c->layer->step(c->state, s->action, s->value, c->now, &err);
    const char *text = c->is_refused ? c->refusal.text : err.text;
    json_t *after = snapshot(c);
    if (code >= 0)
        wrong(r, s, s->error, "the step was not refused");
    else if (!trp_sim_contains(text, s->error))
        wrong(r, s, s->error, "%s", text);
    else if (c->ntold > told_before || !json_equal(before, after))
        wrong(r, s, "a refused step changes nothing", "it changed something");
    json_decref(before);
    json_decref(after);
}

static void perform_step(struct run *r, const struct trp_sim_step *s)
{
    trp_sim_case *c = r->c;
    trp_error err = {0};
    /* What follows a step that failed may only be its consequence. */
    c->may_refuse = s->error || r->is_wrong;
    c->is_refused = false;
    forget_told(c);
    trp_sim_work(c, c->entries);
    if (c->layer->begin)
        c->layer->begin(c->state);
    fire_timers(r, s);
    c->now = s->at;
    if (s->error)
        step_refused(r, s);
    else if (c->layer->step(c->state, s->action, s->value, c->now, &err) < 0)
        wrong(r, s, "no error", "%s", err.text);
    c->may_refuse = false;
    if (s->expect)
        expect(r, s);
}

/* ---- a file ---- */

static int open_layer(trp_sim_case *c, trp_error *err)
{
    c->state = calloc(1, c->layer->size);
    if (!c->state)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    *(trp_sim_case **)c->state = c;
    return c->layer->open(c->state, err);
}

/* Reads the case and opens its layer. 1: it is refused, as it should be. */
static int start_case(struct run *r, trp_error *err)
{
    trp_sim_case *c = r->c;
    trp_error why = {0};
    int code = trp_sim_case_read(c, err);
    if (code < 0)
        return code;
    if (!c->is_refused && open_layer(c, &why) < 0 && !c->is_refused) {
        code = trp_yaml_verdict(c->yaml, err);
        if (code < 0)
            return code;
        trp_sim_refuse(c, c->root->mark, "%s", why.text);
    }
    if (!c->refused)
        return trp_yaml_verdict(c->yaml, err);
    const char *text = c->is_refused ? c->refusal.text : "the case was not refused";
    if (!c->is_refused || !trp_sim_contains(text, c->refused))
        wrong(r, NULL, c->refused, "%s", text);
    return trp_yaml_verdict(c->yaml, err) < 0 ? TRP_EINVAL : 1;
}

static int run_case(struct run *r, trp_error *err)
{
    trp_sim_case *c = r->c;
    int code = start_case(r, err);
    if (code < 0)
        return code;
    for (uint32_t i = 0; code == 0 && i < c->nsteps; i++) {
        r->step = i + 1;
        perform_step(r, &c->steps[i]);
        if (trp_sim_is_too_much(c))
            trp_sim_wrong(c, c->steps[i].mark,
                          "the case does too much up to this step; make it smaller");
        int verdict = trp_yaml_verdict(c->yaml, err);
        if (verdict < 0)
            return verdict;
        if (c->no_memory)
            return trp_error_set(err, TRP_ENOMEM, "%s: out of memory", c->file);
    }
    print_point(r, !r->is_wrong, code == 0 ? "no unexpected error" : "refused");
    if (r->is_wrong)
        print_wrong(r);
    return 0;
}

static void case_free(trp_sim_case *c)
{
    forget_told(c);
    free(c->told);
    if (c->state)
        c->layer->close(c->state);
    free(c->state);
    trp_sim_names_free(&c->hosts);
    free(c->racks);
    trp_profiles_free(c->profiles);
    trp_options_free(c->options);
    trp_yaml_free(c->yaml);
    trp_conf_arena_free(&c->keep);
}

/* Runs a case that is parsed; frees it. */
static int run_parsed(trp_sim_case *c, bool trace, FILE *out, struct trp_sim_totals *t,
                      trp_error *err)
{
    struct run r = {.c = c, .trace = trace, .t = *t};
    char *text = NULL;
    size_t size = 0;
    int code = TRP_ENOMEM;
    if ((r.out = open_memstream(&text, &size))) {
        c->trace = trace ? r.out : NULL;
        code = run_case(&r, err);
        if (fclose(r.out) != 0 && code == 0)
            code = TRP_ENOMEM;
    }
    if (code == TRP_ENOMEM)
        trp_error_set(err, code, "%s: out of memory", c->file);
    if (code == 0) {
        fwrite(text, 1, size, out);
        *t = r.t;
    }
    free(text);
    case_free(c);
    return code;
}

int trp_sim_scenario(const char *file, const char *text, size_t size, bool trace,
                     FILE *out, struct trp_sim_totals *t, trp_error *err)
{
    trp_sim_case c = {.file = file};
    int code = trp_yaml_open(file, text, size, &c.keep, &c.yaml, err);
    if (code == 0)
        return run_parsed(&c, trace, out, t, err);
    trp_conf_arena_free(&c.keep);
    return code;
}
