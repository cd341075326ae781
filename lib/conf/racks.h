/*
 * Which rack a host is in, by what the site file says: a file or a pattern. (Racks from
 * Slurm's switches are the Slurm backend's.)
 *
 * File: a line is HOSTS RACK, with blanks between; HOSTS are names with commas, in
 * which [1-4,07] stands for numbers as in Slurm; `#` begins a comment. A host stands in
 * one rack. Pattern: a POSIX extended regular expression that matches the whole name
 * and has one group, which is the rack. A host that is not found by its full name is
 * looked for by its name up to the first dot.
 *
 *     trp_racks *r;
 *     if (trp_racks_open(site, &r, &err) < 0) …
 *     rack = trp_racks_of(r, "r12n3", buf, sizeof buf);
 *     trp_racks_close(r);
 *
 * Threads: trp_racks_of may be called from any once it is open.
 */
#ifndef TRP_CONF_RACKS_H
#define TRP_CONF_RACKS_H

#include <stddef.h>

#include "core/base/error.h"

struct trp_site;
typedef struct trp_racks trp_racks;

enum {
    TRP_RACKS_PATTERN_MAX = 200, /* bytes of a pattern */
    TRP_RACKS_HOSTS = 1000000,   /* hosts in a file */
    TRP_RACKS_NAME_MAX = 255,
};

/* Reads the file, compiles the pattern. A site that says neither knows no rack.
 * TRP_EINVAL with FILE:LINE:COL: no such file, or what is wrong in it. TRP_ESYSTEM: an
 * error of the disk. */
int trp_racks_open(const struct trp_site *s, trp_racks **ret, trp_error *err);
/* The same of a file's text; `file` is for messages. */
int trp_racks_parse(const char *file, const char *text, size_t size, trp_racks **ret,
                    trp_error *err);
void trp_racks_close(trp_racks *r);

/* The rack, in `buf` of at least TRP_RACKS_NAME_MAX + 1 bytes; "" when unknown. */
const char *trp_racks_of(const trp_racks *r, const char *host, char *buf, size_t size);

/* TRP_EINVAL: not a pattern with one group, too long, or of a kind that takes the
 * machine's memory or time to match. */
int trp_racks_check_pattern(const char *pattern, trp_error *err);

#endif
