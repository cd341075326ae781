/*
 * Requests to a driver: any bytes are one that is understood, or refused with words. What
 * is understood is the same when it is said again.
 */
#include "driver/ask.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trp_ask q, again;
    struct trp_buf b = {0};
    trp_error err = {0};
    int rc = trp_ask_read((const char *)data, size, &q, &err);
    if (rc < 0) {
        FUZZ_CHECK(rc == TRP_EINVAL && err.text[0], "%d with \"%s\"", rc, err.text);
        return 0;
    }
    trp_ask_put(&b, &q);
    FUZZ_CHECK(!b.failed && b.size <= TRP_ASK_MAX, "said again it has %zu bytes",
               b.size);
    rc = trp_ask_read((const char *)b.data, b.size, &again, &err);
    FUZZ_CHECK(rc == 0 && again.what == q.what && strcmp(again.stage, q.stage) == 0,
               "said again it is another: %s", err.text);
    trp_buf_free(&b);
    return 0;
}
