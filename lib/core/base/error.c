/*
 * The exit statuses of error codes: one table, indexed by the negated code.
 *
 * A text is built in a buffer of its own and copied at the end, so that a caller may
 * put the present text of the same error into the new one ("stage split: <old text>").
 * Texts hold what users wrote (file names, resource names), so whatever is no printable
 * UTF-8 is shown as '?': an error stays one line and can go into a JSON document as it
 * is. A text that is too long is cut at a character and ends in "...".
 */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

static const int exit_status[] = {
    [-TRP_OK] = 0,      [-TRP_EINVAL] = 2, [-TRP_ENOMEM] = 4,       [-TRP_EWAIT] = 4,
    [-TRP_ENEVER] = 3,  [-TRP_EEXIST] = 2, [-TRP_ENOENT] = 2,       [-TRP_ELIMIT] = 2,
    [-TRP_ESYSTEM] = 4, [-TRP_EPROTO] = 4, [-TRP_ECANCELLED] = 130, [-TRP_EFAILED] = 1,
    [-TRP_ESTATE] = 4,  [-TRP_ETIME] = 75,
};

int trp_error_set(trp_error *err, int code, const char *fmt, ...)
{
    char text[TRP_ERROR_TEXT];
    va_list args;

    if (!err)
        return code;
    va_start(args, fmt);
    int wanted = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (wanted < 0)
        text[0] = '\0';
    if (wanted >= (int)sizeof(text)) {
        size_t cut = sizeof(text) - sizeof("...");
        while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
            cut--;
        memcpy(text + cut, "...", sizeof("..."));
    }
    trp_utf8_plain(text, '?');
    err->code = code;
    memcpy(err->text, text, strlen(text) + 1);
    return code;
}

int trp_error_exit_status(int code)
{
    if (code > 0) /* a count is no failure */
        return 0;
    return code > -(int)(sizeof exit_status / sizeof *exit_status) ? exit_status[-code]
                                                                   : 4;
}
