/*
 * Error codes, their words and exit statuses: one table, indexed by the negated code.
 *
 * A text is built in a buffer of its own and copied at the end, so that a caller may
 * put the present text of the same error into the new one ("stage split: <old text>").
 * Texts hold what users wrote (file names, resource names), so whatever is no printable
 * UTF-8 is shown as '?': an error stays one line and can go into a JSON document as it
 * is. A text that is too long is cut at a character and ends in "...".
 */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *word;
    int exit_status;
} codes[] = {
    [-TRP_OK] = {"ok",        0  },
    [-TRP_EINVAL] = {"invalid",   2  },
    [-TRP_ENOMEM] = {"memory",    4  },
    [-TRP_EWAIT] = {"wait",      4  },
    [-TRP_ENEVER] = {"never",     3  },
    [-TRP_EEXIST] = {"exists",    2  },
    [-TRP_ENOENT] = {"missing",   2  },
    [-TRP_ELIMIT] = {"limit",     2  },
    [-TRP_ESYSTEM] = {"system",    4  },
    [-TRP_EPROTO] = {"protocol",  4  },
    [-TRP_ECANCELLED] = {"cancelled", 130},
    [-TRP_EFAILED] = {"failed",    1  },
    [-TRP_ESTATE] = {"state",     4  },
    [-TRP_ETIME] = {"time",      75 },
};

static bool code_known(int code)
{
    return code <= 0 && code > -(int)(sizeof(codes) / sizeof(codes[0]));
}

/* Bytes of the well-formed UTF-8 character at `s`, 0 when there is none. */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t length;
    } forms[] = {
        {0x20, 0x7e, 0,    0,    1},
        {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, /* no surrogates */
        {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4}, /* up to U+10FFFF */
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (s[0] < forms[i].first_min || s[0] > forms[i].first_max)
            continue;
        if (forms[i].length > 1 &&
            (s[1] < forms[i].second_min || s[1] > forms[i].second_max))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((s[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

static void make_printable(char *text)
{
    size_t at = 0;

    while (text[at]) {
        size_t length = utf8_length((const unsigned char *)text + at);
        if (length == 0)
            text[at++] = '?';
        else
            at += length;
    }
}

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
    make_printable(text);
    err->code = code;
    memcpy(err->text, text, strlen(text) + 1);
    return code;
}

const char *trp_error_word(int code)
{
    return code_known(code) ? codes[-code].word : "unknown";
}

int trp_error_exit_status(int code)
{
    if (code > 0) /* a count is no failure */
        return 0;
    return code_known(code) ? codes[-code].exit_status : 4;
}
