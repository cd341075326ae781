/*
 * Proof that the other end of a connection is the same user, by the MUNGE daemons of
 * both hosts. Internal to lib/comm, but for trp_munge_works.
 *
 * A *seal* is a MUNGE credential, text, whose payload is the sealer's proof of the
 * run's secret (comm/proof.h): that is made of both sides' nonces and of who proves, so
 * a seal is good for one connection and one direction. Only processes of the sealer's
 * own user can open it, so nobody else can use it up at the daemon either.
 *
 * Calls go to the daemon over a socket of this host and wait for it: about a
 * millisecond, some seconds when it is stuck. Nobody who does not know the run's secret
 * can make a driver call.
 */
#ifndef TRP_COMM_MUNGE_H
#define TRP_COMM_MUNGE_H

#include <stdint.h>

#include "core/base/error.h"
#include "os/module.h"

enum { TRP_SEAL_MAX = 1024 };

/* Whether the daemon of this host answers. TRP_ESYSTEM with its reason; here and below
 * TRP_ENEVER when the module of MUNGE cannot be used. */
int trp_munge_works(trp_error *err);

/* A seal on `proof`, NUL-terminated. */
int trp_munge_seal(const uint8_t *proof, char ret_seal[TRP_SEAL_MAX], trp_error *err);

/* 0: this user sealed this very proof. TRP_ESTATE: not so; TRP_ESYSTEM: the daemon does
 * not answer. The text is about the sealer: "its MUNGE credential is …". */
int trp_munge_check(const uint8_t *proof, const char *seal, trp_error *err);

/* The module that calls libmunge, with which executors should not be linked. */
struct trp_munge_calls {
    struct trp_module module;
    int (*seal)(const uint8_t *proof, char ret_seal[TRP_SEAL_MAX], trp_error *err);
    int (*check)(const uint8_t *proof, const char *seal, trp_error *err);
};

#endif
