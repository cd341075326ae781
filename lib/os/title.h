/*
 * The name that ps shows of this process.
 */
#ifndef TRP_OS_TITLE_H
#define TRP_OS_TITLE_H

/* At the beginning of main. */
void trp_process_title_init(int argc, char **argv);
/* "troupe: executor 3 etl-…": comm and, when the memory of argv is long enough, the
 * command line. */
void trp_process_title(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
