/*
 * What a driver answers to those who ask (ask.h): where the run is, and why stages wait.
 */
#ifndef TRP_DRIVER_ANSWERS_H
#define TRP_DRIVER_ANSWERS_H

#include <stdbool.h>

#include "core/base/bytes.h"
#include "driver/ask.h"

struct trp_driver;
struct trp_cluster_job;
struct trp_status_job;
struct trp_status_profile;
struct trp_status_stage;

/* A trp_answer (asked.h); `driver` is its context. Changes nothing. */
void trp_driver_answer(void *driver, const struct trp_ask *q, struct trp_buf *ret);

/* What the status says of a stage (without why it waits), of executors of a profile
 * (without what they need), of a job. Texts are borrowed. False: there is nothing. */
bool trp_driver_stage_status(const struct trp_driver *d, uint32_t stage,
                             struct trp_status_stage *ret);
bool trp_driver_profile_status(const struct trp_driver *d, uint32_t profile,
                               struct trp_status_profile *ret);
struct trp_status_job trp_driver_job_status(const struct trp_cluster_job *j);

#endif
