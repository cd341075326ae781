/*
 * The findings of `troupe check`: a site file and a cluster that go together, and each
 * thing that can be wrong with either.
 */
#include <glib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/slurm/check/check.h"
#include "unit.h"

static struct trp_slurm_facts facts;
static struct trp_slurm_findings found;
static const char *site_text;
static bool trial;

static void tell(const char *text)
{
    char buf[1024];
    struct trp_slurm_line line;
    g_strlcpy(buf, text, sizeof buf);
    g_assert_cmpint(trp_slurm_line_parse(buf, &line, NULL), ==, 0);
    g_assert_cmpint(trp_slurm_offers_add(&facts.offers, &line, NULL), ==, 0);
}

static const char good_site[] =
    "site: 1\n"
    "resources:\n"
    "  a100: {slurm: \"gres:gpu:a100\"}\n"
    "  matlab: {slurm: \"license:matlab\"}\n"
    "  bigmem: {slurm: \"constraint:bigmem\"}\n"
    "route:\n"
    "  - {when: {a100: \">=2\"}, partition: gpu}\n"
    "  - {partition: \"cpu,gpu\", constraint: \"[bigmem*2|new]\"}\n"
    "driver: {cores: 1, memory: 1g, time: 1h, partition: cpu}\n"
    "profiles:\n"
    "  small: {executor: {cores: 1, memory: 1g, matlab: 3}}\n"
    "  train: {executor: {cores: 16, memory: 32g, a100: 4}}\n";

/* A cluster in which that works. */
static void begin(const char *text)
{
    static struct trp_slurm_licence licences[] = {
        {"matlab", 3},
        {"spss",   1}
    };
    memset(&facts, 0, sizeof facts);
    site_text = text;
    trial = false;
    tell("1 partition name=cpu default=1 up=1 time=120 cpus=0");
    tell("1 partition name=gpu default=0 up=1 time=0 cpus=0");
    tell("1 shape nodes=8 cpus=8 threads=1 memory=16000 features=old,bigmem "
         "available=old,bigmem,new gres= partitions=cpu");
    tell("1 shape nodes=2 cpus=64 threads=1 memory=64000 features= available= "
         "gres=gpu:a100:4(S:0-1) partitions=gpu");
    facts.licences = licences;
    facts.nlicences = 2;
    facts.cluster = "c";
    facts.version = facts.built = "22.05.8";
    facts.auth = "auth/munge";
    facts.cli_filter = "lua";
    facts.topology = "topology/tree";
    facts.task = "task/affinity,task/cgroup";
    facts.gres = "gpu";
    facts.memory_is_handed_out = true;
    facts.ram = facts.devices = "yes";
    facts.racks = 2;
    facts.munge = "";
    facts.mpis = "Open MPI 4.1.4";
    facts.mpi_types = "none pmi2 pmix";
    facts.plugin = (struct trp_slurm_plugin){
        .line = {TRP_SLURM_THERE, "/etc/slurm/plugstack.conf:3",    ""},
        .site = "/etc/troupe/site.yaml",
        .file = {TRP_SLURM_THERE, "/usr/lib/slurm/spank_troupe.so", ""},
        .built = 0x160503,
        .shapes = {TRP_SLURM_THERE, "/etc/troupe/shapes",             ""}
    };
    facts.filter =
        (struct trp_slurm_file){TRP_SLURM_THERE, "/etc/slurm/cli_filter.lua", ""};
    facts.filter_is_ours = true;
}

static void check(void)
{
    trp_site *site = NULL;
    trp_options *options = NULL;
    trp_error err;
    trp_slurm_findings_free(&found);
    int code = trp_site_parse("/etc/troupe/site.yaml", site_text, strlen(site_text),
                              &site, &err);
    if (code == 0)
        code = trp_options_new(&options, &err);
    if (code == 0)
        code = trp_site_options(site, options, &err);
    if (code < 0)
        g_error("%s", err.text);
    struct trp_slurm_checked it = {site, options, trial,
                                   trial ? "/home/ada/new.yaml" : NULL};
    g_assert_cmpint(trp_slurm_check(&it, &facts, &found, &err), ==, 0);
    trp_options_free(options);
    trp_site_free(site);
}

static void end(void)
{
    facts.licences = NULL;
    trp_slurm_facts_free(&facts);
    trp_slurm_findings_free(&found);
}

/* How many findings there are of that severity about that. */
static uint32_t count(enum trp_slurm_severity severity, const char *about)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < found.n; i++)
        n += found.v[i].severity == severity && !strcmp(found.v[i].about, about);
    return n;
}

/* Of all findings but what is fine there is one, and it is that: "where: text; todo".
 */
static void only(enum trp_slurm_severity severity, const char *about, const char *line)
{
    check();
    for (uint32_t i = 0; i < found.n; i++) {
        const struct trp_slurm_finding *v = &found.v[i];
        if (v->severity == TRP_SLURM_FINE)
            continue;
        g_autofree char *got =
            g_strdup_printf("%s: %s; %s", v->where, v->text, v->todo);
        g_assert_cmpstr(got, ==, line);
        g_assert_cmpstr(v->about, ==, about);
        g_assert_cmpint(v->severity, ==, severity);
    }
    g_assert_cmpuint(found.errors, ==, severity == TRP_SLURM_ERROR);
    g_assert_cmpuint(found.warnings, ==, severity == TRP_SLURM_WARNING);
    g_assert_cmpuint(count(TRP_SLURM_FINE, about), ==, 0);
}

#define ERROR(about, line) only(TRP_SLURM_ERROR, about, line)
#define WARNING(about, line) only(TRP_SLURM_WARNING, about, line)

TEST("what goes together is fine")
{
    static const char *const all[] = {
        "version", "site",    "partition", "gres",       "licence", "feature",
        "route",   "profile", "driver",    "memory",     "devices", "munge",
        "mpi",     "plugin",  "shapes",    "cli_filter", "topology"};
    begin(good_site);
    check();
    g_assert_cmpuint(found.errors, ==, 0);
    g_assert_cmpuint(found.warnings, ==, 0);
    g_assert_cmpuint(found.n, ==, G_N_ELEMENTS(all));
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_assert_cmpstr(found.v[i].about, ==, all[i]);
        g_assert_cmpint(found.v[i].severity, ==, TRP_SLURM_FINE);
        g_assert_cmpstr(found.v[i].todo, ==, "");
    }
    end();
}

TEST("versions")
{
    begin(good_site);
    facts.version = "21.08.8-2";
    facts.plugin.built = 0x150801;
    ERROR("version", ": slurmctld is Slurm 21.08.8-2, older than 22.05.8, for which "
                     "Troupe was built: it need not understand a newer one; build "
                     "Troupe with the headers of this Slurm");
    facts.version = "23.02.0";
    facts.plugin.built = 0x170200;
    WARNING("version", ": slurmctld is Slurm 23.02.0, newer than 22.05.8, for which "
                       "Troupe was built; build Troupe with the headers of this Slurm");
    facts.version = facts.built;
    facts.plugin.built = 0x160508;
    tell("1 shape nodes=3 cpus=1 threads=1 memory=1 partitions=cpu version=22.05.2");
    tell("1 shape nodes=3 cpus=1 threads=1 memory=1 partitions=cpu version=21.08.8");
    tell("1 shape nodes=2 cpus=2 threads=1 memory=1 partitions=cpu version=21.08.8");
    WARNING("version", ": 5 nodes run Slurm 21.08.8: it does not load a plugin built "
                       "for 22.05.8; build Troupe with the headers of this Slurm");
    end();
    begin(good_site);
    facts.version = "22.05.0";
    facts.plugin.built = 0x160508;
    check();
    g_assert_cmpuint(found.errors + found.warnings, ==, 0);
    end();
}

TEST("partitions")
{
    begin("site: 1\nroute:\n  - {partition: cpx}\n");
    ERROR("partition",
          "/etc/troupe/site.yaml:3:17: Slurm has no partition cpx; did you "
          "mean cpu?");
    g_assert_cmpuint(count(TRP_SLURM_FINE, "profile"), ==, 0);
    site_text = "site: 1\nroute:\n  - {partition: \"cpu,elsewhere\"}\n";
    ERROR("partition", "/etc/troupe/site.yaml:3:17: Slurm has no partition elsewhere; "
                       "there are: cpu, gpu");
    site_text = "site: 1\ndriver: {partition: nowhere}\n";
    ERROR("partition", "/etc/troupe/site.yaml:2:21: Slurm has no partition nowhere; "
                       "there are: cpu, gpu");
    g_assert_cmpuint(count(TRP_SLURM_FINE, "driver"), ==, 0);
    site_text = "site: 1\nroute:\n  - {partition: cpu}\ndriver: {cores: 1}\n";
    facts.offers.partitions[0].is_default = false;
    ERROR("partition",
          "/etc/troupe/site.yaml:4:1: driver: goes to no partition by name, and Slurm "
          "has no default one; name one, or give one Default=YES in "
          "slurm.conf");
    site_text = "site: 1\ndriver: {partition: cpu}\n";
    ERROR("partition",
          ": profiles go to no partition by name, and Slurm has no default "
          "one; name one, or give one Default=YES in slurm.conf");
    site_text = "site: 1\n";
    check();
    g_assert_cmpuint(found.errors, ==, 1);
    site_text = "site: 1\nroute:\n  - {partition: gpu}\ndriver: {partition: cpu}\n";
    facts.offers.partitions[0].is_up = false;
    WARNING("partition", "/etc/troupe/site.yaml:4:21: partition cpu is not up: no job "
                         "starts there; scontrol update PartitionName=cpu State=UP");
    end();
}

TEST("GRES")
{
    begin("site: 1\nresources: {fpga: {slurm: \"gres:fpga\"}}\n");
    ERROR("gres", "/etc/troupe/site.yaml:2:13: no node has the GRES fpga; there are: "
                  "gpu:a100");
    site_text = "site: 1\nresources: {a1: {slurm: \"gres:gpu:a10\"}}\n";
    ERROR("gres", "/etc/troupe/site.yaml:2:13: no node has the GRES gpu:a10; did you "
                  "mean gpu:a100?");
    site_text = "site: 1\nresources: {a1: {slurm: \"gres:gpu\"}}\n";
    check();
    g_assert_cmpuint(found.errors, ==, 0);
    facts.offers.v[1].npools = 0;
    ERROR("gres", "/etc/troupe/site.yaml:2:13: no node has the GRES gpu; there are "
                  "none: add it to Slurm, or remove it here");
    end();
}

TEST("licences")
{
    begin("site: 1\nresources: {m: {slurm: \"license:mathlab\"}}\n");
    ERROR("licence",
          "/etc/troupe/site.yaml:2:13: Slurm has no licence mathlab; did you "
          "mean matlab?");
    site_text = "site: 1\nresources: {m: {slurm: \"license:ansys\"}}\n";
    ERROR("licence", "/etc/troupe/site.yaml:2:13: Slurm has no licence ansys; there "
                     "are: matlab, spss");
    end();
}

TEST("features")
{
    begin("site: 1\nresources: {f: {slurm: \"constraint:fast\"}}\n");
    ERROR("feature", "/etc/troupe/site.yaml:2:13: no node has the feature fast; there "
                     "are: old, bigmem");
    /* What a node can have after a reboot is there; counts are no features. */
    site_text = "site: 1\nroute: [{constraint: \"[new*4&old*2]\"}]\n";
    check();
    g_assert_cmpuint(found.errors, ==, 0);
    site_text = "site: 1\nroute: [{constraint: \"[new*4&olf*2]\"}]\n";
    ERROR("feature", "/etc/troupe/site.yaml:2:22: no node has the feature olf; did you "
                     "mean old?");
    end();
}

TEST("routes that are of no use")
{
    begin("site: 1\nroute:\n  - {partition: cpu}\n"
          "  - {when: {cores: \">4\"}, partition: gpu}\n");
    WARNING("route",
            "/etc/troupe/site.yaml:4:5: this route can never match: the one at "
            "line 3 comes first and takes all of it; put this one before it, "
            "or remove it");
    site_text = "site: 1\nroute:\n  - {when: {cores: \">=9\"}, partition: cpu}\n"
                "  - {partition: cpu}\n";
    WARNING("route",
            "/etc/troupe/site.yaml:3:20: this route can never be used: it "
            "wants cores 9 or more, and a node of partition cpu has 8 at most; "
            "correct its when:, or remove it");
    site_text = "site: 1\nroute:\n  - {when: {memory: \">64g\"}, partition: gpu}\n"
                "  - {partition: cpu}\n";
    WARNING("route", "/etc/troupe/site.yaml:3:21: this route can never be used: it "
                     "wants memory 65537 MiB or more, and a node of partition gpu has "
                     "64000 MiB at most; correct its when:, or remove it");
    site_text = "site: 1\nroute:\n  - {when: {gpu: \">4\"}, partition: gpu}\n"
                "  - {partition: cpu}\n";
    WARNING("route", "/etc/troupe/site.yaml:3:18: this route can never be used: it "
                     "wants gpu 5 or more, and a node of partition gpu has 4 at most; "
                     "correct its when:, or remove it");
    site_text = "site: 1\nresources: {m: {slurm: \"license:matlab\"}}\nroute:\n"
                "  - {when: {m: \"4\"}, partition: gpu}\n  - {partition: cpu}\n";
    WARNING("route", "/etc/troupe/site.yaml:4:16: this route can never be used: it "
                     "wants m 4 or more, and the cluster has 3 at most; correct its "
                     "when:, or remove it");
    end();
}

TEST("profiles that no node holds")
{
    begin("site: 1\nroute: [{partition: cpu}]\nprofiles:\n"
          "  fat: {executor: {cores: 9, memory: 1g}}\n");
    ERROR("profile", "/etc/troupe/site.yaml:4:3: profile fat can never be had: no node "
                     "of partition cpu is so large: cores wanted 9, at most 8; make it "
                     "smaller, or route it elsewhere");
    site_text = "site: 1\nroute: [{partition: \"cpu,gpu\"}]\nprofiles:\n"
                "  fat: {executor: {cores: 9, memory: 1g}}\n";
    check();
    g_assert_cmpuint(found.errors, ==, 0);
    site_text = "site: 1\nroute: [{partition: gpu, constraint: old}]\n"
                "driver: {partition: cpu}\n";
    ERROR("profile", ": profile default can never be had: no node of partition gpu is "
                     "so large: old wanted 1, at most 0; make it smaller, or route it "
                     "elsewhere");
    site_text = "site: 1\nresources: {m: {slurm: \"license:matlab\"}}\nprofiles:\n"
                "  many: {executor: {cores: 1, memory: 1g, m: 4}}\n";
    ERROR("profile",
          "/etc/troupe/site.yaml:4:3: profile many can never be had: licence "
          "matlab wanted 4, Slurm has 3; ask for less");
    site_text = "site: 1\nlimits: {deny: [gpu]}\nroute: [{partition: gpu}]\nprofiles:\n"
                "  dev: {executor: {cores: 1, memory: 1g, gpu: 1}}\n";
    ERROR("profile",
          "/etc/troupe/site.yaml:5:3: profile dev can never be had: resource "
          "gpu is denied at /etc/troupe/site.yaml:2:16; ask for another one");
    site_text = "site: 1\nprofiles:\n"
                "  odd: {executor: {cores: 1, memory: 1g}, task: {cpus: 2}}\n";
    check();
    g_assert_cmpuint(count(TRP_SLURM_ERROR, "profile"), ==, 1);
    g_assert_cmpuint(found.errors + found.warnings, ==, 1);
    end();
}

TEST("the driver's job")
{
    begin("site: 1\ndriver: {cores: 12, partition: cpu}\n");
    ERROR("driver", "/etc/troupe/site.yaml:2:1: the driver's job can never be had: no "
                    "node of partition cpu is so large: cores wanted 12, at most 8; "
                    "make it smaller, or name another partition");
    site_text = "site: 1\ndriver: {memory: 527m, partition: cpu}\n";
    ERROR("driver",
          "/etc/troupe/site.yaml:2:1: the driver takes 528 MiB (driver.memory "
          "512 MiB, and 16 MiB for an srun), its job has 527 MiB; give it more "
          "memory, or set driver.memory");
    site_text = "site: 1\ndriver: {time: 3h, partition: cpu}\n";
    ERROR("driver", "/etc/troupe/site.yaml:2:16: the driver's job wants 180 minutes, "
                    "partition cpu gives 120 at most; write less, or name another "
                    "partition");
    site_text = "site: 1\ndriver: {time: 3h, partition: gpu}\n";
    check();
    g_assert_cmpuint(found.errors, ==, 0);
    end();
}

TEST("memory and devices")
{
    begin(good_site);
    facts.memory_is_handed_out = false;
    WARNING("memory", ": memory is not handed out: SelectTypeParameters is without "
                      "Memory, so jobs share it unasked; add it in slurm.conf, as in "
                      "SelectTypeParameters=CR_Core_Memory");
    facts.memory_is_handed_out = true;
    facts.ram = "no";
    WARNING("memory",
            "cgroup.conf: memory is not enforced: ConstrainRAMSpace=no; write "
            "ConstrainRAMSpace=yes there and restart slurmctld and slurmd");
    facts.ram = "yes";
    facts.devices = "no";
    WARNING("devices", "cgroup.conf: tasks can open devices of others: "
                       "ConstrainDevices=no; write ConstrainDevices=yes there and "
                       "restart slurmctld and slurmd");
    facts.devices = "";
    WARNING("devices", ": tasks can open devices of others or not, slurmctld does not "
                       "tell; look at cgroup.conf");
    facts.gres = "";
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    facts.task = "task/affinity";
    WARNING("memory", ": memory is not enforced: TaskPlugin=task/affinity, without "
                      "task/cgroup; add task/cgroup to TaskPlugin in slurm.conf");
    end();
}

TEST("srun lacks what gangs are started by")
{
    begin(good_site);
    facts.mpi_types = "none pmi2";
    WARNING("mpi",
            ": gangs of Open MPI cannot start: srun has no --mpi=pmix, only none "
            "pmi2; build Slurm with PMIx");
    facts.mpi_types = "none pmi2 pmix_v4";
    check();
    g_assert_cmpuint(found.errors + found.warnings, ==, 0);
    site_text = "site: 1\nmpi: pmix_v4\n";
    check();
    g_assert_cmpuint(found.errors + found.warnings, ==, 0);
    site_text = "site: 1\nmpi: cray\n";
    ERROR("mpi", ": gangs are started by srun --mpi=cray, and srun has none pmi2 "
                 "pmix_v4; set mpi: in the site file to one of these, or leave it out");
    facts.mpi_types = "";
    check();
    g_assert_cmpuint(found.errors + found.warnings, ==, 0);
    end();
}

TEST("MUNGE")
{
    begin(good_site);
    facts.auth = "auth/jwt";
    WARNING("munge",
            ": Slurm does without MUNGE (AuthType=auth/jwt), so hosts may lack "
            "it; run munged with one key on all hosts, or set "
            "admission.munge=off in the site file's options");
    facts.auth = "auth/munge";
    facts.munge = "Socket error";
    WARNING("munge", ": MUNGE does not answer on this host (Socket error): runs from "
                     "here have but their secret; start munged, with the key of the "
                     "other hosts");
    site_text = "site: 1\noptions: {admission.munge: on}\n";
    ERROR("munge", ": MUNGE does not answer on this host (Socket error), and "
                   "admission.munge is on; start munged, with the key of the other "
                   "hosts");
    site_text = "site: 1\noptions: {admission.munge: off}\n";
    check();
    g_assert_cmpuint(found.errors + found.warnings, ==, 0);
    end();
}

/* Where another user can make the folder first, jobs of that node have none. */
TEST("scratch in a folder of all")
{
    g_autofree char *site = g_strconcat(good_site, "scratch: /var/tmp/troupe\n", NULL);
    g_autofree char *base = g_dir_make_tmp("troupe-check-XXXXXX", NULL);
    g_autofree char *below = g_build_filename(base, "a", "troupe", NULL);
    trp_error err;
    begin(site);
    g_assert_cmpint(trp_slurm_facts_scratch(&facts, "/var/tmp/troupe", &err), ==, 0);
    g_assert_cmpstr(facts.scratch_in, ==, "/var/tmp");
    WARNING("plugin", "/etc/troupe/site.yaml: scratch: /var/tmp/troupe lies in "
                      "/var/tmp, where others than root can write: who makes it first "
                      "on a node leaves jobs there without folders; name a folder "
                      "above which only root can write, such as /var/lib/troupe");
    g_assert_cmpint(trp_slurm_facts_scratch(&facts, below, &err), ==, 0);
    g_assert_nonnull(facts.scratch_in);
    static const char *const good[] = {"/var/lib/troupe", "/var/tmp", "/nowhere/a/b"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        g_assert_cmpint(trp_slurm_facts_scratch(&facts, good[i], &err), ==, 0);
        g_assert_null(facts.scratch_in);
    }
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    end();
    rmdir(base);
}

TEST("a slurmd that is older than the plugin's line makes no folders for jobs")
{
    begin(good_site);
    tell("1 shape nodes=3 cpus=8 threads=1 memory=16000 features= available= gres= "
         "partitions=cpu oldest=n7 since=1000");
    tell("1 shape nodes=3 cpus=4 threads=1 memory=16000 features= available= gres= "
         "partitions=cpu oldest=n9 since=2000");
    facts.plugin.changed = 1500;
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    g_autofree char *site = g_strconcat(good_site, "scratch: /var/lib/troupe\n", NULL);
    site_text = site;
    WARNING("plugin", "/etc/slurm/plugstack.conf:3: slurmd on n7, and maybe on others, "
                      "began before this file was changed: if it did not load the "
                      "plugin, jobs there get no folder (scratch:); restart slurmd on "
                      "the nodes");
    facts.plugin.changed = 900;
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    end();
}

TEST("the plugin")
{
    struct trp_slurm_plugin *p = &facts.plugin;
    begin(good_site);
    p->site = "/opt/site.yaml";
    WARNING("plugin", "/etc/slurm/plugstack.conf:3: the plugin reads /opt/site.yaml, "
                      "users' commands /etc/troupe/site.yaml; write "
                      "site=/etc/troupe/site.yaml there, or check that one: --site "
                      "/opt/site.yaml");
    trial = true;
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    p->site = TRP_SLURM_PLUGIN_SITE;
    p->built = 0x150803;
    WARNING("plugin",
            "/etc/slurm/plugstack.conf:3: /usr/lib/slurm/spank_troupe.so was "
            "built for Slurm 21.08, and Slurm 22.05.8 does not load it: there "
            "is no --stage-profile; build Troupe with the headers of this "
            "Slurm");
    p->built = 0;
    p->required = true;
    ERROR("plugin", "/etc/slurm/plugstack.conf:3: /usr/lib/slurm/spank_troupe.so is no "
                    "SPANK plugin, and it is required: no job can be started; install "
                    "Troupe's");
    p->file.seen = TRP_SLURM_MISSING;
    ERROR("plugin",
          "/etc/slurm/plugstack.conf:3: /usr/lib/slurm/spank_troupe.so is not "
          "there, and it is required: no job can be started; install it "
          "there, or write its path");
    p->required = false;
    p->file.seen = TRP_SLURM_UNSEEN;
    p->file.why = "Permission denied";
    WARNING("plugin",
            "/etc/slurm/plugstack.conf:3: /usr/lib/slurm/spank_troupe.so "
            "cannot be read (Permission denied): there is no --stage-profile; "
            "let all users read it");
    *p = (struct trp_slurm_plugin){
        .line = {TRP_SLURM_MISSING, "/etc/slurm/plugstack.conf", ""}
    };
    trial = false;
    WARNING("plugin", "/etc/slurm/plugstack.conf: Slurm does not load spank_troupe.so: "
                      "there is no --stage-profile; add the line: optional "
                      "spank_troupe.so site=/etc/troupe/site.yaml");
    trial = true;
    WARNING("plugin", "/etc/slurm/plugstack.conf: Slurm does not load spank_troupe.so: "
                      "there is no --stage-profile; add the line: optional "
                      "spank_troupe.so site=/home/ada/new.yaml");
    p->line = (struct trp_slurm_file){TRP_SLURM_UNSEEN, "/etc/slurm/plugstack.conf",
                                      "Permission denied"};
    WARNING("plugin", ": whether Slurm loads spank_troupe.so cannot be told here: "
                      "/etc/slurm/plugstack.conf: Permission denied; run troupe check "
                      "where Slurm's files can be read");
    end();
}

TEST("shapes")
{
    struct trp_slurm_plugin *p = &facts.plugin;
    begin(good_site);
    p->shapes_are_old = true;
    WARNING("shapes", "/etc/troupe/shapes: it is older than /etc/troupe/site.yaml, of "
                      "which it was made; troupe site-shape --all --site "
                      "/etc/troupe/site.yaml --output /etc/troupe/shapes");
    p->shapes.seen = TRP_SLURM_MISSING;
    WARNING("shapes", "/etc/troupe/shapes: it is not there: every --stage-profile is "
                      "refused; troupe site-shape --all --site /etc/troupe/site.yaml "
                      "--output /etc/troupe/shapes");
    p->shapes.seen = TRP_SLURM_UNSEEN;
    p->shapes.why = "Permission denied";
    WARNING("shapes",
            "/etc/troupe/shapes: it cannot be read (Permission denied): every "
            "--stage-profile is refused; let all users read it");
    end();
}

TEST("the filter")
{
    begin(good_site);
    facts.cli_filter = "cli_filter/syslog,cli_filter/lua";
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    facts.cli_filter = "syslog,luau";
    WARNING("cli_filter",
            ": CliFilterPlugins=syslog,luau, without lua: --stage-profile "
            "gives jobs no shape; write CliFilterPlugins=lua in "
            "slurm.conf and put slurm-conf/cli_filter.lua beside it");
    facts.cli_filter = "lua";
    facts.filter_is_ours = false;
    WARNING("cli_filter", "/etc/slurm/cli_filter.lua: nothing of Troupe's is in it: "
                          "--stage-profile gives jobs no shape; add what "
                          "slurm-conf/cli_filter.lua does");
    facts.filter.seen = TRP_SLURM_MISSING;
    ERROR("cli_filter", "/etc/slurm/cli_filter.lua: CliFilterPlugins has lua, and its "
                        "file is not there: no job can be submitted; put "
                        "slurm-conf/cli_filter.lua there");
    facts.filter.seen = TRP_SLURM_UNSEEN;
    facts.filter.why = "Permission denied";
    WARNING("cli_filter", ": what cli_filter.lua does cannot be told here: "
                          "/etc/slurm/cli_filter.lua: Permission denied; run troupe "
                          "check where Slurm's files can be read");
    end();
}

TEST("racks")
{
    begin(good_site);
    facts.racks = 0;
    facts.topology = "topology/none";
    WARNING("topology",
            ": no racks are known (TopologyPlugin=topology/none): all nodes "
            "count as equally near; write TopologyPlugin=topology/tree and "
            "topology.conf, or racks: in the site file");
    facts.no_scontrol = true;
    WARNING("topology",
            ": there is no scontrol in PATH, which tells of racks: all nodes count "
            "as equally near; put Slurm's commands into PATH, also where troupe run "
            "is called, or write racks: in the site file");
    site_text = "site: 1\nracks: {pattern: \"r([0-9]+)n.*\"}\n";
    check();
    g_assert_cmpuint(found.warnings, ==, 0);
    end();
}
