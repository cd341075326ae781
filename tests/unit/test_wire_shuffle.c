/* What is said of map outputs comes back as it was, or is refused. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "wire/map_output.h"
#include "wire/message.h"

TEST("shuffle/sizes come back")
{
    static const uint64_t some[] = {0,        0,          1, 127, 128, 0,
                                    1u << 20, UINT64_MAX, 0, 0,   0};
    struct trp_buf b = {0};
    uint64_t *got;
    uint32_t n;
    for (uint32_t count = 0; count <= 11; count++) {
        trp_buf_clear(&b);
        trp_sizes_put(&b, some, count);
        g_assert_cmpint(trp_sizes_get(b.data, b.size, &got, &n), ==, 0);
        g_assert_cmpuint(n, ==, count);
        g_assert_cmpmem(got, n * sizeof(*got), some, n * sizeof(*some));
        free(got);
        for (size_t cut = 0; cut < b.size; cut++)
            g_assert_cmpint(trp_sizes_get(b.data, cut, &got, &n), ==, TRP_EPROTO);
    }
    g_autofree uint64_t *many = g_new0(uint64_t, 100000);
    many[70000] = 5;
    trp_buf_clear(&b);
    trp_sizes_put(&b, many, 100000);
    g_assert_cmpuint(b.size, <, 16);
    trp_buf_free(&b);
}

TEST("shuffle/sizes that are none are refused")
{
    uint64_t *got;
    uint32_t n;
    g_assert_cmpint(trp_sizes_get("\x02\x00\x02", 3, &got, &n), ==, TRP_EPROTO);
    g_assert_cmpint(trp_sizes_get("\x01\x05\x05", 3, &got, &n), ==, TRP_EPROTO);
    g_assert_cmpint(trp_sizes_get("\xff\xff\xff\xff\x7f", 5, &got, &n), ==, TRP_EPROTO);
    g_assert_cmpint(
        trp_sizes_get("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, &got, &n), ==,
        TRP_EPROTO);
}

TEST("shuffle/inputs come back")
{
    char name[] = "node1", other[] = "node2", folder[] = "/tmp/a", none[] = "";
    struct trp_location locations[] = {
        {4,        name,  folder, 7, 8},
        {TRP_NONE, other, none,   0, 0}
    };
    struct trp_input_map maps[] = {
        {0, 7                },
        {1, TRP_INPUT_MISSING}
    };
    struct trp_input inputs[] = {
        {3, 2, maps},
        {4, 0, NULL}
    };
    const struct trp_stage_inputs in = {.stage = {9},
                                        .stage_attempt = 2,
                                        .nlocations = 2,
                                        .ninputs = 2,
                                        .locations = locations,
                                        .inputs = inputs};
    struct trp_buf b = {0};
    struct trp_stage_inputs *got;
    trp_stage_inputs_put(&b, &in);
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, TRP_MSG_INPUTS);
    g_assert_cmpint(trp_stage_inputs_get(b.data, b.size, &got), ==, 0);
    g_assert_cmpuint(got->stage.n, ==, 9);
    g_assert_cmpuint(got->stage_attempt, ==, 2);
    g_assert_cmpuint(got->locations[0].number, ==, 4);
    g_assert_cmpstr(got->locations[0].folder, ==, folder);
    g_assert_cmpuint(got->locations[0].dev, ==, 7);
    g_assert_cmpuint(got->locations[0].ino, ==, 8);
    g_assert_cmpuint(got->locations[1].number, ==, TRP_NONE);
    g_assert_cmpstr(got->locations[1].host, ==, other);
    const struct trp_input *three = trp_stage_inputs_of(got, 3);
    g_assert_cmpuint(three->nmaps, ==, 2);
    g_assert_cmpuint(three->maps[0].attempt, ==, 7);
    g_assert_cmpuint(three->maps[1].location, ==, 1);
    g_assert_null(trp_stage_inputs_of(got, 5));
    got->users++;
    trp_stage_inputs_leave(got);
    trp_stage_inputs_leave(got);
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_stage_inputs_get(b.data, cut, &got), ==, TRP_EPROTO);
    maps[1].location = 2; /* there is none */
    trp_buf_clear(&b);
    trp_stage_inputs_put(&b, &in);
    g_assert_cmpint(trp_stage_inputs_get(b.data, b.size, &got), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

/* What executors are ordered about map outputs, and what they answer. */
TEST("shuffle/locations come back")
{
    char parent[] = "/scratch", name[] = "node1", folder[] = "/scratch/troupe-abcdef";
    const struct trp_files_order order = {
        .parent = parent, .serves = true, .opens = true, .compress = 3};
    struct trp_files_order got;
    struct trp_location at = {TRP_NONE, name, folder, 1, 2}, l;
    struct trp_buf b = {0};
    char *endpoint;
    trp_files_order_put(&b, &order);
    g_assert_cmpint(trp_files_order_get(b.data, b.size, &got), ==, 0);
    g_assert_cmpstr(got.parent, ==, parent);
    g_assert_true(got.serves && got.opens && !got.in_run && !got.here_only);
    g_assert_cmpuint(got.compress, ==, 3);
    free(got.parent);
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_files_order_get(b.data, cut, &got), ==, TRP_EPROTO);
    b.data[b.size - 2] = 2; /* neither yes nor no */
    g_assert_cmpint(trp_files_order_get(b.data, b.size, &got), ==, TRP_EPROTO);
    trp_buf_clear(&b);
    trp_location_put(&b, &at, "h:1");
    g_assert_cmpint(trp_location_get(b.data, b.size, &l, &endpoint), ==, 0);
    g_assert_cmpstr(endpoint, ==, "h:1");
    g_assert_cmpstr(l.folder, ==, folder);
    g_assert_cmpuint(l.ino, ==, 2);
    free(endpoint);
    trp_location_clear(&l);
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_location_get(b.data, cut, &l, &endpoint), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

TEST("shuffle/servers come back")
{
    const char *const two[] = {"a:1", "b:2"};
    struct trp_buf b = {0};
    struct trp_view v;
    uint32_t location, n;
    char **got;
    trp_servers_begin(&b);
    trp_servers_add(&b, 3, two, 2);
    trp_servers_add(&b, 9, NULL, 0);
    v = trp_message_view(b.data, b.size, TRP_MSG_SERVERS);
    g_assert_cmpint(trp_servers_next(&v, &location, &got, &n), ==, 1);
    g_assert_cmpuint(location, ==, 3);
    g_assert_cmpuint(n, ==, 2);
    g_assert_cmpstr(got[1], ==, "b:2");
    trp_endpoints_free(got, n);
    g_assert_cmpint(trp_servers_next(&v, &location, &got, &n), ==, 1);
    g_assert_cmpuint(location, ==, 9);
    g_assert_cmpuint(n, ==, 0);
    trp_endpoints_free(got, n);
    g_assert_cmpint(trp_servers_next(&v, &location, &got, &n), ==, 0);
    v = trp_message_view(b.data, b.size - 9, TRP_MSG_SERVERS);
    g_assert_cmpint(trp_servers_next(&v, &location, &got, &n), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

TEST("shuffle/outputs to be moved come back")
{
    const struct trp_move_output want[] = {
        {1, 2, UINT64_C(3) << 40},
        {4, 5, 6                }
    };
    struct trp_move_output *got;
    struct trp_buf b = {0};
    uint32_t n;
    trp_move_put(&b, want, 2);
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, TRP_MSG_MOVE);
    g_assert_cmpint(trp_move_get(b.data, b.size, &got, &n), ==, 0);
    g_assert_cmpmem(got, n * sizeof *got, want, sizeof want);
    free(got);
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_move_get(b.data, cut, &got, &n), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

TEST("shuffle/what was moved comes back")
{
    const struct trp_moved_output want[] = {
        {{1, 2, UINT64_C(3) << 40}, 1000, 7      },
        {{4, 5, 6},                 0,    1 << 30}
    };
    struct trp_moved_output got;
    struct trp_buf b = {0};
    struct trp_view v;
    bool last = false;
    char *text;
    trp_moved_begin(&b);
    for (int i = 0; i < 2; i++)
        trp_moved_add(&b, &want[i]);
    trp_moved_finish(&b, true, "the disk is full");
    g_assert_cmpint(trp_message_kind_of(b.data, b.size), ==, TRP_MSG_MOVED);
    v = trp_message_view(b.data, b.size, TRP_MSG_MOVED);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(trp_moved_next(&v, &got, &last, &text), ==, 1);
        g_assert_cmpuint(got.is.dataset, ==, want[i].is.dataset);
        g_assert_cmpuint(got.is.map, ==, want[i].is.map);
        g_assert_cmpuint(got.is.attempt, ==, want[i].is.attempt);
        g_assert_cmpuint(got.bytes, ==, want[i].bytes);
        g_assert_cmpint(got.took_ns, ==, want[i].took_ns);
    }
    g_assert_cmpint(trp_moved_next(&v, &got, &last, &text), ==, 0);
    g_assert_true(last);
    g_assert_cmpstr(text, ==, "the disk is full");
    free(text);
    v = trp_message_view(b.data, b.size - 1, TRP_MSG_MOVED);
    while (trp_moved_next(&v, &got, &last, &text) > 0)
        ;
    g_assert_true(v.bad);
    trp_buf_free(&b);
}

TEST("shuffle/a fetch failure comes back")
{
    struct trp_buf b = {0};
    struct trp_map_output others[] = {
        {5, 6         },
        {7, UINT64_MAX}
    };
    struct trp_fetch_end f = {1, 2, {UINT64_C(3) << 32}, 9, others, 2, "gone", 4}, got;
    trp_fetch_end_put(&b, &f);
    g_assert_cmpint(trp_fetch_end_get(b.data, b.size, &got), ==, 0);
    g_assert_cmpuint(got.dataset, ==, 1);
    g_assert_cmpuint(got.map, ==, 2);
    g_assert_cmpuint(got.attempt.n, ==, f.attempt.n);
    g_assert_cmpuint(got.location, ==, 9);
    g_assert_cmpmem(got.text, got.size, "gone", 4);
    g_assert_cmpuint(got.nmore, ==, 2);
    g_assert_cmpuint(got.more[1].map, ==, 7);
    g_assert_cmpuint(got.more[1].attempt, ==, UINT64_MAX);
    free(got.more);
    for (size_t cut = 0; cut < b.size - 4; cut++)
        g_assert_cmpint(trp_fetch_end_get(b.data, cut, &got), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

/* Between two that carry none, since a message has all in one row. */
TEST("shuffle/an end carries what went through map outputs")
{
    struct trp_end plain = {.attempt = {1}}, got = {0};
    struct trp_end end = {
        .attempt = {2                  },
        .extra = (const uint8_t *)"sizes",
        .extra_size = 5,
        .has_data = true,
        .data = { .read_records = 1,
                    .local_blocks = 2,
                    .remote_blocks = 3,
                    .local_bytes = 4,
                    .remote_bytes = TRP_LARGEST - 1,
                    .wait_ns = 6,
                    .written_records = 7,
                    .written_bytes = 8,
                    .write_ns = 9,
                    .spilled_bytes = 10}
    };
    struct trp_buf b = {0};
    struct trp_view v;
    uint32_t count;
    trp_ends_begin(&b);
    trp_ends_put(&b, &plain);
    trp_ends_put(&b, &end);
    trp_ends_put(&b, &plain);
    trp_batch_finish(&b);
    g_assert_cmpint(trp_ends_open(b.data, b.size, &v, &count), ==, 0);
    g_assert_cmpuint(count, ==, 3);
    g_assert_cmpint(trp_ends_next(&v, &got), ==, 1);
    g_assert_false(got.has_data);
    g_assert_cmpint(trp_ends_next(&v, &got), ==, 1);
    g_assert_true(got.has_data);
    g_assert_cmpmem(&got.data, sizeof(got.data), &end.data, sizeof(end.data));
    g_assert_cmpmem(got.extra, got.extra_size, "sizes", 5);
    g_assert_cmpint(trp_ends_next(&v, &got), ==, 1);
    g_assert_false(got.has_data);
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_ends_open(b.data, cut, &v, &count), ==, TRP_EPROTO);
    trp_buf_free(&b);
}

TEST("shuffle/copies come back")
{
    struct trp_buf b = {0};
    struct trp_copy_ask a = {5, 77, false, true, 3}, got;
    uint32_t from;
    char *endpoint;
    trp_copy_ask_put(&b, &a);
    g_assert_cmpint(trp_copy_ask_get(b.data, b.size, &got), ==, 0);
    g_assert_cmpmem(&got.number, 4, &a.number, 4);
    g_assert_cmpuint(got.hash, ==, 77);
    g_assert_true(!got.has && got.failed && got.from == 3);
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_copy_ask_get(b.data, cut, &got), ==, TRP_EPROTO);
    b.data[12] = 2;
    g_assert_cmpint(trp_copy_ask_get(b.data, b.size, &got), ==, TRP_EPROTO);
    for (uint32_t i = 0; i < 4; i++) {
        const bool good = i == 0 || i == 3; /* a location has an endpoint */
        trp_buf_clear(&b);
        trp_copy_from_put(&b, i & 1 ? 9 : TRP_NONE, i & 2 ? "host:1" : "");
        int rc = trp_copy_from_get(b.data, b.size, &from, &endpoint);
        g_assert_cmpint(rc, ==, good ? 0 : TRP_EPROTO);
        if (good) {
            g_assert_cmpuint(from, ==, i ? 9 : TRP_NONE);
            g_assert_cmpstr(endpoint, ==, i ? "host:1" : "");
            free(endpoint);
        }
    }
    for (size_t cut = 0; cut < b.size; cut++)
        g_assert_cmpint(trp_copy_from_get(b.data, cut, &from, &endpoint), ==,
                        TRP_EPROTO);
    trp_buf_free(&b);
}
