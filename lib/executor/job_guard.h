/*
 * The guard of an additional job that was queued: `troupe-rank guard`, all of its batch
 * script. It calls the driver's admission socket, by which the driver learns that the
 * job has started, and ends, and the job with it, when the driver refuses it, closes
 * the socket or is silent for network.timeout.
 */
#ifndef TRP_EXECUTOR_JOB_GUARD_H
#define TRP_EXECUTOR_JOB_GUARD_H

/* Reads TROUPE_EXECUTOR. Returns the exit status. */
int trp_job_guard_main(void);

#endif
