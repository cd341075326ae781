/*
 * Pipeline files: any bytes are a pipeline or an error with its place.
 *
 * Of a pipeline the promises of conf/pipeline.h are looked at, and what comes next is
 * done with it: its options are set and its profiles made.
 */
#include <string.h>

#include "conf/pipeline.h"
#include "conf/site.h"
#include "conf_error.h"

static void check_order(const trp_pipeline *p)
{
    uint8_t *seen = calloc(p->nstages ? p->nstages : 1, 1);
    for (uint32_t i = 0; seen && i < p->nstages; i++) {
        uint32_t n = p->order[i];
        FUZZ_CHECK(n < p->nstages && !seen[n], "order %u: stage %u", i, n);
        const struct trp_pipeline_stage *s = &p->stages[n];
        for (uint32_t k = 0; k < s->nafter; k++)
            FUZZ_CHECK(s->after[k].index < p->nstages && seen[s->after[k].index],
                       "stage %s stands before what it is after", s->name);
        seen[n] = 1;
    }
    free(seen);
}

static void check_stage(const struct trp_pipeline_stage *s)
{
    FUZZ_CHECK(s->name && *s->name, "a stage without a name");
    FUZZ_CHECK((s->run != NULL) != (s->nargv > 0), "stage %s: run and argv", s->name);
    FUZZ_CHECK(s->tasks <= TRP_PIPELINE_TASKS && s->spec.ranks <= TRP_PIPELINE_RANKS,
               "stage %s: %u tasks, %u ranks", s->name, s->tasks, s->spec.ranks);
    FUZZ_CHECK(s->timeout_ns >= 0, "stage %s: a timeout below 0", s->name);
    FUZZ_CHECK(!s->spec.memory_factor_ppm || s->spec.memory_factor_ppm >= 1000000,
               "stage %s: memory becomes less", s->name);
    for (uint32_t i = 0; i < s->nargv; i++)
        FUZZ_CHECK(s->argv[i], "stage %s: argv has a hole", s->name);
}

static void use(const trp_pipeline *p)
{
    trp_options *o = NULL;
    trp_profiles *profiles = NULL;
    trp_error err = {0};
    trp_profile_id *ids = calloc(p->nstages ? p->nstages : 1, sizeof *ids);
    if (!ids || trp_options_new(&o, &err) < 0)
        abort();
    int rc = trp_pipeline_options(p, o, &err);
    FUZZ_CHECK(rc == 0, "options that were checked are refused: %s", err.text);
    rc = trp_pipeline_profiles(p, o, NULL, &profiles, ids, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, NULL);
    } else {
        for (uint32_t i = 0; i < p->nstages; i++)
            FUZZ_CHECK(trp_profiles_get(profiles, ids[i]), "stage %s: no profile %u",
                       p->stages[i].name, ids[i].n);
        trp_profiles_free(profiles);
    }
    trp_options_free(o);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trp_pipeline *p = NULL;
    trp_error err = {0};
    int rc = trp_pipeline_parse("p.yaml", (const char *)data, size, &p, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, "p.yaml:");
        return 0;
    }
    for (uint32_t i = 0; i < p->nstages; i++)
        check_stage(&p->stages[i]);
    check_order(p);
    use(p);
    trp_pipeline_free(p);
    return 0;
}
