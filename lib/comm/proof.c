/*
 * Proofs of the run's secret.
 *
 * A recorded answer is of no use: the driver's nonce is new on every connection. A
 * reflected one neither: the label in front names who proves. The executor answers
 * before the driver has proved itself; an HMAC under a random 256-bit key tells a
 * stranger nothing. What follows on the socket is not sealed: somebody who can rewrite
 * the packets of a cluster's inner network is outside of what this protects from, as
 * MPI's own connections are open to him as well.
 */
#include "comm/proof.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

#include "comm/channel.h"

int trp_nonce_make(uint8_t *ret_nonce)
{
    ssize_t n = getrandom(ret_nonce, TRP_NONCE_SIZE, 0);
    return n == TRP_NONCE_SIZE ? 0 : TRP_ESYSTEM;
}

void trp_proof_make(const uint8_t *secret, enum trp_prover who,
                    const struct trp_nonces *nonces, uint8_t *ret_proof)
{
    const char *label =
        who == TRP_PROVER_DRIVER ? "troupe driver proof" : "troupe executor proof";
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, TRP_SECRET_SIZE, secret);
    hmac_sha256_update(&ctx, strlen(label) + 1, (const uint8_t *)label);
    hmac_sha256_update(&ctx, TRP_NONCE_SIZE, nonces->driver);
    hmac_sha256_update(&ctx, TRP_NONCE_SIZE, nonces->executor);
    hmac_sha256_digest(&ctx, TRP_PROOF_SIZE, ret_proof);
    explicit_bzero(&ctx, sizeof ctx);
}

bool trp_proof_check(const uint8_t *secret, enum trp_prover who,
                     const struct trp_nonces *nonces, const uint8_t *proof)
{
    uint8_t want[TRP_PROOF_SIZE];
    trp_proof_make(secret, who, nonces, want);
    return trp_proof_equal(want, proof, sizeof want);
}

bool trp_proof_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
    return memeql_sec(a, b, n);
}
