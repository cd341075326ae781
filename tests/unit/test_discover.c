/* What discovery scripts print. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "executor/discover.h"
#include "unit.h"

static void says(const char *text, uint32_t amount, const char *list)
{
    char *got = NULL;
    trp_error err = {0};
    int rc = trp_discovered_read(text, strlen(text), "gpu", amount, &got, &err);
    if (rc < 0)
        g_error("%s: %s", text, err.text);
    g_assert_cmpstr(got, ==, list);
    free(got);
}

static void refused(const char *text, uint32_t amount, int code, const char *words)
{
    char *got = NULL;
    trp_error err = {0};
    int rc = trp_discovered_read(text, strlen(text), "gpu", amount, &got, &err);
    if (rc != code || !strstr(err.text, words))
        g_error("%s: wanted %d, %s; got %d, %s", text, code, words, rc, err.text);
}

TEST("addresses are read in natural order, each once")
{
    says("{\"name\": \"gpu\", \"addresses\": [\"0\", \"1\"]}\n", 2, "0,1");
    says(" {\"addresses\":[\"10\",\"9\",\"a\",\"9\"],\"name\":\"gpu\"} ", 1, "9,10,a");
    says("{\"name\":\"gpu\",\"addresses\":[]}", 0, "");
    says("{\"name\":\"gpu\",\"addresses\":[\"/dev/x:0\"],\"more\":1}", 1, "/dev/x:0");
}

TEST("what is not Spark's form is told")
{
    refused("", 1, TRP_ESYSTEM, "did not print JSON (nothing was printed); it has to");
    refused("0,1\n", 1, TRP_ESYSTEM, "did not print JSON (");
    refused("[\"0\"]", 1, TRP_ESYSTEM, "says no \"name\"");
    refused("{\"name\":\"gpu\",\"addresses\":[\"0\"]} x", 1, TRP_ESYSTEM, "JSON");
    refused("{\"addresses\":[\"0\"]}", 1, TRP_ESYSTEM, "says no \"name\"");
    refused("{\"name\":\"fpga\",\"addresses\":[\"0\"]}", 1, TRP_ESYSTEM,
            "says addresses of \"fpga\", not of gpu");
    refused("{\"name\":\"gpu\"}", 1, TRP_ESYSTEM, "says no \"addresses\"");
    refused("{\"name\":\"gpu\",\"addresses\":\"0\"}", 1, TRP_ESYSTEM, "a list");
    refused("{\"name\":\"gpu\",\"addresses\":[\"0\",1]}", 1, TRP_ESYSTEM, "number 2");
    refused("{\"name\":\"gpu\",\"addresses\":[\"0,1\"]}", 1, TRP_ESYSTEM, "number 1");
    refused("{\"name\":\"gpu\",\"addresses\":[\"\"]}", 0, TRP_ESYSTEM, "number 1");
    refused("{\"name\":\"gpu\",\"addresses\":[\"0\"]}", 2, TRP_ENEVER,
            "says 1 address, an executor needs 2");
    refused("{\"name\":\"gpu\",\"addresses\":[\"0\",\"0\"]}", 2, TRP_ENEVER,
            "says 1 address, an executor needs 2");
}

TEST("there is a limit")
{
    GString *text = g_string_new("{\"name\":\"gpu\",\"addresses\":[\"0\"");
    for (int i = 0; i < TRP_DISCOVER_ADDRESSES; i++)
        g_string_append_printf(text, ",\"%d\"", i);
    g_string_append(text, "]}");
    refused(text->str, 1, TRP_ELIMIT, "4097 addresses, more than 4096");
    g_string_free(text, TRUE);
}
