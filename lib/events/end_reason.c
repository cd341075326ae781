/*
 * How an attempt ended, in the words that contract.md fixes. One place, because the
 * event log, the error line and the progress line must say the same.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "events/event_log.h"

/* "1s", "250ms", "2h": in the largest unit that is whole. */
static void duration(int64_t ns, char *buf, size_t size)
{
    static const struct {
        int64_t ns;
        const char *unit;
    } units[] = {
        {3600000000000, "h" },
        {60000000000,   "m" },
        {1000000000,    "s" },
        {1000000,       "ms"},
        {1000,          "us"},
        {1,             "ns"}
    };
    size_t i = 0;
    while (ns % units[i].ns != 0)
        i++;
    snprintf(buf, size, "%lld%s", (long long)(ns / units[i].ns), units[i].unit);
}

static void killed_for_memory(const struct trp_end *end, char *buf, size_t size)
{
    if (!end || end->limit_mib <= 0) {
        snprintf(buf, size, "killed for memory");
        return;
    }
    /* Rounded up: what went over its limit must not be shown as below. Where the peak
     * is not known the limit stands alone, in its own unit. */
    bool known = end->peak_kib > 0;
    struct trp_memory_pair m = trp_memory_pair(
        end->limit_mib, known ? (end->peak_kib + 1023) / 1024 : end->limit_mib);
    snprintf(buf, size, "killed for memory (limit %s%s%s)", m.a, known ? ", peak " : "",
             known ? m.b : "");
}

/* The text that came with an end, behind `before` where there is something; it stays one
 * line. */
static void with_text(const char *before, const struct trp_end *end, char *buf,
                      size_t size)
{
    int n = end && end->extra ? (int)(end->extra_size % INT_MAX) : 0;
    if (n > 0)
        snprintf(buf, size, "%s%s%.*s", before, *before ? ": " : "", n,
                 (const char *)end->extra);
    else
        snprintf(buf, size, "%s", before);
    trp_utf8_plain(buf, ' ');
}

char *trp_end_reason(const struct trp_action *verdict, const struct trp_end *end,
                     int64_t timeout_ns, char *buf, size_t size)
{
    char text[64];
    int32_t code = verdict->task_end.code;
    buf[0] = '\0';
    switch (verdict->task_end.status) {
    case TRP_END_SUCCESS:
        break;
    case TRP_END_EXIT:
        snprintf(text, sizeof text, "exit status %d", (int)code);
        with_text(text, end, buf, size);
        break;
    case TRP_END_SIGNAL: {
        const char *name = sigabbrev_np(code);
        snprintf(text, sizeof text,
                 name ? "killed by SIG%s (%d)" : "killed by signal%s (%d)",
                 name ? name : "", (int)code);
        with_text(text, end, buf, size);
        break;
    }
    case TRP_END_TIMEOUT:
        duration(timeout_ns > 0 ? timeout_ns : 0, text, sizeof text);
        snprintf(buf, size, timeout_ns > 0 ? "timed out after %s" : "timed out", text);
        break;
    case TRP_END_MEMORY:
        killed_for_memory(end, buf, size);
        break;
    case TRP_END_START:
        with_text("could not be started", end, buf, size);
        break;
    case TRP_END_KILLED:
        snprintf(buf, size, "killed: no longer needed");
        break;
    case TRP_END_RECALLED:
        snprintf(buf, size, "handed back before it started");
        break;
    case TRP_END_LOST:
        if (code == TRP_LOSS_TIME_LIMIT && !(end && end->extra))
            snprintf(buf, size,
                     "lost its executor: its Slurm job reached its time limit");
        else if (code == TRP_LOSS_SPAWNER_DIED && !(end && end->extra))
            snprintf(buf, size, "lost its executor: its spawner died");
        else if (code == TRP_LOSS_SPAWNER_HUNG && !(end && end->extra))
            snprintf(buf, size, "lost its executor: its spawner hung");
        else
            with_text("lost its executor", end, buf, size);
        break;
    case TRP_END_PLATFORM:
        with_text("the platform failed", end, buf, size);
        break;
    case TRP_END_DENIED:
        snprintf(buf, size, "another attempt commits the output");
        break;
    case TRP_END_FETCH:
        with_text("a map output could not be fetched", end, buf, size);
        break;
    case TRP_END_RESULT_LOST:
        snprintf(buf, size, "its result was lost");
        break;
    case TRP_END_UNWRITABLE:
        with_text("its result cannot be written down", end, buf, size);
        break;
    case TRP_END_EXISTS:
        with_text("its output is already there", end, buf, size);
        break;
    case TRP_END_MISTAKE:
        with_text("a mistake in the program", end, buf, size);
        break;
    case TRP_END_NEVER:
        with_text("can never be had", end, buf, size);
        break;
    case TRP_END_OUTPUT:
        with_text("", end, buf, size);
        break;
    }
    return buf;
}

/* "with" stands only before what can follow it: the other reasons are no nouns. */
char *trp_failed_text(uint32_t times, const char *reason, char *buf, size_t size)
{
    bool with = strncmp(reason, "exit status ", 12) == 0 ||
                strncmp(reason, "a mistake ", 10) == 0;
    if (times == 1)
        snprintf(buf, size, "failed once%s", with ? ", with" : ":");
    else
        snprintf(buf, size, "failed %u times, last%s", times, with ? " with" : ":");
    return buf;
}
