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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/wording.h"
#include "core/base/array.h"
#include "driver/foreach_place.h"
#include "driver/group.h"
#include "driver/kept_lists.h"
#include "driver/output_files.h"
#include "driver/table_rows.h"
#include "os/glob.h"
#include "os/strings.h"

#define REFUSE TRP_FOREACH_REFUSE

static void note_absent(const struct trp_foreach_place *at)
{
    if (at->absent)
        *at->absent = true;
}

static int out_of_memory(const struct trp_foreach_place *at)
{
    return REFUSE(at, TRP_ENOMEM, "out of memory for its tasks");
}

static int check_count(const struct trp_foreach_place *at, size_t n)
{
    return n <= TRP_TASKS_MAX
               ? 0
               : REFUSE(at, TRP_ELIMIT,
                        "%zu tasks are more than a stage may have (%d); make each task "
                        "do more",
                        n, TRP_TASKS_MAX);
}

/* Item `i` (from 0) of `what` ("line", "file", "item"). */
static int check_item(const struct trp_foreach_place *at, const char *what, size_t i,
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

/* ---- files ---- */

/* The names in `names`, each with a NUL, which `ret` owns from then on. */
static int cut_names(const struct trp_foreach_place *at, char *take_names, size_t size,
                     struct trp_items *ret)
{
    uint32_t n = 0, capacity = 0;
    ret->memory = take_names;
    for (char *name = take_names, *end = name + size; name < end;
         name += strlen(name) + 1) {
        if (!TRP_ARRAY_GROW(ret->item, n, capacity))
            return out_of_memory(at);
        ret->item[n++] = (struct trp_text){name, strlen(name)};
    }
    ret->ntasks = n;
    return 0;
}

/* Leaves those out that are neither among the names (sorted, as they are) nor made since. */
static size_t drop_late(const struct trp_foreach_place *at, const char *base,
                        const char *names, size_t size, char **files, size_t n)
{
    size_t left = 0;
    const char *name = names, *end = names + size;
    for (size_t i = 0; i < n; i++) {
        while (name < end && strcmp(name, files[i]) < 0)
            name += strlen(name) + 1;
        char *path = trp_path_join(base, files[i]);
        if ((name < end && strcmp(name, files[i]) == 0) ||
            (path && trp_kept_lists_new(at->p->kept_lists, path)))
            files[left++] = files[i];
        else
            free(files[i]);
        free(path);
    }
    return left;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds those names that were kept and have gone since, each once. */
static int add_gone(const struct trp_foreach_place *at, const char *names, size_t size,
                    char ***files, size_t *n)
{
    const struct trp_kept_lists *k = at->p->kept_lists;
    uint32_t all = (uint32_t)*n, capacity = (uint32_t)*n;
    for (const char *name = names, *end = names + size; name < end;
         name += strlen(name) + 1) {
        if (!k->gone(k->gone_context, name))
            continue;
        char *copy = strdup(name);
        if (!copy || !TRP_ARRAY_GROW(*files, all, capacity)) {
            free(copy);
            return out_of_memory(at);
        }
        (*files)[all++] = copy;
        *n = all;
    }
    if (all)
        qsort(*files, all, sizeof **files, by_name);
    return 0;
}

static void keep_names(const struct trp_foreach_place *at, char *const *files, size_t n)
{
    struct trp_buf b = {0};
    for (size_t i = 0; i < n && !at->absent && at->p->kept_lists; i++)
        trp_put_raw(&b, files[i], strlen(files[i]) + 1);
    if (!b.failed && !at->absent)
        trp_kept_list_put(at->p->kept_lists, at->s, at->part, b.data, b.size);
    trp_buf_free(&b);
}

static int evaluate_files(const struct trp_foreach_place *at, const char *base,
                          struct trp_items *ret)
{
    trp_error why;
    size_t n = 0, size = 0;
    bool now;
    char *kept = trp_kept_names_take(at->p->kept_lists, at->s, at->part, &size, &now);
    if (kept && !now)
        return cut_names(at, kept, size, ret);
    int r = trp_glob(base, at->s->pattern, &ret->files, &n, &why);
    if (r == 0 && kept)
        n = drop_late(at, base, kept, size, ret->files, n);
    free(kept);
    kept = trp_kept_names_gone(at->p->kept_lists, at->s, at->part, &size);
    int rc = r == 0 && kept ? add_gone(at, kept, size, &ret->files, &n) : 0;
    ret->nfiles =
        (uint32_t)n; /* at most TRP_GLOB_RESULTS, and as many that have gone */
    free(kept);
    if (rc < 0)
        return rc;
    if (r < 0 || n == 0)
        note_absent(at);
    if (r < 0)
        return REFUSE(at, r, "%.300s: %s", at->s->pattern, why.text);
    if (n == 0 && !at->s->allow_empty)
        return REFUSE(
            at, TRP_EINVAL,
            "no file matches %.300s; add `allow_empty: true` when it may have "
            "no tasks",
            at->s->pattern);
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
    keep_names(at, ret->files, n);
    return r;
}

/* ---- items and lists ---- */

static int evaluate_items(const struct trp_foreach_place *at, struct trp_items *ret)
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

const char *trp_foreach_word(const struct trp_foreach_place *at)
{
    return at->s->foreach == TRP_FOREACH_TABLE ? "table" : "list file";
}

/* Opens the list file or table. *ret_fd -1 with 0: it is missing and may be. */
static int open_list(const struct trp_foreach_place *at, const char *base, int *ret_fd,
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
        note_absent(at);
    if (fd < 0)
        return REFUSE(
            at, TRP_EINVAL, "the %s %.300s cannot be read: %s%s", trp_foreach_word(at),
            name, strerror(failed),
            failed == ENOENT ? "; add `allow_empty: true` when it may be missing" : "");
    if (fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) &&
        ret->st_size <= TRP_LIST_FILE_MAX)
        return 0;
    close(fd);
    if (!S_ISREG(ret->st_mode))
        return REFUSE(at, TRP_EINVAL, "the %s %.300s is not a regular file",
                      trp_foreach_word(at), name);
    return REFUSE(at, TRP_ELIMIT, "the %s %.300s is larger than 1 GiB",
                  trp_foreach_word(at), name);
}

/* Reads what there is, at most `size` bytes: *ret_n. */
static int read_list(const struct trp_foreach_place *at, int fd, char *data,
                     size_t size, size_t *ret_n)
{
    size_t n = 0;
    while (n < size) {
        ssize_t k = read(fd, data + n, size - n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            note_absent(at);
        if (k < 0)
            return REFUSE(at, TRP_ESYSTEM, "the %s %.300s cannot be read: %s",
                          trp_foreach_word(at), at->s->pattern, strerror(errno));
        if (k == 0)
            break;
        n += (size_t)k;
    }
    *ret_n = n;
    return 0;
}

static int cut_lines(const struct trp_foreach_place *at, char *data, size_t size,
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

/* Reads the file whole into ret->memory, with one byte more behind it. *ret_n 0: it is
 * empty, or missing and may be. */
static int load_list(const struct trp_foreach_place *at, const char *base,
                     struct trp_items *ret, size_t *ret_n)
{
    struct stat st = {0};
    char *path = trp_path_join(base, at->s->pattern);
    ret->memory =
        path ? trp_kept_list_take(at->p->kept_lists, at->s, at->part, path, ret_n)
             : NULL;
    free(path);
    if (ret->memory)
        return 0;
    int fd = -1, r = open_list(at, base, &fd, &st);
    if (r < 0 || fd < 0)
        return r;
    ret->memory = malloc((size_t)st.st_size + 1);
    r = ret->memory ? read_list(at, fd, ret->memory, (size_t)st.st_size, ret_n)
                    : out_of_memory(at);
    close(fd);
    if (r == 0 && !at->absent)
        trp_kept_list_put(at->p->kept_lists, at->s, at->part, ret->memory, *ret_n);
    return r;
}

static int evaluate_lines(const struct trp_foreach_place *at, const char *base,
                          struct trp_items *ret)
{
    size_t n = 0;
    int r = load_list(at, base, ret, &n);
    return r < 0 || !ret->memory ? r : cut_lines(at, ret->memory, n, ret);
}

static int wrong_table(const struct trp_foreach_place *at, int code,
                       const trp_error *why)
{
    return REFUSE(at, code, "the table %.300s: %s", at->s->pattern, why->text);
}

/* ---- tables ---- */

/* Appends the value of a row's column; its size. */
static size_t put_cell(const struct trp_items *i, uint32_t row, uint32_t column,
                       struct trp_buf *b)
{
    const char *at = i->item[row].data;
    size_t before = b->size;
    for (uint32_t k = 0; k <= column; k++) {
        b->size = before;
        trp_row_cell(&at, i->csv, b);
    }
    return b->size - before;
}

static int no_column(const struct trp_foreach_place *at, const struct trp_items *i)
{
    struct trp_nearest near = trp_nearest_of(at->s->key);
    struct trp_name_list all = {0};
    trp_items_list_columns(i, &near, &all);
    return TRP_FOREACH_REFUSE_AT(
        at, at->s->key_mark, TRP_EINVAL,
        "key: the table %.300s has no column %s%s; the columns are %s", at->s->pattern,
        trp_show(at->s->key).text, trp_did_you_mean(&near).text, all.text);
}

static int same_key(const struct trp_foreach_place *at, const struct trp_items *i,
                    uint32_t first, uint32_t second)
{
    struct trp_buf b = {0};
    put_cell(i, first, i->key, &b);
    trp_put_u8(&b, 0);
    int r = TRP_FOREACH_REFUSE_AT(
        at, at->s->key ? at->s->key_mark : trp_foreach_mark(at->s), TRP_EINVAL,
        "the table %.300s: its rows %u and %u both have the %s %.100s; give each row "
        "its own, or %s",
        at->s->pattern, first + 1, second + 1, i->columns[i->key],
        b.failed ? "" : (const char *)b.data,
        at->s->key ? "write another column as key" : "call the column otherwise");
    trp_buf_free(&b);
    return r;
}

/* Rows by their keys, of which no two are the same. */
struct keys {
    uint32_t *row; /* and one more; 0: a free place */
    size_t places; /* a power of two */
    struct trp_buf key, other;
};

/* Puts a row with what is in `key` to the others; the one that has the same, else itself. */
static uint32_t put_key(struct keys *k, const struct trp_items *i, uint32_t row)
{
    size_t at = trp_print_of(k->key.data, k->key.size).low & (k->places - 1);
    for (; k->row[at]; at = (at + 1) & (k->places - 1)) {
        trp_buf_clear(&k->other);
        size_t n = put_cell(i, k->row[at] - 1, i->key, &k->other);
        if (n == k->key.size && (n == 0 || !memcmp(k->key.data, k->other.data, n)))
            return k->row[at] - 1;
    }
    k->row[at] = row + 1;
    return row;
}

/* The column that names the tasks: the one that is written, whose values must do, or the
 * first if they do. One that is called id tells the rows apart in any case. */
static int find_key(const struct trp_foreach_place *at, struct trp_items *i)
{
    struct keys k = {.places = 4};
    bool wanted = at->s->key;
    int r = 0;
    while (wanted && i->key < i->ncolumns &&
           strcmp(i->columns[i->key], at->s->key) != 0)
        i->key++;
    if (i->key == i->ncolumns)
        return no_column(at, i);
    while (k.places < 2 * (size_t)i->ntasks)
        k.places *= 2;
    k.row = calloc(k.places, sizeof *k.row);
    if (!k.row)
        return out_of_memory(at);
    i->keyed = true;
    for (uint32_t row = 0; row < i->ntasks && r == 0; row++) {
        trp_buf_clear(&k.key);
        size_t n = put_cell(i, row, i->key, &k.key);
        uint32_t same = put_key(&k, i, row);
        i->keyed = i->keyed && n > 0 && same == row;
        if (k.key.failed || k.other.failed)
            r = out_of_memory(at);
        else if (wanted && n == 0)
            r = TRP_FOREACH_REFUSE_AT(
                at, at->s->key_mark, TRP_EINVAL,
                "the table %.300s: its row %u has no %s; give each row its own, or "
                "write another column as key",
                at->s->pattern, row + 1, at->s->key);
        else if (same == row)
            continue;
        else if (wanted || strcasecmp(i->columns[i->key], "id") == 0)
            r = same_key(at, i, same, row);
        else
            break;
    }
    trp_buf_free(&k.key);
    trp_buf_free(&k.other);
    free(k.row);
    return r;
}

static int evaluate_table(const struct trp_foreach_place *at, const char *base,
                          struct trp_items *ret)
{
    struct trp_table_rows rows;
    trp_error why;
    size_t size = 0;
    uint32_t n = 0, capacity = 0;
    int r = load_list(at, base, ret, &size);
    if (r < 0 || !ret->memory)
        return r;
    const char *dot = strrchr(at->s->pattern, '.');
    ret->csv = dot && strcmp(dot, ".csv") == 0;
    r = trp_rows_open(&rows, ret->memory, size, ret->csv, &ret->columns, &why);
    if (r < 0)
        return wrong_table(at, r, &why);
    ret->ncolumns = rows.ncells;
    for (struct trp_text row; (r = trp_rows_next(&rows, &row, &why)) > 0;) {
        if ((r = check_item(at, "row", n, &row)) < 0 ||
            (r = check_count(at, (size_t)n + 1)) < 0)
            return r;
        if (!TRP_ARRAY_GROW(ret->item, n, capacity))
            return out_of_memory(at);
        ret->item[n++] = row;
    }
    ret->ntasks = n;
    if (r == 0 && at->s->group)
        return trp_group_rows(at, ret);
    return r < 0 ? wrong_table(at, r, &why) : find_key(at, ret);
}

/* ---- products ---- */

static int evaluate(const struct trp_foreach_place *at, const char *base,
                    struct trp_items *ret);

/* The item of each part for a task: the last part changes fastest. */
static const struct trp_text *item_of_part(const struct trp_items *i, uint32_t part,
                                           uint32_t task)
{
    for (uint32_t k = i->nparts - 1; k > part; k--)
        task /= i->parts[k].ntasks;
    return &i->parts[part].item[task % i->parts[part].ntasks];
}

static int check_product(const struct trp_foreach_place *at, const struct trp_items *i)
{
    char sizes[200] = "";
    size_t used = 0;
    double n = 1;
    for (uint32_t k = 0; k < i->nparts; k++) {
        n *= i->parts[k].ntasks;
        if (used < sizeof sizes)
            used += (size_t)snprintf(sizes + used, sizeof sizes - used, "%s%u",
                                     k ? " × " : "", i->parts[k].ntasks);
    }
    return n <= TRP_TASKS_MAX
               ? 0
               : REFUSE(at, TRP_ELIMIT,
                        "%s: %.0f tasks are more than a stage may have (%d); make each "
                        "task do more",
                        sizes, n, TRP_TASKS_MAX);
}

/* The texts of the items, with tabs between the parts. */
static int join_parts(const struct trp_foreach_place *at, struct trp_items *ret)
{
    struct trp_buf b = {0};
    int r = 0;
    ret->item = calloc((size_t)ret->ntasks + 1, sizeof *ret->item);
    for (uint32_t t = 0; t < ret->ntasks && ret->item && !b.failed && r == 0; t++) {
        size_t begin = b.size;
        for (uint32_t k = 0; k < ret->nparts; k++) {
            const struct trp_text *part = item_of_part(ret, k, t);
            trp_put_raw(&b, k ? "\t" : "", k ? 1 : 0);
            trp_put_raw(&b, part->data, part->size);
        }
        ret->item[t].size = b.size - begin;
        trp_put_u8(&b, 0);
        if (ret->item[t].size > TRP_ITEM_MAX)
            r = REFUSE(at, TRP_EINVAL, "item %u has %zu bytes; TROUPE_ITEM can hold %d",
                       t + 1, ret->item[t].size, TRP_ITEM_MAX);
    }
    char *text = (char *)b.data;
    ret->memory = text;
    for (uint32_t t = 0; t < ret->ntasks && ret->item && text; t++) {
        ret->item[t].data = text;
        text += ret->item[t].size + 1;
    }
    return r < 0 ? r : b.failed || !ret->item ? out_of_memory(at) : 0;
}

bool trp_items_have_column(const struct trp_items *i, const char *name)
{
    for (uint32_t k = 0; k < i->ncolumns; k++)
        if (strcmp(i->columns[k], name) == 0)
            return true;
    for (uint32_t k = 0; k < i->nparts; k++)
        if (trp_items_have_column(&i->parts[k], name))
            return true;
    return false;
}

/* No two columns of parts, and of the tables among them, have one name. */
static int check_parts(const struct trp_foreach_place *at, const struct trp_items *ret)
{
    uint32_t all = ret->nparts;
    struct trp_items above = *ret; /* those before a part */
    for (uint32_t k = 0; k < ret->nparts; k++) {
        const struct trp_items *part = &ret->parts[k];
        above.nparts = k;
        all += part->ncolumns;
        for (uint32_t c = 0; c < part->ncolumns; c++)
            if (trp_items_have_column(&above, part->columns[c]))
                return REFUSE(
                    at, TRP_EINVAL,
                    "the table %.300s has the column %.60s, which the product "
                    "has already; write another name",
                    at->s->parts[k].pattern, part->columns[c]);
    }
    if (all > TRP_COLUMNS_MAX)
        return REFUSE(at, TRP_ELIMIT, "%u columns, at most %d are read", all,
                      TRP_COLUMNS_MAX);
    return 0;
}

struct trp_pipeline_stage trp_foreach_part(const struct trp_pipeline_stage *s,
                                           uint32_t k)
{
    const struct trp_foreach_part *part = &s->parts[k];
    struct trp_pipeline_stage own = *s;
    own.foreach = part->kind;
    own.pattern = part->pattern;
    own.items = part->items;
    own.nitems = part->nitems;
    own.foreach_mark = part->mark;
    own.nparts = 0;
    return own;
}

static int evaluate_product(const struct trp_foreach_place *at, const char *base,
                            struct trp_items *ret)
{
    uint32_t n = at->s->nparts;
    int r = 0;
    ret->columns = calloc((size_t)n + 1, sizeof *ret->columns);
    ret->parts = calloc((size_t)n + 1, sizeof *ret->parts);
    if (!ret->columns || !ret->parts)
        return out_of_memory(at);
    ret->nparts = n;
    for (uint32_t k = 0; k < n; k++)
        ret->columns[ret->ncolumns++] = at->s->parts[k].name;
    for (uint32_t k = 0; k < n && r == 0; k++) {
        struct trp_pipeline_stage s = trp_foreach_part(at->s, k);
        r = evaluate(&(struct trp_foreach_place){at->p, &s, at->err, at->absent, (int)k,
                                                 at->joins},
                     base, &ret->parts[k]);
    }
    if (r == 0)
        r = check_parts(at, ret);
    if (r == 0)
        r = check_product(at, ret);
    ret->ntasks = r == 0 ? 1 : 0;
    for (uint32_t k = 0; k < n && r == 0; k++)
        ret->ntasks *= ret->parts[k].ntasks;
    return r < 0 || (at->absent && !at->joins) ? r : join_parts(at, ret);
}

/* ---- columns ---- */

/* The columns of one item: of a row its values, of a group those that all its rows have, of a product its parts, and of those that
 * are rows theirs. */
static void put_columns(const struct trp_items *i, const struct trp_text *item,
                        uint32_t task, struct trp_buf *b)
{
    struct trp_buf none = {0};
    const char *row = i->row ? i->row[i->row_first[task]].data : item->data;
    for (uint32_t k = 0; k < i->ncolumns; k++) {
        if (i->row && !trp_group_is_same(i, task, k)) {
            trp_row_cell(&row, i->csv, &none);
            continue;
        }
        trp_put_u8(b, 0);
        trp_put_raw(b, i->columns[k], strlen(i->columns[k]));
        trp_put_u8(b, '=');
        if (i->parts) {
            const struct trp_text *part = item_of_part(i, k, task);
            trp_put_raw(b, part->data, part->size);
        } else {
            trp_row_cell(&row, i->csv, b);
        }
    }
    trp_buf_free(&none);
    for (uint32_t k = 0; k < i->nparts; k++)
        if (i->parts[k].columns)
            put_columns(&i->parts[k], item_of_part(i, k, task), 0, b);
}

bool trp_items_values(const struct trp_items *i, uint32_t task, struct trp_buf *b,
                      struct trp_task_values *ret)
{
    bool has = i->item && task < i->ntasks;
    *ret = (struct trp_task_values){
        .task = task,
        .item = has ? i->item[task].data : NULL,
        .item_size = has ? i->item[task].size : 0,
    };
    if (!has || !i->columns)
        return true;
    trp_buf_clear(b);
    trp_put_raw(b, ret->item, ret->item_size);
    put_columns(i, &i->item[task], task, b);
    if (b->failed)
        return false;
    ret->item = (const char *)b->data;
    ret->item_size = b->size;
    return true;
}

bool trp_items_named(const struct trp_items *i)
{
    return i->keyed || i->row;
}

bool trp_items_name(const struct trp_items *i, uint32_t task, struct trp_buf *b)
{
    if (!trp_items_named(i) || task >= i->ntasks)
        return false;
    if (!i->row)
        return put_cell(i, task, i->key, b) > 0;
    trp_put_raw(b, i->item[task].data, i->item[task].size);
    return i->item[task].size > 0;
}

const char *trp_items_word(const struct trp_items *i, uint32_t task,
                           char buf[TRP_TASK_WORD])
{
    struct trp_buf b = {0};
    bool named = trp_items_name(i, task, &b);
    trp_put_u8(&b, 0);
    trp_task_word(task, named && !b.failed ? (const char *)b.data : NULL, buf);
    trp_buf_free(&b);
    return buf;
}

void trp_items_list_columns(const struct trp_items *i, struct trp_nearest *near,
                            struct trp_name_list *all)
{
    for (uint32_t k = 0; k < i->ncolumns; k++) {
        trp_nearest_try(near, i->columns[k]);
        trp_name_list_add(all, i->columns[k]);
    }
    for (uint32_t k = 0; k < i->nparts; k++)
        trp_items_list_columns(&i->parts[k], near, all);
}

/* The columns that values name are there. A missing table, which may be, has none. */
static int check_columns(const struct trp_foreach_place *at, const struct trp_items *i)
{
    for (const struct trp_column_use *u = at->s->columns; u && i->columns;
         u = u->next) {
        struct trp_nearest near = trp_nearest_of(u->name);
        struct trp_name_list all = {0};
        if (u->in_run || trp_items_have_column(i, u->name))
            continue;
        trp_items_list_columns(i, &near, &all);
        return trp_error_set(at->err, TRP_EINVAL,
                             "%s:%u:%u: stage %s: ${%s.%s}: there is no such column%s; "
                             "the columns are %s",
                             trp_mark_file(at->p->file, u->mark), u->mark.line,
                             u->mark.column, at->s->name, u->rows ? "rows" : "col",
                             trp_show(u->name).text, trp_did_you_mean(&near).text,
                             all.text);
    }
    return i->row ? trp_group_check(at, i) : 0;
}

static int evaluate(const struct trp_foreach_place *at, const char *base,
                    struct trp_items *ret)
{
    switch (at->s->foreach) {
    case TRP_FOREACH_NONE:
        ret->ntasks = at->s->tasks;
        return check_count(at, at->s->tasks);
    case TRP_FOREACH_FILES:
        return evaluate_files(at, base, ret);
    case TRP_FOREACH_ITEMS:
        return evaluate_items(at, ret);
    case TRP_FOREACH_LINES:
        return evaluate_lines(at, base, ret);
    case TRP_FOREACH_TABLE:
        return evaluate_table(at, base, ret);
    case TRP_FOREACH_PRODUCT:
        return evaluate_product(at, base, ret);
    }
    return 0;
}

int trp_foreach_read(const struct trp_foreach_place *at, const char *base,
                     struct trp_items *ret)
{
    int r = evaluate(at, base, ret);
    return r < 0 ? r : check_columns(at, ret);
}

int trp_foreach_evaluate(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                         const char *base, struct trp_items *ret, trp_error *err)
{
    struct trp_foreach_place at = {p, s, err, NULL, -1, false};
    struct trp_items items = {0};
    int r = trp_foreach_read(&at, base, &items);
    trp_kept_lists_settle(p->kept_lists, s, r == 0);
    if (r < 0) {
        trp_items_free(&items);
        return r;
    }
    items.known = true;
    *ret = items;
    return 0;
}

bool trp_foreach_look(const trp_pipeline *p, const struct trp_pipeline_stage *s,
                      const char *base, struct trp_items *ret)
{
    trp_error why;
    bool absent = false;
    struct trp_foreach_place at = {p, s, &why, &absent, -1, true};
    *ret = (struct trp_items){0};
    if (s->nafter && !trp_foreach_listed(p, s))
        return false;
    if (evaluate(&at, base, ret) == 0 && !absent)
        return true;
    trp_items_free(ret);
    return false;
}

void trp_items_free(struct trp_items *i)
{
    free(i->item);
    free(i->memory);
    trp_glob_free(i->files, i->nfiles);
    for (uint32_t k = 0; k < i->nparts; k++)
        trp_items_free(&i->parts[k]);
    free(i->parts);
    free(i->row);
    free(i->row_first);
    free(i->values);
    free(i->differ);
    free(i->columns);
    *i = (struct trp_items){0};
}

bool trp_foreach_known(const struct trp_pipeline_stage *s)
{
    bool items = true;
    for (uint32_t k = 0; k < s->nparts; k++)
        items = items && s->parts[k].kind == TRP_FOREACH_ITEMS;
    return s->foreach == TRP_FOREACH_NONE || s->foreach == TRP_FOREACH_ITEMS ||
           (s->foreach == TRP_FOREACH_PRODUCT && items);
}
