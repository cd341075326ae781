/*
 * Reading files that are packed by gzip. What calls zlib is a module (os/module.h), since
 * each library that executors are linked with makes their start longer.
 */
#ifndef TRP_API_GZ_H
#define TRP_API_GZ_H

#include <sys/types.h>

#include "os/module.h"

struct trp_gz_calls {
    struct trp_module module;
    /* NULL: out of memory, `fd` stays open. */
    void *(*open)(int fd);
    /* As read(2); of an error *ret_why says what is wrong, until the next call. */
    ssize_t (*read)(void *gz, void *p, size_t n, const char **ret_why);
    void (*close)(void *gz); /* and its descriptor */
};

#endif
