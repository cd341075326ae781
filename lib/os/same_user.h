/*
 * Who is at the other end of a Unix socket.
 */
#ifndef TRP_OS_SAME_USER_H
#define TRP_OS_SAME_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

/* Did our own user connect to it, or make it? As the kernel noted it then. */
static inline bool trp_same_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
           who.uid == geteuid();
}

#endif
