/*
 * Outliving peers: Open MPI's TCP must not end this process when a peer dies.
 *
 * Open MPI 4.1 takes the end of a TCP connection well when it reads it (the endpoint
 * is closed, requests simply never complete). But when a peer dies with data unread,
 * its connection is reset, and a *write* that meets the reset ends in
 * "pml_ob1_sendreq.c FATAL" and ompi_rte_abort: one executor killed at the wrong moment
 * would take the driver and the whole run with it. No parameter changes that, and no
 * care of ours avoids it: what is queued inside Open MPI is written by Open MPI.
 *
 * So the three system calls by which its plugin mca_btl_tcp reads and writes get
 * wrappers, in that plugin's table of imported functions and nowhere else: a write to a
 * broken connection says that all was written (nobody would have read it), a read says
 * that the connection is closed. Open MPI then does what it does for an orderly close.
 *
 * A stranger that connects, says less than a peer would and waits would hold this
 * process up for as long as it likes: Open MPI reads on for ever. So the same wrapper
 * says after REST_MS that such a connection is closed.
 *
 * A build of Open MPI without that plugin as a file is left as it is.
 *
 * Rejected: interposing the symbols (a shared library that replaces writev for the
 * whole program), and holding the executor's MPI connections in another process so that
 * they outlive it (does not help when a host goes).
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mpi/module.h"

enum { REST_MS = 50 };

static bool is_broken(ssize_t n)
{
    return n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR &&
           errno != EFAULT && errno != EBADF;
}

static ssize_t surviving_writev(int fd, const struct iovec *iov, int count)
{
    const struct msghdr message = {
        .msg_iov = (struct iovec *)(uintptr_t)iov,
        .msg_iovlen = (size_t)count,
    };
    ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL); /* nor by SIGPIPE */
    if (!is_broken(n))
        return n;
    n = 0;
    for (int i = 0; i < count; i++)
        n += (ssize_t)iov[i].iov_len;
    return n;
}

static ssize_t surviving_readv(int fd, const struct iovec *iov, int count)
{
    ssize_t n = readv(fd, iov, count);
    return is_broken(n) ? 0 : n;
}

/* By this Open MPI reads what a new connection begins with, and reads until it has all
 * of it. Peers of ours send that in one piece. */
static ssize_t surviving_recv(int fd, void *to, size_t size, int flags)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ssize_t n = recv(fd, to, size, flags | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        if (poll(&p, 1, REST_MS) == 0)
            return 0;
        n = recv(fd, to, size, flags | MSG_DONTWAIT);
    }
    return is_broken(n) ? 0 : n;
}

/* ---- the plugin's imports -------------------------------------------------------- */

static const struct wrapper {
    const char *name;
    void *function;
} wrappers[] = {
    {"writev", (void *)surviving_writev},
    {"readv",  (void *)surviving_readv },
    {"recv",   (void *)surviving_recv  },
};

struct imports {
    const char *names;
    const ElfW(Sym) * symbols;
    const ElfW(Rela) * tables[2]; /* of calls, of addresses */
    size_t sizes[2];
};

/* glibc has made the addresses in the dynamic section absolute. */
static struct imports find_imports(const ElfW(Dyn) * d)
{
    struct imports i = {0};
    for (; d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB)
            i.names = (const char *)at;
        else if (d->d_tag == DT_SYMTAB)
            i.symbols = (const ElfW(Sym) *)at;
        else if (d->d_tag == DT_JMPREL)
            i.tables[0] = (const ElfW(Rela) *)at;
        else if (d->d_tag == DT_PLTRELSZ)
            i.sizes[0] = d->d_un.d_val / sizeof(ElfW(Rela));
        else if (d->d_tag == DT_RELA)
            i.tables[1] = (const ElfW(Rela) *)at;
        else if (d->d_tag == DT_RELASZ)
            i.sizes[1] = d->d_un.d_val / sizeof(ElfW(Rela));
    }
    return i;
}

static void set_slot(ElfW(Addr) slot, void *function)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)(slot & ~(page - 1));
    /* It may be read-only after relocation. */
    if (mprotect(start, page, PROT_READ | PROT_WRITE) == 0)
        __atomic_store_n((void **)slot, function, __ATOMIC_RELEASE);
}

static void wrap_table(ElfW(Addr) base, const struct imports *in, int table)
{
    for (size_t r = 0; in->tables[table] && r < in->sizes[table]; r++) {
        const ElfW(Rela) *rela = &in->tables[table][r];
        size_t symbol = (size_t)(rela->r_info >> (sizeof(ElfW(Addr)) == 8 ? 32 : 8));
        if (symbol == 0)
            continue;
        const char *name = in->names + in->symbols[symbol].st_name;
        for (size_t w = 0; w < sizeof wrappers / sizeof *wrappers; w++)
            if (strcmp(name, wrappers[w].name) == 0)
                set_slot(base + rela->r_offset, wrappers[w].function);
    }
}

static int on_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (!strstr(info->dlpi_name, "/mca_btl_tcp.so"))
        return 0;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_DYNAMIC)
            continue;
        struct imports in =
            find_imports((const ElfW(Dyn) *)(info->dlpi_addr + ph->p_vaddr));
        if (in.names && in.symbols) {
            wrap_table(info->dlpi_addr, &in, 0);
            wrap_table(info->dlpi_addr, &in, 1);
        }
    }
    return 0;
}

static void wrap(void)
{
    dl_iterate_phdr(on_library, NULL);
}

void trp_mpi_survive(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, wrap);
}
