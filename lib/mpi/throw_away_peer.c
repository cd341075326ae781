/*
 * The throw-away peer that frees a stuck MPI_Comm_accept: a program under an mpirun of
 * its own that connects to the driver's port and ends.
 *
 * Open MPI 4.1 meets in rounds through its ompi-server: each side publishes a key and
 * looks up the other's, PORT:connect first, then PORT:nextcid:send:0 and so on while
 * they agree on a number for the communicator. An executor may die between any two. In
 * the first round a connect frees the accept. In a later one the accept is past that
 * and waits (for ten minutes, in which nobody else can come) for a key that only that
 * executor would have published. What these rounds compute are a maximum and an AND, so
 * the number 1 is an answer to each that the driver agrees with: it is published under
 * the keys of all of them, and the accept returns with a communicator that has nobody
 * at its other end. Ports are used for one meeting only, so what is left of the keys is
 * never read.
 */
#include <pmix.h>
#include <stdio.h>
#include <unistd.h>

#include "mpi/module.h"

enum { ALARM_SECONDS = 5, ROUNDS_MAX = 16 };

/* The answer to every later round: the number 1, as Open MPI packs it (how many, of
 * which type, the value). */
static void publish_agreement(const char *port)
{
    static const char *const steps[] = {"nextcid", "activate"};
    char one[] = {0, 0, 0, 1, 9, 0, 0, 0, 1};
    pmix_byte_object_t bytes = {.bytes = one, .size = sizeof one};
    pmix_persistence_t once = PMIX_PERSIST_FIRST_READ;
    pmix_info_t info[2];
    for (int i = 0; i < 2 * ROUNDS_MAX; i++) {
        char key[PMIX_MAX_KEYLEN + 1];
        snprintf(key, sizeof key, "%s:%s:send:%d", port, steps[i % 2], i / 2);
        PMIX_INFO_LOAD(&info[0], key, &bytes, PMIX_BYTE_OBJECT);
        PMIX_INFO_LOAD(&info[1], PMIX_PERSISTENCE, &once, PMIX_PERSIST);
        PMIx_Publish(info, 2);
        PMIX_INFO_DESTRUCT(&info[0]);
        PMIX_INFO_DESTRUCT(&info[1]);
    }
}

int trp_mpi_free_accept(const char *port)
{
    MPI_Comm driver;
    int level;
    /* Its default action ends this: MPI_Finalize would wait for the driver's. */
    alarm(ALARM_SECONDS);
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &level);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    publish_agreement(port);
    return MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &driver) !=
           MPI_SUCCESS;
}
