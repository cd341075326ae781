/*
 * libslurm of 22.05 to 26.05 under one set of names: what its families name or pass
 * differently. Included in place of <slurm/slurm.h>; only by what is linked with
 * libslurm (launcher/slurm) or loaded by Slurm (plugin).
 *
 * The functions do what those of their name do, and return what those return.
 */
#ifndef TRP_CLUSTER_SLURM_HELPER_LIBSLURM_H
#define TRP_CLUSTER_SLURM_HELPER_LIBSLURM_H

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdint.h>

#define TRP_LIBSLURM_SINCE(major, minor)                                               \
    (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

/* A pointer: hostlist_t or, from 23.11 on, hostlist_t *. */
typedef __typeof__(slurm_hostlist_create(NULL)) trp_libslurm_hostlist;

/* What nodes are shared out by, in slurm_conf_t.select_type_param. */
#if TRP_LIBSLURM_SINCE(25, 11)
enum {
    TRP_LIBSLURM_SOCKET = SELECT_SOCKET,
    TRP_LIBSLURM_CORE = SELECT_CORE,
    TRP_LIBSLURM_MEMORY = SELECT_MEMORY
};
#else
enum {
    TRP_LIBSLURM_SOCKET = CR_SOCKET,
    TRP_LIBSLURM_CORE = CR_CORE,
    TRP_LIBSLURM_MEMORY = CR_MEMORY
};
#endif

/* In seconds; NO_VAL16: there is no limit. */
static inline uint16_t trp_libslurm_prolog_limit(const slurm_conf_t *conf)
{
#if TRP_LIBSLURM_SINCE(25, 5)
    return conf->prolog_timeout;
#else
    return conf->prolog_epilog_timeout;
#endif
}

static inline uint16_t trp_libslurm_epilog_limit(const slurm_conf_t *conf)
{
#if TRP_LIBSLURM_SINCE(25, 5)
    return conf->epilog_timeout;
#else
    return conf->prolog_epilog_timeout;
#endif
}

static inline void trp_libslurm_free_conf(slurm_conf_t *conf)
{
#if TRP_LIBSLURM_SINCE(26, 5)
    slurm_free_conf(conf);
#else
    slurm_free_ctl_conf(conf);
#endif
}

/* `step` may be NO_VAL: all of the job. */
static inline slurm_step_id_t trp_libslurm_id(uint32_t job, uint32_t step)
{
    return (slurm_step_id_t){.job_id = job, .step_het_comp = NO_VAL, .step_id = step};
}

static inline int trp_libslurm_load_job(job_info_msg_t **ret, uint32_t job,
                                        uint16_t flags)
{
#if TRP_LIBSLURM_SINCE(26, 5)
    return slurm_load_job(ret, trp_libslurm_id(job, NO_VAL), flags);
#else
    return slurm_load_job(ret, job, flags);
#endif
}

static inline int trp_libslurm_load_steps(job_step_info_response_msg_t **ret,
                                          uint32_t job)
{
#if TRP_LIBSLURM_SINCE(25, 11)
    slurm_step_id_t id = trp_libslurm_id(job, NO_VAL);
    return slurm_get_job_steps(&id, ret, SHOW_ALL);
#else
    return slurm_get_job_steps(0, job, NO_VAL, ret, SHOW_ALL);
#endif
}

static inline int trp_libslurm_kill_job(uint32_t job, uint16_t signal)
{
#if TRP_LIBSLURM_SINCE(26, 5)
    return slurm_kill_job(trp_libslurm_id(job, NO_VAL), signal, 0);
#else
    return slurm_kill_job(job, signal, 0);
#endif
}

static inline int trp_libslurm_kill_step(uint32_t job, uint32_t step, uint16_t signal)
{
#if TRP_LIBSLURM_SINCE(25, 11)
    slurm_step_id_t id = trp_libslurm_id(job, step);
    return slurm_kill_job_step(&id, signal, 0);
#elif TRP_LIBSLURM_SINCE(23, 11)
    return slurm_kill_job_step(job, step, signal, 0);
#else
    return slurm_kill_job_step(job, step, signal);
#endif
}

static inline int trp_libslurm_complete_job(uint32_t job)
{
#if TRP_LIBSLURM_SINCE(25, 11)
    slurm_step_id_t id = trp_libslurm_id(job, NO_VAL);
    return slurm_complete_job(&id, 0);
#else
    return slurm_complete_job(job, 0);
#endif
}

/* The number of the job in a description, or in the answer to one. */
#if TRP_LIBSLURM_SINCE(25, 11)
#define TRP_LIBSLURM_JOB_OF(answer) ((answer)->step_id.job_id)
#else
#define TRP_LIBSLURM_JOB_OF(answer) ((answer)->job_id)
#endif

#endif
