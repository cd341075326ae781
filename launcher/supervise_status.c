/*
 * The exit status of a run. What its driver has said holds, unless it was a program that
 * crashed behind that. When it has said nothing it, or the platform, has failed, or it was
 * a program that ended before it was a driver.
 */
#include "supervise_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "os/held.h"
#include "programs.h"

enum { CANCELLED = 130, FAILED = 1, WRONG_CALL = 2 };

/* A program that ended before trp_init has spoken into files: passes that on, up to
 * mpirun's own page about an exit status, which begins with a line of dashes. */
static void relay(const struct trp_watch *w, const char *name, FILE *to)
{
    char path[4200], *line = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof path, "%s/state/%s", w->folder->path, name);
    FILE *f = trp_held_fopen(path, "r");
    if (!f)
        return;
    for (ssize_t n; (n = getline(&line, &capacity, f)) > 0;) {
        if (n > 60 && strspn(line, "-") == (size_t)n - 1)
            break;
        fwrite(line, 1, (size_t)n, to);
    }
    free(line);
    fclose(f);
}

/* mpirun passes a signal on as 128 + its number. */
static int signal_of(int status)
{
    return WIFSIGNALED(status)         ? WTERMSIG(status)
           : WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128
                                       : 0;
}

static void describe_status(int status, char *text, size_t size)
{
    int signal = signal_of(status);
    const char *name = signal ? sigabbrev_np(signal) : NULL;
    if (name)
        snprintf(text, size, "killed by SIG%s (%d)", name, signal);
    else
        snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

static bool was_asked_for_help(const char *const *argv)
{
    for (size_t i = 1; argv[i]; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--version"))
            return true;
    return false;
}

/* A program that ended before it was a driver. Where it has said why, at trp_init, that
 * stands above. */
static int early_end(const struct trp_watch *w, const char *how)
{
    relay(w, "driver.out", stdout);
    relay(w, "driver.err", stderr);
    if (WIFEXITED(w->driver_status) && WEXITSTATUS(w->driver_status) == 0) {
        if (was_asked_for_help(w->what->argv))
            return 0;
        fprintf(stderr,
                "troupe: %s ended and never came through trp_init; `troupe run --` is "
                "for programs that use troupe.h\n",
                w->what->argv[0]);
        return WRONG_CALL;
    }
    fprintf(stderr, "troupe: %s ended before trp_init: %s; see %s/state/driver.err\n",
            w->what->argv[0], how, w->folder->shown);
    return WIFEXITED(w->driver_status) && WEXITSTATUS(w->driver_status) < 128
               ? 1
               : TRP_WATCH_PLATFORM;
}

/* The driver never came. Over MPI it was for an mpirun to start it. */
static void tell_absent(const struct trp_watch *w, const char *how)
{
    char *mpirun = NULL, late[48];
    snprintf(late, sizeof late, "not within %d s", trp_watch_come_up_ms(w) / 1000);
    if (*w->supervisor->ompi_server && trp_program_find("mpirun", &mpirun, NULL) == 0)
        fprintf(stderr,
                "troupe: %s did not bring up the driver (%s); its output is in "
                "%s/state/driver.err; --set comm.transport=socket does without it\n",
                mpirun, w->absent ? late : how, w->folder->shown);
    else
        fprintf(stderr,
                "troupe: the driver did not come up (%s); see %s/state/driver.err\n",
                w->absent ? late : how, w->folder->shown);
    free(mpirun);
}

/* What the driver has said of the run, and what the program did behind that. An mpirun
 * that had to end without MPI_Finalize has a status of its own. */
static int said_status(const struct trp_watch *w, const char *how)
{
    if (w->status != 0 || !w->what->is_program)
        return w->status;
    if (w->over && w->driver_ended) {
        int signal = signal_of(w->driver_status);
        if (w->driver_status == 0 || (!signal && *w->supervisor->ompi_server))
            return w->status;
        fprintf(stderr,
                "troupe: %s ended behind its run, in or after trp_finalize: %s; see "
                "%s/state/driver.err\n",
                w->what->argv[0], how, w->folder->shown);
        return signal ? FAILED : WEXITSTATUS(w->driver_status);
    }
    if (!w->interrupts)
        return w->status;
    fprintf(stderr, "troupe: run %s was cancelled\n", w->folder->shown);
    return CANCELLED;
}

int trp_watch_status(const struct trp_watch *w)
{
    char how[64] = "it did not end in time";
    if (w->driver_ended)
        describe_status(w->driver_status, how, sizeof how);
    if (w->has_status)
        return said_status(w, how);
    if (w->failure[0]) {
        fprintf(stderr, "troupe: %s (run %s)\n", w->failure, w->folder->shown);
        return TRP_WATCH_PLATFORM;
    }
    if (w->interrupts) {
        fprintf(stderr, "troupe: run %s was cancelled\n", w->folder->shown);
        return CANCELLED;
    }
    if (w->what->is_program && !w->connected && w->driver_ended && !w->absent)
        return early_end(w, how);
    if (!w->connected)
        tell_absent(w, how);
    else
        fprintf(stderr,
                "troupe: the driver died (%s); events and logs are in %s, its last "
                "words in %s/state/driver.err\n",
                how, w->folder->shown, w->folder->shown);
    return TRP_WATCH_PLATFORM;
}
