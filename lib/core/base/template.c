/* Texts that differ by task. */
#include "core/base/template.h"

#include <stdio.h>
#include <string.h>

static bool is(const char *name, size_t size, const char *wanted)
{
    return strlen(wanted) == size && memcmp(name, wanted, size) == 0;
}

static bool is_column(const char *name, size_t size)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    if (size < 5 || memcmp(name, "col.", 4) != 0 || !strchr(first, name[4]))
        return false;
    for (size_t i = 5; i < size; i++)
        if (!name[i] || (!strchr(first, name[i]) && (name[i] < '0' || name[i] > '9')))
            return false;
    return name[4] != '\0';
}

const char *trp_template_rows(const char *text, size_t *ret_size)
{
    char name[128] = "col.";
    size_t n = strncmp(text, "${rows.", 7) == 0 ? strcspn(text + 7, "}") : 0;
    if (!n || n > sizeof name - 5 || text[7 + n] != '}' || text[8 + n])
        return NULL;
    memcpy(name + 4, text + 7, n);
    *ret_size = n;
    return is_column(name, n + 4) ? text + 7 : NULL;
}

bool trp_template_is_of_item(const char *name, size_t size)
{
    return is(name, size, "item") || is(name, size, "dir") || is(name, size, "name") ||
           is(name, size, "stem") || is(name, size, "ext") || is_column(name, size);
}

bool trp_template_is_name(const char *name, size_t size)
{
    return is(name, size, "task") || trp_template_is_of_item(name, size);
}

/* The first name from *at on, not its `${` and `}`; *at is moved behind it. NULL: there
 * is no other. */
static const char *next_name(const char **at, size_t *ret_size)
{
    for (const char *from = *at; (from = strstr(from, "${")); from++) {
        const char *end = strchr(from, '}');
        if (!end)
            break;
        if (end == from + 2)
            continue;
        *at = end + 1;
        *ret_size = (size_t)(end - from) - 2;
        return from + 2;
    }
    return NULL;
}

bool trp_template_names_task(const char *text)
{
    size_t size;
    return next_name(&text, &size) != NULL;
}

size_t trp_item_text_size(const char *item, size_t size)
{
    const char *end = size ? memchr(item, '\0', size) : NULL;
    return end ? (size_t)(end - item) : size;
}

const char *trp_path_piece(const char *which, const char *path, size_t size,
                           size_t *ret_size)
{
    const char *slash = size ? memrchr(path, '/', size) : NULL;
    const char *name = slash ? slash + 1 : path, *end = path + size;
    const char *dot = end > name ? memrchr(name, '.', (size_t)(end - name)) : NULL;
    if (dot == name) /* .profile has no ending */
        dot = NULL;
    const char *from = name, *to = end;
    switch (which[0]) {
    case 'd':
        from = slash ? path : ".";
        to = slash ? slash + (slash == path) : from + 1;
        break;
    case 's':
        to = dot ? dot : end;
        break;
    case 'e':
        from = dot ? dot + 1 : end;
        break;
    default:
        break;
    }
    *ret_size = (size_t)(to - from);
    return from;
}

static const char *column(const char *name, size_t size,
                          const struct trp_task_values *v, size_t *ret_size)
{
    const char *end = v->item + v->item_size;
    for (const char *at = v->item + trp_item_text_size(v->item, v->item_size);
         at < end;) {
        at++; /* the NUL in front */
        size_t n = trp_item_text_size(at, (size_t)(end - at));
        if (n > size && memcmp(at, name, size) == 0 && at[size] == '=') {
            *ret_size = n - size - 1;
            return at + size + 1;
        }
        at += n;
    }
    return NULL;
}

static void take_value(const char *name, size_t size, const struct trp_task_values *v,
                       struct trp_template_part *ret)
{
    ret->value = true;
    if (is(name, size, "task")) {
        ret->text = ret->number;
        ret->size =
            (size_t)snprintf(ret->number, sizeof ret->number, "%u", (unsigned)v->task);
        return;
    }
    size_t whole = v->item ? trp_item_text_size(v->item, v->item_size) : 0;
    if (!v->item)
        ret->text = NULL;
    else if (is(name, size, "item")) {
        ret->text = v->item;
        ret->size = whole;
    } else if (memcmp(name, "col.", 4) == 0) {
        ret->text = column(name + 4, size - 4, v, &ret->size);
    } else {
        ret->text = trp_path_piece(name, v->item, whole, &ret->size);
    }
    ret->missing = !ret->text;
    if (ret->missing)
        ret->text = "";
}

bool trp_template_next(const char **at, const struct trp_task_values *v,
                       struct trp_template_part *ret)
{
    const char *from = *at, *dollar = strstr(from, "${");
    const char *end = dollar ? strchr(dollar, '}') : NULL;
    *ret = (struct trp_template_part){.text = from};
    if (!*from)
        return false;
    if (!end || dollar > from) {
        ret->size = end ? (size_t)(dollar - from) : strlen(from);
        *at = from + ret->size;
        return true;
    }
    *at = end + 1;
    if (end == dollar + 2)
        ret->size = 1; /* the `$` itself */
    else
        take_value(dollar + 2, (size_t)(end - dollar) - 2, v, ret);
    return true;
}

void trp_template_put(struct trp_buf *b, const char *text,
                      const struct trp_task_values *v)
{
    struct trp_template_part part;
    while (trp_template_next(&text, v, &part))
        trp_put_raw(b, part.text, part.size);
}

char *trp_template_escape(const char *text)
{
    struct trp_buf b = {0};
    for (const char *at; (at = strstr(text, "${")); text = at + 1) {
        trp_put_raw(&b, text, (size_t)(at - text));
        trp_put_raw(&b, "${}", 3);
    }
    trp_put_raw(&b, text, strlen(text) + 1);
    if (!b.failed)
        return (char *)b.data;
    trp_buf_free(&b);
    return NULL;
}

void trp_template_settle(char *text)
{
    struct trp_template_part part;
    const char *from = text;
    if (!strstr(text, "${}") || trp_template_names_task(text))
        return;
    while (trp_template_next(&from, &(struct trp_task_values){0}, &part)) {
        memmove(text, part.text, part.size);
        text += part.size;
    }
    *text = '\0';
}
