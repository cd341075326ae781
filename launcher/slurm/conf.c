/*
 * What slurmctld says of its configuration and licences. Of cgroup.conf it tells what
 * it read itself, where it has reason to read it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

static void put_version(FILE *to, const char *key, long number)
{
    char text[32];
    snprintf(text, sizeof text, "%02ld.%02ld.%ld", SLURM_VERSION_MAJOR(number),
             SLURM_VERSION_MINOR(number), SLURM_VERSION_MICRO(number));
    trp_slurm_line_put(to, key, text);
}

static void put_conf(FILE *to, uint32_t number, const slurm_conf_t *c)
{
    trp_slurm_line_begin(to, number, "conf");
    trp_slurm_line_put(to, "cluster", c->cluster_name);
    trp_slurm_line_put(to, "version", c->version);
    put_version(to, "built", SLURM_VERSION_NUMBER);
    trp_slurm_line_put(to, "file", c->slurm_conf);
    trp_slurm_line_put(to, "plugstack", c->plugstack);
    trp_slurm_line_put(to, "plugins", c->plugindir);
    trp_slurm_line_put(to, "auth", c->authtype);
    trp_slurm_line_put(to, "cli_filter", c->cli_filter_plugins);
    trp_slurm_line_put(to, "topology", c->topology_plugin);
    trp_slurm_line_put(to, "task", c->task_plugin);
    trp_slurm_line_put(to, "gres", c->gres_plugins);
    trp_slurm_line_put_number(to, "memory",
                              (c->select_type_param & TRP_LIBSLURM_MEMORY) != 0);
    trp_slurm_line_end(to);
}

/* libslurm has the pairs in a list of its own kind; what it does offer is the text of
 * `scontrol show config`: "ConstrainRAMSpace       = yes", a line each. */
static void put_cgroup(FILE *to, uint32_t number, const slurm_conf_t *c)
{
    char *text = NULL, title[] = "";
    size_t size;
    FILE *into = c->cgroup_conf ? open_memstream(&text, &size) : NULL;
    if (!into)
        return;
    slurm_print_key_pairs(into, c->cgroup_conf, title);
    fclose(into);
    char *rest = text;
    for (char *line; text && (line = strsep(&rest, "\n"));) {
        char *equals = strstr(line, " = ");
        if (!equals)
            continue;
        *equals = '\0';
        line[strcspn(line, " ")] = '\0';
        trp_slurm_line_begin(to, number, "cgroup");
        trp_slurm_line_put(to, "key", line);
        trp_slurm_line_put(to, "value", equals + 3);
        trp_slurm_line_end(to);
    }
    free(text);
}

static int put_licences(FILE *to, uint32_t number)
{
    license_info_msg_t *all = NULL;
    trp_slurm_rpcs++;
    if (slurm_load_licenses(0, &all, SHOW_ALL) != SLURM_SUCCESS)
        return errno;
    for (uint32_t i = 0; i < all->num_lic; i++) {
        trp_slurm_line_begin(to, number, "licence");
        trp_slurm_line_put(to, "name", all->lic_array[i].name);
        trp_slurm_line_put_number(to, "total", all->lic_array[i].total);
        trp_slurm_line_end(to);
    }
    slurm_free_license_info_msg(all);
    return 0;
}

int trp_slurm_call_conf(FILE *to, uint32_t number)
{
    slurm_conf_t *conf = NULL;
    trp_slurm_rpcs++;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return errno;
    put_conf(to, number, conf);
    put_cgroup(to, number, conf);
    trp_libslurm_free_conf(conf);
    return put_licences(to, number);
}
