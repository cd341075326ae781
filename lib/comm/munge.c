/*
 * What calls MUNGE is a module: most runs are on machines without it.
 */
#include "comm/munge.h"

#include "comm/proof.h"

static int get(const struct trp_munge_calls **ret, trp_error *err)
{
    return trp_module_get("munge", (const void **)ret, err);
}

int trp_munge_seal(const uint8_t *proof, char ret_seal[TRP_SEAL_MAX], trp_error *err)
{
    const struct trp_munge_calls *munge;
    int rc = get(&munge, err);
    return rc < 0 ? rc : munge->seal(proof, ret_seal, err);
}

int trp_munge_check(const uint8_t *proof, const char *seal, trp_error *err)
{
    const struct trp_munge_calls *munge;
    int rc = get(&munge, err);
    return rc < 0 ? rc : munge->check(proof, seal, err);
}

int trp_munge_works(trp_error *err)
{
    static const uint8_t nothing[TRP_PROOF_SIZE];
    char seal[TRP_SEAL_MAX] = "";
    int rc = trp_munge_seal(nothing, seal, err);
    return rc < 0 ? rc : trp_munge_check(nothing, seal, err);
}
