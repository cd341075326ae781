/*
 * The socket lies in the abstract namespace: nothing to clean up, no path that can be
 * too long, and it is gone with its owner. Its name is 128 random bits, and both sides
 * ask the kernel who the other one is: a stranger who guesses the name is turned away
 * without ending the listener.
 *
 * The three descriptors travel with the very first byte, so that a driver has the
 * user's stdio before it can say anything. One that `troupe` itself was started without
 * is replaced by /dev/null.
 */
#include "driver/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "os/same_user.h"

enum { NAME_BYTES = 16, STDIO = 3, WAIT_SECONDS = 10 };

static socklen_t make_address(const char *name, struct sockaddr_un *ret)
{
    size_t n = strlen(name);
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    if (n > sizeof ret->sun_path - 1)
        n = sizeof ret->sun_path - 1;
    memcpy(ret->sun_path + 1, name, n);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

int trp_control_listen(char *ret_name, trp_error *err)
{
    uint8_t random[NAME_BYTES];
    struct sockaddr_un address;
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return trp_error_set(err, TRP_ESYSTEM, "no random bytes: %m");
    trp_hex_put(random, sizeof random, ret_name + sprintf(ret_name, "troupe-"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = make_address(ret_name, &address);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
        listen(fd, 4) == 0)
        return fd;
    int code = trp_error_set(err, TRP_ESYSTEM, "cannot open the control socket: %m");
    if (fd >= 0)
        close(fd);
    return code;
}

/* 'F' with our stdio. */
static int send_files(int fd)
{
    char byte = TRP_CONTROL_FILES;
    int files[STDIO], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < STDIO; i++)
        files[i] = fcntl(i, F_GETFD) < 0 ? null : i;
    struct iovec piece = {.iov_base = &byte, .iov_len = 1};
    union {
        char bytes[CMSG_SPACE(sizeof files)];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof files);
    memcpy(CMSG_DATA(head), files, sizeof files);
    ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (null >= 0)
        close(null);
    return n == 1 ? 0 : TRP_ESYSTEM;
}

int trp_control_accept(int listen_fd, int *ret_fd, trp_error *err)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
        return TRP_EWAIT;
    if (fd < 0)
        return trp_error_set(err, TRP_ESYSTEM, "cannot accept the driver: %m");
    if (!trp_same_user(fd)) {
        close(fd);
        return TRP_EWAIT;
    }
    if (send_files(fd) < 0) {
        int code =
            trp_error_set(err, TRP_ESYSTEM, "cannot hand stdio to the driver: %m");
        close(fd);
        return code;
    }
    *ret_fd = fd;
    return 0;
}

/* The three descriptors at 0, 1, 2. */
static int receive_files(int fd)
{
    char byte = 0;
    int files[STDIO];
    struct iovec piece = {.iov_base = &byte, .iov_len = 1};
    union {
        char bytes[CMSG_SPACE(sizeof files)];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *head = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || byte != TRP_CONTROL_FILES || head->cmsg_level != SOL_SOCKET ||
        head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof files))
        return TRP_EPROTO;
    memcpy(files, CMSG_DATA(head), sizeof files);
    int code = 0;
    for (int i = 0; i < STDIO; i++) {
        if (dup2(files[i], i) < 0)
            code = TRP_ESYSTEM;
    }
    for (int i = 0; i < STDIO; i++) {
        if (files[i] > 2)
            close(files[i]);
    }
    return code;
}

int trp_control_connect(const char *name, int *ret_fd, trp_error *err)
{
    struct sockaddr_un address;
    struct timeval wait = {.tv_sec = WAIT_SECONDS};
    socklen_t size = make_address(name, &address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int code = TRP_ESYSTEM;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) == 0 &&
        trp_same_user(fd) &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0 &&
        (code = receive_files(fd)) == 0 &&
        (code = fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? TRP_ESYSTEM : 0) == 0) {
        *ret_fd = fd;
        return 0;
    }
    trp_error_set(err, code, "cannot reach troupe at %s: %s", name,
                  code == TRP_EPROTO ? "it does not answer as troupe does"
                                     : strerror(errno));
    if (fd >= 0)
        close(fd);
    return code;
}

int trp_control_send(int fd, enum trp_control_byte what)
{
    char byte = (char)what;
    return send(fd, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : TRP_ESYSTEM;
}

static int say(int fd, enum trp_control_byte what, int status)
{
    uint32_t v = (uint32_t)status;
    uint8_t message[5] = {(uint8_t)what, (uint8_t)v, (uint8_t)(v >> 8),
                          (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    return send(fd, message, sizeof message, MSG_NOSIGNAL) == sizeof message
               ? 0
               : TRP_ESYSTEM;
}

int trp_control_exit(int fd, int status)
{
    return say(fd, TRP_CONTROL_EXIT, status);
}

int trp_control_answer(int fd)
{
    return say(fd, TRP_CONTROL_ANSWER, 0);
}
