/* Of `troupe logs`: whether what nothing was found of is there at all. */
#ifndef TRP_LAUNCHER_LOGS_NONE_H
#define TRP_LAUNCHER_LOGS_NONE_H

#include "core/base/error.h"
#include "events/task_logs.h"

/* 0: `stage`, or the task, attempt and rank of it that `task` (may be NULL) says, has run
 * and printed nothing. TRP_EINVAL: it is not there, or has not run; the text says which
 * there are. */
int trp_logs_none(const char *folder, const char *stage,
                  const struct trp_task_log *task, trp_error *err);

#endif
