/*
 * What profiles become in Slurm by a site file.
 */
#include <glib.h>
#include <string.h>

#include "conf/site_request.h"
#include "unit.h"

static const char site_text[] =
    "site: 1\n"
    "resources:\n"
    "  gpu:    {slurm: \"gres:gpu\"}\n"
    "  a100:   {slurm: \"gres:gpu:a100\"}\n"
    "  v100:   {slurm: \"gres:gpu:v100\"}\n"
    "  nvme:   {slurm: \"gres:nvme\", countable: false}\n"
    "  card:   {slurm: \"gres:fpga\"}\n"
    "  matlab: {slurm: \"license:matlab\"}\n"
    "  secret: {slurm: \"license:secret\"}\n"
    "  bigmem: {slurm: \"constraint:bigmem\"}\n"
    "  ib:     {slurm: \"constraint:ib\", countable: false}\n"
    "  mark:   {env: MARK}\n"
    "memory:   {overhead_factor: 0.5, overhead_min: 100m}\n"
    "route:\n"
    "  - {when: {a100: \">=2\"}, partition: dgx, account: ai, reservation: r1}\n"
    "  - {when: {gpu: \">0\"}, partition: gpu, qos: normal}\n"
    "  - {when: {memory: \">64g\"}, partition: fat, constraint: \"new|old\"}\n"
    "  - {when: {cores: \"<64\", card: 0}, partition: cpu}\n"
    "limits:   {time: 90m, deny: [secret]}\n"
    "nodes:    exclusive\n";

static trp_site *parse(const char *text)
{
    trp_site *s = NULL;
    trp_error err = {0};
    int code = trp_site_parse("s.yaml", text, strlen(text), &s, &err);
    if (code < 0)
        g_test_message("%s", err.text);
    g_assert_cmpint(code, ==, 0);
    return s;
}

struct world {
    trp_site *s;
    trp_profiles *profiles;
};

static struct world world(const char *text)
{
    struct world w = {.s = parse(text)};
    struct trp_profile_defaults d;
    trp_options *o;
    trp_error err;
    g_assert_cmpint(trp_options_new(&o, &err), ==, 0);
    g_assert_cmpint(trp_site_options(w.s, o, &err), ==, 0);
    g_assert_cmpint(trp_site_take_scripts(w.s, o, "/w", &err), ==, 0);
    trp_options_profile_defaults(o, &d);
    g_assert_cmpint(trp_profiles_new(&d, NULL, &w.profiles, &err), ==, 0);
    trp_options_free(o);
    return w;
}

static void end(struct world *w)
{
    trp_profiles_free(w->profiles);
    trp_site_free(w->s);
}

/* A profile from words: "cores 4 memory 2048 gpu 2 / cpus 1 gpu 1/2". */
static const struct trp_resource_profile *profile(struct world *w, const char *text)
{
    struct trp_profile_builder b;
    trp_profile_id id;
    trp_error err = {0};
    bool task = false;
    char **word = g_strsplit(text, " ", -1);
    trp_profile_builder_init(&b, "p");
    for (guint i = 0; word[i]; i++) {
        trp_amount amount;
        if (!strcmp(word[i], "/")) {
            task = true;
            continue;
        }
        g_assert_cmpint(trp_amount_parse(word[i + 1], &amount, &err), ==, 0);
        int code =
            task ? trp_profile_builder_task(&b, word[i], amount, &err)
                 : trp_profile_builder_executor(&b, word[i], amount / TRP_ONE, &err);
        g_assert_cmpint(code, ==, 0);
        i++;
    }
    g_strfreev(word);
    int code = trp_profiles_add(w->profiles, &b, &id, &err);
    if (code < 0)
        g_test_message("%s: %s", text, err.text);
    g_assert_cmpint(code, ==, 0);
    return trp_profiles_get(w->profiles, id);
}

static void expect(struct world *w, const char *text, uint32_t ranks,
                   enum trp_site_for what, const char *words)
{
    struct trp_site_request r;
    trp_error err = {0};
    char buf[4096];
    int code = trp_site_request_make(w->s, profile(w, text), ranks, &r, &err);
    if (code < 0)
        g_test_message("%s: %s", text, err.text);
    g_assert_cmpint(code, ==, 0);
    g_assert_cmpstr(trp_site_request_text(&r, what, buf, sizeof buf), ==, words);
}

static void refuse(struct world *w, const char *text, uint32_t ranks, const char *words)
{
    struct trp_site_request r = {.cpus = 77};
    trp_error err = {0};
    int code = trp_site_request_make(w->s, profile(w, text), ranks, &r, &err);
    g_assert_cmpint(code, ==, TRP_ENEVER);
    g_assert_cmpstr(err.text, ==, words);
    g_assert_cmpint(r.cpus, ==, 77);
}

TEST("an executor is one task with all of its memory")
{
    struct world w = world(site_text);
    /* Half of the memory on top, at least 100 MiB; what is written wins; offHeap. */
    expect(&w, "cores 4 memory 1000", 0, TRP_SITE_FOR_STEP,
           "--nodes=1 --ntasks=1 --cpus-per-task=4 --mem=1500M");
    expect(&w, "cores 1 memory 100", 0, TRP_SITE_FOR_STEP,
           "--nodes=1 --ntasks=1 --cpus-per-task=1 --mem=200M");
    expect(&w, "cores 1 memory 100 memoryOverhead 1 offHeap 7", 0, TRP_SITE_FOR_STEP,
           "--nodes=1 --ntasks=1 --cpus-per-task=1 --mem=108M");
    expect(&w, "cores 4 memory 1000 gpu 2 / gpu 1", 0, TRP_SITE_FOR_STEP,
           "--nodes=1 --ntasks=1 --cpus-per-task=4 --mem=1500M --gres=gpu:2");
    expect(&w, "cores 4 memory 1000 gpu 2 / gpu 1", 0, TRP_SITE_FOR_JOB,
           "--nodes=1 --ntasks=1 --cpus-per-task=4 --mem=1500M --gres=gpu:2 "
           "--partition=gpu --qos=normal --exclusive");
    expect(&w, "cores 4 memory 1000 gpu 2 / gpu 1", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=4 --mem=1500M --gres=gpu:2 --partition=gpu --qos=normal");
    end(&w);
}

TEST("resources become gres, licences and constraints")
{
    struct world w = world(site_text);
    expect(&w, "cores 1 memory 200 a100 1 v100 2", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem=300M --gres=gpu:a100:1,gpu:v100:2 --partition=cpu");
    expect(&w, "cores 1 memory 200 a100 2", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem=300M --gres=gpu:a100:2 --partition=dgx "
           "--account=ai --reservation=r1");
    expect(&w, "cores 1 memory 200 nvme 9 matlab 3", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem=300M --gres=nvme:1 --licenses=matlab:3 "
           "--partition=cpu");
    expect(&w, "cores 1 memory 200 bigmem 5 ib 1", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem=300M --constraint=bigmem&ib --partition=cpu");
    expect(&w, "cores 1 memory 65536 memoryOverhead 1 bigmem 1", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem=65537M --constraint=bigmem&(new|old) "
           "--partition=fat");
    expect(&w, "cores 1 memory 200 gpu 0", 0, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem=300M --partition=cpu");
    end(&w);
}

TEST("a gang's ranks have a slot each")
{
    struct world w = world(site_text);
    /* Two slots: a rank has half of the memory. */
    expect(&w, "cores 4 memory 1000 / cpus 2", 8, TRP_SITE_FOR_STEP,
           "--ntasks=8 --cpus-per-task=2 --mem-per-cpu=375M");
    expect(&w, "cores 4 memory 1000 gpu 2 / cpus 2 gpu 1", 8, TRP_SITE_FOR_STEP,
           "--ntasks=8 --cpus-per-task=2 --mem-per-cpu=375M --gpus-per-task=1");
    expect(&w, "cores 4 memory 1000 a100 4 / cpus 2 a100 2", 3, TRP_SITE_FOR_JOB,
           "--ntasks=3 --cpus-per-task=2 --mem-per-cpu=375M --gpus-per-task=a100:2 "
           "--partition=dgx --account=ai --reservation=r1 --exclusive");
    expect(&w, "cores 4 memory 1000 gpu 1 / cpus 1 gpu 1/4", 6, TRP_SITE_FOR_STEP,
           "--ntasks=6 --cpus-per-task=1 --mem-per-cpu=375M --ntasks-per-gpu=4");
    expect(&w, "cores 4 memory 1000 a100 1 / cpus 1 a100 1/4", 6, TRP_SITE_FOR_STEP,
           "--nodes=1 --ntasks=6 --cpus-per-task=1 --mem-per-cpu=375M "
           "--gres=gpu:a100:2");
    expect(&w, "cores 4 memory 1000 nvme 1 gpu 4 / cpus 1 gpu 1 nvme 1/4", 3,
           TRP_SITE_FOR_STEP,
           "--nodes=1 --ntasks=3 --cpus-per-task=1 --mem-per-cpu=375M "
           "--gres=gpu:3,nvme:1");
    expect(&w, "cores 4 memory 1000 matlab 4 / matlab 1", 5, TRP_SITE_FOR_SHAPE,
           "--cpus-per-task=1 --mem-per-cpu=375M --licenses=matlab:5 --partition=cpu");
    end(&w);
}

TEST("what cannot be had is refused with the place")
{
    struct world w = world(site_text);
    refuse(&w, "cores 1 secret 1", 0,
           "resource secret is denied at s.yaml:19:29; ask for another one");
    refuse(&w, "cores 1 fpga 1", 0,
           "resource fpga is nothing that Slurm can be asked for; add it under "
           "resources: in s.yaml");
    refuse(&w, "cores 1 mark 1", 0,
           "resource mark is nothing that Slurm can be asked for; add it under "
           "resources: in s.yaml");
    refuse(&w, "cores 64 memory 200", 0,
           "no route at s.yaml:14:1 takes it (cores 64, memory 300 MiB); change the "
           "profile, or add a route without when:");
    refuse(&w, "cores 4 memory 200 card 2 / card 1", 2,
           "no route at s.yaml:14:1 takes it (cores 1, memory 150 MiB, card 1); change "
           "the profile, or add a route without when:");
    end(&w);
}

TEST("without a file a gpu is a gpu")
{
    struct world w = world("site: 1\n");
    expect(&w, "cores 2 memory 1024 gpu 1", 0, TRP_SITE_FOR_JOB,
           "--nodes=1 --ntasks=1 --cpus-per-task=2 --mem=1126M --gres=gpu:1");
    end(&w);
}

TEST("times are whole minutes, rounded up")
{
    char buf[32];
    g_assert_cmpstr(trp_slurm_minutes(INT64_C(60000000000), buf, sizeof buf), ==, "1");
    g_assert_cmpstr(trp_slurm_minutes(INT64_C(60000000001), buf, sizeof buf), ==, "2");
    g_assert_cmpstr(trp_slurm_minutes(1, buf, sizeof buf), ==, "1");
    g_assert_cmpstr(trp_slurm_minutes(INT64_C(86400000000000), buf, sizeof buf), ==,
                    "1440");
}

/* What only a discovery script knows of is not asked for; a gang has to have it. */
TEST("what a discovery script tells is not asked for")
{
    struct world w = world("site: 1\n"
                           "options: {executor.resource.fpga.discoveryScript: find}\n");
    struct trp_site_request r;
    trp_error err = {0};
    const struct trp_resource_profile *p =
        profile(&w, "cores 2 memory 100 fpga 1 gpu 1 / cpus 1 fpga 1 gpu 1");
    g_assert_cmpint(trp_site_request_make(w.s, p, 0, &r, &err), ==, 0);
    g_assert_cmpuint(r.ngres, ==, 1);
    g_assert_cmpstr(r.gres[0].name, ==, "gpu");
    g_assert_cmpint(trp_site_request_make(w.s, p, 2, &r, &err), ==, TRP_ENEVER);
    g_assert_nonnull(strstr(err.text, "resource fpga is nothing that Slurm"));
    end(&w);
}
