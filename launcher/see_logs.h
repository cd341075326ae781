/* Of tasks that were given up: what shows their logs, of either form. */
#ifndef TRP_LAUNCHER_SEE_LOGS_H
#define TRP_LAUNCHER_SEE_LOGS_H

#include <jansson.h>

/* Puts "see": "troupe logs RUN STAGE TASK" to each of `tasks`; null: it has printed
 * nothing, or `folder`, of the run, is not known (NULL). They are of
 * `stage`, or each of its own "stage" (NULL). */
void trp_see_logs(const char *folder, const char *stage, json_t *tasks);

#endif
