/*
 * On which processors this process runs.
 */
#ifndef TRP_OS_BINDING_H
#define TRP_OS_BINDING_H

#include <stdbool.h>

/* Binds all threads of this process, and what they start from now on, to processors as
 * the kernel numbers them: "0-3,8". Those that it may not use are left out. False:
 * errno; EINVAL: this is no such list, or it may use none of them. */
bool trp_bind_process(const char *cpus);

#endif
