/*
 * A file is written under a name of its own and renamed. A reader maps it, so that the
 * processes of a host share its pages, and compares its hash once.
 */
#include "api/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "os/whole_file.h"

enum { PATH_SIZE = 4400 };
/* No bytes cannot be mapped. */
static const uint8_t nothing[1];

static void path_of(char buf[PATH_SIZE], const char *folder, const char *kind,
                    uint64_t number, const char *end)
{
    snprintf(buf, PATH_SIZE, "%.4096s/%.32s/%llx%s", folder, kind,
             (unsigned long long)number, end);
}

static int failed(trp_error *err, const char *what, const char *path)
{
    return trp_error_set(err, TRP_ESYSTEM, "cannot %s %s: %s", what, path,
                         strerror(errno));
}

/* The folders may not be there yet. */
static int create(const char *path, const char *folder, const char *kind)
{
    char above[PATH_SIZE];
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags, 0600);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    snprintf(above, sizeof(above), "%.4096s/%.32s", folder, kind);
    if ((mkdir(folder, 0700) != 0 && errno != EEXIST) ||
        (mkdir(above, 0700) != 0 && errno != EEXIST))
        return -1;
    return open(path, flags, 0600);
}

struct trp_shared_writer {
    char path[PATH_SIZE], hidden[PATH_SIZE];
    int fd;
    uint64_t size;
    XXH3_state_t *hash;
};

static void free_writer(trp_shared_writer *w)
{
    XXH3_freeState(w->hash);
    free(w);
}

int trp_shared_begin(const char *folder, const char *kind, uint64_t number,
                     trp_shared_writer **ret, trp_error *err)
{
    trp_shared_writer *w = calloc(1, sizeof(*w));
    if (!w || !(w->hash = XXH3_createState())) {
        free(w);
        return trp_error_set(err, TRP_ENOMEM, "out of memory for a file");
    }
    XXH3_64bits_reset(w->hash);
    path_of(w->path, folder, kind, number, "");
    path_of(w->hidden, folder, kind, number, ".tmp");
    w->fd = create(w->hidden, folder, kind);
    if (w->fd < 0) {
        int rc = failed(err, "make", w->hidden);
        free_writer(w);
        return rc;
    }
    *ret = w;
    return 0;
}

int trp_shared_put(trp_shared_writer *w, const void *data, size_t size, trp_error *err)
{
    if (trp_file_write(w->fd, data, size) < 0)
        return failed(err, "write", w->hidden);
    XXH3_64bits_update(w->hash, data, size);
    w->size += size;
    return 0;
}

uint64_t trp_shared_size(const trp_shared_writer *w)
{
    return w->size;
}

int trp_shared_end(trp_shared_writer *w, bool keep, uint64_t *ret_hash, trp_error *err)
{
    int rc = 0;
    if (close(w->fd) != 0 && keep)
        rc = failed(err, "write", w->hidden);
    if (rc == 0 && keep && rename(w->hidden, w->path) != 0)
        rc = failed(err, "rename", w->hidden);
    if (rc < 0 || !keep)
        unlink(w->hidden);
    else
        *ret_hash = XXH3_64bits_digest(w->hash);
    free_writer(w);
    return rc;
}

int trp_shared_write(const char *folder, const char *kind, uint64_t number,
                     const void *data, size_t size, uint64_t *ret_hash, trp_error *err)
{
    trp_shared_writer *w = NULL;
    int rc = trp_shared_begin(folder, kind, number, &w, err);
    if (!w)
        return rc;
    rc = trp_shared_put(w, data, size, err);
    int ended = trp_shared_end(w, rc == 0, ret_hash, err);
    return rc < 0 ? rc : ended;
}

char *trp_shared_path(const char *folder, const char *kind, uint64_t number)
{
    char path[PATH_SIZE];
    path_of(path, folder, kind, number, "");
    return strdup(path);
}

int trp_shared_map(const char *folder, const char *kind, uint64_t number, uint64_t size,
                   uint64_t hash, const uint8_t **ret_data, trp_error *err)
{
    char path[PATH_SIZE];
    path_of(path, folder, kind, number, "");
    return trp_shared_map_file(path, size, hash, ret_data, err);
}

int trp_shared_map_file(const char *path, uint64_t size, uint64_t hash,
                        const uint8_t **ret_data, trp_error *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) != 0) {
        failed(err, "read", path);
        if (fd >= 0)
            close(fd);
        return TRP_ESYSTEM;
    }
    bool whole = S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
    const void *at = nothing;
    if (whole && size > 0)
        at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return failed(err, "map", path);
    if (!whole || XXH3_64bits(at, size) != hash) {
        if (whole)
            trp_shared_unmap(at, size);
        return trp_error_set(err, TRP_ESYSTEM, "%s is damaged", path);
    }
    *ret_data = at;
    return 0;
}

struct trp_shared_look trp_shared_look(const char *path)
{
    struct trp_shared_look look = {0};
    struct stat st;
    if (path && stat(path, &st) == 0) {
        look.device = st.st_dev;
        look.inode = st.st_ino;
        look.mtime_ns =
            (int64_t)st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
        look.ctime_ns =
            (int64_t)st.st_ctim.tv_sec * INT64_C(1000000000) + st.st_ctim.tv_nsec;
    }
    return look;
}

bool trp_shared_is_whole(const char *path, const uint8_t *data, uint64_t size,
                         uint64_t hash, struct trp_shared_look *look)
{
    struct trp_shared_look now = trp_shared_look(path);
    if (now.ctime_ns && now.ctime_ns == look->ctime_ns &&
        now.mtime_ns == look->mtime_ns && now.inode == look->inode &&
        now.device == look->device)
        return true;
    if (XXH3_64bits(data, size) != hash)
        return false;
    *look = now;
    return true;
}

void trp_shared_unmap(const uint8_t *data, uint64_t size)
{
    if (size > 0)
        munmap((void *)(uintptr_t)data, size);
}

void trp_shared_remove(const char *folder, const char *kind, uint64_t number)
{
    char path[PATH_SIZE];
    path_of(path, folder, kind, number, "");
    unlink(path);
}
