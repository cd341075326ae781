/*
 * The page of `troupe report -o FILE.html`: one file that opens offline. It is a constant
 * frame, style and script (web/) around a JSON document that the script draws.
 *
 * Nothing of a run becomes HTML or script: names, items, reasons and lines of logs stand
 * in the document alone, with every `<`, `>` and `&` escaped, and reach the page as text
 * nodes. Besides, the page's own policy allows this script and this style alone, by their
 * hashes, and no connection whatever.
 */
#ifndef TRP_EVENTS_PAGE_PAGE_H
#define TRP_EVENTS_PAGE_PAGE_H

#include "core/base/bytes.h"

/* What the script finds in the document, each JSON text; `head` has what the page says of
 * itself, `report` is the document of `troupe report --json`, `page` that of page_json.h,
 * `alternatives` "null", or that of launcher/report_alternatives.c. */
struct trp_page_parts {
    const char *title;
    const char *head, *report, *page, *alternatives;
    size_t head_size, report_size, page_size, alternatives_size;
};

/* Adds the whole page; a failure is b->failed. */
void trp_page_put(struct trp_buf *b, const struct trp_page_parts *p);

#endif
