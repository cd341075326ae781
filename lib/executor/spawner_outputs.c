/*
 * What an attempt was to make: patterns of files, each of which is to match one when the
 * attempt has ended well. Looked for here, on the node where it ran, since it may take a
 * shared file system a while until others see them.
 *
 * The patterns are made when it starts: its item is not kept until its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/spawner_internal.h"
#include "os/glob.h"
#include "os/output_pattern.h"

bool trp_outputs_of_attempt(const struct trp_command *c,
                            const struct trp_task_values *v, char **ret, char *why,
                            size_t size)
{
    struct trp_buf b = {0};
    bool none = false;
    *ret = NULL;
    for (uint32_t i = 0; i < c->noutputs && !none && !b.failed; i++) {
        char *pattern = trp_output_expand(c->outputs[i], v, &none);
        if (pattern)
            trp_put_raw(&b, pattern, strlen(pattern) + 1);
        else if (none)
            snprintf(why, size, "its output %.200s names no file of this task",
                     c->outputs[i]);
        else
            b.failed = true;
        free(pattern);
    }
    if (c->noutputs)
        trp_put_u8(&b, 0);
    if (b.failed)
        snprintf(why, size, "out of memory");
    if (!none && !b.failed) {
        *ret = (char *)b.data;
        return true;
    }
    trp_buf_free(&b);
    return false;
}

void trp_outputs_missing(const struct trp_running *r, char *ret, size_t size)
{
    const char *p = r->outputs, *end = ret + size - 1;
    while (*p && trp_glob_any(r->stage->command.base, p))
        p += strlen(p) + 1;
    for (; *p && ret < end; p++) { /* without what makes a character mean itself */
        p += p[0] == '\\' && p[1];
        *ret++ = *p;
    }
    *ret = '\0';
}
