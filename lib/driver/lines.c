/*
 * Lines of the driver's: for the event log, and for the user.
 */
#include <stdarg.h>
#include <stdio.h>

#include "driver/driver_state.h"

enum { LINE = 4400 }; /* a longer one is cut */

void trp_driver_log(const trp_driver *d, const char *level, const char *format, ...)
{
    char line[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    trp_event_message(d->log, level, line, trp_driver_wall(d, d->now));
}

void trp_driver_warn(trp_driver *d, const char *format, ...)
{
    char line[LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    trp_progress_line(d->progress, d->now, line);
    trp_driver_log(d, "warning", "%s", line);
}
