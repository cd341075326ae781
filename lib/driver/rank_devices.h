/*
 * Which devices a rank of a static run may use, said by the first of these that says
 * anything: what Slurm gave its step; the site file's `local:`, for runs without Slurm;
 * its discovery script; the variable of the resource (CUDA_VISIBLE_DEVICES) as somebody
 * set it. Ranks tell
 * theirs as text, a line for each resource:
 *
 *     NAME <tab> shared|own <tab> WHO SAID SO <tab> ADDRESS,ADDRESS,…
 *
 * `shared`: all ranks of the host are told of the same devices and share them out;
 * `own`: Slurm has bound this rank to them, no other may have the same.
 */
#ifndef TRP_DRIVER_RANK_DEVICES_H
#define TRP_DRIVER_RANK_DEVICES_H

#include <stdbool.h>

#include "conf/site.h"
#include "core/profile/profile.h"

/* Of all custom resources on the executor side of `profile`, by this process's
 * environment. *ret_text is to be freed. TRP_ENOMEM; what a script's failure is. */
int trp_rank_devices(const struct trp_resource_profile *profile,
                     const struct trp_site *site, char **ret_text, trp_error *err);

/* What such a text says of a resource; no fields are set (NULL) when it says nothing.
 */
struct trp_rank_device {
    char *source;     /* who said so, for an error */
    char **addresses; /* in natural order, none twice */
    uint32_t naddresses;
    bool own;
};
int trp_rank_device_read(const char *text, const char *resource,
                         struct trp_rank_device *ret, trp_error *err);
void trp_rank_device_free(struct trp_rank_device *d);

#endif
