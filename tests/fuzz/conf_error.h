/*
 * What every error of a file has to be: TRP_EINVAL, one line of text, and FILE:LINE:COL
 * in front where the file is known.
 */
#ifndef TESTS_FUZZ_CONF_ERROR_H
#define TESTS_FUZZ_CONF_ERROR_H

#include <string.h>

#include "core/base/error.h"
#include "fuzz.h"

/* libfyaml 0.7.12 forgets 2 KiB for a scalar of five or more '' in a row. What we could
 * forget of it (parser, events) is found by the unit tests. */
const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

/* `file` with its colon; NULL: a place is not promised. */
static inline void conf_check_error(int rc, const trp_error *err, const char *file)
{
    unsigned line = 0, column = 0;
    FUZZ_CHECK(rc == TRP_EINVAL, "the verdict is %d: %s", rc, err->text);
    FUZZ_CHECK(err->code == rc && *err->text, "the error has no text");
    FUZZ_CHECK(!strchr(err->text, '\n'), "the text has lines: %s", err->text);
    if (!file)
        return;
    size_t n = strlen(file);
    FUZZ_CHECK(strncmp(err->text, file, n) == 0 &&
                   sscanf(err->text + n, "%u:%u: ", &line, &column) == 2 && line > 0 &&
                   column > 0,
               "no place: %s", err->text);
}

#endif
