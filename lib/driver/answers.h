/*
 * What a driver answers to those who ask (ask.h): where the run is, and why stages wait.
 */
#ifndef TRP_DRIVER_ANSWERS_H
#define TRP_DRIVER_ANSWERS_H

#include "core/base/bytes.h"
#include "driver/ask.h"

struct trp_driver;

/* A trp_answer (asked.h); `driver` is its context. Changes nothing. */
void trp_driver_answer(void *driver, const struct trp_ask *q, struct trp_buf *ret);

#endif
