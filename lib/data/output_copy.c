/*
 * The file is written under a hidden name, and renamed when it is as long as the one it
 * is of. sendfile does the copying: it works between any two file systems, and no byte
 * comes to this process.
 */
#include "data/output_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/record.h"

enum { PIECE = 8 << 20 }; /* between two looks at `killed` */

static int failed(trp_error *err)
{
    return trp_error_set(err, TRP_ESYSTEM, "a map output cannot be copied: %m");
}

/* All bytes of one file behind the other's, which is empty. */
static int copy_bytes(const struct trp_output_copy *c, int from, int to, uint64_t size,
                      trp_error *err)
{
    for (uint64_t done = 0; done < size;) {
        if (trp_is_killed(c->killed))
            return trp_error_set(err, TRP_ECANCELLED, "given up");
        uint64_t left = size - done;
        off_t at = (off_t)done;
        ssize_t n = sendfile(to, from, &at, left < PIECE ? left : PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(err);
        if (n == 0)
            return trp_error_set(err, TRP_EPROTO, "it was cut off meanwhile");
        done += (uint64_t)n;
    }
    return 0;
}

static int copy_file(const struct trp_output_copy *c, int from, const char *name,
                     uint64_t size, trp_error *err)
{
    char hidden[TRP_BLOCK_NAME + 32];
    snprintf(hidden, sizeof hidden, ".%s.moved.%d", name, (int)getpid());
    int to = openat(c->to, hidden,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0)
        return failed(err);
    int rc = copy_bytes(c, from, to, size, err);
    if (close(to) < 0 &&
        rc == 0) /* some file systems say only now that they are full */
        rc = failed(err);
    if (rc == 0 && renameat(c->to, hidden, c->to, name) < 0)
        rc = failed(err);
    if (rc < 0)
        unlinkat(c->to, hidden, 0);
    return rc;
}

int trp_output_copy(const struct trp_output_copy *c, const struct trp_output_id *id,
                    uint64_t *ret_bytes, trp_error *err)
{
    struct trp_block_file f;
    struct stat st;
    trp_error none;
    char name[TRP_BLOCK_NAME];
    int rc = trp_block_file_open(c->to, id, &f, &none);
    bool there = rc == 0;
    if (!there)
        rc = trp_block_file_open(c->from, id, &f, err);
    if (rc < 0)
        return rc;
    if (fstat(f.fd, &st) < 0)
        rc = failed(err);
    trp_block_file_name(id, name);
    if (rc == 0 && !there)
        rc = copy_file(c, f.fd, name, (uint64_t)st.st_size, err);
    if (rc == 0)
        *ret_bytes = (uint64_t)st.st_size;
    trp_block_file_close(&f);
    return rc;
}
