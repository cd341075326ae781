/*
 * The two forms of one answer.
 */
#include "driver/plan_slurm.h"

#include <stdlib.h>
#include <string.h>

#include "conf/site_request.h"

enum { WORDS = 16384 };

char *trp_plan_slurm_text(const struct trp_site *site,
                          const struct trp_resource_profile *p, uint32_t ranks)
{
    struct trp_site_request r;
    trp_error why;
    char *text = malloc(WORDS);
    if (!text)
        return NULL;
    if (trp_site_request_make(site, p, ranks, &r, &why) < 0)
        snprintf(text, WORDS, "never: %s", why.text);
    else
        trp_site_request_text(&r, TRP_SITE_FOR_JOB, text, WORDS);
    return text;
}

void trp_plan_slurm_json(const struct trp_site *site,
                         const struct trp_resource_profile *p, uint32_t ranks,
                         json_t *object)
{
    struct trp_site_request r;
    struct trp_site_option v[TRP_SITE_REQUEST_OPTIONS];
    trp_error why;
    bool refused = trp_site_request_make(site, p, ranks, &r, &why) < 0;
    json_t *options = refused ? json_null() : json_object();
    uint32_t n = refused ? 0 : trp_site_request_options(&r, TRP_SITE_FOR_JOB, v);
    for (uint32_t i = 0; i < n; i++)
        json_object_set_new(options, v[i].key, json_string(v[i].value));
    json_object_set_new(object, "slurm", options);
    json_object_set_new(object, "slurm_never",
                        refused ? json_string(why.text) : json_null());
}
