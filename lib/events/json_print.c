#include "events/json_print.h"

int trp_json_print(const json_t *document, size_t layout, FILE *out)
{
    size_t flags = (layout ? layout : JSON_COMPACT) | TRP_JSON_NUMBERS;
    int rc = json_dumpf(document, out, flags);
    return putc('\n', out) == EOF ? -1 : rc;
}
