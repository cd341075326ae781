/*
 * Racks: any bytes are a file of hosts or an error with its place, and any text is a
 * pattern that can be used or is refused. Neither takes long.
 */
#include "conf/racks.h"
#include "conf/site.h"
#include "conf_error.h"

static void look_up(const trp_racks *r)
{
    static const char *const hosts[] = {"", "a", "node1", "r12n3.example.org",
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char buf[TRP_RACKS_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        trp_racks_of(r, hosts[i], buf, sizeof buf);
}

static void use_pattern(char *pattern)
{
    char file[] = "";
    trp_error err = {0};
    trp_racks *r;
    trp_site s = {.file = file, .racks = TRP_SITE_RACKS_PATTERN, .racks_text = pattern};
    int checked = trp_racks_check_pattern(pattern, &err);
    int rc = trp_racks_open(&s, &r, &err);
    FUZZ_CHECK(rc == checked, "checked %d, opened %d", checked, rc);
    if (rc == 0) {
        look_up(r);
        trp_racks_close(r);
    } else {
        conf_check_error(rc, &err, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trp_racks *r;
    trp_error err = {0};
    char pattern[TRP_RACKS_PATTERN_MAX + 2];
    int rc = trp_racks_parse("racks", (const char *)data, size, &r, &err);
    if (rc < 0) {
        conf_check_error(rc, &err, "racks:");
    } else {
        look_up(r);
        trp_racks_close(r);
    }
    if (size < sizeof pattern) {
        memcpy(pattern, data, size);
        pattern[size] = '\0';
        use_pattern(pattern);
    }
    return 0;
}
