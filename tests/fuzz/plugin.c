/*
 * What the SPANK plugin reads: an argument of plugstack.conf, the name in
 * --stage-profile, a file of shapes and a list of CPUs, each up to a NUL byte. Every
 * one is taken, and then is what its header promises, or refused with one line of text.
 */
#include <string.h>

#include "conf/wording.h"
#include "fuzz.h"
#include "plugin/plugin.h"
#include "plugin/shapes.h"

/* The bytes up to the next NUL, with one behind them, malloc'ed. */
static char *next(struct fuzz_bytes *b, size_t *ret_size)
{
    const uint8_t *end =
        b->at < b->end ? memchr(b->at, 0, (size_t)(b->end - b->at)) : NULL;
    size_t n = (size_t)((end ? end : b->end) - b->at);
    char *text = calloc(n + 1, 1);
    if (!text)
        abort();
    if (n)
        memcpy(text, b->at, n);
    b->at = end ? end + 1 : b->end;
    *ret_size = n;
    return text;
}

static void check_error(int rc, const trp_error *err)
{
    FUZZ_CHECK(rc == TRP_EINVAL || rc == TRP_ENOENT || rc == TRP_EPROTO,
               "the verdict is %d: %s", rc, err->text);
    FUZZ_CHECK(err->code == rc && *err->text, "the error has no text");
    FUZZ_CHECK(!strchr(err->text, '\n'), "the text has lines: %s", err->text);
}

static void take_argument(char *text)
{
    static struct trp_plugin p;
    trp_error err = {0};
    int rc = trp_plugin_settings(1, &text, &p, &err);
    if (rc < 0)
        check_error(rc, &err);
    FUZZ_CHECK(*p.site == '/' && *p.shapes == '/' && *p.command == '/',
               "a path is not absolute: %s, %s, %s", p.site, p.shapes, p.command);
}

static void take_name(const char *name)
{
    static struct trp_plugin p;
    trp_error err = {0};
    *p.profile = '\0';
    int rc = trp_plugin_profile_inherited(&p, name, &err);
    FUZZ_CHECK((rc == 0) == trp_is_name(name), "%d for %s", rc, name);
    FUZZ_CHECK(strcmp(p.profile, rc == 0 ? name : "") == 0, "kept as %s", p.profile);
    if (rc < 0)
        check_error(rc, &err);
}

static void take_shapes(char *text, size_t size, const char *name)
{
    struct trp_shape s;
    trp_error err = {0};
    memset(&s, 0x5a, sizeof s);
    int rc = trp_shapes_parse("shapes", text, size, name, &s, &err);
    if (rc < 0) {
        check_error(rc, &err);
        FUZZ_CHECK(s.nresources == 0x5a5a5a5a, "a failed call changed the shape");
        return;
    }
    FUZZ_CHECK(trp_is_name(name), "a shape of %s", name);
    FUZZ_CHECK(s.nresources <= TRP_PROFILE_RESOURCES, "%u resources", s.nresources);
    FUZZ_CHECK(strlen(s.never) < sizeof s.never, "no end");
    for (uint32_t i = 0; i < s.nresources; i++)
        FUZZ_CHECK(trp_is_resource_name(s.resources[i].name) &&
                       !strpbrk(s.resources[i].variable, "= \n"),
                   "resource %s in %s", s.resources[i].name, s.resources[i].variable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes b = {data, data + size};
    size_t n[4];
    char *v[4];
    cpu_set_t set;
    for (int i = 0; i < 4; i++)
        v[i] = next(&b, &n[i]);
    take_argument(v[0]);
    take_name(v[1]);
    take_shapes(v[2], n[2], v[1]);
    if (trp_plugin_cpu_list(v[3], &set))
        FUZZ_CHECK(strspn(v[3], "0123456789-,\n") == n[3], "a list: %s", v[3]);
    for (int i = 0; i < 4; i++)
        free(v[i]);
    return 0;
}
