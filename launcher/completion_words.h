/*
 * What a command line can go on with, for the shells' completion: decided here, from the
 * commands' own tables and usage texts, so that a shell's script only shows it.
 */
#ifndef TRP_LAUNCHER_COMPLETION_WORDS_H
#define TRP_LAUNCHER_COMPLETION_WORDS_H

/* Prints a line for everything that the last of `n` words (what stands behind `troupe`)
 * may become: the word, a tab, what it is. One that ends with `=` is not complete. The
 * line ":files" asks for names of files. What cannot be read has no lines. */
void trp_completion_words(char **words, int n);

#endif
