/*
 * Cluster and durations files of `troupe sim`, and event logs that durations are taken
 * from: any bytes are one or an error with its place; of a file that is taken every
 * distribution gives times that can be.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "conf_error.h"
#include "sim/run/cluster_file.h"
#include "sim/run/durations_file.h"

static const char stages[] = "troupe: 1\n"
                             "stages:\n"
                             "  - {name: a, tasks: 3, run: x}\n"
                             "  - {name: b, after: [a], run: x}\n"
                             "  - {name: g, after: [b], mpi: {ranks: 2}, run: x}\n";

static void draw(const struct trp_distribution *d)
{
    struct trp_random r = trp_random_of(1, TRP_DRAW_TASK, 2, 3);
    for (int i = 0; i < 8; i++) {
        int64_t ns = trp_distribution_draw(d, &r);
        FUZZ_CHECK(ns >= 0 && ns <= TRP_SIM_TIME_MAX, "%lld ns", (long long)ns);
    }
    FUZZ_CHECK(trp_distribution_mean(d) >= 0, "a mean below 0");
}

static void check_group(const struct trp_sim_group *g)
{
    FUZZ_CHECK(g->name && g->count > 0 && g->cores > 0 && g->memory_mib > 0 &&
                   g->racks > 0 && g->racks <= g->count && g->inside <= g->count &&
                   g->busy >= 0 && g->busy <= 1,
               "group %s is impossible", g->name);
}

static void use_cluster(const uint8_t *data, size_t size)
{
    trp_sim_cluster *c = NULL;
    trp_error err = {0};
    int rc = trp_sim_cluster_parse("c.yaml", (const char *)data, size, &c, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, "c.yaml:");
        return;
    }
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < c->ngroups; i++) {
        check_group(&c->groups[i]);
        nodes += c->groups[i].count;
    }
    FUZZ_CHECK(nodes > 0 && nodes <= TRP_SIM_NODES, "%llu nodes",
               (unsigned long long)nodes);
    FUZZ_CHECK(c->task_failure >= 0 && c->task_failure <= 1, "fails too often");
    draw(&c->wait);
    draw(&c->start_up);
    trp_sim_cluster_free(c);
}

static void use_durations(const uint8_t *data, size_t size, const trp_pipeline *p)
{
    trp_sim_durations *d = NULL;
    trp_error err = {0};
    int rc = trp_sim_durations_parse("/nowhere/d.yaml", (const char *)data, size, p, &d,
                                     &err);
    if (rc < 0) {
        conf_check_error(rc, &err, "/nowhere/d.yaml:");
        return;
    }
    FUZZ_CHECK(d->nstages == p->nstages, "%u stages", d->nstages);
    for (uint32_t i = 0; i < d->nstages; i++) {
        uint32_t tasks;
        draw(&d->stages[i].of.d);
        trp_sim_durations_tasks(d, i, &tasks);
        trp_sim_durations_recorded(d, i);
    }
    trp_sim_durations_free(d);
}

static void use_log(const uint8_t *data, size_t size)
{
    char file[64];
    trp_duration_log *l = NULL;
    trp_error err = {0};
    int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    int rc = trp_duration_log_load(file, &l, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, NULL);
        FUZZ_CHECK(strncmp(err.text, file, strlen(file)) == 0, "no file: %s", err.text);
    } else {
        struct trp_distribution d = {.kind = TRP_EMPIRICAL, .scale = 1};
        if ((d.empirical = trp_duration_log_stage(l, "0")))
            draw(&d);
        trp_duration_log_free(l);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trp_pipeline *p = NULL;
    trp_error err = {0};
    if (trp_pipeline_parse("p.yaml", stages, sizeof stages - 1, &p, &err) < 0)
        abort();
    use_cluster(data, size);
    use_durations(data, size, p);
    use_log(data, size);
    trp_pipeline_free(p);
    return 0;
}
