/*
 * What libslurm does not tell, or no longer: the text that Slurm's commands print.
 */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

char *trp_slurm_value(const char *line, const char *key)
{
    char pattern[32];
    snprintf(pattern, sizeof pattern, "%s=", key);
    const char *at = strstr(line, pattern);
    while (at && at > line && at[-1] != ' ')
        at = strstr(at + 1, pattern);
    if (!at)
        return NULL;
    at += strlen(pattern);
    return strndup(at, strcspn(at, " \n"));
}

char *trp_slurm_printed(const char *command)
{
    char *text = NULL;
    size_t size = 0;
    FILE *from = popen(command, "re");
    if (from && getdelim(&text, &size, '\0', from) < 0) {
        free(text);
        text = NULL;
    }
    if (from)
        pclose(from);
    return text;
}

char *trp_slurm_scontrol(const char *arguments)
{
    char command[128];
    snprintf(command, sizeof command, "exec scontrol --local %s", arguments);
    return trp_slurm_printed(command);
}
