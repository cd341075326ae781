/*
 * A bar of text: how much of something is done.
 */
#ifndef TRP_EVENTS_BAR_H
#define TRP_EVENTS_BAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that a bar of so many columns needs, with its NUL. */
#define TRP_BAR_SIZE(width) ((size_t)(width)*3 + 1)

/* `width` columns, `done` of `all` of them full; in UTF-8 to an eighth of a column, else
 * of "#" and ".". Returns the bytes, without the NUL. */
size_t trp_bar(bool utf8, uint64_t done, uint64_t all, int width, char *buf);

#endif
