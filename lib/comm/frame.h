/*
 * Frames on the admission socket, and between executors where blocks are fetched.
 * Internal to lib/comm and lib/data.
 *
 * A frame is 4 bytes (u16 size of the body, u8 kind, u8 TRP_FRAME_MARK), `size` bytes,
 * and on a sealed link a tag; D: only the driver sends it, E: only an executor. A
 * *link* is a non-blocking socket with what has arrived but is not a frame yet, and
 * what could not be written yet.
 *
 * Sealed. Once both sides have proved themselves they share keys that nobody else has
 * (proof.h). On a sealed link each frame ends in a tag over all of it, UMAC-128 (RFC
 * 4418) with the frame's number in its direction as nonce: one that was changed, left
 * out, repeated or put in by somebody else is no frame of ours.
 *
 * Last words are said by another process than the one whose frames they follow, which
 * died at any byte of one. So theirs has a tag of its own kind, always (HMAC-SHA256,
 * cut to the same size), and at a link's end they are looked for behind whatever was
 * cut off.
 */
#ifndef TRP_COMM_FRAME_H
#define TRP_COMM_FRAME_H

#include <sys/types.h>

#include "core/base/bytes.h"
#include "core/base/error.h"

enum {
    TRP_NONCE_SIZE = 32,
    TRP_FRAME_HEAD = 4,
    TRP_FRAME_MARK = 0x54,
    TRP_FRAME_CALLER_MAX = 1280, /* before the proof: nonce, proof, seal */
    TRP_FRAME_MAX = 4096,
    TRP_FRAME_DATA_MAX = 32 * 1024, /* of a link that carries messages */
    TRP_LINK_OUT_MAX = 64 * 1024, /* unread by the peer: it is taken for lost, but on a
                                   * link that carries messages */
    TRP_TAG_SIZE = 16,
    TRP_TAG_KEY_SIZE = 16,
    TRP_LAST_WORDS_KEY_SIZE = 32,
};

enum trp_frame_kind {
    TRP_FRAME_CHALLENGE = 1,   /* D: nonce */
    TRP_FRAME_ANSWER = 2,      /* E: nonce, proof, seal (text; without MUNGE "") */
    TRP_FRAME_PROOF = 3,       /* D: proof, seal */
    TRP_FRAME_HELLO = 4,       /* E: u32 wire version, executor, pid; build, host */
    TRP_FRAME_WELCOME = 5,     /* D */
    TRP_FRAME_REFUSED = 6,     /* D: u8 another build, text */
    TRP_FRAME_READY = 7,       /* E: u32 spawner's pid */
    TRP_FRAME_ADMIT = 8,       /* D: where (text), nonce */
    TRP_FRAME_BEAT = 9,        /* E, and D's answer */
    TRP_FRAME_SLEEP = 10,      /* u64 messages taken */
    TRP_FRAME_RING = 11,       /* u64 messages sent */
    TRP_FRAME_LAST_WORDS = 12, /* E, mostly its spawner: struct trp_last_words */
    TRP_FRAME_BYE = 13,        /* u64 messages sent, all of them on their way */
    TRP_FRAME_DATA = 14,       /* a piece of the stream of records (lane_socket.c) */
    TRP_FRAME_WANTED = 15,     /* to a block server: data/block_wire.h */
    TRP_FRAME_BLOCK = 16,      /* from it; raw bytes follow */
};

struct trp_seal; /* frame.c */

struct trp_link {
    int fd;
    uint32_t limit;       /* of a frame's size */
    bool carries;         /* messages: more may be pending than a few frames */
    size_t in_at, out_at; /* what is used up of … */
    struct trp_buf in, out;
    size_t open_at;        /* in `out`: a DATA frame that is being filled, or … */
    struct trp_seal *seal; /* NULL: frames have no tags */
    uint8_t last_words_key
        [TRP_LAST_WORDS_KEY_SIZE]; /* of those who may say last words here */
};
#define TRP_NO_FRAME SIZE_MAX

/* Makes the socket non-blocking, close-on-exec and without delay. */
void trp_link_open(struct trp_link *l, int fd, uint32_t limit);
void trp_link_close(struct trp_link *l);

/* All frames from now on have tags, in both directions. */
int trp_link_seal(struct trp_link *l, const uint8_t *out_key, const uint8_t *in_key);

/* Adds a record (lane.h) to the stream that DATA frames carry, whole or not at all. The
 * last of them is closed, and all is written, by the next flush or frame. */
int trp_link_put_record(struct trp_link *l, const void *p, size_t n);

/* Writes a frame, or keeps what the socket does not take (trp_link_pending). Negative:
 * the link is broken. */
int trp_link_put(struct trp_link *l, enum trp_frame_kind kind, const void *p, size_t n);
/* The same, but nothing is written before the next flush. */
int trp_link_queue(struct trp_link *l, enum trp_frame_kind kind, const void *p,
                   size_t n);
int trp_link_flush(struct trp_link *l);
static inline bool trp_link_pending(const struct trp_link *l)
{
    return l->out.size > l->out_at;
}

/* Reads what there is, at most 64 KiB. 0: there may be more later; TRP_ENOENT: the
 * other side closed; TRP_ESYSTEM: broken. Frames that came before are there. */
int trp_link_fill(struct trp_link *l);

/* The next whole frame: 1, *ret_kind and its bytes, borrowed until the next fill; 0
 * none; TRP_EPROTO no frame of ours. */
int trp_link_next(struct trp_link *l, uint8_t *ret_kind, struct trp_view *ret_body);

/* Raw bytes between two frames, as many as both sides know. What is put is kept until
 * the next flush; of what comes up to `n` are taken: how many; 0: none yet; TRP_ENOENT,
 * TRP_ESYSTEM as trp_link_fill. */
int trp_link_put_raw(struct trp_link *l, const void *p, size_t n);
ssize_t trp_link_take_raw(struct trp_link *l, void *to, size_t n);

/* A frame of last words with its tag. 0: there is no room in `buf`. */
size_t trp_words_frame(const uint8_t *last_words_key, const void *p, size_t n,
                       uint8_t *buf, size_t cap);
/* The link has ended: whether the last that came on it, behind a frame that was cut
 * off, is a frame of last words with a body of `n` bytes. */
bool trp_link_last_words_at_end(const struct trp_link *l, size_t n,
                                struct trp_view *ret_body);

#endif
