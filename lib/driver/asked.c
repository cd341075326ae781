#include "driver/asked.h"

#include <stdlib.h>
#include <string.h>

#include "driver/served.h"
#include "events/json_text.h"

struct trp_asked {
    trp_served *served;
    char *run_dir;
    trp_answer *answer;
    void *context;
};

/* A line. */
static size_t whole(const char *text, size_t n)
{
    const char *end = memchr(text, '\n', n);
    return end ? (size_t)(end - text) + 1 : 0;
}

static void answer(void *context, const char *text, size_t n, struct trp_buf *ret)
{
    const trp_asked *a = context;
    struct trp_ask q;
    trp_error err;
    if (trp_ask_read(text, n, &q, &err) == 0) {
        a->answer(a->context, &q, ret);
    } else {
        TRP_JSON(ret, "{\"error\":");
        trp_json_text(ret, err.text);
        TRP_JSON(ret, "}");
    }
    TRP_JSON(ret, "\n");
}

static void asked_free(trp_asked *a)
{
    if (a)
        free(a->run_dir);
    free(a);
}

trp_asked *trp_asked_new(uv_loop_t *loop, const char *run_dir, trp_answer *answer_of,
                         void *context, trp_error *err)
{
    static const struct trp_served_how how = {
        .whole = whole, .answer = answer, .same_user = true};
    trp_asked *a = calloc(1, sizeof *a);
    trp_error why;
    if (a)
        *a = (trp_asked){
            .run_dir = strdup(run_dir), .answer = answer_of, .context = context};
    int fd = a && a->run_dir ? trp_ask_listen(run_dir) : -1;
    if (fd < 0)
        trp_error_set(err, TRP_ESYSTEM, "no socket in %s/state: %m", run_dir);
    else if (!(a->served = trp_served_new(loop, fd, &how, a, &why)))
        trp_error_set(err, TRP_ESYSTEM, "%s/state/asked: %s", run_dir, why.text);
    if (fd >= 0 && a->served)
        return a;
    asked_free(a);
    return NULL;
}

void trp_asked_close(trp_asked *take_a)
{
    if (!take_a)
        return;
    trp_ask_unlink(take_a->run_dir);
    trp_served_close(take_a->served);
    asked_free(take_a);
}
