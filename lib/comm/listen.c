#include "comm/listen.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The socket, bound to that; -1: it could not be, and is closed. */
static int bound(int fd, const void *address, socklen_t size)
{
    if (fd < 0 || bind(fd, address, size) == 0)
        return fd;
    close(fd);
    return -1;
}

/* On all addresses of both families, where there are both. */
static int bind_to_all(void)
{
    int zero = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    return bound(fd, &six, sizeof six);
}

static int bind_to_four(in_addr_t address)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = address};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return bound(fd, &four, sizeof four);
}

static int open_socket(bool here_only, trp_error *err, uint16_t *ret_port)
{
    struct sockaddr_in6 six = {0};
    socklen_t n = sizeof six;
    int fd = here_only ? bind_to_four(htonl(INADDR_LOOPBACK)) : bind_to_all();
    if (fd < 0 && !here_only)
        fd = bind_to_four(htonl(INADDR_ANY));
    if (fd >= 0 && listen(fd, TRP_LISTEN_BACKLOG) == 0 &&
        getsockname(fd, (struct sockaddr *)&six, &n) == 0) {
        /* The port is in the same place for both families. */
        *ret_port = ntohs(six.sin6_port);
        return fd;
    }
    trp_error_set(err, TRP_ESYSTEM, "cannot open a socket to listen at: %m");
    if (fd >= 0)
        close(fd);
    return TRP_ESYSTEM;
}

/* Whether `host` names this machine: one can bind to it. */
static bool is_ours(const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;
    bool ours = false;
    if (getaddrinfo(host, "0", &hints, &list) != 0)
        return false;
    for (struct addrinfo *a = list; a && !ours; a = a->ai_next) {
        int fd = bound(socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), a->ai_addr,
                       a->ai_addrlen);
        ours = fd >= 0;
        if (ours)
            close(fd);
    }
    freeaddrinfo(list);
    return ours;
}

/* The name by which other nodes know this one; else its first address. */
static void find_host(char *host, size_t size)
{
    struct ifaddrs *list = NULL;
    if (gethostname(host, size) == 0 && memchr(host, 0, size) && is_ours(host))
        return;
    snprintf(host, size, "127.0.0.1");
    if (getifaddrs(&list) < 0)
        return;
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        bool use = i->ifa_addr && i->ifa_addr->sa_family == AF_INET &&
                   (i->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP;
        if (use && getnameinfo(i->ifa_addr, sizeof(struct sockaddr_in), host,
                               (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0)
            break;
    }
    freeifaddrs(list);
}

int trp_listen(bool here_only, char ret_address[TRP_ADDRESS_TEXT], trp_error *err)
{
    char host[NI_MAXHOST] = "127.0.0.1";
    uint16_t port;
    int fd = open_socket(here_only, err, &port);
    if (fd < 0)
        return fd;
    if (!here_only)
        find_host(host, sizeof host);
    snprintf(ret_address, TRP_ADDRESS_TEXT, "%.255s:%u", host, port);
    return fd;
}
