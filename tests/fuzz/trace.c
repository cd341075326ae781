/*
 * Engine traces: any bytes are a trace that is decided again, the same or otherwise, or
 * an error. Bytes that are no zstd frame are compressed first, else hardly any would be
 * read as records.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "fuzz.h"
#include "sim/run/replay.h"

static bool is_frame(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    return size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

static void put(int fd, const uint8_t *data, size_t size)
{
    if (write(fd, data, size) != (ssize_t)size)
        abort();
}

static void put_compressed(int fd, const uint8_t *data, size_t size)
{
    size_t room = ZSTD_compressBound(size);
    uint8_t *frame = malloc(room);
    size_t n = frame ? ZSTD_compress(frame, room, data, size, 1) : 0;
    if (!n || ZSTD_isError(n))
        abort();
    put(fd, frame, n);
    free(frame);
}

/* Every error but the lack of memory names the file. */
static void check(int rc, const trp_error *err, const char *file, const char *said)
{
    FUZZ_CHECK(rc == 0 || rc == TRP_EINVAL || rc == TRP_EFAILED || rc == TRP_ENOMEM,
               "the verdict is %d", rc);
    if (rc == 0)
        FUZZ_CHECK(strstr(said, "the same again"), "no verdict: %s", said);
    else
        FUZZ_CHECK(
            err->code == rc && !strchr(err->text, '\n') &&
                (rc == TRP_ENOMEM || strncmp(err->text, file, strlen(file)) == 0),
            "not an error: %s", err->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char file[64], *said = NULL;
    size_t nsaid;
    trp_error err = {0};
    int fd = memfd_create("trace", MFD_CLOEXEC);
    FILE *out = open_memstream(&said, &nsaid);
    if (fd < 0 || !out)
        abort();
    if (is_frame(data, size))
        put(fd, data, size);
    else
        put_compressed(fd, data, size);
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    int rc = trp_sim_replay(file, out, &err);
    fclose(out);
    check(rc, &err, file, said);
    free(said);
    close(fd);
    return 0;
}
