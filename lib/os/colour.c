#include "os/colour.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value;
}

const char *trp_colour(int fd, enum trp_colour colour)
{
    static const char *const codes[] = {[TRP_COLOUR_NONE] = "\033[0m",
                                        [TRP_COLOUR_GOOD] = "\033[32m",
                                        [TRP_COLOUR_WARN] = "\033[33m",
                                        [TRP_COLOUR_BAD] = "\033[31m"};
    if (is_set("NO_COLOR") || !is_set("TERM") || strcmp(getenv("TERM"), "dumb") == 0 ||
        !isatty(fd))
        return "";
    return codes[colour];
}
