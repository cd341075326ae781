/*
 * Proofs of the run's secret.
 *
 * A recorded answer is of no use: the driver's nonce is new on every connection. A
 * reflected one neither: the label in front names who proves. The executor answers
 * before the driver has proved itself; an HMAC under a random 256-bit key tells a
 * stranger nothing. Over the transport `socket` what follows is sealed by the session's
 * keys (frame.h). Over MPI it is not: somebody who can rewrite the packets of a
 * cluster's inner network can do so with MPI's own connections as well.
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

/* The first `n` bytes of the HMAC of a label and both nonces. */
static void derive(const uint8_t *secret, const char *label,
                   const struct trp_nonces *nonces, uint8_t *ret, size_t n)
{
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, TRP_SECRET_SIZE, secret);
    hmac_sha256_update(&ctx, strlen(label) + 1, (const uint8_t *)label);
    hmac_sha256_update(&ctx, TRP_NONCE_SIZE, nonces->driver);
    hmac_sha256_update(&ctx, TRP_NONCE_SIZE, nonces->executor);
    hmac_sha256_digest(&ctx, n, ret);
    explicit_bzero(&ctx, sizeof ctx);
}

void trp_proof_name(const uint8_t *secret, const char *about, uint8_t *ret, size_t n)
{
    static const char label[] = "troupe name";
    struct hmac_sha256_ctx ctx;
    hmac_sha256_set_key(&ctx, TRP_SECRET_SIZE, secret);
    hmac_sha256_update(&ctx, sizeof label, (const uint8_t *)label);
    hmac_sha256_update(&ctx, strlen(about), (const uint8_t *)about);
    hmac_sha256_digest(&ctx, n, ret);
    explicit_bzero(&ctx, sizeof ctx);
}

/* Of each who proves: the label of the proof, and of the key of frames to him. */
static const struct {
    const char *proof, *key;
    enum trp_prover other;
} provers[] = {
    [TRP_PROVER_DRIVER] = {"troupe driver proof",       "troupe to driver",
                           TRP_PROVER_EXECUTOR    },
    [TRP_PROVER_EXECUTOR] = {"troupe executor proof",     "troupe to executor",
                           TRP_PROVER_DRIVER      },
    [TRP_PROVER_BLOCK_SERVER] = {"troupe block server proof", "troupe to block server",
                           TRP_PROVER_BLOCK_CLIENT},
    [TRP_PROVER_BLOCK_CLIENT] = {"troupe block client proof", "troupe to block client",
                           TRP_PROVER_BLOCK_SERVER},
};

void trp_proof_make(const uint8_t *secret, enum trp_prover who,
                    const struct trp_nonces *nonces, uint8_t *ret_proof)
{
    derive(secret, provers[who].proof, nonces, ret_proof, TRP_PROOF_SIZE);
}

int trp_session_begin(struct trp_link *l, const uint8_t *secret,
                      const struct trp_nonces *nonces, enum trp_prover side,
                      bool sealed)
{
    uint8_t in[TRP_TAG_KEY_SIZE], out[TRP_TAG_KEY_SIZE];
    derive(secret, "troupe last words", nonces, l->last_words_key,
           sizeof l->last_words_key);
    if (!sealed)
        return 0;
    derive(secret, provers[side].key, nonces, in, sizeof in);
    derive(secret, provers[provers[side].other].key, nonces, out, sizeof out);
    int rc = trp_link_seal(l, out, in);
    explicit_bzero(in, sizeof in);
    explicit_bzero(out, sizeof out);
    return rc;
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
