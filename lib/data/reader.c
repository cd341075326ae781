/*
 * Reading a partition.
 *
 * At first every map output is asked for its block: how large it is; those of other
 * hosts all at once, and for their first bytes as well, so that small blocks have come
 * with the answers. Those that are not empty are merged at once when the budget has a
 * buffer for each. When it has not, as many neighbours as it has buffers for are merged
 * to a spill, which takes their place, until the rest fits. Unordered blocks are read
 * one after the other.
 *
 * A file is kept open while its block is read when there are few of them; else it is
 * opened for each buffer that is filled. So a task with thousands of sources does not
 * take the descriptors of its executor.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "data/remote.h"
#include "data/spill.h"
#include "os/held.h"

enum { KEEP_OPEN_MAX = 64 };

/* What is to be merged: a block, or the spill that some have become. */
struct input {
    uint32_t source; /* TRP_NO_SOURCE: a spill */
    int fd;
    struct trp_remote *remote; /* NULL: it is here */
    uint64_t begin, bytes;
};

struct trp_shuffle_reader {
    struct trp_shuffle_read read;
    int folder;
    int *folders;   /* of hosts that are here in others; -1: not open */
    size_t memory;  /* for buffers */
    uint32_t piece; /* of a remote block at a time */
    struct input *inputs;
    uint32_t ninputs, next; /* those before `next` were merged */
    struct trp_spill_file file;
    struct trp_merge merge;
    bool merging;
    struct trp_unpacker unpacker;
    struct trp_shuffle_reader_counts counts;
};

static int no_memory(trp_error *err)
{
    return trp_error_set(err, TRP_ENOMEM, "out of memory");
}

static struct trp_output_id output_of(const trp_shuffle_reader *r, uint32_t source)
{
    const struct trp_shuffle_source *s = &r->read.sources[source];
    return (struct trp_output_id){r->read.shuffle, s->map, s->attempt};
}

/* Says of a failure which map output it is about, when it is about one. */
static int fetch_failed(const trp_shuffle_reader *r, uint32_t source, int rc,
                        const trp_error *why, struct trp_fetch_problem *ret,
                        trp_error *err)
{
    if (source == TRP_NO_SOURCE || (rc != TRP_EPROTO && rc != TRP_ENOENT))
        return trp_error_set(err, rc == TRP_EPROTO ? TRP_ESYSTEM : rc, "%s", why->text);
    const struct trp_shuffle_source *s = &r->read.sources[source];
    if (ret)
        *ret = (struct trp_fetch_problem){true, r->read.shuffle, s->map, s->attempt,
                                          s->host};
    return trp_error_set(err, TRP_ENOENT,
                         "partition %u of the output of map %u of shuffle %u (attempt "
                         "%llu) on %s: %s",
                         r->read.partition, s->map, r->read.shuffle,
                         (unsigned long long)s->attempt, r->read.hosts[s->host].name,
                         why->text);
}

/* ---- opening --------------------------------------------------------------------- */

static int check_read(const struct trp_shuffle_read *read, trp_error *err)
{
    if (read->partition >= read->partitions)
        return trp_error_set(err, TRP_EINVAL, "partition %u of a shuffle that has %u",
                             read->partition, read->partitions);
    for (uint32_t i = 0; i < read->nsources; i++) {
        uint32_t host = read->sources[i].host;
        if (host >= read->nhosts || (!read->hosts[host].here && !read->client))
            return trp_error_set(err, TRP_EINVAL, "map output %u is at no known host",
                                 read->sources[i].map);
        if (i > 0 && read->sources[i].map <= read->sources[i - 1].map)
            return trp_error_set(err, TRP_EINVAL,
                                 "map outputs are not in the order of their maps");
    }
    return 0;
}

static void move_input(struct input *to, struct input *from)
{
    struct input moved = *from;
    *from = (struct input){.fd = -1};
    *to = moved;
}

static void free_input(struct input *in)
{
    trp_remote_free(in->remote);
    if (in->fd >= 0)
        close(in->fd);
    *in = (struct input){.fd = -1};
}

/* Where the outputs of a host lie that is here; below 0: it cannot be opened. */
static int folder_of(trp_shuffle_reader *r, uint32_t host, trp_error *err)
{
    const struct trp_data_host *h = &r->read.hosts[host];
    if (!h->folder)
        return r->folder;
    if (r->folders[host] < 0)
        r->folders[host] = trp_block_folder_open(h->folder, err);
    return r->folders[host];
}

/* Finds a source's block in its file here. */
static int look_here(trp_shuffle_reader *r, uint32_t source, struct input *ret,
                     trp_error *err)
{
    struct trp_output_id id = output_of(r, source);
    struct trp_block_file f;
    struct trp_block_place place = {0};
    int folder = folder_of(r, r->read.sources[source].host, err);
    if (folder < 0)
        return folder;
    int rc = trp_block_file_open(folder, &id, &f, err);
    if (rc < 0)
        return rc;
    if (f.partitions != r->read.partitions)
        rc = trp_error_set(err, TRP_EPROTO, "it has %u partitions, not %u",
                           f.partitions, r->read.partitions);
    else
        rc = trp_block_file_find(&f, r->read.partition, &place, err);
    *ret = (struct input){
        .source = source, .fd = -1, .begin = place.begin, .bytes = place.size};
    if (rc == 0 && place.size > 0 && r->read.nsources <= KEEP_OPEN_MAX) {
        ret->fd = f.fd;
        f.fd = -1;
    }
    trp_block_file_close(&f);
    return rc;
}

/* Asks for the blocks of other hosts. Each in `inputs` at its source's place. */
static int ask_others(trp_shuffle_reader *r, trp_error *err)
{
    const struct trp_shuffle_read *read = &r->read;
    uint32_t nremote = 0;
    for (uint32_t i = 0; i < read->nsources; i++)
        nremote += !read->hosts[read->sources[i].host].here;
    if (nremote == 0)
        return 0;
    size_t share = r->memory / 4 / nremote;
    uint32_t first = share < TRP_PART_SIZE ? (uint32_t)share : TRP_PART_SIZE;
    r->piece = share < TRP_PART_SIZE      ? TRP_PART_SIZE
               : share < TRP_WANTED_BYTES ? (uint32_t)share
                                          : TRP_WANTED_BYTES;
    for (uint32_t i = 0; i < read->nsources; i++) {
        const struct trp_data_host *host = &read->hosts[read->sources[i].host];
        const struct trp_wanted wanted = {.id = output_of(r, i),
                                          .partition = read->partition,
                                          .partitions = read->partitions};
        if (host->here)
            continue;
        r->inputs[i].remote = trp_remote_open(read->client, host, &wanted, first,
                                              read->killed, &r->counts.wait_ns);
        if (!r->inputs[i].remote)
            return no_memory(err);
    }
    return 0;
}

static int look_there(trp_shuffle_reader *r, uint32_t source, struct input *ret,
                      trp_error *err)
{
    ret->source = source;
    int rc = trp_remote_size(ret->remote, &ret->bytes, err);
    if (rc == 0 && ret->bytes == 0) {
        trp_remote_free(ret->remote);
        ret->remote = NULL;
    }
    if (rc < 0 || ret->bytes == 0)
        return rc;
    ret->remote->piece = r->piece;
    r->counts.remote_blocks++;
    r->counts.remote_bytes += ret->bytes;
    return 0;
}

/* All blocks that are not empty become inputs. */
static int find_blocks(trp_shuffle_reader *r, struct trp_fetch_problem *ret_problem,
                       trp_error *err)
{
    uint32_t found = 0;
    int rc = ask_others(r, err);
    for (uint32_t i = 0; i < r->read.nsources && rc == 0; i++) {
        struct input *in = &r->inputs[i];
        trp_error why;
        if (in->remote) {
            rc = look_there(r, i, in, &why);
        } else {
            rc = look_here(r, i, in, &why);
            r->counts.local_blocks += rc == 0 && in->bytes > 0;
            r->counts.local_bytes += rc == 0 ? in->bytes : 0;
        }
        if (rc < 0)
            rc = fetch_failed(r, i, rc, &why, ret_problem, err);
        else if (in->bytes > 0)
            move_input(&r->inputs[found++], in);
    }
    if (rc == 0)
        r->ninputs = found;
    return rc;
}

/* ---- merging --------------------------------------------------------------------- */

static struct trp_stream *open_stream(trp_shuffle_reader *r, struct input *in)
{
    struct trp_bytes_source *bytes;
    if (in->source == TRP_NO_SOURCE)
        return trp_spill_stream(&r->file, &(struct trp_spill){in->begin, in->bytes},
                                &r->unpacker);
    struct trp_output_id id = output_of(r, in->source);
    uint32_t host = r->read.sources[in->source].host;
    bytes = in->remote
                ? &in->remote->source
                : trp_source_of_block(folder_of(r, host, NULL), &id, in->fd, in->begin);
    in->remote = NULL;
    in->fd = -1;
    uint64_t seed = trp_parts_seed(id.shuffle, id.map, id.attempt);
    struct trp_stream *s = bytes ? trp_stream_of_parts(bytes, in->bytes, seed,
                                                       r->read.partition, &r->unpacker)
                                 : NULL;
    if (s)
        s->source = in->source;
    return s;
}

/* Merges the inputs from … to - 1. */
static int open_merge(trp_shuffle_reader *r, uint32_t from, uint32_t to,
                      struct trp_merge *ret, trp_error *err)
{
    uint32_t n = to - from;
    bool good = true;
    struct trp_stream **streams =
        (struct trp_stream **)calloc((size_t)n + 1, sizeof(struct trp_stream *));
    if (!streams)
        return no_memory(err);
    for (uint32_t i = 0; i < n && good; i++) {
        streams[i] = open_stream(r, &r->inputs[from + i]);
        good = streams[i] != NULL;
    }
    int rc = trp_merge_open(ret, streams, n, &r->read.order, err);
    if (rc == 0 && !good)
        rc = no_memory(err);
    if (rc < 0)
        trp_merge_close(ret);
    return rc;
}

static void close_merge(trp_shuffle_reader *r, struct trp_merge *m)
{
    r->counts.records += m->read;
    trp_merge_close(m);
}

static uint32_t failed_source(const struct trp_merge *m)
{
    return m->failed != TRP_NO_SOURCE ? m->streams[m->failed]->source : TRP_NO_SOURCE;
}

/* Makes the inputs from … to - 1 the spill *ret. */
static int spill(trp_shuffle_reader *r, uint32_t from, uint32_t to, struct input *ret,
                 struct trp_fetch_problem *ret_problem, trp_error *err)
{
    struct trp_merge m;
    struct trp_spill made;
    trp_error why = {0};
    int rc = open_merge(r, from, to, &m, err);
    if (rc < 0)
        return rc;
    rc = trp_spill_merge(&r->file, &m, r->read.killed, &made, &why);
    uint32_t source = failed_source(&m);
    close_merge(r, &m);
    if (rc < 0)
        return fetch_failed(r, source, rc, &why, ret_problem, err);
    for (uint32_t i = from; i < to; i++)
        if (r->inputs[i].source == TRP_NO_SOURCE)
            trp_spill_drop(&r->file,
                           &(struct trp_spill){r->inputs[i].begin, r->inputs[i].bytes});
    *ret = (struct input){
        .source = TRP_NO_SOURCE, .fd = -1, .begin = made.begin, .bytes = made.bytes};
    r->counts.spills++;
    r->counts.spilled_bytes += made.bytes;
    return 0;
}

/* What the streams of inputs take. */
static size_t memory_of(const trp_shuffle_reader *r, const struct input *v, uint32_t n)
{
    size_t memory = 0;
    for (uint32_t i = 0; i < n; i++) {
        memory += trp_stream_memory(v[i].bytes);
        if (v[i].remote)
            memory += v[i].bytes < r->piece ? v[i].bytes : r->piece;
    }
    return memory;
}

/* How many of these fit together; at least 2, if there are. */
static uint32_t how_many_fit(const trp_shuffle_reader *r, const struct input *v,
                             uint32_t n)
{
    uint32_t k = 0;
    for (size_t sum = 0; k < n; k++) {
        sum += memory_of(r, &v[k], 1);
        if (sum > r->memory && k >= 2)
            break;
    }
    return k;
}

/* Merges neighbours until what is left fits. */
static int make_fit(trp_shuffle_reader *r, struct trp_fetch_problem *ret_problem,
                    trp_error *err)
{
    while (r->ninputs > 2 && memory_of(r, r->inputs, r->ninputs) > r->memory) {
        uint32_t done = 0, at = 0;
        while (at < r->ninputs &&
               memory_of(r, r->inputs, done) +
                       memory_of(r, r->inputs + at, r->ninputs - at) >
                   r->memory) {
            uint32_t k = how_many_fit(r, r->inputs + at, r->ninputs - at);
            struct input made;
            int rc = k > 1 ? spill(r, at, at + k, &made, ret_problem, err) : 0;
            if (rc < 0)
                return rc;
            if (k == 1)
                move_input(&made, &r->inputs[at]);
            r->inputs[done++] = made;
            at += k;
        }
        while (at < r->ninputs)
            move_input(&r->inputs[done++], &r->inputs[at++]);
        r->ninputs = done;
    }
    return 0;
}

int trp_shuffle_reader_open(const struct trp_shuffle_read *read,
                            trp_shuffle_reader **ret,
                            struct trp_fetch_problem *ret_problem, trp_error *err)
{
    int rc = check_read(read, err);
    if (rc < 0)
        return rc;
    trp_shuffle_reader *r = (trp_shuffle_reader *)calloc(1, sizeof *r);
    if (!r)
        return no_memory(err);
    r->read = *read;
    r->memory =
        read->memory < TRP_SHUFFLE_MEMORY_MIN ? TRP_SHUFFLE_MEMORY_MIN : read->memory;
    r->memory -= TRP_PARTS_BUFFER;
    r->folder = trp_held_open(read->folder, O_RDONLY | O_DIRECTORY, 0);
    r->file = (struct trp_spill_file){.folder = r->folder,
                                      .path = read->folder,
                                      .seed = trp_parts_seed(read->shuffle, 0, 0),
                                      .fd = -1};
    r->folders = (int *)malloc(((size_t)read->nhosts + 1) * sizeof *r->folders);
    if (r->folders)
        memset(r->folders, -1, ((size_t)read->nhosts + 1) * sizeof *r->folders);
    r->inputs = (struct input *)calloc((size_t)read->nsources + 1, sizeof *r->inputs);
    for (uint32_t i = 0; r->inputs && i < read->nsources; i++)
        r->inputs[i].fd = -1;
    if (r->folder < 0)
        rc = trp_error_set(err, TRP_ESYSTEM, "%s: %m", read->folder);
    else if (!r->inputs || !r->folders)
        rc = no_memory(err);
    else
        rc = find_blocks(r, ret_problem, err);
    if (rc == 0 && !read->order.unordered)
        rc = make_fit(r, ret_problem, err);
    if (rc < 0)
        trp_shuffle_reader_free(r);
    else
        *ret = r;
    return rc;
}

void trp_shuffle_reader_free(trp_shuffle_reader *r)
{
    if (!r)
        return;
    if (r->merging)
        trp_merge_close(&r->merge);
    for (uint32_t i = 0; r->inputs && i < r->read.nsources; i++)
        free_input(&r->inputs[i]);
    free(r->inputs);
    for (uint32_t i = 0; r->folders && i < r->read.nhosts; i++)
        if (r->folders[i] >= 0)
            close(r->folders[i]);
    free(r->folders);
    ZSTD_freeDCtx(r->unpacker.zstd);
    trp_spill_file_close(&r->file);
    if (r->folder >= 0)
        close(r->folder);
    free(r);
}

/* ---- handing out ----------------------------------------------------------------- */

int trp_shuffle_next(trp_shuffle_reader *r, struct trp_shuffle_record *ret,
                     struct trp_fetch_problem *ret_problem, trp_error *err)
{
    trp_error why;
    why.text[0] = 0; /* the rest of it is a kilobyte: too much for each record */
    for (;;) {
        if (trp_is_killed(r->read.killed))
            return trp_error_set(err, TRP_ECANCELLED, "given up");
        if (!r->merging) {
            uint32_t to = r->read.order.unordered ? r->next + 1 : r->ninputs;
            if (r->next >= r->ninputs)
                return 0;
            int rc = open_merge(r, r->next, to, &r->merge, err);
            if (rc < 0)
                return rc;
            r->merging = true;
            r->next = to;
        }
        int rc = trp_merge_next(&r->merge, ret, &why);
        if (rc > 0)
            return rc;
        if (rc < 0)
            return fetch_failed(r, failed_source(&r->merge), rc, &why, ret_problem,
                                err);
        close_merge(r, &r->merge);
        r->merging = false;
    }
}

void trp_shuffle_reader_counts(const trp_shuffle_reader *r,
                               struct trp_shuffle_reader_counts *ret)
{
    *ret = r->counts;
    ret->records += r->merging ? r->merge.read : 0;
}
