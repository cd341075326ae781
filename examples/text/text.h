/*
 * What the programs of this example know about texts: what a file is called, how it is
 * read, what its words and its references are.
 *
 * A *name* is "ls(1)" for a manual page (the section's digit only), "GPL-2" for a
 * licence in common-licenses, and the path from doc/ on for everything else.
 */
#ifndef EXAMPLE_TEXT_H
#define EXAMPLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum text_kind { TEXT_MANUAL, TEXT_LICENCE, TEXT_OTHER };
enum {
    TEXT_NAME_MAX = 256,
    TEXT_WORD_MAX = 30,
    TEXT_SIZE_MAX = 16 << 20 /* what is longer is read up to here */
};

enum text_kind text_name_of(const char *path, char name[TEXT_NAME_MAX]);
enum text_kind text_kind_of(const char *name);
/* Where the manual page or licence of that name is below `root`; false: nowhere. */
bool text_find(const char *root, const char *name, char *path, size_t size);

/* The whole text, decompressed, without troff when it is a manual page; to be freed.
 * 1; 0 when the file is no text or cannot be read; -1 when memory is out. */
int text_read(const char *path, char **ret_text, size_t *ret_size);

/* The next word (letters, in lower case) from *at on, which moves behind it. False at
 * the end. Words of one letter and words that are too long are left out. */
bool text_next_word(const char **at, const char *end, char word[TEXT_WORD_MAX + 1]);
/* The next reference likewise: in manual pages "ls(1)", elsewhere the licence in
 * "/usr/share/common-licenses/GPL-2". */
bool text_next_reference(enum text_kind kind, const char **at, const char *end,
                         char name[TEXT_NAME_MAX]);

/* Prints "PROGRAM: …" on stderr and ends with status 1. */
void text_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* fopen and fclose that fail with the file's name. */
void *text_open(const char *path, const char *mode);
void text_close(void *file, const char *path);

#endif
