/*
 * Executors that fail to start: when the next one is requested, and when the stages of
 * the profile fail.
 *
 * A failed start counts. One cause (a node, a job, a person who kills all of them)
 * counts once: after a failure the other starts that were under way at that time do not
 * count. So failures in a row are rounds of starts, each requested after the one before
 * had failed. An executor that comes ends the row.
 *
 * The stages fail after `max_start_failures` in a row; but not before
 * `start_patience_ns` after the first of them, not while another place has not been
 * tried, and not while an executor of the profile lives. The message has every cause
 * that was seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine_state.h"

enum { GIVEN_UP_TEXT = 960 }; /* below TRP_ERROR_TEXT, with the stage in front */

static void end_row(struct trp_class *c)
{
    for (uint32_t i = 0; i < c->starts.ncauses; i++) {
        free(c->starts.causes[i]);
        free(c->starts.texts[i]);
    }
    c->starts = (struct trp_starts){0};
}

void trp_starts_free(struct trp_class *c)
{
    end_row(c);
    free(c->start_failure);
}

void trp_starts_came(const struct trp_engine *e, struct trp_class *c)
{
    c->backoff = e->config.retry_first_ns;
    c->retry_at = 0;
    end_row(c);
}

static void keep_text(struct trp_class *c, const char *text)
{
    free(c->start_failure);
    c->start_failure = strdup(text ? text : "");
}

void trp_starts_never(struct trp_engine *e, struct trp_class *c, const char *text)
{
    e->any_dirty = true;
    keep_text(c, text);
    free(c->never);
    c->never = strdup(text ? text : "never fits");
    trp_class_give_up(e, c, TRP_ENEVER, c->never ? c->never : "never fits");
}

static void keep_cause(struct trp_starts *s, const char *text, const char *cause)
{
    for (uint32_t i = 0; i < s->ncauses; i++)
        if (strcmp(s->causes[i], cause) == 0)
            return;
    if (s->ncauses == TRP_CAUSES_KEPT)
        return;
    char *a = strdup(cause), *b = strdup(text);
    if (!a || !b) {
        free(a);
        free(b);
        return;
    }
    s->causes[s->ncauses] = a;
    s->texts[s->ncauses++] = b;
}

/* "THE FIRST; also: ANOTHER" */
static void put_causes(const struct trp_starts *s, char *text, size_t size)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->ncauses && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "; also: " : "",
                              s->texts[i]);
}

/* Several at the same time wait for the same next time. */
static void space(struct trp_engine *e, struct trp_class *c)
{
    e->any_dirty = true;
    if (e->now < c->retry_at)
        return;
    c->retry_at = e->now + c->backoff;
    c->backoff *= 2;
    if (c->backoff > e->config.retry_max_ns)
        c->backoff = e->config.retry_max_ns;
}

static void failed(struct trp_engine *e, struct trp_class *c, int64_t asked_ns,
                   const struct trp_event *ev)
{
    struct trp_starts *s = &c->starts;
    const char *text = ev->refused.text && *ev->refused.text
                           ? ev->refused.text
                           : "its executors do not start";
    char causes[GIVEN_UP_TEXT];
    keep_cause(s, text, ev->refused.cause ? ev->refused.cause : text);
    if (s->failures == 0 || asked_ns > s->last_ns) {
        if (s->failures++ == 0)
            s->first_ns = e->now;
        s->last_ns = e->now;
    }
    if (s->failures < e->config.max_start_failures || c->live || ev->refused.untried ||
        e->now - s->first_ns < e->config.start_patience_ns)
        return;
    put_causes(s, causes, sizeof(causes));
    end_row(c);
    trp_class_give_up(e, c, TRP_ESYSTEM, causes);
}

void trp_starts_refused(struct trp_engine *e, struct trp_class *c, int64_t asked_ns,
                        const struct trp_event *ev)
{
    if (ev->refused.how == TRP_REFUSED_NEVER) {
        trp_starts_never(e, c, ev->refused.text);
        return;
    }
    keep_text(c, ev->refused.text);
    space(e, c);
    if (ev->refused.how == TRP_REFUSED_FAILED)
        failed(e, c, asked_ns, ev);
}

void trp_starts_lost(struct trp_engine *e, struct trp_class *c, int64_t asked_ns,
                     enum trp_loss reason)
{
    bool its_own = reason == TRP_LOSS_EXITED || reason == TRP_LOSS_CRASHED ||
                   reason == TRP_LOSS_MEMORY || reason == TRP_LOSS_TIMEOUT ||
                   reason == TRP_LOSS_CALLED_EXIT;
    const struct trp_event ev = {
        .kind = TRP_EVENT_EXECUTOR_REFUSED,
        .refused = {.how = its_own ? TRP_REFUSED_FAILED : TRP_REFUSED_LATER,
                    .text = "an executor ended before it was ready"}
    };
    trp_starts_refused(e, c, asked_ns, &ev);
}
