/*
 * `troupe check`: the site file and the live cluster, a line a finding.
 *
 * Facts are collected by cluster/slurm/check/facts.h, with troupe-slurm; what they mean is
 * decided by cluster/slurm/check/check.h; here they are printed.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "args.h"
#include "cluster/slurm/accounts/inventory.h"
#include "cluster/slurm/check/check.h"
#include "comm/munge.h"
#include "commands.h"
#include "conf/racks.h"
#include "events/json_print.h"
#include "mpis.h"
#include "os/colour.h"
#include "programs.h"
#include "settings.h"

#define CANNOT "Slurm cannot be asked on this host: "
#define ELSEWHERE "; run troupe check where sinfo works"

static const char *const severity[] = {[TRP_SLURM_FINE] = "ok",
                                       [TRP_SLURM_WARNING] = "warning",
                                       [TRP_SLURM_ERROR] = "error"};
static const enum trp_colour colours[] = {[TRP_SLURM_FINE] = TRP_COLOUR_GOOD,
                                          [TRP_SLURM_WARNING] = TRP_COLOUR_WARN,
                                          [TRP_SLURM_ERROR] = TRP_COLOUR_BAD};

/* ---- asking ---- */

/* Why libslurm ended the helper, if it did: "…: fatal: REASON". */
static void add_reason(int log, trp_error *err)
{
    static const char sign[] = "fatal: ";
    char text[4096];
    ssize_t n = pread(log, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    char *reason = strstr(text, sign);
    if (!reason)
        return;
    reason += strlen(sign);
    reason[strcspn(reason, "\n")] = '\0';
    trp_error_set(err, err->code, CANNOT "%s" ELSEWHERE, reason);
}

static int ask_slurm(struct trp_slurm_facts *f, trp_error *err)
{
    const char *conf = getenv("SLURM_CONF");
    char *program = NULL;
    trp_slurm_helper *h = NULL;
    trp_error why;
    /* libslurm would wait a minute for it. */
    if (conf && access(conf, R_OK) < 0)
        return trp_error_set(err, TRP_ESYSTEM, CANNOT "SLURM_CONF is %s: %m" ELSEWHERE,
                             conf);
    if (trp_program_own("troupe-slurm", &program, &why) < 0)
        return trp_error_set(err, TRP_ESYSTEM,
                             "%s: it is built where libslurm-dev is installed",
                             why.text);
    int log = memfd_create("troupe-slurm", MFD_CLOEXEC);
    int code = trp_slurm_helper_start(program, log, &h, err);
    if (code == 0) {
        code = trp_slurm_facts_ask(h, f, err);
        trp_slurm_helper_stop(h, false);
    }
    if (code < 0 && log >= 0)
        add_reason(log, err);
    if (log >= 0)
        close(log);
    free(program);
    return code;
}

/* ---- printing ---- */

static void print_text(const struct trp_slurm_facts *f,
                       const struct trp_slurm_findings *v, bool verbose)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const struct trp_slurm_finding *x = &v->v[i];
        if (x->severity == TRP_SLURM_FINE && !verbose)
            continue;
        printf("%s%s:%s %s: %s%s%s%s%s\n", trp_colour(1, colours[x->severity]),
               severity[x->severity], trp_colour(1, TRP_COLOUR_NONE), x->about,
               x->where, *x->where ? ": " : "", x->text, *x->todo ? "; " : "", x->todo);
    }
    printf("cluster %s, Slurm %s: %u error%s, %u warning%s\n", f->cluster, f->version,
           v->errors, v->errors == 1 ? "" : "s", v->warnings,
           v->warnings == 1 ? "" : "s");
}

static void print_json(const struct trp_slurm_facts *f, const char *site,
                       const struct trp_slurm_findings *v)
{
    json_t *findings = json_array();
    for (uint32_t i = 0; i < v->n; i++) {
        const struct trp_slurm_finding *x = &v->v[i];
        json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:s, s:s}",
                                                  "severity", severity[x->severity],
                                                  "about", x->about, "where", x->where,
                                                  "text", x->text, "todo", x->todo));
    }
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:o}", "cluster", f->cluster, "slurm",
                  f->version, "site", site, "errors", (int)v->errors, "warnings",
                  (int)v->warnings, "findings", findings);
    trp_json_print(document, JSON_INDENT(2), stdout);
    json_decref(document);
}

/* ---- the command ---- */

/* The site file's racks are read as a run reads them. */
static int try_racks(const trp_site *site, trp_error *err)
{
    trp_racks *racks = NULL;
    int code = trp_racks_open(site, &racks, err);
    trp_racks_close(racks);
    return code;
}

/* What is of this host and not asked of Slurm; texts of the facts. */
struct host_texts {
    trp_error munge;
    char mpis[TRP_MPIS_MAX * 80], mpi_types[TRP_SLURM_MPI_TYPES];
};

static void collect_host(struct trp_slurm_facts *f, struct host_texts *t)
{
    struct trp_mpi_here v[TRP_MPIS_MAX];
    uint32_t n = trp_mpis_find(v);
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(t->mpis + at, sizeof t->mpis - at, "%s%s", i ? ", " : "",
                               v[i].name);
    trp_mpis_srun(t->mpi_types, sizeof t->mpi_types);
    f->mpis = t->mpis;
    f->mpi_types = t->mpi_types;
    char *scontrol = NULL;
    f->no_scontrol = trp_program_find("scontrol", &scontrol, NULL) < 0;
    free(scontrol);
    f->munge = trp_munge_works(&t->munge) < 0 ? t->munge.text : "";
}

static int collect(struct trp_slurm_facts *f, struct host_texts *t, trp_error *err)
{
    int code = ask_slurm(f, err);
    if (code == 0)
        code = trp_slurm_facts_look(f, getenv("SLURM_CONF"), err);
    collect_host(f, t);
    return code;
}

/* As plugstack.conf wants it. NULL: it cannot be told. */
static char *whole_path(const char *file)
{
    return *file == '/' ? strdup(file) : realpath(file, NULL);
}

static int check(const struct trp_settings_request *q, bool json, bool verbose)
{
    struct trp_settings s;
    struct trp_slurm_facts f = {0};
    struct trp_slurm_findings v = {0};
    struct host_texts texts = {.mpis = ""};
    trp_error err;
    int code = trp_settings_load(q, &s, &err);
    if (code == 0)
        code = try_racks(s.site, &err);
    if (code == 0)
        code = collect(&f, &texts, &err);
    if (code == 0 && s.site->scratch)
        code = trp_slurm_facts_scratch(&f, s.site->scratch, &err);
    char *file = code == 0 && *s.site->file ? whole_path(s.site->file) : NULL;
    const struct trp_slurm_checked it = {s.site, s.options, q->site != NULL, file};
    if (code == 0)
        code = trp_slurm_check(&it, &f, &v, &err);
    if (code == 0 && json)
        print_json(&f, s.site->file, &v);
    else if (code == 0)
        print_text(&f, &v, verbose);
    int status =
        code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(v.errors > 0 ? 1 : 0);
    free(file);
    trp_slurm_findings_free(&v);
    trp_slurm_facts_free(&f);
    trp_settings_free(&s);
    return status;
}

static struct {
    struct trp_settings_request q;
    bool json, verbose;
} call;

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    (void)a;
    return trp_settings_take(&call.q, what, value, err);
}

const struct trp_line trp_line_check = {
    "check",
    "usage: troupe check [options]\n\n"
    "Looks whether the site file and this cluster go together, and prints a line\n"
    "for what is wrong (error), what works worse than it could (warning), and what\n"
    "to do.\n\n",
    "\nExit status: 0 no errors, 1 errors, 2 wrong call or site file, 4 Slurm does\n"
    "not answer.\n",
    .table = TRP_ARGS(
        TRP_SETTINGS_SITE,
        TRP_ARGS_FLAG("verbose", &call.verbose, "a line for what is fine, too"),
        TRP_ARGS_JSON(&call.json)),
    .take = on_argument};

int trp_launcher_check(void)
{
    return check(&call.q, call.json, call.verbose);
}
