/*
 * Site files: any bytes are a site or an error with its place; of a site the options
 * are set, and its profiles are used by a pipeline that names all of them.
 */
#include "conf/site.h"
#include "conf/pipeline.h"
#include "conf/site_request.h"
#include "conf_error.h"

/* Each profile becomes a request, of one executor or of a gang, or is refused. */
static void make_requests(const trp_site *s, const trp_profiles *profiles)
{
    struct trp_site_request r;
    char words[16384];
    trp_error err = {0};
    for (uint32_t i = 0; i < trp_profiles_count(profiles); i++) {
        const struct trp_resource_profile *p =
            trp_profiles_get(profiles, (trp_profile_id){i});
        for (uint32_t ranks = 0; ranks < 8; ranks += 7) {
            int rc = trp_site_request_make(s, p, ranks, &r, &err);
            FUZZ_CHECK(rc == 0 || rc == TRP_ENEVER, "a request is %d", rc);
            if (rc == 0)
                trp_site_request_text(&r, TRP_SITE_FOR_JOB, words, sizeof words);
            FUZZ_CHECK(rc < 0 || !strpbrk(words, "\n\"'`$;<>\\"),
                       "a shell reads more than words: %s", words);
        }
    }
}

static void use_profiles(const trp_site *s, const trp_options *o)
{
    trp_pipeline *p = NULL;
    trp_profiles *profiles = NULL;
    trp_error err = {0};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        abort();
    fputs("troupe: 1\nstages:\n  - {name: a, run: x}\n", f);
    for (uint32_t i = 0; i < s->nprofiles; i++)
        fprintf(f, "  - {name: s%u, run: x, profile: \"%s\"}\n", i,
                s->profiles[i].builder.name);
    fclose(f);
    int rc = trp_pipeline_parse("p.yaml", text, size, &p, &err);
    FUZZ_CHECK(rc == 0, "a site's profile cannot be named: %s", err.text);
    trp_profile_id *ids = calloc(p->nstages, sizeof *ids);
    rc = trp_pipeline_profiles(p, o, s, &profiles, ids, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, NULL);
    } else {
        make_requests(s, profiles);
        trp_profiles_free(profiles);
    }
    free(ids);
    trp_pipeline_free(p);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trp_site *s = NULL;
    trp_options *o = NULL;
    trp_error err = {0};
    int rc = trp_site_parse("s.yaml", (const char *)data, size, &s, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, "s.yaml:");
        return 0;
    }
    if (trp_options_new(&o, &err) < 0)
        abort();
    rc = trp_site_options(s, o, &err);
    FUZZ_CHECK(rc == 0, "options that were checked are refused: %s", err.text);
    for (uint32_t i = 0; i < s->nresources; i++)
        trp_site_variable(s, s->resources[i].name);
    for (uint32_t i = 0; i < s->nlocal; i++)
        FUZZ_CHECK(s->local[i].name && s->local[i].naddresses > 0 &&
                       s->local[i].addresses[0],
                   "a device without address");
    for (uint32_t i = 0; i < s->nwarnings; i++)
        FUZZ_CHECK(s->warnings[i].text && s->warnings[i].mark.line, "an empty warning");
    use_profiles(s, o);
    trp_options_free(o);
    trp_site_free(s);
    return 0;
}
