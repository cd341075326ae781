/*
 * Work on what is a user's, with the rights of that user and no others.
 *
 * Root that removes a user's files is led astray by whoever swaps a folder meanwhile.
 * With the user's rights it does not matter where one is led: nothing goes that the
 * user could not have removed.
 */
#ifndef TRP_PLUGIN_AS_USER_H
#define TRP_PLUGIN_AS_USER_H

#include <sys/types.h>

/* Calls `work` in a process of its own, as the user in effect (not in real: the user
 * can neither signal nor trace it), in no group but `gid`. What it returns, from 0 to
 * 125, or -1: it could not be called, or died, at the latest after so many seconds (0:
 * it may take for ever). Where the caller is not root, or `uid` is the caller, nothing
 * changes hands. Signals are not held to it: they go by the real id, root's, as well.
 */
int trp_as_user(uid_t uid, gid_t gid, unsigned seconds, int (*work)(void *context),
                void *context);

#endif
