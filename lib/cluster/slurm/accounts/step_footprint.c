/*
 * From a profile to what Slurm knows: the site file's `resources:`.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/accounts/node_ledger.h"
#include "core/profile/footprint.h"

static bool copy(char to[TRP_SLURM_WORD], const char *from, size_t n)
{
    if (n == 0 || n >= TRP_SLURM_WORD)
        return false;
    memcpy(to, from, n);
    to[n] = '\0';
    return true;
}

/* What the site says of a resource; one it does not speak of is a GRES of that name. */
bool trp_slurm_want_map(struct trp_slurm_want *w, const struct trp_site_resource *r,
                        const char *name)
{
    static const enum trp_slurm_kind kinds[] = {
        [TRP_SITE_UNMAPPED] = TRP_SLURM_GRES,
        [TRP_SITE_GRES] = TRP_SLURM_GRES,
        [TRP_SITE_LICENSE] = TRP_SLURM_LICENCE,
        [TRP_SITE_CONSTRAINT] = TRP_SLURM_FEATURE,
    };
    const char *text = r && r->target ? r->target : name;
    w->kind = r ? kinds[r->kind] : TRP_SLURM_GRES;
    size_t n = w->kind == TRP_SLURM_GRES ? strcspn(text, ":") : strlen(text);
    return copy(w->name, text, n) &&
           (!text[n] || copy(w->type, text + n + 1, strlen(text + n + 1)));
}

static int add_want(struct trp_slurm_footprint *footprint, const trp_site *site,
                    const char *name, struct trp_profile_amount amount, trp_error *err)
{
    uint32_t count = amount.n > UINT32_MAX ? UINT32_MAX : (uint32_t)amount.n;
    struct trp_slurm_want *w =
        &footprint->wants[footprint->nwants + footprint->nscripted];
    const struct trp_site_resource *r = trp_site_resource(site, name);
    *w = (struct trp_slurm_want){.count = count, .each = (uint32_t)amount.share};
    memcpy(w->resource, name, strlen(name) + 1);
    if (!trp_slurm_want_map(w, r, name))
        return trp_error_set(err, TRP_ELIMIT,
                             "resource %s: its name in Slurm is too long", name);
    return 0;
}

int trp_slurm_footprint_executor(const struct trp_resource_profile *p,
                                 const trp_site *site, struct trp_slurm_footprint *ret,
                                 trp_error *err)
{
    struct trp_profile_footprint all = trp_profile_footprint(p, false);
    int code = 0;
    memset(ret, 0, sizeof *ret);
    ret->cores = (uint64_t)all.cores;
    ret->memory_mib = all.memory_mib.n;
    /* Those that a script tells come last. */
    for (int scripted = 0; scripted < 2; scripted++) {
        for (uint32_t i = 0; i < p->ncustom && code == 0; i++) {
            const char *name = p->custom[i].name;
            if (all.custom[i].n <= 0 ||
                trp_site_is_scripted(site, name) != (scripted == 1))
                continue;
            code = add_want(ret, site, name, all.custom[i], err);
            *(scripted ? &ret->nscripted : &ret->nwants) += code == 0;
        }
    }
    return code;
}

int trp_slurm_footprint_rank(const struct trp_resource_profile *p, const trp_site *site,
                             struct trp_slurm_footprint *ret, trp_error *err)
{
    struct trp_profile_footprint all = trp_profile_footprint(p, true);
    int64_t cpus = all.cores > 0 ? all.cores : 1;
    int code = 0;
    memset(ret, 0, sizeof *ret);
    ret->cores = (uint64_t)all.cores;
    /* A step over several nodes has its memory by the CPU: whole MiB of each. */
    int64_t mib = trp_profile_amount_of(all.memory_mib, 1);
    ret->memory_mib = (mib + cpus - 1) / cpus * cpus;
    for (uint32_t i = 0; i < p->ncustom && code == 0; i++) {
        if (all.custom[i].n <= 0)
            continue;
        code = add_want(ret, site, p->custom[i].name, all.custom[i], err);
        ret->nwants += code == 0;
    }
    return code;
}
