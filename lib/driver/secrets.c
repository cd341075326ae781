/*
 * What driver and executors prove to each other (docs/security.md): that they know the
 * run's secret, and, where there is MUNGE, that they are the same user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "comm/munge.h"
#include "driver/driver_state.h"
#include "os/held.h"

/* The run's secret, which `troupe` made. */
static int read_secret(trp_driver *d, trp_error *err)
{
    if (asprintf(&d->secret_file, "%s/state/secret", d->run_dir) < 0)
        return trp_error_set(err, TRP_ENOMEM, "out of memory");
    int fd = trp_held_open(d->secret_file, O_RDONLY, 0);
    ssize_t n = fd < 0 ? -1 : read(fd, d->secret, sizeof(d->secret));
    if (fd >= 0)
        close(fd);
    if (n == (ssize_t)sizeof(d->secret))
        return 0;
    return trp_error_set(err, TRP_ESYSTEM, "cannot read the run's secret %s: %s",
                         d->secret_file, n < 0 ? strerror(errno) : "too short");
}

/* A static run's, which nobody but MPI passes on. */
static int make_secret(trp_driver *d, trp_error *err)
{
    if (getrandom(d->secret, sizeof(d->secret), 0) == (ssize_t)sizeof(d->secret))
        return 0;
    return trp_error_set(err, TRP_ESYSTEM, "no random numbers: %m");
}

/* Whether MUNGE is asked is decided here, before any executor is started; each is told.
 */
static int choose_munge(trp_driver *d, trp_error *ret_why_not, trp_error *err)
{
    const char *choice = trp_options_text(d->options, "admission.munge");
    int rc = strcmp(choice, "off") != 0 ? trp_munge_works(ret_why_not) : TRP_ESYSTEM;
    d->munge = rc == 0;
    if (rc == TRP_ENEVER)
        return trp_error_set(err, rc, "%s", ret_why_not->text);
    if (!d->munge && strcmp(choice, "on") == 0)
        return trp_error_set(err, TRP_ESYSTEM,
                             "admission.munge is on, and MUNGE does not answer on this "
                             "node: %s",
                             ret_why_not->text);
    return 0;
}

int trp_driver_secrets(trp_driver *d, trp_error *ret_no_munge, trp_error *err)
{
    int rc = d->config.mode == TRP_DRIVER_ELASTIC ? read_secret(d, err)
                                                  : make_secret(d, err);
    return rc < 0 ? rc : choose_munge(d, ret_no_munge, err);
}

void trp_driver_tell_no_munge(trp_driver *d, const trp_error *why)
{
    if (d->config.where.batch && why->code)
        trp_driver_log(d, "warning",
                       "MUNGE does not answer on this node, executors only prove that "
                       "they know the run's secret: %s",
                       why->text);
}
