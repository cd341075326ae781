/*
 * What the page draws, as one JSON document that is bounded in size: of 100,000 tasks it
 * has less than 5 MB. All times are ms on the page's axis, times between them too.
 *
 *     {"axis":[[FROM,TO,AT]…],"length","live","devices":[…],"hosts":[…],
 *      "profiles":[{"name","slots","cores","memory","task_cpus","devices","per_task"}],
 *      "stages":[{"start","report","name","profile","submitted","first","ended",
 *          "parents":[…],"quantiles":[5, ns],"levels":[5],"failed","lost","killed",
 *          "copies","summarised","waits":[5],"nothing_ran"}],
 *      "jobs":[…],"timeline":{…},"series":{…},"failures":[…],"told":[…]}
 *
 * FROM and TO are wall ms. "report" is the stage's place among those of its start in the
 * document of `troupe report --json`, whose figures are not repeated here. Levels are in
 * the order of enum trp_level, waits in that of enum trp_page_wait.
 */
#ifndef TRP_EVENTS_PAGE_PAGE_JSON_H
#define TRP_EVENTS_PAGE_PAGE_JSON_H

#include "core/base/bytes.h"
#include "events/page/page_facts.h"

/* The last lines of what an attempt printed, malloc'ed, and in *ret_link where they
 * stand, malloc'ed, as the page is to link there; NULL: nothing. */
struct trp_page_logs {
    char *(*tail)(void *context, const struct trp_page_facts *f,
                  const struct trp_page_task *t, char **ret_link);
    void *context;
};

/* `logs` NULL: there are none. `live`: the last start goes on. TRP_ENOMEM. */
int trp_page_json(const struct trp_page_facts *f, const struct trp_run_records *records,
                  const struct trp_page_logs *logs, bool live, struct trp_buf *b);

#endif
