/*
 * A host's copy is first written under a hidden name. The process that writes it holds
 * the lock of that file; if it dies, the kernel releases the lock and the next process
 * starts from the beginning. Disk space is reserved before anything is written: the
 * file is mapped, and on a full disk a write to a mapped page would raise SIGBUS.
 *
 * A block server serves a copy as a map output without an index (block_file.h). The
 * bytes are requested from another host in pieces, several at a time. Only the hash of
 * the whole file is checked, so after a mismatch all pieces are requested from another
 * host.
 */
#include "data/host_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "data/fetch.h"

enum { PIECES = 8 }; /* asked for at a time */
#define NAP_NS 20000000

static struct trp_output_id output_of(const struct trp_host_copy_id *id)
{
    return (struct trp_output_id){TRP_WHOLE_FILE, id->number, id->hash};
}

void trp_host_copy_name(const struct trp_host_copy_id *id, char ret[TRP_HOST_COPY_NAME])
{
    const struct trp_output_id output = output_of(id);
    _Static_assert((int)TRP_HOST_COPY_NAME >= (int)TRP_BLOCK_NAME, "names fit");
    trp_block_file_name(&output, ret);
}

static void hidden_name(const struct trp_host_copy_id *id, char ret[TRP_HOST_COPY_NAME])
{
    snprintf(ret, TRP_HOST_COPY_NAME, ".copy-%u-%llx", id->number,
             (unsigned long long)id->hash);
}

static bool is_there(int folder, const struct trp_host_copy_id *id)
{
    char name[TRP_HOST_COPY_NAME];
    struct stat st;
    trp_host_copy_name(id, name);
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(st.st_mode) && (uint64_t)st.st_size == id->size;
}

static int failed(trp_error *err, const char *what)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot %s a host's copy: %m", what);
}

static void let_go(struct trp_host_copy *c)
{
    if (c->bytes)
        munmap(c->bytes, c->id.size);
    if (c->fd >= 0)
        close(c->fd);
    if (c->folder >= 0)
        close(c->folder);
    *c = (struct trp_host_copy){.folder = -1, .fd = -1};
}

/* The lock of who writes it. */
static int lock(const struct trp_host_copy *c, const volatile int *killed,
                trp_error *err)
{
    while (flock(c->fd, LOCK_EX | LOCK_NB) != 0) {
        const struct timespec nap = {.tv_nsec = NAP_NS};
        if (errno != EWOULDBLOCK && errno != EINTR)
            return failed(err, "lock");
        if (trp_is_killed(killed))
            return trp_error_set(err, TRP_ECANCELLED, "given up");
        nanosleep(&nap, NULL);
    }
    return 0;
}

static int take_room(struct trp_host_copy *c, trp_error *err)
{
    void *bytes = MAP_FAILED;
    if (ftruncate(c->fd, 0) == 0) {
        errno = posix_fallocate(c->fd, 0, (off_t)c->id.size);
        if (errno == 0)
            bytes =
                mmap(NULL, c->id.size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    }
    if (bytes == MAP_FAILED)
        return failed(err, "make room for");
    c->bytes = bytes;
    return 0;
}

int trp_host_copy_begin(const char *folder, const struct trp_host_copy_id *id,
                        const volatile int *killed, struct trp_host_copy *ret,
                        trp_error *err)
{
    char hidden[TRP_HOST_COPY_NAME];
    struct trp_host_copy c = {.id = *id, .fd = -1};
    c.folder = trp_block_folder_open(folder, err);
    if (c.folder < 0)
        return c.folder;
    bool there = is_there(c.folder, id);
    int rc = 0;
    hidden_name(id, hidden);
    if (!there) {
        c.fd =
            openat(c.folder, hidden, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        rc = c.fd < 0 ? failed(err, "make") : lock(&c, killed, err);
    }
    if (rc == 0 && !there && !(there = is_there(c.folder, id)))
        rc = take_room(&c, err);
    if (rc < 0 || there)
        let_go(&c);
    *ret = c;
    return rc < 0 ? rc : there;
}

/* ---- from where ------------------------------------------------------------------ */

static int check(struct trp_host_copy *c, const char *from, trp_error *err)
{
    c->good = XXH3_64bits(c->bytes, c->id.size) == c->id.hash;
    return c->good ? 0 : trp_error_set(err, TRP_EPROTO, "%s: it is damaged", from);
}

static void ask_piece(struct trp_host_copy *c, trp_block_client *client,
                      struct trp_fetch *f, uint64_t at)
{
    const uint64_t left = c->id.size - at;
    f->wanted = (struct trp_wanted){.id = output_of(&c->id),
                                    .partitions = 1,
                                    .offset = at,
                                    .size = left < TRP_WANTED_BYTES ? (uint32_t)left
                                                                    : TRP_WANTED_BYTES};
    f->to = c->bytes + at;
    trp_fetch_begin(client, f);
}

/* Waits for a piece, which is all that was asked for. */
static int await_piece(struct trp_host_copy *c, trp_block_client *client,
                       struct trp_fetch *f, const volatile int *killed, trp_error *err)
{
    if (trp_fetch_wait(client, f, killed) < 0)
        return trp_error_set(err, TRP_ECANCELLED, "given up");
    trp_fetch_end(client, f);
    if (f->result < 0)
        return trp_error_set(err, TRP_ENOENT, "%s", f->why);
    if (f->size != c->id.size || f->bytes != f->wanted.size)
        return trp_error_set(err, TRP_EPROTO, "it has another length");
    return 0;
}

int trp_host_copy_fetch(struct trp_host_copy *c, trp_block_client *client,
                        const char *endpoint, const volatile int *killed,
                        trp_error *err)
{
    const char *endpoints[] = {endpoint};
    const struct trp_data_host host = {
        .name = endpoint, .endpoints = endpoints, .nendpoints = 1};
    struct trp_fetch pieces[PIECES] = {0};
    uint64_t asked = 0;
    uint32_t n = 0; /* pieces that were asked for, one after the other */
    int rc = 0;
    c->good = false;
    for (uint32_t i = 0; i < PIECES; i++)
        pieces[i].host = &host;
    for (; n < PIECES && asked < c->id.size; asked += TRP_WANTED_BYTES)
        ask_piece(c, client, &pieces[n++], asked);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        rc = await_piece(c, client, &pieces[i % PIECES], killed, err);
        if (rc == 0 && asked < c->id.size) {
            ask_piece(c, client, &pieces[i % PIECES], asked);
            asked += TRP_WANTED_BYTES;
            n++;
        }
    }
    for (uint32_t i = 0; i < PIECES; i++)
        trp_fetch_end(client, &pieces[i]);
    return rc < 0 ? rc : check(c, endpoint, err);
}

int trp_host_copy_read(struct trp_host_copy *c, const char *path, trp_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    uint64_t done = 0;
    ssize_t n = 1;
    c->good = false;
    while (fd >= 0 && n > 0 && done < c->id.size) {
        n = read(fd, c->bytes + done, c->id.size - done);
        if (n < 0 && errno == EINTR)
            n = 1; /* again */
        else if (n > 0)
            done += (uint64_t)n;
    }
    int rc = fd < 0 || n < 0
                 ? trp_error_set(err, TRP_ESYSTEM, "cannot read %s: %m", path)
                 : 0;
    if (fd >= 0)
        close(fd);
    return rc < 0 ? rc : check(c, path, err);
}

int trp_host_copy_end(struct trp_host_copy *c, trp_error *err)
{
    char hidden[TRP_HOST_COPY_NAME], name[TRP_HOST_COPY_NAME];
    int rc = 0;
    hidden_name(&c->id, hidden);
    trp_host_copy_name(&c->id, name);
    if (c->good && renameat(c->folder, hidden, c->folder, name) != 0)
        rc = failed(err, "name");
    else if (!c->good && ftruncate(c->fd, 0) != 0) /* others may wait for its lock */
        rc = failed(err, "give up");
    let_go(c);
    return rc;
}
