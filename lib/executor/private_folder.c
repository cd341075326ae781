/*
 * Who made a folder holds a lock on it (flock, of the folder itself), which the kernel
 * takes away with the last process that has the descriptor: so a folder that can be
 * locked has no owner any more. Between the making and the lock a folder looks so too;
 * one that is younger than YOUNG_S is left alone. A file in it says that it was made
 * here: the name alone could be anybody's, `troupe-backup`.
 */
#include "executor/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "executor/tree.h"

#define PREFIX "troupe-"
#define NAME PREFIX "XXXXXX"
#define MARK ".made-by-troupe"

enum { YOUNG_S = 5 };

/* The descriptor stays open for as long as the process lives. */
static void lock_and_mark(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int mark = fd < 0 ? -1 : openat(fd, MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (mark >= 0)
        close(mark);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
        close(fd);
}

const char *trp_job_folder(void)
{
    struct stat st;
    const char *path = getenv("TROUPE_SCRATCH");
    return path && path[0] == '/' && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
                   st.st_uid == geteuid() && (st.st_mode & 0777) == 0700
               ? path
               : NULL;
}

int trp_private_folder(char ret_path[TRP_PRIVATE_FOLDER], trp_error *err)
{
    const char *places[] = {trp_job_folder(), "/tmp", getenv("TMPDIR"), "/var/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i] || places[i][0] != '/' ||
            snprintf(ret_path, TRP_PRIVATE_FOLDER, "%s/" NAME, places[i]) >=
                TRP_PRIVATE_FOLDER)
            continue;
        if (mkdtemp(ret_path)) {
            lock_and_mark(ret_path);
            return 0;
        }
    }
    ret_path[0] = '\0';
    return trp_error_set(err, TRP_ESYSTEM,
                         "cannot make a private folder in $TROUPE_SCRATCH, /tmp, "
                         "$TMPDIR or /var/tmp: %s",
                         strerror(errno));
}

static bool may_be_ours(int at, const char *name)
{
    struct stat st;
    return strlen(name) == strlen(NAME) && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
           fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 0777) == 0700 &&
           st.st_ctim.tv_sec + YOUNG_S < time(NULL);
}

static void remove_unused(int at, const char *name)
{
    size_t all = SIZE_MAX;
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (faccessat(fd, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        trp_tree_remove(at, name, &all);
    close(fd);
}

void trp_private_folders_sweep(const char *path)
{
    char place[TRP_PRIVATE_FOLDER];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return;
    snprintf(place, sizeof place, "%.*s", (int)(slash - path), path);
    DIR *d = opendir(place);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        if (may_be_ours(dirfd(d), entry->d_name))
            remove_unused(dirfd(d), entry->d_name);
    }
    if (d)
        closedir(d);
}

void trp_private_folders_sweep_aside(const char *path)
{
    pid_t child = fork();
    if (child > 0)
        waitpid(child, NULL, 0);
    if (child != 0)
        return;
    close_range(0, ~0U, 0);
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    trp_private_folders_sweep(path);
    _exit(0);
}
