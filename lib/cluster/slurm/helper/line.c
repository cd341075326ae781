/*
 * Text, not structures: a line can be read in a log, and a helper that is older than
 * the driver answers "unknown" instead of garbage.
 */
#include "cluster/slurm/helper/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"

static int bad(trp_error *err, const char *what)
{
    return trp_error_set(err, TRP_EPROTO, "troupe-slurm: a line %s", what);
}

int trp_slurm_line_parse(char *text, struct trp_slurm_line *ret, trp_error *err)
{
    char *rest = NULL, *end = NULL;
    char *number = strtok_r(text, " ", &rest), *word = strtok_r(NULL, " ", &rest);
    *ret = (struct trp_slurm_line){.word = word};
    if (!number || !word || *number < '0' || *number > '9')
        return bad(err, "without number and word");
    unsigned long n = strtoul(number, &end, 10);
    if (*end || n > UINT32_MAX)
        return bad(err, "without number and word");
    ret->number = (uint32_t)n;
    for (char *field; (field = strtok_r(NULL, " ", &rest));) {
        char *equals = strchr(field, '=');
        if (!equals || ret->nfields == TRP_SLURM_FIELDS)
            return bad(err, "with too many fields, or one without =");
        *equals = '\0';
        char *value = equals + 1;
        long size = trp_unescape(value, strlen(value), value);
        if (size < 0)
            return bad(err, "with a bad %XX");
        value[size] = '\0';
        ret->fields[ret->nfields].key = field;
        ret->fields[ret->nfields++].value = value;
    }
    return 0;
}

const char *trp_slurm_line_text(const struct trp_slurm_line *line, const char *key)
{
    for (uint32_t i = 0; i < line->nfields; i++) {
        if (strcmp(line->fields[i].key, key) == 0)
            return line->fields[i].value;
    }
    return "";
}

int64_t trp_slurm_line_number(const struct trp_slurm_line *line, const char *key)
{
    const char *text = trp_slurm_line_text(line, key);
    char *end;
    long long n = strtoll(text, &end, 10);
    return *end ? 0 : n;
}

void trp_slurm_line_begin(FILE *to, uint32_t number, const char *word)
{
    fprintf(to, "%" PRIu32 " %s", number, word);
}

void trp_slurm_line_put(FILE *to, const char *key, const char *value)
{
    char escaped[4];
    fprintf(to, " %s=", key);
    for (; value && *value; value++) {
        unsigned char c = (unsigned char)*value;
        trp_escape(c, escaped);
        if (c > 0x20 && c < 0x7f && c != '%')
            fputc(c, to);
        else
            fputs(escaped, to);
    }
}

void trp_slurm_line_put_number(FILE *to, const char *key, int64_t value)
{
    fprintf(to, " %s=%" PRId64, key, value);
}

void trp_slurm_line_end(FILE *to)
{
    fputc('\n', to);
}
