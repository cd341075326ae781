/*
 * Ledgers of custom resources: who gets which addresses. The cases resources-*.yaml are
 * carried over by name; a random run is held against a slow model.
 */
#include "core/profile/ledger.h"
#include "profile_maker.h"
#include "unit.h"

enum { CAP = 64 };

/* A profile with this task side; the ledger does not look at the executor side. */
static struct trp_resource_profile task(const char *text)
{
    struct trp_profile_builder b;
    struct trp_resource_profile p = {0};
    trp_error err = {0};

    if (make_builder(&b, "p", text, &err) < 0)
        g_error("%s: %s", text, err.text);
    p.ncustom = b.ncustom;
    memcpy(p.custom, b.custom, sizeof(p.custom));
    return p;
}

/* `addresses` ends with NULL. */
static trp_ledger *ledger_of(const char *name, const char *const *addresses)
{
    struct trp_resource_addresses v = {name, addresses, 0};
    trp_ledger *b = NULL;

    while (addresses[v.naddresses])
        v.naddresses++;
    g_assert_cmpint(trp_ledger_new(&v, 1, &b, NULL), ==, 0);
    return b;
}

#define LEDGER(name, ...) ledger_of(name, (const char *const[]){__VA_ARGS__, NULL})

/* Takes for one task; "gpu 1=1/2, gpu 2=1/2" or "none" must have been assigned. */
static void assert_take(trp_ledger *b, const char *want, bool pack,
                        const char *assigned)
{
    struct trp_resource_profile p = task(want);
    struct trp_grant grants[CAP];
    GString *got = g_string_new("");
    char text[32];
    int n = trp_ledger_propose(b, &p, pack, grants, CAP);

    for (int i = 0; i < n; i++)
        g_string_append_printf(
            got, "%s%s %s=%s", i ? ", " : "",
            trp_ledger_resource_name(b, grants[i].resource),
            trp_ledger_address(b, grants[i].resource, grants[i].address),
            trp_amount_format(grants[i].amount, text, sizeof(text)));
    if (n == TRP_EWAIT)
        g_string_assign(got, "none");
    else
        g_assert_cmpint(trp_ledger_take(b, grants, (uint32_t)n), ==, 0);
    if (strcmp(got->str, assigned) != 0)
        g_error("take '%s': wanted '%s', got '%s'", want, assigned, got->str);
    g_string_free(got, TRUE);
}

/* What is left of resource `r`: "0.8 1 1 1". */
static void assert_left(const trp_ledger *b, uint32_t r, const char *wanted)
{
    GString *got = g_string_new("");
    char text[32];

    for (uint32_t a = 0; a < trp_ledger_addresses(b, r); a++)
        g_string_append_printf(
            got, "%s%s", a ? " " : "",
            trp_amount_format(trp_ledger_left(b, r, a), text, sizeof(text)));
    if (strcmp(got->str, wanted) != 0)
        g_error("left of %s: wanted '%s', got '%s'", trp_ledger_resource_name(b, r),
                wanted, got->str);
    g_string_free(got, TRUE);
}

/* k parts of 1/k fill an address, the next one waits, and all back makes it whole. */
TEST("k parts of 1 over k fill an address")
{
    trp_ledger *b = LEDGER("gpu", "0");
    struct trp_grant g;

    for (int k = 2; k <= 5000; k++) {
        struct trp_resource_profile p = task("");
        p.ncustom = 1;
        strcpy(p.custom[0].name, "gpu");
        p.custom[0].task = TRP_ONE / k;
        for (int i = 0; i < k; i++) {
            g_assert_cmpint(trp_ledger_propose(b, &p, false, &g, 1), ==, 1);
            g_assert_cmpint(trp_ledger_take(b, &g, 1), ==, 0);
        }
        if (trp_ledger_propose(b, &p, false, &g, 1) != TRP_EWAIT)
            g_error("1/%d: wanted it to fit %d times, got one more", k, k);
        for (int i = 0; i < k; i++)
            g_assert_cmpint(
                trp_ledger_give(b, &(struct trp_grant){0, 0, TRP_ONE / k}, 1), ==, 0);
        g_assert_cmpint(trp_ledger_left(b, 0, 0), ==, TRP_ONE);
    }
    trp_ledger_free(b);
}

TEST("a proposal says when it has no room")
{
    trp_ledger *b = LEDGER("gpu", "0", "1", "2", "3");
    struct trp_resource_profile four = task("gpu 4"), part = task("gpu 1/2");
    struct trp_grant g[4];

    g_assert_cmpint(trp_ledger_propose(b, &four, false, g, 3), ==, TRP_ELIMIT);
    g_assert_cmpint(trp_ledger_propose(b, &four, false, g, 4), ==, 4);
    g_assert_cmpint(trp_ledger_propose(b, &part, false, g, 0), ==, TRP_ELIMIT);
    g_assert_cmpint(trp_ledger_propose(b, &part, false, g, 1), ==, 1);
    assert_left(b, 0, "1 1 1 1");
    trp_ledger_free(b);
}

TEST("addresses are in natural order")
{
    static const char *const ordered[] = {
        "",
        "0",
        "00",
        "01",
        "1",
        "2",
        "0010",
        "10",
        "99999999999999999998",
        "99999999999999999999",
        "GPU-2",
        "GPU-10",
        "a",
        "a0b1",
        "a0b2",
        "a0b10",
        "a01",
        "a1",
        "a1x",
        "a2",
        "a10",
        "ab",
        "b",
        "\xc3\xa4",
    };
    gsize n = G_N_ELEMENTS(ordered);

    for (gsize i = 0; i < n; i++)
        for (gsize k = 0; k < n; k++) {
            int got = trp_natural_compare(ordered[i], ordered[k]);
            if ((got > 0) - (got < 0) != (i > k) - (i < k))
                g_error("'%s' and '%s': got %d", ordered[i], ordered[k], got);
        }
}

static void assert_new_refused(const struct trp_resource_addresses *v, uint32_t n,
                               int code, const char *word)
{
    trp_ledger *b = NULL;
    trp_error err = {0};
    int rc = trp_ledger_new(v, n, &b, &err);

    if (rc != code)
        g_error("wanted %d with '%s', got %d '%s'", code, word, rc, err.text);
    assert_contains(err.text, word);
    g_assert_null(b);
}

TEST("duplicates and too many are refused")
{
    const char *twice[] = {"1", "0", "1"}, *fine[] = {"0", "1", "01"};
    struct trp_resource_addresses many[TRP_PROFILE_RESOURCES + 1];
    trp_ledger *b;

    assert_new_refused(
        (struct trp_resource_addresses[]){
            {"gpu", twice, 3}
    },
        1, TRP_EINVAL, "address 1 twice");
    assert_new_refused(
        (struct trp_resource_addresses[]){
            {"gpu", fine, 2},
            {"a",   fine, 1},
            {"gpu", fine, 1}
    },
        3, TRP_EINVAL, "gpu is listed twice");
    assert_new_refused(
        (struct trp_resource_addresses[]){
            {"gpu", fine, TRP_LEDGER_ADDRESSES_MAX + 1}
    },
        1, TRP_ELIMIT, "gpu");
    for (gsize i = 0; i < G_N_ELEMENTS(many); i++)
        many[i] = (struct trp_resource_addresses){"x", fine, 1};
    assert_new_refused(many, G_N_ELEMENTS(many), TRP_ELIMIT, "16");

    g_assert_cmpint(trp_ledger_new(
                        (struct trp_resource_addresses[]){
                            {"gpu", fine, 3}
    },
                        1, &b, NULL),
                    ==, 0);
    trp_ledger_free(b);
    g_assert_cmpint(trp_ledger_new(
                        (struct trp_resource_addresses[]){
                            {"gpu", NULL, 0}
    },
                        1, &b, NULL),
                    ==, 0);
    assert_take(b, "gpu 1/2", false, "none");
    assert_take(b, "gpu 1", false, "none");
    trp_ledger_free(b);
    g_assert_cmpint(trp_ledger_new(NULL, 0, &b, NULL), ==, 0);
    g_assert_cmpuint(trp_ledger_resources(b), ==, 0);
    g_assert_null(trp_ledger_resource_name(b, 0));
    g_assert_cmpuint(trp_ledger_addresses(b, 0), ==, 0);
    g_assert_null(trp_ledger_address(b, 0, 0));
    g_assert_cmpint(trp_ledger_left(b, 0, 0), ==, 0);
    trp_ledger_free(b);
    trp_ledger_free(NULL);
}

TEST("names are copied")
{
    char name[] = "gpu", address[] = "7";
    const char *addresses[] = {address};
    trp_ledger *b;

    g_assert_cmpint(trp_ledger_new(&(struct trp_resource_addresses){name, addresses, 1},
                                   1, &b, NULL),
                    ==, 0);
    name[0] = address[0] = 'x';
    g_assert_cmpstr(trp_ledger_resource_name(b, 0), ==, "gpu");
    g_assert_cmpstr(trp_ledger_address(b, 0, 0), ==, "7");
    trp_ledger_free(b);
}

TEST("what cannot be taken or given changes nothing")
{
    trp_ledger *b = LEDGER("gpu", "0", "1");
    const trp_amount half = TRP_ONE / 2;
    const struct trp_grant wrong[][2] = {
        {{0, 0, half}, {0, 2, half}       }, /* no such address */
        {{0, 0, half}, {1, 0, half}       }, /* no such resource */
        {{0, 0, half}, {0, 0, half + 1}   }, /* the same twice, together too much */
        {{0, 0, half}, {0, 1, -1}         },
        {{0, 0, half}, {0, 1, TRP_ONE + 1}},
        {{0, 0, half}, {0, 1, INT64_MAX}  },
        {{0, 0, half}, {0, 1, INT64_MIN}  },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_assert_cmpint(trp_ledger_take(b, wrong[i], 2), ==, TRP_ESTATE);
        assert_left(b, 0, "1 1");
        g_assert_cmpint(trp_ledger_give(b, wrong[i], 2), ==, TRP_ESTATE);
        assert_left(b, 0, "1 1");
    }
    g_assert_cmpint(trp_ledger_take(b,
                                    (struct trp_grant[]){
                                        {0, 0, half},
                                        {0, 0, half}
    },
                                    2),
                    ==, 0);
    assert_left(b, 0, "0 1");
    g_assert_cmpint(trp_ledger_take(b, &(struct trp_grant){0, 0, 1}, 1), ==,
                    TRP_ESTATE);
    g_assert_cmpint(trp_ledger_give(b, &(struct trp_grant){0, 1, 1}, 1), ==,
                    TRP_ESTATE);
    trp_ledger_free(b);
}

/* ---- random runs against a model ------------------------------------------------- */

enum { ADDRESSES = 5, RUNNING = 40 };

/* First fit or least sufficient, said as plainly as can be. */
static int model_address(const trp_amount *left, trp_amount want, bool pack)
{
    int best = -1;

    for (int a = 0; a < ADDRESSES; a++)
        if (left[a] >= want && (best < 0 || (pack && left[a] < left[best])))
            best = a;
    return best;
}

struct running {
    struct trp_grant grants[ADDRESSES];
    int n;
};

static void check_step(const trp_amount *left, trp_amount want, bool pack,
                       const struct running *got)
{
    int whole = 0;

    if (want < TRP_ONE) {
        int wanted = model_address(left, want, pack);
        g_assert_cmpint(got->n, ==, wanted < 0 ? TRP_EWAIT : 1);
        if (wanted >= 0)
            g_assert_cmpint(got->grants[0].address, ==, wanted);
        return;
    }
    for (int a = 0; a < ADDRESSES; a++) {
        if (left[a] != TRP_ONE)
            continue;
        if (whole < got->n)
            g_assert_cmpint(got->grants[whole].address, ==, a);
        whole++;
    }
    g_assert_cmpint(got->n, ==,
                    whole < want / TRP_ONE ? TRP_EWAIT : (int)(want / TRP_ONE));
}

/* GLib prints the seed; --seed=S runs the same again. */
TEST("giving undoes taking, as a plain model says")
{
    trp_ledger *b = LEDGER("gpu", "0", "1", "2", "3", "10");
    struct running running[RUNNING];
    trp_amount left[ADDRESSES];
    int nrunning = 0;

    for (int a = 0; a < ADDRESSES; a++)
        left[a] = TRP_ONE;
    for (int step = 0; step < 50000; step++) {
        if (nrunning == RUNNING || (nrunning > 0 && g_test_rand_bit())) {
            struct running *r = &running[g_test_rand_int_range(0, nrunning)];
            g_assert_cmpint(trp_ledger_give(b, r->grants, (uint32_t)r->n), ==, 0);
            for (int i = 0; i < r->n; i++)
                left[r->grants[i].address] += r->grants[i].amount;
            *r = running[--nrunning];
        } else {
            struct running *r = &running[nrunning];
            struct trp_resource_profile p = task("gpu 1");
            bool pack = g_test_rand_bit();
            p.custom[0].task = g_test_rand_bit()
                                   ? TRP_ONE / g_test_rand_int_range(2, 1000)
                                   : TRP_ONE * g_test_rand_int_range(1, ADDRESSES);
            r->n = trp_ledger_propose(b, &p, pack, r->grants, ADDRESSES);
            check_step(left, p.custom[0].task, pack, r);
            for (int i = 0; i < r->n; i++)
                left[r->grants[i].address] -= r->grants[i].amount;
            if (r->n > 0) {
                g_assert_cmpint(trp_ledger_take(b, r->grants, (uint32_t)r->n), ==, 0);
                nrunning++;
            }
        }
        for (uint32_t a = 0; a < ADDRESSES; a++)
            g_assert_cmpint(trp_ledger_left(b, 0, a), ==, left[a]);
    }
    while (nrunning-- > 0)
        g_assert_cmpint(
            trp_ledger_give(b, running[nrunning].grants, (uint32_t)running[nrunning].n),
            ==, 0);
    assert_left(b, 0, "1 1 1 1 1");
    trp_ledger_free(b);
}
