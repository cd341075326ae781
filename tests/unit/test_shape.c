/* The shape of an executor as text: what is written is read, what is broken is told. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "executor/executor.h"
#include "unit.h"

static struct trp_executor_shape shape, back;

static void fill(void)
{
    memset(&shape, 0, sizeof shape);
    shape.id = 4294967295u;
    shape.cores = 8;
    shape.slots = 3;
    shape.memory_mib = INT64_C(1) << 40;
    strcpy(shape.cpuset, "0-3,8");
    strcpy(shape.driver, "host.example:40123");
    strcpy(shape.secret_file, "/run dir/se;cret=%41");
    strcpy(shape.run_name, "naïve run\n\t\"x\"");
    strcpy(shape.run_dir, "/a/b");
    memset(shape.scratch, '%', sizeof shape.scratch - 1);
    shape.network_timeout_ns = 120000000000;
    shape.heartbeat_ns = 10000000000;
}

TEST("what is written is read again")
{
    trp_error err;
    fill();
    char *text = trp_shape_put(&shape);
    g_assert_nonnull(text);
    g_assert_null(strpbrk(text, " \n\t"));
    g_assert_cmpint(trp_shape_parse(text, &back, &err), ==, TRP_OK);
    g_assert_cmpmem(&back, sizeof back, &shape, sizeof shape);
    free(text);
}

/* The text of the shape with `from` replaced by `to`. */
static char *changed(const char *from, const char *to)
{
    fill();
    strcpy(shape.scratch, "/s");
    char *text = trp_shape_put(&shape), *at = strstr(text, from);
    g_assert_nonnull(at);
    char *out =
        g_strdup_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return out;
}

static void refuse(const char *from, const char *to, int code, const char *word)
{
    trp_error err = {0};
    g_autofree char *text = changed(from, to);
    back.id = 17;
    g_assert_cmpint(trp_shape_parse(text, &back, &err), ==, code);
    g_assert_nonnull(strstr(err.text, word));
    g_assert_cmpint(back.id, ==, 17);
}

TEST("a broken text is refused with the field's name")
{
    refuse("id=4294967295;", "", TRP_EINVAL, "id is missing");
    refuse("id=4294967295;", "id=4294967296;", TRP_EINVAL, "id is not a number");
    refuse("cores=8", "cores=-8", TRP_EINVAL, "cores");
    refuse("cores=8", "cores=8x", TRP_EINVAL, "cores");
    refuse("cores=8", "cores=", TRP_EINVAL, "cores");
    refuse("cores=8", "cores=0", TRP_EINVAL, "at least 1");
    refuse("cores=8", "cores=8;cores=8", TRP_EINVAL, "twice");
    refuse("cores=8", "colour=8", TRP_EINVAL, "colour");
    refuse("cores=8", "cores", TRP_EINVAL, "cores");
    refuse("scratch=/s", "scratch=/s%4", TRP_EINVAL, "escape");
    refuse("scratch=/s", "scratch=%zz", TRP_EINVAL, "escape");
    refuse("scratch=/s", "scratch=%00", TRP_EINVAL, "escape");
    g_assert_cmpint(trp_shape_parse("", &back, NULL), ==, TRP_EINVAL);
}

TEST("a value longer than its place is refused")
{
    g_autofree char *longer = g_strnfill(512, '7');
    g_autofree char *field = g_strdup_printf("cpuset=%s;", longer);
    refuse("cpuset=0-3,8;", field, TRP_ELIMIT, "cpuset");
}
