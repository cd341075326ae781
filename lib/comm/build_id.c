/*
 * Which binaries this process runs: the version, and the GNU build ids of the program
 * and of libtroupe when it is a shared library here, read from their notes in memory.
 * An object linked without the note is known by the SHA-256 of its file.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/channel.h"

enum { ID_BYTES = 20 }; /* what is shown of an id */

struct text {
    char at[TRP_BUILD_ID_TEXT];
    size_t size;
};

static void add_id(struct text *t, const uint8_t *id, size_t n)
{
    t->size += (size_t)snprintf(t->at + t->size, sizeof t->at - t->size, "%c",
                                strchr(t->at, ' ') ? '+' : ' ');
    for (size_t i = 0; i < n && i < ID_BYTES && t->size + 3 <= sizeof t->at; i++)
        t->size += (size_t)snprintf(t->at + t->size, 3, "%02x", id[i]);
}

static void add_file(struct text *t, const char *path)
{
    struct sha256_ctx ctx;
    uint8_t bytes[65536], digest[SHA256_DIGEST_SIZE];
    sha256_init(&ctx);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
            sha256_update(&ctx, (size_t)n, bytes);
        close(fd);
    }
    sha256_digest(&ctx, sizeof digest, digest);
    add_id(t, digest, sizeof digest);
}

/* The build id in one segment of notes. */
static const uint8_t *find_note(const uint8_t *at, size_t size, size_t *ret_n)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        memcpy(&head, at, sizeof head);
        size_t name = (head.n_namesz + 3u) & ~(size_t)3;
        size_t desc = (head.n_descsz + 3u) & ~(size_t)3;
        if (name + desc > size - sizeof head)
            return NULL;
        const uint8_t *id = at + sizeof head + name;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
            memcmp(at + sizeof head, "GNU", 4) == 0) {
            *ret_n = head.n_descsz;
            return id;
        }
        at = id + desc;
        size -= sizeof head + name + desc;
    }
    return NULL;
}

static int on_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct text *t = (struct text *)context;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    bool program = info->dlpi_name[0] == 0;
    if (!program && strncmp(name, "libtroupe.so", strlen("libtroupe.so")) != 0)
        return 0;
    for (ElfW(Half) i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        size_t n;
        const uint8_t *id =
            ph->p_type != PT_NOTE
                ? NULL
                : find_note((const uint8_t *)(info->dlpi_addr + ph->p_vaddr),
                            ph->p_memsz, &n);
        if (id) {
            add_id(t, id, n);
            return 0;
        }
    }
    add_file(t, program ? "/proc/self/exe" : info->dlpi_name);
    return 0;
}

static struct text build;

static void read_build(void)
{
    build.size = (size_t)snprintf(build.at, 12, "%s", TROUPE_VERSION);
    if (build.size > 11)
        build.size = 11;
    dl_iterate_phdr(on_library, &build);
}

const char *trp_build_id(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_build);
    return build.at;
}
