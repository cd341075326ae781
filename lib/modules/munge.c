/*
 * MUNGE credentials around proofs of the run's secret.
 *
 * What they add to the secret: who has got hold of the secret's file alone (a backup, a
 * file system that does not ask who one is) is still not this user to any daemon.
 * Rejected: MUNGE instead of the secret, as that would let every process of the user
 * into every run of his, and a program of another run, or an older start of this one,
 * is no executor of this one.
 */
#include <munge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/munge.h"
#include "comm/proof.h"

/* What the daemon, or the way to it, has to say. */
static const char *reason(munge_ctx_t ctx, munge_err_t code)
{
    const char *text = ctx ? munge_ctx_strerror(ctx) : NULL;
    return text ? text : munge_strerror(code);
}

static int seal_proof(const uint8_t *proof, char ret_seal[TRP_SEAL_MAX], trp_error *err)
{
    char *seal = NULL;
    int rc = 0;
    munge_ctx_t ctx = munge_ctx_create();
    munge_err_t code = ctx ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
    if (code == EMUNGE_SUCCESS)
        code = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, geteuid());
    if (code == EMUNGE_SUCCESS)
        code = munge_encode(&seal, ctx, proof, TRP_PROOF_SIZE);
    if (code != EMUNGE_SUCCESS)
        rc = trp_error_set(err, TRP_ESYSTEM, "%s", reason(ctx, code));
    else if (snprintf(ret_seal, TRP_SEAL_MAX, "%s", seal) >= TRP_SEAL_MAX)
        rc = trp_error_set(err, TRP_ELIMIT, "a MUNGE credential of %zu bytes",
                           strlen(seal));
    free(seal);
    munge_ctx_destroy(ctx);
    return rc;
}

static int judge(munge_err_t code, const char *why, uid_t uid, trp_error *err)
{
    switch (code) {
    case EMUNGE_SUCCESS:
        if (uid == geteuid())
            return 0;
        return trp_error_set(err, TRP_ESTATE,
                             "its MUNGE credential is of user %u, the run is of %u",
                             (unsigned)uid, (unsigned)geteuid());
    case EMUNGE_CRED_UNAUTHORIZED:
        return trp_error_set(err, TRP_ESTATE, "its MUNGE credential is another user's");
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
    case EMUNGE_NO_MEMORY:
    case EMUNGE_SNAFU:
        return trp_error_set(err, TRP_ESYSTEM,
                             "MUNGE does not check its credential: %s", why);
    default:
        return trp_error_set(err, TRP_ESTATE, "its MUNGE credential is not valid: %s",
                             why);
    }
}

static int check(const uint8_t *proof, const char *seal, trp_error *err)
{
    void *payload = NULL;
    int n = 0;
    uid_t uid = 0;
    if (!*seal)
        return trp_error_set(err, TRP_ESTATE, "it shows no MUNGE credential");
    munge_ctx_t ctx = munge_ctx_create();
    munge_err_t code =
        ctx ? munge_decode(seal, ctx, &payload, &n, &uid, NULL) : EMUNGE_NO_MEMORY;
    int rc = judge(code, reason(ctx, code), uid, err);
    if (rc == 0 && (n != TRP_PROOF_SIZE ||
                    !trp_proof_equal((const uint8_t *)payload, proof, TRP_PROOF_SIZE)))
        rc = trp_error_set(err, TRP_ESTATE,
                           "its MUNGE credential was made for another connection");
    free(payload);
    munge_ctx_destroy(ctx);
    return rc;
}

extern const struct trp_munge_calls trp_module;
TRP_MODULE_TABLE const struct trp_munge_calls trp_module = {
    .module = {TROUPE_VERSION},
    .seal = seal_proof,
    .check = check,
};
