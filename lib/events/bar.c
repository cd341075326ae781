#include "events/bar.h"

#include <string.h>

size_t trp_bar(bool utf8, uint64_t done, uint64_t all, int width, char *buf)
{
    static const char *const eighths[] = {" ",
                                          "\xe2\x96\x8f",
                                          "\xe2\x96\x8e",
                                          "\xe2\x96\x8d",
                                          "\xe2\x96\x8c",
                                          "\xe2\x96\x8b",
                                          "\xe2\x96\x8a",
                                          "\xe2\x96\x89",
                                          "\xe2\x96\x88"};
    if (done > all)
        done = all;
    uint64_t full = all > 0 ? done * (uint64_t)width * 8 / all : 0;
    size_t n = 0;
    buf[0] = '\0';
    for (int i = 0; i < width; i++) {
        unsigned step = full >= 8 ? 8 : (unsigned)full;
        full -= step;
        const char *s = utf8 ? eighths[step] : step >= 4 ? "#" : ".";
        n = (size_t)(stpcpy(buf + n, s) - buf);
    }
    return n;
}
