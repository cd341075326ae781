/*
 * What the user's locale says of a terminal, without asking the C library: locales that
 * are not installed here count as well.
 */
#ifndef TRP_OS_LOCALE_H
#define TRP_OS_LOCALE_H

#include <stdbool.h>

/* Whether text is UTF-8, by LC_ALL, LC_CTYPE, LANG: the first that is set. */
bool trp_locale_is_utf8(void);

#endif
