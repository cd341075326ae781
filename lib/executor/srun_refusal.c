/* What Slurm says, of 22.05; the more telling ones first. */
#include "executor/srun_refusal.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *pattern;
    enum trp_srun_refusal meaning;
} known[] = {
  /* SLURMCTLD_COMMUNICATIONS_BACKOFF */
    {"Rate limit exceeded",                      TRP_SRUN_TOO_OFTEN},
    {"More processors requested than permitted", TRP_SRUN_NEVER    },
    {"Invalid generic resource",                 TRP_SRUN_NEVER    },
    {"execve():",                                TRP_SRUN_NEVER    },
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

enum trp_srun_refusal trp_srun_refusal(const char *said)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcasestr(said, known[i].pattern))
            return known[i].meaning;
    }
    return TRP_SRUN_UNKNOWN;
}

bool trp_srun_unreached(const char *said, char *text, size_t size)
{
    static const char start[] = "Task launch for ", on[] = " failed on node ";
    char why[128] = "";
    size_t n = 0;
    for (const char *at = said; (at = strstr(at, start)); at += sizeof start - 1) {
        size_t line = strcspn(at, "\n");
        const char *node = strstr(at, on);
        node = node && node < at + line ? node + sizeof on - 1 : at + line;
        size_t name = strcspn(node, ":\n");
        if (!*why)
            snprintf(why, sizeof why, "%.*s", (int)(at + line - node - name),
                     node + name);
        if (!*why || trp_srun_refusal(why) != TRP_SRUN_NOT_NOW)
            return false;
        if (!n)
            n = (size_t)snprintf(text, size, "%.*s", (int)(node - at), at);
        else if (n < size)
            n += (size_t)snprintf(text + n, size - n, ",");
        if (n < size)
            n += (size_t)snprintf(text + n, size - n, "%.*s", (int)name, node);
    }
    if (n && n < size)
        snprintf(text + n, size - n, "%s", why);
    return n > 0;
}

void trp_srun_complaint(const char *said, char *text, size_t size)
{
    const char *at = strstr(said, "error: ");
    at = at ? at + strlen("error: ") : said;
    snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
}
