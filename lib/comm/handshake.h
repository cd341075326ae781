/*
 * How the two sides of a new connection prove to each other that they belong to the
 * same run and, with MUNGE, the same user. Internal to lib/comm and lib/data.
 *
 *     listener               caller
 *     CHALLENGE (nonce)  →
 *                        ←   ANSWER (nonce, proof, seal)
 *     PROOF (proof, seal) →
 *
 * Then both have the session's keys, and their frames tags.
 */
#ifndef TRP_COMM_HANDSHAKE_H
#define TRP_COMM_HANDSHAKE_H

#include "comm/proof.h"

struct trp_handshake {
    const uint8_t *secret; /* TRP_SECRET_SIZE bytes */
    bool munge;            /* both sides prove their user as well */
    bool mac;              /* frames have tags afterwards */
    enum trp_prover listener, caller;
    const char *listener_name; /* in texts for callers: "the driver" */
    struct trp_nonces *nonces;
};

/* Listener: the first frame. */
int trp_handshake_challenge(const struct trp_handshake *h, struct trp_link *l);
/* Caller, given the body of CHALLENGE. TRP_EWAIT: the connection is closed; TRP_EPROTO;
 * TRP_ESYSTEM: MUNGE does not answer here. */
int trp_handshake_answer(const struct trp_handshake *h, struct trp_link *l,
                         struct trp_view *challenge, trp_error *err);
/* Listener, given the body of ANSWER; the session begins. TRP_EPROTO: it is none;
 * TRP_ESTATE: a stranger, who does not know the secret; TRP_ESYSTEM: who knows it, but
 * is not this user, or MUNGE does not answer. The text is about the caller. */
int trp_handshake_check(const struct trp_handshake *h, struct trp_link *l,
                        struct trp_view *answer, trp_error *err);
/* Caller, given the body of PROOF; the session begins. TRP_ESTATE: `where` is none of
 * this run. */
int trp_handshake_finish(const struct trp_handshake *h, struct trp_link *l,
                         struct trp_view *proof, const char *where, trp_error *err);

#endif
