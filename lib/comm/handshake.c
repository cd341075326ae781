#include "comm/handshake.h"

#include <stdlib.h>

#include "comm/munge.h"

/* A proof and a seal, "" without MUNGE, behind what is in `b`; frees it. */
static int put_proof(struct trp_link *l, enum trp_frame_kind kind, struct trp_buf *b,
                     const uint8_t *proof, const char *seal)
{
    trp_put_raw(b, proof, TRP_PROOF_SIZE);
    trp_put_text(b, seal);
    int rc = b->failed ? TRP_ENOMEM : trp_link_put(l, kind, b->data, b->size);
    trp_buf_free(b);
    return rc;
}

int trp_handshake_challenge(const struct trp_handshake *h, struct trp_link *l)
{
    int rc = trp_nonce_make(h->nonces->driver);
    return rc < 0 ? rc
                  : trp_link_put(l, TRP_FRAME_CHALLENGE, h->nonces->driver,
                                 TRP_NONCE_SIZE);
}

int trp_handshake_answer(const struct trp_handshake *h, struct trp_link *l,
                         struct trp_view *challenge, trp_error *err)
{
    uint8_t proof[TRP_PROOF_SIZE];
    char seal[TRP_SEAL_MAX] = "";
    struct trp_buf b = {0};
    trp_error why;
    const uint8_t *nonce = trp_get_raw(challenge, TRP_NONCE_SIZE);
    if (!trp_view_end(challenge) || trp_nonce_make(h->nonces->executor) < 0)
        return trp_error_set(err, TRP_EPROTO, "the challenge of %s is broken",
                             h->listener_name);
    memcpy(h->nonces->driver, nonce, TRP_NONCE_SIZE);
    trp_proof_make(h->secret, h->caller, h->nonces, proof);
    if (h->munge && trp_munge_seal(proof, seal, &why) < 0)
        return trp_error_set(err, TRP_ESYSTEM,
                             "%s wants a proof by MUNGE, which does not answer on this "
                             "node: %s; see admission.munge",
                             h->listener_name, why.text);
    trp_put_raw(&b, h->nonces->executor, TRP_NONCE_SIZE);
    return put_proof(l, TRP_FRAME_ANSWER, &b, proof, seal) < 0
               ? trp_error_set(err, TRP_EWAIT, "%s closed the connection",
                               h->listener_name)
               : 0;
}

int trp_handshake_check(const struct trp_handshake *h, struct trp_link *l,
                        struct trp_view *answer, trp_error *err)
{
    uint8_t own[TRP_PROOF_SIZE];
    char seal[TRP_SEAL_MAX], own_seal[TRP_SEAL_MAX] = "";
    struct trp_buf b = {0};
    trp_error why;
    size_t n;
    const uint8_t *nonce = trp_get_raw(answer, TRP_NONCE_SIZE);
    const uint8_t *proof = trp_get_raw(answer, TRP_PROOF_SIZE);
    const uint8_t *text = trp_get_bytes(answer, &n);
    if (!trp_view_end(answer) || n >= sizeof seal || memchr(text, 0, n))
        return trp_error_set(err, TRP_EPROTO, "a broken answer");
    memcpy(seal, text, n);
    seal[n] = 0;
    memcpy(h->nonces->executor, nonce, TRP_NONCE_SIZE);
    if (!trp_proof_check(h->secret, h->caller, h->nonces, proof))
        return trp_error_set(err, TRP_ESTATE,
                             "wrong proof: it does not know the run's secret");
    if (h->munge && trp_munge_check(proof, seal, &why) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "it knows the run's secret, but %s",
                             why.text);
    trp_proof_make(h->secret, h->listener, h->nonces, own);
    if (h->munge && trp_munge_seal(own, own_seal, &why) < 0)
        return trp_error_set(err, TRP_ESYSTEM, "MUNGE does not answer %s: %s",
                             h->listener_name, why.text);
    if (put_proof(l, TRP_FRAME_PROOF, &b, own, own_seal) < 0)
        return trp_error_set(err, TRP_EPROTO, "the connection is closed");
    return trp_session_begin(l, h->secret, h->nonces, h->listener, h->mac);
}

int trp_handshake_finish(const struct trp_handshake *h, struct trp_link *l,
                         struct trp_view *proof, const char *where, trp_error *err)
{
    trp_error why;
    const uint8_t *bytes = trp_get_raw(proof, TRP_PROOF_SIZE);
    char *seal = trp_get_text(proof);
    int rc = 0;
    if (!seal || !trp_view_end(proof) ||
        !trp_proof_check(h->secret, h->listener, h->nonces, bytes))
        rc = trp_error_set(err, TRP_ESTATE,
                           "what answers at %s does not know the run's secret", where);
    else if (h->munge && trp_munge_check(bytes, seal, &why) < 0)
        rc = trp_error_set(err, TRP_ESTATE,
                           "what answers at %s knows the run's secret, but %s", where,
                           why.text);
    free(seal);
    return rc < 0 ? rc : trp_session_begin(l, h->secret, h->nonces, h->caller, h->mac);
}
