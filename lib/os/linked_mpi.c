/*
 * Read piece by piece: a file that is mapped and cut short meanwhile would end us.
 */
#include "os/linked_mpi.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_MAX = 4096, NAME_SIZE = 64 };

/* `n` things of `size` bytes at `offset`, to be freed; NULL: they are not there. */
static void *read_array(int fd, uint64_t offset, size_t n, size_t size)
{
    void *array = n > 0 && n <= ENTRIES_MAX ? malloc(n * size) : NULL;
    if (array && offset <= INT64_MAX &&
        pread(fd, array, n * size, (off_t)offset) == (ssize_t)(n * size))
        return array;
    free(array);
    return NULL;
}

static ElfW(Phdr) * read_segments(int fd, size_t *ret_n)
{
    const int class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    ElfW(Ehdr) h;
    if (pread(fd, &h, sizeof h, 0) != sizeof h ||
        memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != class ||
        h.e_phentsize != sizeof(ElfW(Phdr)))
        return NULL;
    *ret_n = h.e_phnum;
    return read_array(fd, h.e_phoff, h.e_phnum, sizeof(ElfW(Phdr)));
}

/* Where in the file the address is; UINT64_MAX: nowhere. */
static uint64_t offset_of(const ElfW(Phdr) * p, size_t n, uint64_t address)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].p_type == PT_LOAD && address >= p[i].p_vaddr &&
            address - p[i].p_vaddr < p[i].p_filesz)
            return address - p[i].p_vaddr + p[i].p_offset;
    return UINT64_MAX;
}

static enum trp_linked_mpi mpi_of(const char *name)
{
    static const struct {
        const char *begin;
        enum trp_linked_mpi mpi;
    } names[] = {
        {"libmpich.so",     TRP_LINKED_MPICH  },
        {"libmpichfort.so", TRP_LINKED_MPICH  },
        {"libmpifort.so",   TRP_LINKED_MPICH  },
        {"libmpi.so.12",    TRP_LINKED_MPICH  },
        {"libmpi.so",       TRP_LINKED_OPENMPI},
        {"libmpi_mpifh.so", TRP_LINKED_OPENMPI},
        {"libmpi_usempi",   TRP_LINKED_OPENMPI},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i].begin, strlen(names[i].begin)) == 0)
            return names[i].mpi;
    return TRP_LINKED_NONE;
}

static enum trp_linked_mpi look_at_needed(int fd, const ElfW(Dyn) * d, size_t n,
                                          uint64_t strings)
{
    for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
        char name[NAME_SIZE + 1] = "";
        uint64_t offset = strings + d[i].d_un.d_val;
        if (d[i].d_tag != DT_NEEDED || offset > INT64_MAX ||
            pread(fd, name, NAME_SIZE, (off_t)offset) <= 0)
            continue;
        enum trp_linked_mpi mpi = mpi_of(name);
        if (mpi)
            return mpi;
    }
    return TRP_LINKED_NONE;
}

static enum trp_linked_mpi look_in_file(int fd)
{
    size_t n = 0, ndynamic = 0;
    uint64_t strings = UINT64_MAX;
    enum trp_linked_mpi mpi = TRP_LINKED_NONE;
    ElfW(Dyn) *d = NULL;
    ElfW(Phdr) *p = read_segments(fd, &n);
    for (size_t i = 0; p && i < n && !d; i++) {
        if (p[i].p_type != PT_DYNAMIC)
            continue;
        ndynamic = p[i].p_filesz / sizeof *d;
        d = read_array(fd, p[i].p_offset, ndynamic, sizeof *d);
    }
    for (size_t i = 0; d && i < ndynamic; i++)
        if (d[i].d_tag == DT_STRTAB)
            strings = offset_of(p, n, d[i].d_un.d_ptr);
    if (strings != UINT64_MAX)
        mpi = look_at_needed(fd, d, ndynamic, strings);
    free(d);
    free(p);
    return mpi;
}

enum trp_linked_mpi trp_linked_mpi(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TRP_LINKED_NONE;
    enum trp_linked_mpi mpi = look_in_file(fd);
    close(fd);
    return mpi;
}
