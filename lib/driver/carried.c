#include "driver/carried.h"

#include <stdio.h>
#include <string.h>

static const char key[] = "comm.transport";

void trp_carried_by_sockets(const trp_options *o, const char *why,
                            struct trp_carried *ret)
{
    ret->sockets = true;
    snprintf(ret->text, sizeof ret->text, "over sockets (%s=%s: %s)", key,
             trp_options_text(o, key), why);
}

int trp_carried_without_mpi(const trp_options *o, const char *why,
                            struct trp_carried *ret, trp_error *err)
{
    if (strcmp(trp_options_text(o, key), "mpi") == 0)
        return trp_error_set(err, TRP_EINVAL,
                             "%s: %s=mpi: %s; set %s=socket, or leave it out",
                             trp_options_where(o, key), key, why, key);
    trp_carried_by_sockets(o, why, ret);
    return 0;
}
