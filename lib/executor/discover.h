/*
 * Discovery scripts, as Spark has them: a program that prints which addresses of a
 * resource there are,
 *
 *     {"name": "gpu", "addresses": ["0", "1"]}
 *
 * run once an executor, on its host, where neither Slurm nor the site file says so. It
 * runs in a session of its own with nothing on stdin, has 20 s, and nothing that it
 * started in its process group outlives it.
 *
 *     struct trp_discovery q = {.resource = "gpu", .script = "/x/find", .amount = 2};
 *     if (trp_discover(&q, &list, &err) == 0) … list is "0,1"; free(list);
 */
#ifndef TRP_EXECUTOR_DISCOVER_H
#define TRP_EXECUTOR_DISCOVER_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum {
    TRP_DISCOVER_MS = 20000,
    TRP_DISCOVER_OUTPUT = 64 << 10, /* bytes of stdout */
    TRP_DISCOVER_ADDRESSES = 4096,
};

struct trp_discovery {
    const char *resource;
    const char *script; /* absolute */
    uint32_t amount;    /* addresses that an executor needs */
    char *const *env;   /* its environment; NULL: ours */
    int limit_ms;       /* 0: TRP_DISCOVER_MS */
    const int *stop;    /* a descriptor: readable or closed, it is killed; NULL: none */
};

/* Runs it and waits. *ret_list is malloc'ed: the addresses in natural order, with
 * commas between them, none twice. Every error names script, resource and host and says
 * what was wrong: TRP_ESYSTEM; TRP_ENEVER for fewer addresses than `amount`;
 * TRP_ECANCELLED: stopped. */
int trp_discover(const struct trp_discovery *q, char **ret_list, trp_error *err);

/* What it printed. Errors without script and host. */
int trp_discovered_read(const char *text, size_t size, const char *resource,
                        uint32_t amount, char **ret_list, trp_error *err);

#endif
