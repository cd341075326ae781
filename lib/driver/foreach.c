/*
 * Tasks of a stage. A list file is read whole and cut in place, so that a line costs
 * its bytes and 16 more; a regular file only, since reading a FIFO could hold up the
 * loop for ever.
 *
 * An item that cannot become a variable (with a NUL, or longer than the kernel takes)
 * is refused here with its line, not left to fail at each attempt of its task.
 */
#include "driver/foreach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "driver/glob.h"
#include "driver/strings.h"

/* Where an error is, and what the helpers below need. */
struct place {
    const trp_pipeline *p;
    const struct trp_pipeline_stage *s;
    trp_error *err;
};

static struct trp_mark mark_of(const struct trp_pipeline_stage *s)
{
    return s->foreach_mark.line ? s->foreach_mark : s->mark;
}

#define REFUSE(at, code, fmt, ...)                                                     \
    trp_error_set((at)->err, code, "%s:%u:%u: stage %s: " fmt, (at)->p->file,          \
                  mark_of((at)->s).line, mark_of((at)->s).column, (at)->s->name,       \
                  ##__VA_ARGS__)

static int out_of_memory(const struct place *at)
{
    return REFUSE(at, TRP_ENOMEM, "out of memory for its tasks");
}

static int check_count(const struct place *at, size_t n)
{
    return n <= TRP_TASKS_MAX
               ? 0
               : REFUSE(at, TRP_ELIMIT,
                        "%zu tasks are more than a stage may have (%d); make each task "
                        "do more",
                        n, TRP_TASKS_MAX);
}

/* Item `i` (from 0) of `what` ("line", "file", "item"). */
static int check_item(const struct place *at, const char *what, size_t i,
                      const struct trp_text *item)
{
    if (memchr(item->data, '\0', item->size))
        return REFUSE(at, TRP_EINVAL,
                      "%s %zu has a NUL byte, which no variable can hold", what, i + 1);
    if (item->size > TRP_ITEM_MAX)
        return REFUSE(at, TRP_EINVAL, "%s %zu has %zu bytes; TROUPE_ITEM can hold %d",
                      what, i + 1, item->size, TRP_ITEM_MAX);
    return 0;
}

static int evaluate_files(const struct place *at, const char *base,
                          struct trp_items *ret)
{
    trp_error why;
    size_t n;
    int r = trp_glob(base, at->s->pattern, &ret->files, &n, &why);
    if (r < 0)
        return REFUSE(at, r, "%.300s: %s", at->s->pattern, why.text);
    if (n == 0 && !at->s->allow_empty)
        return REFUSE(
            at, TRP_EINVAL,
            "no file matches %.300s; add `allow_empty: true` when it may have "
            "no tasks",
            at->s->pattern);
    ret->nfiles = (uint32_t)n; /* at most TRP_GLOB_RESULTS */
    r = check_count(at, n);
    if (r < 0)
        return r;
    ret->item = calloc(n + 1, sizeof *ret->item);
    if (!ret->item)
        return out_of_memory(at);
    for (size_t i = 0; i < n && r == 0; i++) {
        ret->item[i] = (struct trp_text){ret->files[i], strlen(ret->files[i])};
        r = check_item(at, "file", i, &ret->item[i]);
    }
    ret->ntasks = n;
    return r;
}

static int evaluate_items(const struct place *at, struct trp_items *ret)
{
    int r = check_count(at, at->s->nitems);
    ret->item = r < 0 ? NULL : calloc((size_t)at->s->nitems + 1, sizeof *ret->item);
    if (r == 0 && !ret->item)
        return out_of_memory(at);
    for (uint32_t i = 0; i < at->s->nitems && r == 0; i++) {
        ret->item[i] = at->s->items[i];
        r = check_item(at, "item", i, &ret->item[i]);
    }
    ret->ntasks = at->s->nitems;
    return r;
}

/* Opens the list file. *ret_fd -1 with 0: it is missing and may be. */
static int open_list(const struct place *at, const char *base, int *ret_fd,
                     struct stat *ret)
{
    const char *name = at->s->pattern;
    char *path = trp_path_join(base, name);
    if (!path)
        return out_of_memory(at);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int failed = errno;
    free(path);
    *ret_fd = fd;
    if (fd < 0 && failed == ENOENT && at->s->allow_empty)
        return 0;
    if (fd < 0)
        return REFUSE(
            at, TRP_EINVAL, "the list file %.300s cannot be read: %s%s", name,
            strerror(failed),
            failed == ENOENT ? "; add `allow_empty: true` when it may be missing" : "");
    if (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) &&
        ret->st_size <= TRP_LIST_FILE_MAX)
        return 0;
    close(fd);
    if (!S_ISREG(ret->st_mode))
        return REFUSE(at, TRP_EINVAL, "the list file %.300s is not a regular file",
                      name);
    return REFUSE(at, TRP_ELIMIT, "the list file %.300s is larger than 1 GiB", name);
}

/* Reads what there is, at most `size` bytes: *ret_n. */
static int read_list(const struct place *at, int fd, char *data, size_t size,
                     size_t *ret_n)
{
    size_t n = 0;
    while (n < size) {
        ssize_t k = read(fd, data + n, size - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return REFUSE(at, TRP_ESYSTEM, "the list file %.300s cannot be read: %s",
                          at->s->pattern, strerror(errno));
        if (k == 0)
            break;
        n += (size_t)k;
    }
    *ret_n = n;
    return 0;
}

static int cut_lines(const struct place *at, char *data, size_t size,
                     struct trp_items *ret)
{
    uint32_t n = 0, capacity = 0;
    size_t line = 0;
    for (char *from = data, *end = data + size; from < end; line++) {
        char *lf = memchr(from, '\n', (size_t)(end - from));
        struct trp_text item = {from, (size_t)((lf ? lf : end) - from)};
        from = (lf ? lf : end) + 1;
        item.data[item.size] = '\0';
        if (item.size == 0)
            continue;
        int r = check_item(at, "line", line, &item);
        if (r == 0)
            r = check_count(at, n + 1);
        if (r < 0)
            return r;
        if (!TRP_ARRAY_GROW(ret->item, n, capacity))
            return out_of_memory(at);
        ret->item[n++] = item;
    }
    ret->ntasks = (uint32_t)n;
    return 0;
}

static int evaluate_lines(const struct place *at, const char *base,
                          struct trp_items *ret)
{
    struct stat st = {0};
    size_t n = 0;
    int fd = -1, r = open_list(at, base, &fd, &st);
    if (r < 0 || fd < 0)
        return r;
    char *data = malloc((size_t)st.st_size + 1);
    ret->memory = data;
    r = data ? read_list(at, fd, data, (size_t)st.st_size, &n) : out_of_memory(at);
    close(fd);
    return r < 0 ? r : cut_lines(at, data, n, ret);
}

int trp_foreach_evaluate(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                         const char *base, struct trp_items *ret, trp_error *err)
{
    struct place at = {p, s, err};
    struct trp_items items = {0};
    int r = 0;
    switch (s->foreach) {
    case TRP_FOREACH_NONE:
        items.ntasks = s->tasks;
        r = check_count(&at, s->tasks);
        break;
    case TRP_FOREACH_FILES:
        r = evaluate_files(&at, base, &items);
        break;
    case TRP_FOREACH_ITEMS:
        r = evaluate_items(&at, &items);
        break;
    case TRP_FOREACH_LINES:
        r = evaluate_lines(&at, base, &items);
        break;
    }
    if (r < 0) {
        trp_items_free(&items);
        return r;
    }
    items.known = true;
    *ret = items;
    return 0;
}

void trp_items_free(struct trp_items *i)
{
    free(i->item);
    free(i->memory);
    trp_glob_free(i->files, i->nfiles);
    *i = (struct trp_items){0};
}

bool trp_foreach_known(const struct trp_pipeline_stage *s)
{
    return s->foreach == TRP_FOREACH_NONE || s->foreach == TRP_FOREACH_ITEMS;
}
