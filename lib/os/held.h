/*
 * Folders that this process holds: the folder of runs and a run's folder.
 *
 * Others may rename what lies in a folder that they can write in. So a run's folder is
 * opened by its path once and looked at: it is a folder and no link, of this process's
 * user, and nobody else can write in it. From then on it is *held* by its descriptor,
 * and whatever is opened below its path is opened below that descriptor, without
 * following a link. What has that path later does not matter.
 *
 * A process that was told of the folder by another one (the driver, an executor on
 * another host) is told its *identity*, too: 32 hexadecimal digits that are in the
 * folder's file state/id. Nobody else can make a folder of this user's, so one that has
 * them is the one that is meant. They are no secret.
 *
 *     trp_held_folder("/home/x/troupe-runs/r", id, &err);
 *     int fd = trp_held_open("/home/x/troupe-runs/r/state/lock", O_RDWR, 0);
 *
 * Paths are absolute and begin with the very characters that the folder was held by. A
 * path below none of the held folders is opened as it is.
 *
 * Threads: one thread holds and leaves, before others start and after they ended. Any
 * thread may call the rest.
 * A child of fork holds what its parent held.
 */
#ifndef TRP_OS_HELD_H
#define TRP_OS_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/base/error.h"

#define TRP_HELD_ID 33 /* an identity and its NUL */

/* Holds `path` until trp_held_leave was called as often as this. `id`, when neither NULL nor
 * "", is the identity that it has to have. TRP_ENOENT: there is nothing;
 * TRP_ESYSTEM: it is no folder, a link, another user's, writable for others, or not the
 * one that is meant; the text says what to do. */
int trp_held_folder(const char *path, const char *id, trp_error *err);
void trp_held_leave(const char *path);
/* Gives a held folder the identity that it does not have yet. */
int trp_held_identify(const char *path, trp_error *err);
/* The identity of the held folder that `path` is, or lies below; "": it has none. */
const char *trp_held_id(const char *path);

/* As open, fopen ("r", "w", "wx" or "a"), mkdir, unlinkat, rename, symlink, readlink
 * and lstat. What is opened is closed on exec. fopen makes files 0600; open and mkdir
 * use `mode`. Below a held folder no link is followed: ELOOP or ENOTDIR. */
int trp_held_open(const char *path, int flags, mode_t mode);
FILE *trp_held_fopen(const char *path, const char *mode);
int trp_held_mkdir(const char *path, mode_t mode);
int trp_held_unlink(const char *path, int flags);
int trp_held_rename(const char *from, const char *to);
int trp_held_symlink(const char *target, const char *path);
ssize_t trp_held_readlink(const char *path, char *buf, size_t size);
int trp_held_stat(const char *path, struct stat *ret);
/* A path to `path`, for programs that open files by name: it leads through this
 * process's descriptor and holds for processes of the same user on this host as long as
 * this process lives. False: it is too long. */
bool trp_held_name(const char *path, char *buf, size_t size);

/* The descriptors of held folders, for who closes all others; how many. */
size_t trp_held_descriptors(int *ret, size_t room);

#endif
