/* The page's own files (web/), as the build puts them into the library. */
#ifndef TRP_EVENTS_PAGE_EMBEDDED_H
#define TRP_EVENTS_PAGE_EMBEDDED_H

#include <stddef.h>

extern const unsigned char trp_page_html[], trp_page_css[], trp_page_js[];
extern const size_t trp_page_html_size, trp_page_css_size, trp_page_js_size;

#endif
