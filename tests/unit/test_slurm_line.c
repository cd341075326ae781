/*
 * The protocol with troupe-slurm, and what is made of its answers.
 */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/slurm/helper/inventory_lines.h"
#include "cluster/slurm/helper/job_answer.h"
#include "cluster/slurm/helper/line.h"
#include "unit.h"

static char *written(void (*put)(FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    put(f);
    fclose(f);
    return text;
}

static void put_node(FILE *f)
{
    trp_slurm_line_begin(f, 7, "node");
    trp_slurm_line_put(f, "name", "a b%c\n\x01");
    trp_slurm_line_put(f, "empty", "");
    trp_slurm_line_put_number(f, "cpus", -12);
    trp_slurm_line_end(f);
}

TEST("what a line says is read as it was written")
{
    struct trp_slurm_line l;
    char *text = written(put_node);
    g_assert_cmpstr(text, ==, "7 node name=a%20b%25c%0A%01 empty= cpus=-12\n");
    text[strlen(text) - 1] = '\0';
    g_assert_cmpint(trp_slurm_line_parse(text, &l, NULL), ==, 0);
    g_assert_cmpuint(l.number, ==, 7);
    g_assert_cmpstr(l.word, ==, "node");
    g_assert_cmpstr(trp_slurm_line_text(&l, "name"), ==, "a b%c\n\x01");
    g_assert_cmpstr(trp_slurm_line_text(&l, "empty"), ==, "");
    g_assert_cmpstr(trp_slurm_line_text(&l, "absent"), ==, "");
    g_assert_cmpint(trp_slurm_line_number(&l, "cpus"), ==, -12);
    g_assert_cmpint(trp_slurm_line_number(&l, "name"), ==, 0);
    free(text);
}

TEST("lines that are none are refused")
{
    static const char *const bad[] = {
        "",        "7",        "x done",    "-1 done",   "7x go",       "1 a b",
        "1 a k=%", "1 a k=%0", "1 a k=%G1", "1 a k=%00", "9999999999 a"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct trp_slurm_line l;
        trp_error err;
        g_autofree char *text = g_strdup(bad[i]);
        g_assert_cmpint(trp_slurm_line_parse(text, &l, &err), ==, TRP_EPROTO);
    }
    GString *many = g_string_new("1 a");
    for (int i = 0; i <= TRP_SLURM_FIELDS; i++)
        g_string_append(many, " k=v");
    struct trp_slurm_line l;
    g_assert_cmpint(trp_slurm_line_parse(many->str, &l, NULL), ==, TRP_EPROTO);
    g_string_free(many, TRUE);
}

static void check_pool(const char *text, const char *name, const char *type,
                       uint32_t count)
{
    struct trp_slurm_pool p[TRP_SLURM_POOLS];
    g_assert_cmpuint(trp_slurm_pools_parse(text, p), ==, 1);
    g_assert_cmpstr(p[0].name, ==, name);
    g_assert_cmpstr(p[0].type, ==, type);
    g_assert_cmpuint(p[0].count, ==, count);
}

TEST("generic resources and licences are read")
{
    struct trp_slurm_pool p[TRP_SLURM_POOLS];
    check_pool("gpu:a100:2(IDX:0-1)", "gpu", "a100", 2);
    check_pool("gpu:2(IDX:0,3)", "gpu", "", 2);
    check_pool("gpu:a100", "gpu", "a100", 1);
    check_pool("matlab", "matlab", "", 1);
    check_pool("matlab:3", "matlab", "", 3);
    check_pool("nic:0", "nic", "", 0);
    g_assert_cmpuint(trp_slurm_pools_parse("", p), ==, 0);
    g_assert_cmpuint(
        trp_slurm_pools_parse("gpu:a100:1(IDX:0),gpu:v100:2(IDX:1,2),nic:1", p), ==, 3);
    g_assert_cmpstr(p[1].type, ==, "v100");
    g_assert_cmpuint(p[1].count, ==, 2);
    g_assert_cmpstr(p[2].name, ==, "nic");
    g_assert_cmpuint(trp_slurm_pools_parse("a,b,c,d,e,f,g,h,i,j", p), ==,
                     TRP_SLURM_POOLS);
}

static int add(struct trp_slurm_inventory *i, const char *text)
{
    struct trp_slurm_line l;
    g_autofree char *copy = g_strdup(text);
    g_assert_cmpint(trp_slurm_line_parse(copy, &l, NULL), ==, 0);
    int code = trp_slurm_inventory_add(i, &l, NULL);
    return code;
}

TEST("components of a job are one set of nodes")
{
    struct trp_slurm_inventory i = {0};
    add(&i, "1 node job=1 name=early");
    g_assert_cmpuint(i.nnodes, ==, 0);
    add(&i, "1 allocation job=8 leader=8 component=0 uid=5 live=1 state=RUNNING "
            "memory_enforced=1 licences=matlab:2 new=unknown");
    add(&i, "1 node job=8 name=n1 host=n1 cpus=4 memory=4096 threads=2 "
            "gres=gpu:a100:2(IDX:0-1) features=a,b");
    add(&i, "1 allocation job=9 leader=8 component=1 uid=5 live=1");
    add(&i, "1 node job=9 name=n2 host=n2 cpus=2 memory=100");
    add(&i, "2 host name=n2 rack=r1");
    add(&i, "2 host name=elsewhere rack=r1");
    g_assert_cmpuint(i.nparts, ==, 2);
    g_assert_cmpuint(i.nnodes, ==, 2);
    g_assert_true(i.live);
    g_assert_cmpint(i.parts[1].component, ==, 1);
    g_assert_cmpuint(i.parts[1].leader, ==, 8);
    g_assert_cmpuint(i.parts[0].licences[0].count, ==, 2);
    g_assert_cmpuint(i.nodes[0].threads, ==, 2);
    g_assert_cmpstr(i.nodes[0].rack, ==, "");
    g_assert_cmpuint(i.nodes[1].part, ==, 1);
    g_assert_cmpuint(i.nodes[1].threads, ==, 1);
    g_assert_cmpstr(i.nodes[1].rack, ==, "r1");
    g_assert_cmpuint(trp_slurm_inventory_here(&i), ==, UINT32_MAX);
    trp_slurm_inventory_free(&i);
}

TEST("what Slurm told is read again by others")
{
    struct trp_slurm_inventory i;
    uint64_t rpcs;
    trp_error err;
    g_assert_cmpint(
        trp_slurm_answer_read("0 allocation job=8 leader=8 component=-1 live=1\n"
                              "0 node job=8 name=n%201 host=n1 cpus=4\n"
                              "0 host name=n%201 rack=r1\n"
                              "0 done rpcs=4\n",
                              &i, &rpcs, &err),
        ==, 0);
    g_assert_cmpuint(rpcs, ==, 4);
    g_assert_cmpuint(i.nnodes, ==, 1);
    g_assert_cmpstr(i.nodes[0].name, ==, "n 1");
    g_assert_cmpstr(i.nodes[0].rack, ==, "r1");
    trp_slurm_inventory_free(&i);
    g_assert_cmpint(trp_slurm_answer_read("0 done rpcs=3\n", &i, &rpcs, &err), ==,
                    TRP_ENOENT);
    trp_slurm_inventory_free(&i);
    g_assert_cmpint(trp_slurm_answer_read("", &i, &rpcs, &err), ==, TRP_ENOENT);
    trp_slurm_inventory_free(&i);
    g_assert_cmpint(
        trp_slurm_answer_read("0 allocation job=8 live=1\nx y\n", &i, &rpcs, &err), ==,
        TRP_EPROTO);
    trp_slurm_inventory_free(&i);
}

/* Not a job without room, which would wait for additional ones for ever. */
TEST("a job that runs, and whose nodes were not told, is an error")
{
    struct trp_slurm_inventory i;
    uint64_t rpcs;
    trp_error err;
    const char *text =
        "0 allocation job=8 leader=8 component=-1 live=1\n0 done rpcs=4\n";
    g_assert_cmpint(trp_slurm_answer_read(text, &i, &rpcs, &err), ==, TRP_ESYSTEM);
    g_assert_cmpstr(err.text, ==,
                    "what it has of its nodes is not known; is the scontrol of this "
                    "Slurm in PATH?");
    trp_slurm_inventory_free(&i);
}
