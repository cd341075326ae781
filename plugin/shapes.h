/*
 * Shapes: the profiles of a site as Slurm is asked for them, made from the site file by
 * `troupe site-shape --all --output FILE` (launcher/site_shapes.c) and read by this
 * plugin, cli_filter.lua and job_submit.lua. Plain text, so that none of them runs
 * anything, and a wrong site file never takes the place of what is in force.
 *
 *     troupe-shapes 1
 *     # a comment
 *     scratch FOLDER              the site's scratch:, when there is one
 *     limit time MINUTES          limits: {time: …}
 *     limit deny KIND TARGET      limits: {deny: …}; gres gpu:a100, license matlab
 *     profile NAME                what follows is of it
 *     never TEXT                  it cannot be had, and why; instead of the rest
 *     option KEY VALUE            an option of srun, without its dashes
 *     resource NAME KIND COUNT VARIABLE
 *                                 what it has; the variable that names the devices,
 *                                 or "-"
 *     end                         the last line: nothing is missing
 */
#ifndef TRP_PLUGIN_SHAPES_H
#define TRP_PLUGIN_SHAPES_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "core/profile/profile.h"

enum {
    TRP_SHAPES_SIZE_MAX = 1 << 20,
    TRP_SHAPES_NEVER_MAX = 512,
    TRP_SHAPES_VARIABLE_MAX = 128,
};

struct trp_shape_resource {
    char name[TRP_RESOURCE_NAME_MAX];
    bool gres;
    uint32_t count;
    char variable[TRP_SHAPES_VARIABLE_MAX]; /* "": none */
};

struct trp_shape {
    char never[TRP_SHAPES_NEVER_MAX]; /* why it cannot be had; "" it can */
    struct trp_shape_resource resources[TRP_PROFILE_RESOURCES];
    uint32_t nresources;
};

/* The shape of a profile. TRP_ENOENT: there is none of that name; the text has those
 * there are. TRP_ESYSTEM: the file cannot be read; TRP_EPROTO: it is none, or cut. */
int trp_shapes_find(const char *file, const char *name, struct trp_shape *ret,
                    trp_error *err);
/* The same from memory; `file` is for messages. `text` ends with a NUL byte, which
 * `size` does not count, and is written into. */
int trp_shapes_parse(const char *file, char *text, size_t size, const char *name,
                     struct trp_shape *ret, trp_error *err);

/* The site's `scratch:`. TRP_ENOENT: there is none, or no file; TRP_ESYSTEM: it cannot
 * be read; TRP_EPROTO: it is no such file. */
int trp_shapes_scratch(const char *file, char ret_path[PATH_MAX], trp_error *err);

#endif
