/* What writer and reader of an engine's trace have to agree on. */
#ifndef TRP_EVENTS_ENGINE_TRACE_FORM_H
#define TRP_EVENTS_ENGINE_TRACE_FORM_H

#define TRP_TRACE_MAGIC "troupe engine trace\n"
enum {
    /* To be raised with every change of engine_fields_table.c or of a member in
     * conf/options_table.c. */
    TRP_TRACE_VERSION = 22,
    TRP_TRACE_RECORD_MAX = 1 << 30,
};

#endif
