/*
 * Ledger of one executor: the free amount of every address, in one array.
 *
 * One allocation holds everything: the resources in order of name, the free amounts and
 * the names of all addresses (those of a resource side by side, in natural order), and
 * the text of all names. Nothing in it moves or grows; only the amounts change.
 *
 * A proposal is on the path of every launch. A profile lists its custom resources in
 * order of name too, so the two lists are walked side by side: one comparison of short
 * strings for each resource that the task asks for, then a scan of that resource's
 * amounts, which lie side by side. A profile without custom task resources leaves after
 * a look at each of its entries (mostly none). Rejected: an index of resources by
 * profile kept here (an executor would carry a table for every profile of the run to
 * save a comparison of "gpu" with "gpu"), and lists of free addresses (with at most a
 * few dozen addresses the scan is as fast, and first fit needs the order).
 *
 * Amounts are fixed point and a task's part is cut, not rounded, so k parts of 1/k
 * never sum to more than an address has, and giving back restores it to the last digit.
 */
#include "core/profile/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct book {
    const char *name;
    uint32_t first, n; /* its addresses are first .. first + n of the arrays below */
};

struct trp_ledger {
    uint32_t nresources;
    struct book *resources; /* in order of name */
    trp_amount *left;       /* 0 .. TRP_ONE each */
    const char **addresses;
};

/* ---- making --------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int trp_natural_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x && *y) {
        if (!is_digit(*x) || !is_digit(*y)) {
            if (*x != *y)
                return (unsigned char)*x - (unsigned char)*y;
            x++;
            y++;
            continue;
        }
        x += strspn(x, "0");
        y += strspn(y, "0");
        size_t nx = strspn(x, "0123456789"), ny = strspn(y, "0123456789");
        if (nx != ny)
            return nx < ny ? -1 : 1;
        int order = memcmp(x, y, nx);
        if (order != 0)
            return order;
        x += nx;
        y += ny;
    }
    if (*x || *y)
        return *x ? 1 : -1;
    return strcmp(a, b); /* "01" and "1": different, so one of them comes first */
}

int trp_natural_order(const void *a, const void *b)
{
    return trp_natural_compare(*(const char *const *)a, *(const char *const *)b);
}

static void order_by_name(const struct trp_resource_addresses *v, uint32_t n,
                          const struct trp_resource_addresses **ret_order)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && strcmp(ret_order[at - 1]->name, v[i].name) > 0; at--)
            ret_order[at] = ret_order[at - 1];
        ret_order[at] = &v[i];
    }
}

/* Counts all addresses, and the bytes of all names. */
static int count_addresses(const struct trp_resource_addresses *const *order,
                           uint32_t n, size_t *ret_addresses, size_t *ret_text,
                           trp_error *err)
{
    size_t naddresses = 0, text = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct trp_resource_addresses *r = order[i];
        if (r->naddresses > TRP_LEDGER_ADDRESSES_MAX)
            return trp_error_set(err, TRP_ELIMIT,
                                 "resource %s has %u addresses; the most is %d",
                                 r->name, r->naddresses, TRP_LEDGER_ADDRESSES_MAX);
        if (i > 0 && strcmp(order[i - 1]->name, r->name) == 0)
            return trp_error_set(err, TRP_EINVAL, "resource %s is listed twice",
                                 r->name);
        text += strlen(r->name) + 1;
        for (uint32_t a = 0; a < r->naddresses; a++)
            text += strlen(r->addresses[a]) + 1;
        naddresses += r->naddresses;
    }
    *ret_addresses = naddresses;
    *ret_text = text;
    return TRP_OK;
}

static const char *put_text(char **at, const char *text)
{
    char *copy = *at;
    size_t size = strlen(text) + 1;

    memcpy(copy, text, size);
    *at += size;
    return copy;
}

static int check_duplicates(const trp_ledger *b, const struct book *r, trp_error *err)
{
    for (uint32_t a = r->first + 1; a < r->first + r->n; a++)
        if (strcmp(b->addresses[a - 1], b->addresses[a]) == 0)
            return trp_error_set(err, TRP_EINVAL,
                                 "resource %s has the address %s twice", r->name,
                                 b->addresses[a]);
    return TRP_OK;
}

int trp_ledger_new(const struct trp_resource_addresses *v, uint32_t n,
                   trp_ledger **ret_ledger, trp_error *err)
{
    const struct trp_resource_addresses *order[TRP_PROFILE_RESOURCES];
    size_t naddresses = 0, ntext = 0;
    uint32_t next = 0;

    if (n > TRP_PROFILE_RESOURCES)
        return trp_error_set(err, TRP_ELIMIT,
                             "an executor has at most %d custom resources, not %u",
                             TRP_PROFILE_RESOURCES, n);
    order_by_name(v, n, order);
    int rc = count_addresses(order, n, &naddresses, &ntext, err);
    if (rc < 0)
        return rc;
    trp_ledger *b =
        malloc(sizeof(*b) + n * sizeof(b->resources[0]) +
               naddresses * (sizeof(b->left[0]) + sizeof(b->addresses[0])) + ntext);
    if (!b)
        return trp_error_set(err, TRP_ENOMEM, "no memory for an executor's resources");
    b->nresources = n;
    b->resources = (struct book *)(b + 1);
    b->left = (trp_amount *)(b->resources + n);
    b->addresses = (const char **)(b->left + naddresses);
    char *text = (char *)(b->addresses + naddresses);

    for (uint32_t r = 0; r < n; r++) {
        struct book *book = &b->resources[r];
        *book =
            (struct book){put_text(&text, order[r]->name), next, order[r]->naddresses};
        for (uint32_t a = 0; a < book->n; a++, next++) {
            b->addresses[next] = put_text(&text, order[r]->addresses[a]);
            b->left[next] = TRP_ONE;
        }
        if (book->n > 1)
            qsort(b->addresses + book->first, book->n, sizeof(b->addresses[0]),
                  trp_natural_order);
        rc = check_duplicates(b, book, err);
        if (rc < 0) {
            free(b);
            return rc;
        }
    }
    *ret_ledger = b;
    return TRP_OK;
}

void trp_ledger_free(trp_ledger *b)
{
    free(b);
}

/* ---- proposing ------------------------------------------------------------------ */

/* The address for a part of a unit, or -1. */
static int64_t find_part(const trp_amount *left, uint32_t n, trp_amount task, bool pack)
{
    int64_t best = -1;

    for (uint32_t a = 0; a < n; a++) {
        if (left[a] < task || (best >= 0 && left[a] >= left[best]))
            continue;
        best = a;
        if (!pack || left[a] == task)
            break;
    }
    return best;
}

/* Proposes addresses of one resource; how many, TRP_EWAIT or TRP_ELIMIT. */
static int propose_one(const trp_ledger *b, uint32_t resource, trp_amount task,
                       bool pack, struct trp_grant *ret_grants, uint32_t cap)
{
    const struct book *book = &b->resources[resource];
    const trp_amount *left = b->left + book->first;
    uint32_t found = 0;

    if (task < TRP_ONE) {
        int64_t a = find_part(left, book->n, task, pack);
        if (a < 0)
            return TRP_EWAIT;
        if (cap == 0)
            return TRP_ELIMIT;
        ret_grants[0] = (struct trp_grant){(uint16_t)resource, (uint16_t)a, task};
        return 1;
    }

    int64_t want = trp_amount_units(task);
    if (want > book->n)
        return TRP_EWAIT;
    for (uint32_t a = 0; a < book->n && found < want; a++) {
        if (left[a] != TRP_ONE)
            continue;
        if (found < cap)
            ret_grants[found] =
                (struct trp_grant){(uint16_t)resource, (uint16_t)a, TRP_ONE};
        found++;
    }
    if (found < want)
        return TRP_EWAIT;
    return found <= cap ? (int)found : TRP_ELIMIT;
}

int trp_ledger_propose(const trp_ledger *b, const struct trp_resource_profile *p,
                       bool pack, struct trp_grant *ret_grants, uint32_t cap)
{
    uint32_t used = 0, r = 0;

    for (uint32_t i = 0; i < p->ncustom; i++) {
        const struct trp_custom *c = &p->custom[i];
        int order = 1;
        if (c->task == 0)
            continue;
        while (r < b->nresources && (order = strcmp(b->resources[r].name, c->name)) < 0)
            r++;
        if (order != 0)
            return TRP_EWAIT;
        int n = propose_one(b, r, c->task, pack, ret_grants + used, cap - used);
        if (n < 0)
            return n;
        used += (uint32_t)n;
    }
    return (int)used;
}

/* ---- taking and giving ---------------------------------------------------------- */

/* Adds a grant to what is left of its address, or deducts it (sign -1); false when that
 * cannot be. */
static bool change(trp_ledger *b, const struct trp_grant *g, int sign)
{
    if (g->resource >= b->nresources || g->address >= b->resources[g->resource].n ||
        g->amount < 0 || g->amount > TRP_ONE)
        return false;
    trp_amount *left = &b->left[b->resources[g->resource].first + g->address];
    trp_amount after = *left + sign * g->amount;
    if (after < 0 || after > TRP_ONE)
        return false;
    *left = after;
    return true;
}

/* The same address may be in the list more than once, so it is done one by one, and
 * undone where it stopped. */
static int change_all(trp_ledger *b, const struct trp_grant *grants, uint32_t n,
                      int sign)
{
    uint32_t done = 0;

    while (done < n && change(b, &grants[done], sign))
        done++;
    if (done == n)
        return TRP_OK;
    while (done-- > 0)
        change(b, &grants[done], -sign);
    return TRP_ESTATE;
}

int trp_ledger_take(trp_ledger *b, const struct trp_grant *grants, uint32_t n)
{
    return change_all(b, grants, n, -1);
}

int trp_ledger_give(trp_ledger *b, const struct trp_grant *grants, uint32_t n)
{
    return change_all(b, grants, n, 1);
}

/* ---- asking --------------------------------------------------------------------- */

uint32_t trp_ledger_resources(const trp_ledger *b)
{
    return b->nresources;
}

const char *trp_ledger_resource_name(const trp_ledger *b, uint32_t resource)
{
    return resource < b->nresources ? b->resources[resource].name : NULL;
}

uint32_t trp_ledger_addresses(const trp_ledger *b, uint32_t resource)
{
    return resource < b->nresources ? b->resources[resource].n : 0;
}

const char *trp_ledger_address(const trp_ledger *b, uint32_t resource, uint32_t address)
{
    if (address >= trp_ledger_addresses(b, resource))
        return NULL;
    return b->addresses[b->resources[resource].first + address];
}

trp_amount trp_ledger_left(const trp_ledger *b, uint32_t resource, uint32_t address)
{
    if (address >= trp_ledger_addresses(b, resource))
        return 0;
    return b->left[b->resources[resource].first + address];
}
