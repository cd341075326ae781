/*
 * Executors whose messages are garbled before they get their tag, in build-asan: calls of
 * trp_channel_send come here first (ld's --wrap). An executor does as it is told in its
 * environment.
 *
 *     GARBLE_KIND=N         the first message of that kind lacks its last byte, of the
 *                           executor that makes FILE (GARBLE_ONCE)
 *     GARBLE_CHANCE=N       each message with a chance of 1/N gets some random changes
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/channel.h"

int __real_trp_channel_send(trp_channel *c, uint32_t peer, const void *data,
                            size_t size);
int __wrap_trp_channel_send(trp_channel *c, uint32_t peer, const void *data,
                            size_t size);

static const uint32_t odd[] = {0,       1,          0x7f,      0x80,       0xff,
                               0x7fff,  0xffff,     0x10000,   0x7fffffff, 0x80000000,
                               1000000, 0xfffffffe, 0xffffffff};

static unsigned number(const char *name)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static bool is_first(void)
{
    static bool done;
    int fd =
        done ? -1 : open(getenv("GARBLE_ONCE"), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    done = true;
    return fd >= 0 && close(fd) == 0;
}

/* One change; the size afterwards. `m` has room for 64 bytes more. */
static size_t change(uint8_t *m, size_t n, unsigned *seed)
{
    size_t at = (size_t)rand_r(seed) % n;
    if (at < 9 && n > 9 && rand_r(seed) % 10) /* seldom the head: it tells too much */
        at = 9 + (size_t)rand_r(seed) % (n - 9);
    switch (rand_r(seed) % 24 ? rand_r(seed) % 3 : rand_r(seed) % 5) {
    case 0:
        m[at] ^= (uint8_t)(1U << (rand_r(seed) % 8));
        break;
    case 1:
        m[at] = (uint8_t)rand_r(seed);
        break;
    case 2:
        if (n >= 4)
            memcpy(m + at % (n - 3), &odd[(size_t)rand_r(seed) % 13], 4);
        break;
    case 3:
        return 1 + (size_t)rand_r(seed) % n;
    default:
        memset(m + n, rand_r(seed), 8);
        return n + 8;
    }
    return n;
}

int __wrap_trp_channel_send(trp_channel *c, uint32_t peer, const void *data,
                            size_t size)
{
    static unsigned seed;
    unsigned kind = number("GARBLE_KIND"), chance = number("GARBLE_CHANCE");
    if (peer != TRP_DRIVER_PEER || size < 2)
        return __real_trp_channel_send(c, peer, data, size);
    if (kind && *(const uint8_t *)data == kind && is_first())
        return __real_trp_channel_send(c, peer, data, size - 1);
    if (!seed)
        seed = (unsigned)getpid() * 2654435761U;
    if (!chance || (unsigned)rand_r(&seed) % chance)
        return __real_trp_channel_send(c, peer, data, size);
    uint8_t *m = malloc(size + 64);
    memcpy(m, data, size);
    for (int i = rand_r(&seed) % 4; i >= 0; i--)
        size = change(m, size, &seed);
    int rc = __real_trp_channel_send(c, peer, m, size);
    free(m);
    return rc;
}
