/* Tables and text that fit 80 columns whatever is in them. */
#include "conf/table.h"
#include "unit.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

static const struct trp_table_column columns[] = {
    {"stage",  NULL,   false, false},
    {"tasks",  NULL,   true,  false},
    {"median", "time", true,  false},
    {"max",    NULL,   true,  false},
    {"held",   NULL,   true,  true },
    {"note",   NULL,   false, false},
};
enum { COLUMNS = G_N_ELEMENTS(columns) };

static char *printed(trp_table *t)
{
    char *text;
    size_t size;
    trp_error err;
    FILE *f = open_memstream(&text, &size);
    g_assert_cmpint(trp_table_print(t, f, &err), ==, 0);
    fclose(f);
    return text;
}

static trp_table *filled(const char *const (*rows)[COLUMNS], size_t n)
{
    trp_table *t = trp_table_new(columns, COLUMNS);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            trp_table_cell(t, "%s", rows[i][c]);
    return t;
}

static glong widest(const char *text)
{
    glong most = 0;
    char **lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l; l++)
        most = MAX(most, g_utf8_strlen(*l, -1));
    g_strfreev(lines);
    return most;
}

TEST("columns are as wide as their cells")
{
    static const char *const rows[][COLUMNS] = {
        {"a",       "1",   "2s", "10s", "0.1", "failed"},
        {"brüder", "100", "",   "",    "",    ""      },
    };
    char *text = printed(filled(rows, 2));
    g_assert_cmpstr(text, ==,
                    "                      time\n"
                    "stage   tasks  median  max  held  note\n"
                    "a           1      2s  10s   0.1  failed\n"
                    "brüder    100\n");
    free(text);
}

TEST("a short name never stands alone: what does not fit goes below")
{
    static const char *const rows[][COLUMNS] = {
        {"cohort", "1", "2s", "a time that takes 46 columns, which are too many", "0.1",
         ""},
    };
    char *text = printed(filled(rows, 1));
    g_assert_null(strstr(text, "cohort\n"));
    g_assert_nonnull(strstr(text, "\ncohort      1      2s  a time"));
    g_assert_cmpint(widest(text), <=, 80);
    free(text);
}

TEST("long names stand alone, long texts are wrapped")
{
    static const char *const rows[][COLUMNS] = {
        {"short",                                                    "1", "2s", "10s", "0.1", ""                                                   },
        {"a-stage-whose-name-is-quite-long-and-is-still-to-be-seen", "1", "2s", "10s",
         "0.1",                                                                               "after many-other-stages, and then some more of them"},
    };
    char *text = printed(filled(rows, 2));
    g_assert_cmpstr(
        text, ==,
        "                                          time\n"
        "stage                       tasks  median  max  held  note\n"
        "short                           1      2s  10s   0.1\n"
        "a-stage-whose-name-is-quite-long-and-is-still-to-be-seen\n"
        "                                1      2s  10s   0.1  after "
        "many-other-stages,\n"
        "                                                      and then some more of "
        "them\n");
    free(text);
}

TEST("what is too wide comes in parts")
{
    static const char *const rows[][COLUMNS] = {
        {"a-stage-whose-name-is-long", "123456789012345678", "12345678901234",
         "12345678901234",                                                         "123456789012345678", "x"},
        {"none",                       "1",                  "",               "", "",                   "" },
    };
    char *text = printed(filled(rows, 2));
    g_assert_cmpint(widest(text), <=, TRP_TABLE_WIDTH);
    g_assert_nonnull(strstr(text, "\n\nstage"));
    g_assert_null(strstr(strstr(text, "\n\n"), "none")); /* nothing of it there */
    free(text);
}

TEST("whatever is in it, a table fits")
{
    static const int lengths[] = {0, 1, 9, 30, 64};
    for (int i = 0; i < 5 * 5 * 5 * 5; i++) {
        trp_table *t = trp_table_new(columns, COLUMNS);
        int n[COLUMNS] = {lengths[i % 5],
                          lengths[i / 5 % 5] % 20,
                          lengths[i / 25 % 5] % 20,
                          3,
                          lengths[i / 125 % 5] % 20,
                          2 * lengths[i % 5]};
        for (int c = 0; c < COLUMNS; c++)
            trp_table_cell(
                t, "%.*s", n[c],
                "abcde-f ghijkl mnopqrstuvwxyz012 34567890 123456789012345678901234567"
                "8901234567890123456789012345678901234567890123456789012345678");
        char *text = printed(t);
        g_assert_cmpint(widest(text), <=, TRP_TABLE_WIDTH);
        if (strstr(text, " \n"))
            g_error("a space ends a line of\n%s", text);
        free(text);
    }
}

TEST("a message stands whole in its row")
{
    trp_table *t = trp_table_new(columns, COLUMNS);
    for (int c = 0; c + 1 < COLUMNS; c++)
        trp_table_cell(t, "x");
    trp_table_message(t, "never: %0100d", 7);
    char *text = printed(t);
    g_assert_nonnull(strstr(text, "x  never: 000"));
    free(text);
}

TEST("text is broken at spaces")
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    trp_text_wrap("one two", "  ", 2, f);
    trp_text_wrap(
        "this is a line that is quite a bit longer than what a terminal of 80 "
        "columns has room for, so it goes on below",
        "    ", 6, f);
    fclose(f);
    g_assert_cmpstr(
        text, ==,
        "  one two\n"
        "    this is a line that is quite a bit longer than what a terminal "
        "of 80 columns\n"
        "      has room for, so it goes on below\n");
    free(text);
}
