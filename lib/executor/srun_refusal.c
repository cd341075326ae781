/* Slurm's words, of 22.05; the more telling ones first. */
#include "executor/srun_refusal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *words;
    enum trp_srun_refusal meaning;
} known[] = {
  /* SLURMCTLD_COMMUNICATIONS_BACKOFF */
    {"Rate limit exceeded",                      TRP_SRUN_TOO_OFTEN},
    {"More processors requested than permitted", TRP_SRUN_NEVER    },
    {"Invalid generic resource",                 TRP_SRUN_NEVER    },
    {"execve",                                   TRP_SRUN_NEVER    },
    {"a run's folder must be",                   TRP_SRUN_NEVER    },
    {"not available",                            TRP_SRUN_NOT_NOW  },
    {"busy",                                     TRP_SRUN_NOT_NOW  },
    {"are DOWN",                                 TRP_SRUN_NOT_NOW  },
    {"Unable to confirm allocation",             TRP_SRUN_NOT_NOW  },
    {"Unable to contact",                        TRP_SRUN_NOT_NOW  },
    {"not responding",                           TRP_SRUN_NOT_NOW  },
    {"standby mode",                             TRP_SRUN_NOT_NOW  },
    {"Socket timed out",                         TRP_SRUN_NOT_NOW  },
    {"Zero Bytes",                               TRP_SRUN_NOT_NOW  },
    {"Connection ",                              TRP_SRUN_NOT_NOW  },
    {"connection failure",                       TRP_SRUN_NOT_NOW  },
    {"temporarily",                              TRP_SRUN_NOT_NOW  },
    {"Job credential",                           TRP_SRUN_NOT_NOW  },
    {"already completing",                       TRP_SRUN_NOT_NOW  },
};

enum trp_srun_refusal trp_srun_refusal(const char *words)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcasestr(words, known[i].words))
            return known[i].meaning;
    }
    return TRP_SRUN_UNKNOWN;
}

void trp_srun_complaint(const char *words, char *text, size_t size)
{
    const char *at = strstr(words, "error: ");
    at = at ? at + strlen("error: ") : words;
    snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
}
