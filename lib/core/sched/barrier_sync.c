/*
 * A list of the stage attempts that have called, each with the slots of its present
 * sync by partition. There are few of them at a time, so they are searched one by one.
 * What an answer points at stays in the coordinator until its next call.
 *
 * A mixed sync leaves its attempt behind as `failed`, so that tasks which come later
 * are told at once instead of waiting for those that have given up. After a timeout
 * nothing is left: a task that still comes starts again from epoch 0 and fails by its
 * epoch or by the next timeout. Both are Spark's. Unlike there, a call with a wrong
 * epoch is not looked at further: one left over from an old sync must not fail the
 * present one as mixed.
 */
#include "core/sched/barrier_sync.h"
#include "core/base/time.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct slot {
    bool called;
    uint64_t who;
    struct trp_sync_message message; /* data is owned */
};

struct sync {
    uint32_t stage, attempt, epoch, ntasks;
    bool failed;
    enum trp_sync_kind kind; /* of the calls that wait */
    uint32_t ncalled;
    int64_t due_ns; /* with calls that wait */
    struct sync *next, *prev;
    struct slot slots[];
};

enum { TEXT_SIZE = 256 };

struct trp_barrier_sync {
    int64_t timeout_ns;
    struct sync *syncs;
    /* The last answer. */
    uint64_t one, *who;
    struct trp_sync_message *messages;
    uint32_t nmessages;
    char text[TEXT_SIZE];
};

trp_barrier_sync *trp_barrier_sync_new(int64_t timeout_ns)
{
    trp_barrier_sync *b = calloc(1, sizeof(*b));
    if (b)
        b->timeout_ns = timeout_ns > 0 ? timeout_ns : 0;
    return b;
}

static void free_message(struct trp_sync_message *m)
{
    free((void *)(uintptr_t)m->data);
}

static void forget_answer(trp_barrier_sync *b)
{
    for (uint32_t i = 0; i < b->nmessages; i++)
        free_message(&b->messages[i]);
    free(b->messages);
    free(b->who);
    b->who = NULL;
    b->messages = NULL;
    b->nmessages = 0;
    b->text[0] = '\0';
}

/* Nobody waits any more. */
static void clear(struct sync *s)
{
    for (uint32_t i = 0; i < s->ntasks; i++)
        free_message(&s->slots[i].message);
    memset(s->slots, 0, s->ntasks * sizeof(*s->slots));
    s->ncalled = 0;
}

static void free_sync(trp_barrier_sync *b, struct sync *s)
{
    clear(s);
    DL_DELETE(b->syncs, s);
    free(s);
}

void trp_barrier_sync_free(trp_barrier_sync *b)
{
    if (!b)
        return;
    while (b->syncs)
        free_sync(b, b->syncs);
    forget_answer(b);
    free(b);
}

static struct sync *find_sync(const trp_barrier_sync *b, uint32_t stage,
                              uint32_t attempt)
{
    struct sync *s;
    DL_FOREACH(b->syncs, s)
        if (s->stage == stage && s->attempt == attempt)
            return s;
    return NULL;
}

static struct sync *find_or_add(trp_barrier_sync *b, const struct trp_sync_call *call)
{
    struct sync *s = find_sync(b, call->stage, call->attempt);
    if (s)
        return s;
    s = calloc(1, sizeof(*s) + call->ntasks * sizeof(*s->slots));
    if (!s)
        return NULL;
    s->stage = call->stage;
    s->attempt = call->attempt;
    s->ntasks = call->ntasks;
    DL_APPEND(b->syncs, s);
    return s;
}

/* An answer to all that wait, and to `also` unless NULL. There is room for them. */
static void answer_all(trp_barrier_sync *b, struct sync *s, const uint64_t *also,
                       uint64_t *who, int code, struct trp_sync_answer *ret_answer)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->ntasks; i++)
        if (s->slots[i].called)
            who[n++] = s->slots[i].who;
    if (also)
        who[n++] = *also;
    *ret_answer = (struct trp_sync_answer){
        .stage = s->stage,
        .attempt = s->attempt,
        .epoch = s->epoch,
        .who = who,
        .n = n,
        .code = code,
        .text = b->text,
    };
}

/* Only who calls is answered: the sync it means is over. */
static int answer_late(trp_barrier_sync *b, const struct sync *s,
                       const struct trp_sync_call *call,
                       struct trp_sync_answer *ret_answer)
{
    snprintf(b->text, sizeof(b->text),
             "global sync number %u of stage %u (attempt %u) has already %s; maybe the "
             "task of partition %u was not properly killed",
             call->epoch, s->stage, s->attempt,
             s->failed && call->epoch == s->epoch ? "failed" : "finished",
             call->partition);
    b->one = call->who;
    *ret_answer = (struct trp_sync_answer){
        .stage = call->stage,
        .attempt = call->attempt,
        .epoch = call->epoch,
        .who = &b->one,
        .n = 1,
        .code = TRP_ESTATE,
        .text = b->text,
    };
    return 0;
}

static int out_of_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory for a barrier");
}

/* All waiting calls and this one fail: they are of two kinds. */
static int fail_mixed(trp_barrier_sync *b, struct sync *s,
                      const struct trp_sync_call *call,
                      struct trp_sync_answer *ret_answer, trp_error *err)
{
    b->who = malloc((s->ncalled + UINT64_C(1)) * sizeof(*b->who));
    if (!b->who)
        return out_of_memory(err);
    snprintf(b->text, sizeof(b->text),
             "stage %u (attempt %u) called barrier and allGather in the same global "
             "sync, number %u; all its tasks must call the same",
             s->stage, s->attempt, s->epoch);
    answer_all(b, s, &call->who, b->who, TRP_EINVAL, ret_answer);
    clear(s);
    s->failed = true;
    return 0;
}

/* All have called: the messages move into the answer. */
static void complete_sync(trp_barrier_sync *b, struct sync *s, uint64_t *who,
                          struct trp_sync_message *messages,
                          struct trp_sync_answer *ret_answer)
{
    b->who = who;
    b->messages = messages;
    b->nmessages = s->ntasks;
    answer_all(b, s, NULL, who, TRP_OK, ret_answer);
    for (uint32_t i = 0; i < s->ntasks; i++)
        messages[i] = s->slots[i].message;
    memset(s->slots, 0, s->ntasks * sizeof(*s->slots));
    s->ncalled = 0;
    s->epoch++;
    ret_answer->messages = messages;
    ret_answer->nmessages = s->ntasks;
}

/* Takes a call in that belongs to the present sync. */
static int take_call(trp_barrier_sync *b, int64_t now_ns, struct sync *s,
                     const struct trp_sync_call *call,
                     struct trp_sync_answer *ret_answer, trp_error *err)
{
    bool is_last = s->ncalled + 1 == s->ntasks;
    size_t size = call->message.size;
    void *data = size ? malloc(size) : NULL;
    uint64_t *who = is_last ? calloc(s->ntasks, sizeof(*who)) : NULL;
    struct trp_sync_message *messages =
        is_last ? calloc(s->ntasks, sizeof(*messages)) : NULL;
    if ((size && !data) || (is_last && (!who || !messages))) {
        free(data);
        free(who);
        free(messages);
        return out_of_memory(err);
    }
    if (size)
        memcpy(data, call->message.data, size);
    if (!s->ncalled++) {
        s->kind = call->kind;
        s->due_ns = trp_time_after(now_ns, b->timeout_ns);
    }
    s->slots[call->partition] = (struct slot){
        true, call->who, {data, size}
    };
    if (is_last)
        complete_sync(b, s, who, messages, ret_answer);
    return 0;
}

static int check_call(const struct sync *s, const struct trp_sync_call *call,
                      trp_error *err)
{
    if (call->ntasks == 0 || call->partition >= call->ntasks)
        return trp_error_set(err, TRP_EINVAL,
                             "stage %u (attempt %u): partition %u called a global sync "
                             "of %u tasks",
                             call->stage, call->attempt, call->partition, call->ntasks);
    if (s && call->ntasks != s->ntasks)
        return trp_error_set(err, TRP_EINVAL,
                             "stage %u (attempt %u): partition %u called a global sync "
                             "of %u tasks, the others one of %u",
                             call->stage, call->attempt, call->partition, call->ntasks,
                             s->ntasks);
    return 0;
}

int trp_barrier_sync_call(trp_barrier_sync *b, int64_t now_ns,
                          const struct trp_sync_call *call,
                          struct trp_sync_answer *ret_answer, trp_error *err)
{
    assert(call->message.data || !call->message.size);
    *ret_answer = (struct trp_sync_answer){.text = ""};
    forget_answer(b);
    int rc = check_call(find_sync(b, call->stage, call->attempt), call, err);
    if (rc < 0)
        return rc;
    struct sync *s = find_or_add(b, call);
    if (!s)
        return out_of_memory(err);
    if (s->failed || call->epoch != s->epoch)
        return answer_late(b, s, call, ret_answer);
    if (s->slots[call->partition].called)
        return trp_error_set(err, TRP_EEXIST,
                             "stage %u (attempt %u): partition %u waits already in "
                             "global sync number %u",
                             s->stage, s->attempt, call->partition, s->epoch);
    if (s->ncalled && s->kind != call->kind)
        return fail_mixed(b, s, call, ret_answer, err);
    return take_call(b, now_ns, s, call, ret_answer, err);
}

static struct sync *next_due(const trp_barrier_sync *b)
{
    struct sync *s, *first = NULL;
    DL_FOREACH(b->syncs, s)
        if (s->ncalled && (!first || s->due_ns < first->due_ns))
            first = s;
    return first;
}

void trp_barrier_sync_expire(trp_barrier_sync *b, int64_t now_ns,
                             struct trp_sync_answer *ret_answer)
{
    *ret_answer = (struct trp_sync_answer){.text = ""};
    forget_answer(b);
    struct sync *s = next_due(b);
    if (!s || s->due_ns == INT64_MAX || s->due_ns > now_ns)
        return;
    snprintf(b->text, sizeof(b->text),
             "only %u of %u tasks of stage %u (attempt %u) called global sync number "
             "%u within %.3f s (barrier.sync.timeout)",
             s->ncalled, s->ntasks, s->stage, s->attempt, s->epoch,
             (double)b->timeout_ns / 1e9);
    b->who = malloc(s->ncalled * sizeof(*b->who));
    if (!b->who)
        return; /* again at the next call */
    answer_all(b, s, NULL, b->who, TRP_ETIME, ret_answer);
    free_sync(b, s);
}

int64_t trp_barrier_sync_next_timer(const trp_barrier_sync *b)
{
    const struct sync *s = next_due(b);
    return s ? s->due_ns : INT64_MAX;
}

void trp_barrier_sync_end(trp_barrier_sync *b, uint32_t stage, uint32_t attempt)
{
    struct sync *s = find_sync(b, stage, attempt);
    if (s)
        free_sync(b, s);
}
