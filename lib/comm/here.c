#include "comm/here.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm/proof.h"
#include "core/base/escape.h"
#include "os/same_user.h"

enum { NAME_BYTES = 16 };

static socklen_t make_name(const uint8_t *secret, const char *address,
                           struct sockaddr_un *ret)
{
    uint8_t bytes[NAME_BYTES];
    memset(ret, 0, sizeof *ret);
    ret->sun_family = AF_UNIX;
    trp_proof_name(secret, address, bytes, sizeof bytes);
    char *at = ret->sun_path + 1;
    at += sprintf(at, "troupe-");
    trp_hex_put(bytes, sizeof bytes, at);
    return (socklen_t)(at + 2 * sizeof bytes - (char *)ret);
}

static int open_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int trp_here_listen(const uint8_t *secret, const char *address, int backlog)
{
    struct sockaddr_un name;
    socklen_t size = make_name(secret, address, &name);
    int fd = open_socket();
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) == 0 &&
        listen(fd, backlog) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int trp_here_dial(const uint8_t *secret, const char *address)
{
    struct sockaddr_un name;
    socklen_t size = make_name(secret, address, &name);
    int fd = open_socket();
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, size) == 0)
        return fd;
    close(fd);
    return -1;
}

int trp_here_connect(const uint8_t *secret, const char *address)
{
    int fd = trp_here_dial(secret, address);
    if (fd < 0 || trp_same_user(fd))
        return fd;
    close(fd);
    return -1;
}
