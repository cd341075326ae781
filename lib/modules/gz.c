/*
 * zlib's own reading of gzip files, several members in a row included. One that ends in
 * the middle is an error, never a short file.
 */
#include "api/gz.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

enum { BUFFER_SIZE = 64 << 10 };

static void *open_gz(int fd)
{
    gzFile gz = gzdopen(fd, "rb");
    if (gz)
        gzbuffer(gz, BUFFER_SIZE); /* before the first read it cannot fail */
    return gz;
}

static ssize_t read_gz(void *gz, void *p, size_t n, const char **ret_why)
{
    int got = gzread(gz, p, n < INT32_MAX ? (unsigned)n : INT32_MAX);
    int code = Z_OK;
    const char *text = gzerror(gz, &code);
    if (got >= 0 && (code == Z_OK || code == Z_STREAM_END))
        return got;
    if (code == Z_BUF_ERROR)
        text = "it ends in the middle";
    else if (code == Z_ERRNO)
        text = strerror(errno);
    *ret_why = text;
    return -1;
}

static void close_gz(void *gz)
{
    gzclose_r(gz);
}

extern const struct trp_gz_calls trp_module;
TRP_MODULE_TABLE const struct trp_gz_calls trp_module = {
    .module = {TROUPE_VERSION},
    .open = open_gz,
    .read = read_gz,
    .close = close_gz,
};
