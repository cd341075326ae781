/* Of each stage one text with a NUL behind each name, and where each begins. */
#include "events/task_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "core/base/array.h"
#include "core/base/utf8.h"
#include "events/task_logs.h"

enum { SHOWN = 200 }; /* bytes */

struct trp_names_of_stage {
    uint32_t stage;
    struct trp_buf text;
    size_t *at;
    uint32_t n, capacity;
    UT_hash_handle hh;
};

const char *trp_task_word(uint32_t task, const char *name, char buf[TRP_TASK_WORD])
{
    struct trp_task_log address;
    if (!name) {
        snprintf(buf, TRP_TASK_WORD, "%u", task);
        return buf;
    }
    bool number =
        trp_task_log_address(name, false, &address) || strncmp(name, "key=", 4) == 0;
    size_t n = strnlen(name, SHOWN + 1);
    bool whole = n <= SHOWN;
    for (n = whole ? n : SHOWN; !whole && n > 0 && trp_utf8_goes_on(name[n]);)
        n--;
    snprintf(buf, TRP_TASK_WORD, "%s%.*s", number ? "key=" : "", (int)n, name);
    trp_utf8_plain(buf, '.');
    if (!whole)
        strcat(buf, "…");
    return buf;
}

static struct trp_names_of_stage *find(const struct trp_task_names *n, uint32_t stage)
{
    struct trp_names_of_stage *s = NULL;
    HASH_FIND(hh, n->stages, &stage, sizeof stage, s);
    return s;
}

static struct trp_names_of_stage *make(struct trp_task_names *n, uint32_t stage)
{
    struct trp_names_of_stage *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->stage = stage;
    HASH_ADD(hh, n->stages, stage, sizeof s->stage, s);
    return s;
}

int trp_task_names_take(struct trp_task_names *n, uint32_t stage,
                        const struct trp_log_event *e)
{
    struct trp_names_of_stage *s = find(n, stage);
    if (!s && !(s = make(n, stage)))
        return TRP_ENOMEM;
    if (e->first_task == 0) {
        trp_buf_clear(&s->text);
        s->n = 0;
    }
    if (e->first_task != s->n)
        return 0; /* what was before it is not there */
    for (size_t i = 0; i < json_array_size(e->names); i++) {
        const char *name = json_string_value(json_array_get(e->names, i));
        if (!TRP_ARRAY_GROW(s->at, s->n, s->capacity))
            return TRP_ENOMEM;
        s->at[s->n++] = s->text.size;
        trp_put_raw(&s->text, name ? name : "", name ? strlen(name) + 1 : 1);
        if (s->text.failed)
            return TRP_ENOMEM;
    }
    return 0;
}

const char *trp_task_name(const struct trp_task_names *n, uint32_t stage, uint32_t task)
{
    const struct trp_names_of_stage *s = find(n, stage);
    return s && task < s->n ? (const char *)s->text.data + s->at[task] : NULL;
}

uint32_t trp_task_names_count(const struct trp_task_names *n, uint32_t stage)
{
    const struct trp_names_of_stage *s = find(n, stage);
    return s ? s->n : 0;
}

void trp_task_names_free(struct trp_task_names *n)
{
    struct trp_names_of_stage *s, *next;
    HASH_ITER(hh, n->stages, s, next) {
        HASH_DEL(n->stages, s);
        trp_buf_free(&s->text);
        free(s->at);
        free(s);
    }
}
