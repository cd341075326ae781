/*
 * Datasets that nobody needs any more.
 *
 * Internal to lib/driver.
 */
#ifndef TRP_DRIVER_FREED_DATASETS_H
#define TRP_DRIVER_FREED_DATASETS_H

#include "driver/driver_state.h"

/* Jobs and stages may have gone: what was in use is tried again. */
void trp_driver_free_datasets(trp_driver *d);
/* Has outputs removed, as far as there is an executor where they lie. */
void trp_driver_drop_outputs(trp_driver *d);

#endif
