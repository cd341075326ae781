/*
 * Proof that a side knows the run's secret: HMAC-SHA256 of a label that differs by
 * direction, and both sides' nonces. Internal to lib/comm, lib/data and
 * lib/executor.
 */
#ifndef TRP_COMM_PROOF_H
#define TRP_COMM_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/frame.h"

enum { TRP_PROOF_SIZE = 32 };

struct trp_nonces {
    uint8_t driver[TRP_NONCE_SIZE], executor[TRP_NONCE_SIZE];
};

/* Who proves, to whom: driver and executor at admission, executors among themselves
 * where blocks are fetched. The nonce of who listens is `driver`, the other `executor`.
 */
enum trp_prover {
    TRP_PROVER_DRIVER,
    TRP_PROVER_EXECUTOR,
    TRP_PROVER_BLOCK_SERVER,
    TRP_PROVER_BLOCK_CLIENT
};

int trp_nonce_make(uint8_t *ret_nonce);
void trp_proof_make(const uint8_t *secret, enum trp_prover who,
                    const struct trp_nonces *nonces, uint8_t *ret_proof);
bool trp_proof_check(const uint8_t *secret, enum trp_prover who,
                     const struct trp_nonces *nonces, const uint8_t *proof);

/* What both sides can call something of theirs that nobody else can guess: `n` bytes,
 * at most 32, of the HMAC of a label and `about`. */
void trp_proof_name(const uint8_t *secret, const char *about, uint8_t *ret, size_t n);

/* Both sides have proved themselves to each other: the link gets the keys that they
 * share and nobody else has, derived from the secret and both nonces, so that they are
 * new on every connection. `sealed`: all frames from now on have tags. */
int trp_session_begin(struct trp_link *l, const uint8_t *secret,
                      const struct trp_nonces *nonces, enum trp_prover side,
                      bool sealed);

/* Whether two byte strings are equal, in a time that does not tell where they differ.
 */
bool trp_proof_equal(const uint8_t *a, const uint8_t *b, size_t n);

#endif
