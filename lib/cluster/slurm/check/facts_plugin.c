/*
 * Whether Slurm would load our SPANK plugin: its line of plugstack.conf, read as Slurm
 * reads it, and the version that the plugin carries in its symbol plugin_version, found
 * in the file. It is not loaded: what it wants of Slurm's programs is not in ours, and
 * `troupe check` runs nothing that it looks at.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/slurm/check/facts.h"

enum { LINE = 4096, DEPTH = 8 };

/* ---- plugstack.conf ---- */

static void take_line(struct trp_slurm_facts *f, const char *path, unsigned number,
                      const char *kind, const char *plugin, char **rest)
{
    struct trp_slurm_plugin *p = &f->plugin;
    const char *slash = strrchr(plugin, '/');
    char where[LINE + 32];
    if (strcmp(slash ? slash + 1 : plugin, TRP_SLURM_PLUGIN) != 0 ||
        p->line.seen == TRP_SLURM_THERE)
        return;
    snprintf(where, sizeof where, "%s:%u", path, number);
    p->line =
        (struct trp_slurm_file){TRP_SLURM_THERE, trp_slurm_facts_text(f, where), ""};
    struct stat st;
    /* Where Slurm itself brings its files to nodes, they are as new as the last reading. */
    if (strncmp(path, "/run/", 5) != 0 && stat(path, &st) == 0)
        p->changed = (int64_t)st.st_ctim.tv_sec;
    p->required = strcmp(kind, "required") == 0;
    p->file.path = trp_slurm_facts_text(f, plugin);
    for (char *word; (word = strtok_r(NULL, " \t\n", rest));) {
        if (strncmp(word, "site=", 5) == 0)
            p->site = trp_slurm_facts_text(f, word + 5);
        else if (strncmp(word, "shapes=", 7) == 0)
            p->shapes.path = trp_slurm_facts_text(f, word + 7);
    }
}

static void read_stack(struct trp_slurm_facts *f, const char *path, int depth);

/* A relative pattern is beside the file that includes it. */
static void include(struct trp_slurm_facts *f, const char *path, const char *pattern,
                    int depth)
{
    char whole[2 * LINE];
    const char *slash = *pattern == '/' ? NULL : strrchr(path, '/');
    glob_t found;
    snprintf(whole, sizeof whole, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path,
             pattern);
    if (depth == DEPTH || glob(whole, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        read_stack(f, found.gl_pathv[i], depth + 1);
    globfree(&found);
}

static void read_stack(struct trp_slurm_facts *f, const char *path, int depth)
{
    struct trp_slurm_file *line = &f->plugin.line;
    char text[LINE], *rest;
    FILE *in = fopen(path, "re");
    if (!in) {
        if (line->seen == TRP_SLURM_MISSING && errno != ENOENT)
            *line =
                (struct trp_slurm_file){TRP_SLURM_UNSEEN, trp_slurm_facts_text(f, path),
                                        trp_slurm_facts_text(f, strerror(errno))};
        return;
    }
    for (unsigned number = 1; fgets(text, sizeof text, in); number++) {
        text[strcspn(text, "#")] = '\0';
        const char *kind = strtok_r(text, " \t\n", &rest);
        const char *plugin = kind ? strtok_r(NULL, " \t\n", &rest) : NULL;
        if (plugin && strcmp(kind, "include") == 0)
            include(f, path, plugin, depth);
        else if (plugin)
            take_line(f, path, number, kind, plugin, &rest);
    }
    fclose(in);
}

void trp_slurm_facts_plugstack(struct trp_slurm_facts *f, const char *path)
{
    f->plugin = (struct trp_slurm_plugin){
        .line = {TRP_SLURM_MISSING, path, ""},
          .site = TRP_SLURM_PLUGIN_SITE
    };
    read_stack(f, path, 0);
}

/* ---- the plugin ---- */

struct image {
    const char *v;
    size_t size;
};

/* `n` bytes at `offset`, or NULL. */
static const void *at(const struct image *m, uint64_t offset, uint64_t n)
{
    return offset <= m->size && n <= m->size - offset ? m->v + offset : NULL;
}

static const ElfW(Shdr) *
    section(const struct image *m, const ElfW(Ehdr) * e, uint64_t i)
{
    return i < e->e_shnum
               ? at(m, e->e_shoff + i * sizeof(ElfW(Shdr)), sizeof(ElfW(Shdr)))
               : NULL;
}

/* What the file has for an address. */
static const void *loaded(const struct image *m, const ElfW(Ehdr) * e, uint64_t address,
                          uint64_t n)
{
    for (uint64_t i = 0; i < e->e_phnum; i++) {
        const ElfW(Phdr) *p =
            at(m, e->e_phoff + i * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr)));
        if (p && p->p_type == PT_LOAD && address >= p->p_vaddr &&
            address - p->p_vaddr < p->p_filesz)
            return at(m, p->p_offset + (address - p->p_vaddr), n);
    }
    return NULL;
}

static const void *find_symbol(const struct image *m, const char *name, uint64_t n)
{
    const ElfW(Ehdr) *e = at(m, 0, sizeof *e);
    bool sound =
        e && memcmp(e->e_ident, ELFMAG, SELFMAG) == 0 &&
        e->e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
    for (uint64_t i = 0; sound && i < e->e_shnum; i++) {
        const ElfW(Shdr) *s = section(m, e, i);
        const ElfW(Shdr) *names = s ? section(m, e, s->sh_link) : NULL;
        if (!names || s->sh_type != SHT_DYNSYM)
            continue;
        for (uint64_t k = 0; k < s->sh_size / sizeof(ElfW(Sym)); k++) {
            const ElfW(Sym) *symbol =
                at(m, s->sh_offset + k * sizeof(ElfW(Sym)), sizeof(ElfW(Sym)));
            if (!symbol)
                break;
            const char *is =
                at(m, names->sh_offset + symbol->st_name, strlen(name) + 1);
            if (is && symbol->st_shndx != SHN_UNDEF &&
                memcmp(is, name, strlen(name) + 1) == 0)
                return loaded(m, e, symbol->st_value, n);
        }
    }
    return NULL;
}

uint32_t trp_slurm_plugin_version(const char *path)
{
    uint32_t version = 0;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *v = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0
                  ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                  : MAP_FAILED;
    if (v != MAP_FAILED) {
        struct image m = {v, (size_t)st.st_size};
        const void *symbol = find_symbol(&m, "plugin_version", sizeof version);
        if (symbol)
            memcpy(&version, symbol, sizeof version);
        munmap(v, m.size);
    }
    if (fd >= 0)
        close(fd);
    return version;
}
