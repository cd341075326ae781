/*
 * What is on the way of every launch and every end is laid out as one piece of code (a
 * function marked `flatten`); what such a function calls only now and then is marked
 * TRP_RARE and stays outside of it, so that the frequent path keeps its registers.
 */
#ifndef TRP_CORE_BASE_RARE_H
#define TRP_CORE_BASE_RARE_H

#define TRP_RARE __attribute__((noinline))

#endif
