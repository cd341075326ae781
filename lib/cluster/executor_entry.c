#include "cluster/executor_entry.h"

#include <stdio.h>
#include <stdlib.h>

#include "executor/executor.h"
#include "os/argv.h"
#include "os/held.h"

static bool copy(char *to, size_t size, const char *from)
{
    return snprintf(to, size, "%s", from) < (int)size;
}

char **trp_executor_command_copy(const struct trp_executor_command *command,
                                 struct trp_executor_command *ret)
{
    const char **const texts[] = {&ret->secret_file, &ret->run_name, &ret->run_dir,
                                  &ret->scratch, &ret->ompi_server};
    const size_t n = sizeof texts / sizeof *texts;
    struct trp_argv a = {0};
    *ret = *command;
    for (size_t i = 0; i < n; i++)
        trp_argv_add(&a, "%s", *texts[i]);
    for (const char *const *at = command->argv; *at; at++)
        trp_argv_add(&a, "%s", *at);
    char **all = trp_argv_done(&a);
    for (size_t i = 0; all && i < n; i++)
        *texts[i] = all[i];
    ret->argv = all ? (const char *const *)all + n : NULL;
    return all;
}

char *trp_executor_entry(const struct trp_executor_command *c, const char *driver,
                         struct trp_executor_shape *s, trp_error *err)
{
    char *entry = NULL;
    s->network_timeout_ns = c->network_timeout_ns;
    s->heartbeat_ns = c->heartbeat_ns;
    s->munge = c->munge;
    s->sockets = !*c->ompi_server;
    s->mac = c->mac;
    if (!copy(s->driver, sizeof s->driver, driver) ||
        !copy(s->secret_file, sizeof s->secret_file, c->secret_file) ||
        !copy(s->run_name, sizeof s->run_name, c->run_name) ||
        !copy(s->run_dir, sizeof s->run_dir, c->run_dir) ||
        !copy(s->run_id, sizeof s->run_id, trp_held_id(c->run_dir)) ||
        !copy(s->scratch, sizeof s->scratch, c->scratch)) {
        trp_error_set(err, TRP_ELIMIT, "a path of run %s is too long", c->run_name);
        return NULL;
    }
    char *text = trp_shape_put(s);
    if (!text || asprintf(&entry, "TROUPE_EXECUTOR=%s", text) < 0) {
        entry = NULL;
        trp_error_set(err, TRP_ENOMEM, "out of memory");
    }
    free(text);
    return entry;
}
