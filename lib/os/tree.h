/*
 * Removal of trees of files, whatever is in them.
 *
 * Nothing here follows a symbolic link, goes into another file system or a mount point,
 * or leaves the folder it was given: every step is relative to an open descriptor.
 * Depth is bounded by descriptors kept open (64); what is deeper is moved up first.
 * What cannot be removed stays, and the rest goes on.
 *
 * A folder that is moved while it is being emptied is emptied where it is then. So
 * whoever has more rights than those who can reach the tree gives them up first
 * (plugin/as_user.h).
 */
#ifndef TRP_OS_TREE_H
#define TRP_OS_TREE_H

#include <dirent.h>
#include <stddef.h>

/* Removes `name` in the folder `at`, or a path, a file or a tree, looking at no more
 * than *budget entries: TRP_EWAIT when it ran out (call again, or elsewhere),
 * TRP_ESYSTEM when something cannot be removed. A name that is not there is no failure.
 */
int trp_tree_remove(int at, const char *name, size_t *budget);

/* The same for all that is in an open folder, which stays. */
int trp_tree_empty(int folder, size_t *budget);

/* Opens the folder `name`, no path, of the folder `at`, if need be made ours to read;
 * NULL with errno. */
DIR *trp_folder_open(int at, const char *name);

#endif
