/*
 * What `troupe report` reads: an event log and, behind a line "--sacct--", what sacct
 * prints. Any bytes are taken or refused with their line; what is taken can be printed,
 * and the sums of the comparison are those of its steps.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conf_error.h"
#include "events/account.h"
#include "events/comparison.h"
#include "events/run_parts.h"
#include "events/story.h"
#include "events/summary.h"

static void check_account(const struct trp_run_record *r, const struct trp_sacct *rows)
{
    struct trp_account a;
    uint32_t with = 0, disagree = 0;
    if (trp_account_make(r, rows, &a) < 0)
        abort();
    for (uint32_t i = 0; i < a.nsteps; i++) {
        const struct trp_account_step *s = &a.steps[i];
        with += s->slurm != NULL;
        disagree += s->slurm && !s->agree;
        FUZZ_CHECK(!s->slurm || (s->slurm->job == s->ours->job &&
                                 strcmp(s->slurm->name, s->ours->name) == 0 &&
                                 trp_sacct_is_over(s->slurm)),
                   "step %s has the row of another", s->ours->name);
    }
    FUZZ_CHECK(a.total.steps == with && a.total.disagree == disagree &&
                   a.lacking == a.nsteps - with &&
                   a.nsteps + a.open + a.never == r->nsteps,
               "%u of %u steps are in no sum", a.nsteps - with, r->nsteps);
    for (uint32_t i = 0; i < a.nprofiles; i++)
        with -= a.profiles[i].steps;
    FUZZ_CHECK(with == 0, "%u steps have no profile", with);
    trp_account_free(&a);
}

static void read_story(const char *file)
{
    trp_error err = {0};
    json_t *story = NULL;
    int rc = trp_story_read(file, NULL, false, &story, &err);
    FUZZ_CHECK(rc < 0 ? err.text[0] && !story : json_is_object(story), "a story: %d",
               rc);
    json_decref(story);
}

/* What a run was made of is read where its record is, and there is one of each. */
static void read_parts(const char *file, bool readable)
{
    struct trp_run_records r;
    struct trp_run_parts parts;
    trp_error err = {0};
    int rc = trp_run_parts_read(file, NULL, &r, &parts, &err);
    FUZZ_CHECK((rc == 0) == readable, "parts: %d, %s", rc, err.text);
    if (rc < 0)
        return;
    FUZZ_CHECK(parts.n == r.n, "%u parts of %u starts", parts.n, r.n);
    for (uint32_t i = 0; i < parts.n; i++)
        for (const struct trp_run_counted *t = parts.v[i]->tries; t; t = t->hh.next)
            FUZZ_CHECK(t->counts.summarised <= t->counts.succeeded + t->counts.killed,
                       "more is summarised than was counted");
    struct trp_comparison c;
    if (trp_comparison_make(&r, &r, false, &c) < 0)
        abort();
    for (uint32_t i = 0; i < c.n; i++)
        FUZZ_CHECK(!(c.rows[i]->weight > 0), "%s differs from itself", c.rows[i]->name);
    trp_comparison_free(&c);
    trp_run_parts_free(&parts);
    trp_run_records_free(&r);
}

static void use_log(const uint8_t *data, size_t size, const struct trp_sacct *rows)
{
    char file[64];
    struct trp_run_records r;
    trp_error err = {0};
    int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    int rc = trp_run_records_read(file, &r, &err);
    read_story(file);
    read_parts(file, rc == 0);
    close(fd);
    if (rc < 0) {
        conf_check_error(rc, &err, NULL);
        FUZZ_CHECK(strncmp(err.text, file, strlen(file)) == 0, "no file: %s", err.text);
        return;
    }
    FUZZ_CHECK(r.n > 0, "a log without a start");
    for (uint32_t i = 0; i < r.n; i++) {
        char *text = NULL;
        size_t n = 0;
        FILE *out = open_memstream(&text, &n);
        if (!out)
            abort();
        trp_summary_print(&r.v[i]->statistics, i & 1, i & 2, out);
        fclose(out);
        FUZZ_CHECK(strstr(text, "\ntotal "), "no total: %s", text);
        free(text);
        check_account(r.v[i], rows);
    }
    trp_run_records_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "\n--sacct--\n";
    struct trp_sacct rows = {0};
    trp_error err = {0};
    const uint8_t *at = memmem(data, size, mark, strlen(mark));
    size_t log = at ? (size_t)(at - data) + 1 : size;
    if (at) {
        char *text =
            strndup((const char *)at + strlen(mark), size - log - strlen(mark) + 1);
        int rc = trp_sacct_parse(text, &rows, &err);
        FUZZ_CHECK(rc == 0 || (rc == TRP_EINVAL && strncmp(err.text, "line ", 5) == 0),
                   "no line: %s", err.text);
        free(text);
    }
    use_log(data, log, &rows);
    trp_sacct_free(&rows);
    return 0;
}
