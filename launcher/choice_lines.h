/* What of each stage --resume runs again: "align: 1 task is done, 3 of 4 run: its command
 * changed". */
#ifndef TRP_LAUNCHER_CHOICE_LINES_H
#define TRP_LAUNCHER_CHOICE_LINES_H

#include "driver/resume.h"

struct trp_choice_lines {
    const char *lead; /* of each line */
    const char *of;   /* of this stage; NULL: of all */
    bool each;        /* a line a stage, however many there are */
};

void trp_choice_lines_print(const trp_pipeline *p,
                            const struct trp_stage_choice *choices,
                            const struct trp_choice_lines *how);

#endif
