/* The tasks of a stage: files, items, lines, tasks; what is refused and where. */
#include "driver/foreach.h"
#include "driver/group.h"
#include "driver/kept_lists.h"
#include "driver_files.h"
#include "unit.h"

#define HEAD "troupe: 1\nstages:\n  - name: s\n    run: x\n"

/* Evaluates the only stage of HEAD + `rest` below `dir`. */
static int evaluate(const char *dir, const char *rest, struct trp_items *ret,
                    trp_error *err, trp_pipeline **ret_p)
{
    g_autofree char *text = g_strconcat(HEAD, rest, NULL);
    *ret_p = pipeline_of(text);
    err->text[0] = '\0';
    return trp_foreach_evaluate(*ret_p, &(*ret_p)->stages[0], dir, ret, err);
}

/* Asserts the items, joined by '|'. */
static void expect(const char *dir, const char *rest, const char *wanted)
{
    struct trp_items items = {0};
    trp_pipeline *p;
    trp_error err;
    GString *got = g_string_new("");
    int r = evaluate(dir, rest, &items, &err, &p);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(r, ==, 0);
    for (uint32_t i = 0; i < items.ntasks; i++) {
        g_string_append(got, i ? "|" : "");
        g_string_append_len(got, items.item[i].data, (gssize)items.item[i].size);
        g_assert_cmpint(items.item[i].data[items.item[i].size], ==, '\0');
    }
    g_assert_cmpstr(got->str, ==, wanted);
    g_string_free(got, TRUE);
    trp_items_free(&items);
    trp_pipeline_free(p);
}

static void refused(const char *dir, const char *rest, int code, const char *words)
{
    struct trp_items items = {0};
    trp_pipeline *p;
    trp_error err;
    g_assert_cmpint(evaluate(dir, rest, &items, &err, &p), ==, code);
    if (!strstr(err.text, words))
        g_error("wanted \"%s\" in \"%s\"", words, err.text);
    trp_pipeline_free(p);
}

TEST("files are what matches, and a match is wanted")
{
    char *d = files_new();
    files_put(d, "in/b.txt", "");
    files_put(d, "in/a.txt", "");
    files_put(d, "in/sub/a \303\244'\".txt", "");
    expect(d, "    foreach: {files: \"in/*.txt\"}\n", "in/a.txt|in/b.txt");
    expect(d, "    foreach: {files: \"./in/**/*.txt\"}\n",
           "./in/a.txt|./in/b.txt|./in/sub/a \303\244'\".txt");
    refused(d, "    foreach: {files: \"in/*.dat\"}\n", TRP_EINVAL,
            "p.yaml:5:22: stage s: no file matches in/*.dat; ");
    expect(d, "    foreach: {files: \"in/*.dat\"}\n    allow_empty: true\n", "");
    files_free(d);
}

static void items(void)
{
    expect(NULL, "    foreach: {items: [007, yes, \"a b\", 2.50]}\n",
           "007|yes|a b|2.50");
    expect(NULL, "    foreach: {items: []}\n", "");
}

TEST("lines are byte for byte, empty ones are skipped")
{
    char *d = files_new();
    files_put(d, "l", "one\n\n two \n# three\r\n\n\"x\ty\"\nlast");
    expect(d, "    foreach: {lines: l}\n", "one| two |# three\r|\"x\ty\"|last");
    files_put(d, "l", "");
    expect(d, "    foreach: {lines: l}\n", "");
    files_put(d, "l", "\n\n\n");
    expect(d, "    foreach: {lines: l}\n", "");
    files_put(d, "l", "\377\376\n");
    expect(d, "    foreach: {lines: l}\n", "\377\376");
    files_free(d);
}

TEST("a bad list file is told with its place")
{
    char *d = files_new(), *big = g_strnfill(TRP_ITEM_MAX + 1, 'x');
    refused(d, "    foreach: {lines: none}\n", TRP_EINVAL,
            "p.yaml:5:22: stage s: the list file none cannot be read");
    expect(d, "    foreach: {lines: none}\n    allow_empty: true\n", "");
    refused(d, "    foreach: {lines: .}\n    allow_empty: true\n", TRP_EINVAL,
            "not a regular file");
    files_put_bytes(d, "l", "a\nb\0c\n", 6);
    refused(d, "    foreach: {lines: l}\n", TRP_EINVAL, "line 2 has a NUL byte");
    files_put(d, "l", big);
    refused(d, "    foreach: {lines: l}\n", TRP_EINVAL, "line 1 has 130992 bytes");
    g_free(big);
    files_free(d);
}

TEST("tasks are a number without items")
{
    struct trp_items v = {0};
    trp_pipeline *p;
    trp_error err;
    g_assert_cmpint(evaluate(NULL, "    tasks: 64\n", &v, &err, &p), ==, 0);
    g_assert_cmpuint(v.ntasks, ==, 64);
    g_assert_null(v.item);
    g_assert_true(v.known);
    trp_pipeline_free(p);
    g_assert_cmpint(evaluate(NULL, "", &v, &err, &p), ==, 0);
    g_assert_cmpuint(v.ntasks, ==, 1);
    trp_pipeline_free(p);
    g_assert_cmpint(evaluate(NULL, "    tasks: 0\n", &v, &err, &p), ==, 0);
    g_assert_cmpuint(v.ntasks, ==, 0);
    trp_pipeline_free(p);
}

TEST("a list may be long")
{
    char *d = files_new();
    GString *text = g_string_new("");
    struct trp_items v = {0};
    trp_pipeline *p;
    trp_error err;
    for (int i = 0; i < 100000; i++)
        g_string_append_printf(text, "item %d\n", i);
    files_put(d, "l", text->str);
    g_assert_cmpint(evaluate(d, "    foreach: {lines: l}\n", &v, &err, &p), ==, 0);
    g_assert_cmpuint(v.ntasks, ==, 100000);
    g_assert_cmpstr(v.item[99999].data, ==, "item 99999");
    trp_items_free(&v);
    trp_pipeline_free(p);
    g_string_free(text, TRUE);
    files_free(d);
}

/* The tasks of a table or a product: "item{a=1,b=2}" each, joined by '|'. */
static void expect_columns(const char *dir, const char *rest, const char *wanted)
{
    struct trp_items items = {0};
    struct trp_buf b = {0};
    trp_pipeline *p;
    trp_error err;
    GString *got = g_string_new("");
    int r = evaluate(dir, rest, &items, &err, &p);
    g_assert_cmpstr(err.text, ==, "");
    g_assert_cmpint(r, ==, 0);
    for (uint32_t i = 0; i < items.ntasks; i++) {
        struct trp_task_values v;
        g_assert_true(trp_items_values(&items, i, &b, &v));
        g_assert_cmpuint(v.task, ==, i);
        g_string_append(got, i ? "|" : "");
        for (size_t k = 0; k < v.item_size; k++)
            g_string_append_c(got, v.item[k] ? v.item[k] : '~');
    }
    g_assert_cmpstr(got->str, ==, wanted);
    g_string_free(got, TRUE);
    trp_buf_free(&b);
    trp_items_free(&items);
    trp_pipeline_free(p);
}

TEST("a row of a table is an item with columns")
{
    static const char tsv[] = "    foreach: {table: t.tsv}\n";
    static const char csv[] = "    foreach: {table: t.csv}\n";
    char *d = files_new();
    files_put(d, "t.tsv", "s\tfq\na\tx 1\n\nb\t\"y\"\n");
    expect_columns(d, tsv, "a\tx 1~s=a~fq=x 1|b\t\"y\"~s=b~fq=\"y\"");
    files_put(d, "t.tsv", "\xEF\xBB\xBFs\tfq\r\na\t\r\n\t");
    expect_columns(d, tsv, "a\t~s=a~fq=|\t~s=~fq=");
    files_put(d, "t.tsv", "s");
    expect_columns(d, tsv, "");
    files_put(d, "t.csv", "\"s\",fq\r\n\"a,\"\"b\"\"\nc\",d\r\n,\r\n\"\",\"x\"");
    expect_columns(
        d, csv, "\"a,\"\"b\"\"\nc\",d~s=a,\"b\"\nc~fq=d|,~s=~fq=|\"\",\"x\"~s=~fq=x");
    refused(d, "    foreach: {table: no.tsv}\n", TRP_EINVAL, "no.tsv cannot be read");
    expect(d, "    foreach: {table: no.tsv}\n    allow_empty: true\n", "");
    static const struct {
        const char *file, *text, *words;
    } bad[] = {
        {"t.tsv", "",                "the table t.tsv: has no header line"   },
        {"t.tsv", "a\tb\n1\t2\n3\n", "line 3 has 1 value, the header has 2"  },
        {"t.tsv", "a\n1\t2\n",       "line 2 has 2 values, the header has 1" },
        {"t.tsv", "a\tb\ta\n",       "line 1 has the column a twice"         },
        {"t.tsv", "a\t\n",           "line 1: \"\" is no name of a column"   },
        {"t.tsv", "a\t1b\n",         "line 1: \"1b\" is no name"             },
        {"t.tsv", "a b\n",           "line 1: \"a b\" is no name"            },
        {"t.csv", "a,b\n1,\"2\n",    "line 2 has a quote that is not closed" },
        {"t.csv", "a,b\n1,\"2\"x\n", "line 2 has text behind a closing quote"},
        {"t.csv", "a,b\n1,2\"\n",    "line 2 has a quote inside a value"     },
        {"t.csv", "a,b\n1\n",        "line 2 has 1 value, the header has 2"  },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        files_put(d, bad[i].file, bad[i].text);
        refused(d, strcmp(bad[i].file, "t.csv") ? tsv : csv, TRP_EINVAL, bad[i].words);
    }
    files_put_bytes(d, "t.tsv", "a\tb\n1\t\0\n", 8);
    refused(d, tsv, TRP_EINVAL, "line 2 has a NUL byte");
    files_put(d, "t.tsv", "s\tfq\na\tx\n");
    refused(d, "    foreach: {table: t.tsv}\n    env: {A: \"${col.s} ${col.f}\"}\n",
            TRP_EINVAL, "${col.f}: there is no such column; the columns are s, fq");
    files_free(d);
}

/* Asserts the names of the tasks, joined by '|'; "-": it has none. */
static void expect_names(const char *dir, const char *rest, const char *wanted)
{
    struct trp_items items = {0};
    struct trp_buf b = {0};
    trp_pipeline *p;
    trp_error err;
    g_assert_cmpint(evaluate(dir, rest, &items, &err, &p), ==, 0);
    for (uint32_t i = 0; i < items.ntasks; i++) {
        trp_put_raw(&b, "|", i ? 1 : 0);
        if (!trp_items_name(&items, i, &b))
            trp_put_u8(&b, '-');
    }
    trp_put_u8(&b, 0);
    g_assert_cmpstr((char *)b.data, ==, wanted);
    trp_buf_free(&b);
    trp_items_free(&items);
    trp_pipeline_free(p);
}

TEST("the key of a row, which no other row has, is the name of its task")
{
    static const char plain[] = "    foreach: {table: t.tsv}\n";
    static const char key[] = "    foreach: {table: t.csv, key: n}\n";
    char *d = files_new();
    files_put(d, "t.tsv", "s\tn\nb\t1\na\t1\n");
    expect_names(d, plain, "b|a");
    expect_names(d, "    foreach: {items: [b, a]}\n", "-|-");
    refused(
        d, "    foreach: {table: t.tsv, key: n}\n", TRP_EINVAL,
        "p.yaml:5:34: stage s: the table t.tsv: its rows 1 and 2 both have the n 1; "
        "give each row its own, or write another column as key");
    files_put(d, "t.tsv", "s\nb\na\nb\n");
    expect_names(d, plain, "-|-|-");
    files_put(d, "t.tsv", "s\tn\n\t1\na\t1\n"); /* nothing is no name */
    expect_names(d, plain, "-|-");
    files_put(d, "t.csv", "s,n\na,\"x,\"\"y\"\na,z\n");
    expect_names(d, key, "x,\"y|z");
    files_put(d, "t.csv", "ID,n\na,x\na,z\n");
    expect_names(d, key, "x|z");
    files_put(d, "t.csv", "s,n\na,1\nb,\n");
    refused(
        d, key, TRP_EINVAL,
        "p.yaml:5:34: stage s: the table t.csv: its row 2 has no n; give each row its "
        "own, or write another column as key");
    files_put(d, "t.csv", "s,nn\n");
    refused(d, key, TRP_EINVAL,
            "p.yaml:5:34: stage s: key: the table t.csv has no column n; the "
            "columns are s, nn");
    files_free(d);
}

TEST("a group of rows is a task, with what all of them have in common")
{
    char *dir = files_new();
    files_put(dir, "t.csv",
              "lane,sample,kind\nl1,b,x\nl2,a,\"y,z\"\n\"l,3\",b,\"x\"\n");
    struct trp_items items = {0};
    trp_pipeline *p;
    trp_error err;
    expect(dir, "    foreach: {table: t.csv, group: sample}\n", "b|a");
    expect_names(dir, "    foreach: {table: t.csv, group: sample}\n", "b|a");
    static const char stage[] = "troupe: 1\nstages:\n  - name: s\n    argv: [x, "
                                "\"${rows.lane}\", \"${rows.lane}\", \"${col.kind}\"]\n"
                                "    foreach: {table: t.csv, group: sample}\n";
    p = pipeline_of(stage);
    g_assert_cmpint(trp_foreach_evaluate(p, p->stages, dir, &items, &err), ==, 0);
    struct trp_buf b = {0};
    struct trp_task_values v;
    g_assert_true(trp_items_values(&items, 0, &b, &v));
    trp_group_put_rows(p->stages, &items, 0, "/r/0.csv", &b);
    static const char wanted[] = "b\0sample=b\0kind=x\0*lane=l1\0*lane=l,3\0=/r/0.csv";
    g_assert_cmpmem(b.data, b.size, wanted, sizeof wanted - 1);
    g_autofree char *rows = g_build_filename(dir, "rows.csv", NULL);
    g_assert_cmpint(trp_group_write(&items, 0, rows, &err), ==, 0);
    g_autofree char *text = NULL;
    g_file_get_contents(rows, &text, NULL, NULL);
    g_assert_cmpstr(text, ==, "lane,sample,kind\nl1,b,x\n\"l,3\",b,\"x\"\n");
    trp_buf_free(&b);
    trp_items_free(&items);
    trp_pipeline_free(p);
    files_free(dir);
}

/* A million rows cost their bytes and 16 more each. */
TEST("a million rows")
{
    char *d = files_new();
    GString *text = g_string_new("sample\treads\n");
    for (int i = 0; i < 1000000; i++)
        g_string_append_printf(text, "s%06d\treads/%06d.fq.gz\n", i, i);
    files_put(d, "t.tsv", text->str);
    g_string_free(text, TRUE);
    struct trp_items items = {0};
    struct trp_buf b = {0};
    struct trp_task_values v;
    trp_pipeline *p;
    trp_error err;
    g_assert_cmpint(evaluate(d, "    foreach: {table: t.tsv}\n", &items, &err, &p), ==,
                    0);
    g_assert_cmpuint(items.ntasks, ==, 1000000);
    g_assert_true(trp_items_values(&items, 999999, &b, &v));
    g_assert_cmpstr(v.item + strlen(v.item) + 1, ==, "sample=s999999");
    trp_buf_free(&b);
    trp_items_free(&items);
    trp_pipeline_free(p);
    files_free(d);
}

TEST("a product is every combination")
{
    char *d = files_new();
    files_put(d, "l", "u\nv w\n");
    expect_columns(d, "    foreach: {product: {a: [1, x], b: {lines: l}}}\n",
                   "1\tu~a=1~b=u|1\tv w~a=1~b=v w|x\tu~a=x~b=u|x\tv w~a=x~b=v w");
    expect_columns(d, "    foreach: {product: {a: [1], b: []}}\n", "");
    refused(d, "    foreach: {product: {a: [1], b: {lines: no}}}\n", TRP_EINVAL,
            "p.yaml:5:36: stage s: the list file no cannot be read");
    refused(d, "    foreach: {table: no.csv}\n", TRP_EINVAL,
            "p.yaml:5:22: stage s: the table no.csv cannot be read");
    files_put(d, "t.csv", "s,fq\nA,\"1,2\"\nB,3\n");
    expect_columns(d, "    foreach: {product: {a: [1, 2], r: {table: t.csv}}}\n",
                   "1\tA,\"1,2\"~a=1~r=A,\"1,2\"~s=A~fq=1,2|1\tB,3~a=1~r=B,3~s=B~fq=3|"
                   "2\tA,\"1,2\"~a=2~r=A,\"1,2\"~s=A~fq=1,2|2\tB,3~a=2~r=B,3~s=B~fq=3");
    refused(d, "    foreach: {product: {s: [1], r: {table: t.csv}}}\n", TRP_EINVAL,
            "the table t.csv has the column s, which the product has already");
    refused(d, "    foreach: {product: {r: {table: t.csv}, q: {table: t.csv}}}\n",
            TRP_EINVAL, "has the column s, which the product has already");
    refused(d,
            "    foreach: {product: {a: [1], r: {table: t.csv}}}\n    cwd: "
            "\"${col.fk}\"\n",
            TRP_EINVAL,
            "p.yaml:6:11: stage s: ${col.fk}: there is no such column; did you mean "
            "\"fq\"?; the columns are a, r, s, fq");
    GString *list = g_string_new("");
    for (int i = 0; i < 1000; i++)
        g_string_append_printf(list, "%d\n", i);
    files_put(d, "l", list->str);
    g_string_free(list, TRUE);
    refused(d,
            "    foreach: {product: {a: {lines: l}, b: {lines: l}, c: {lines: l}}}\n",
            TRP_ELIMIT, "1000 × 1000 × 1000: 1000000000 tasks are more than a stage");
    files_free(d);
}

static void hear_warning(void *context, struct trp_mark at, const char *text)
{
    g_string_append_printf(context, "%u:%u %s\n", at.line, at.column, text);
}

/* What is said of stage `i` before anything runs, below `dir`: warnings, then the error. */
static void says(const char *dir, const char *stages, uint32_t i, const char *wanted)
{
    g_autofree char *text = g_strconcat("troupe: 1\nstages:\n", stages, NULL);
    GString *heard = g_string_new("");
    const struct trp_pipeline_listener listener = {hear_warning, heard};
    trp_pipeline *p = pipeline_of(text);
    trp_error err = {0};
    p->listener = &listener;
    if (trp_foreach_check(p, &p->stages[i], dir, &err) < 0)
        g_string_append_printf(heard, "%s\n", err.text);
    g_assert_cmpstr(heard->str, ==, wanted);
    g_string_free(heard, TRUE);
    trp_pipeline_free(p);
}

TEST("bytes of lines, and columns that run names, that are most likely not meant are "
     "told")
{
    char *d = files_new();
    files_put(d, "l",
              "\xEF\xBB\xBF"
              "a\r\n\nb\r\nc");
    files_put(d, "t.tsv", "sample\tfq\nx\ty\n");
    expect(d, "    foreach: {lines: l}\n",
           "\xEF\xBB\xBF"
           "a\r|b\r|c");
    says(d, "  - {name: a, run: x, foreach: {lines: l}}\n", 0,
         "3:40 stage a: the list file l begins with a byte order mark, which is part "
         "of its "
         "first item; save it without one\n"
         "3:40 stage a: 2 lines of the list file l end in a carriage return, which is "
         "part "
         "of the item; write lines that end in LF alone\n");
    says(
        d,
        "  - {name: a, foreach: {product: {t: {table: t.tsv}, k: [1]}},\n"
        "     run: echo $TROUPE_COL_smaple $TROUPE_COL_smaple $TROUPE_COL_k "
        "$TROUPE_COL_fq}\n",
        0,
        "4:11 stage a: no run sets TROUPE_COL_smaple: there is no such column; did you "
        "mean \"sample\"?; the columns are t, k, sample, fq\n");
    says(d,
         "  - {name: a, foreach: {table: t.tsv}, run: TROUPE_COL_z=1; echo "
         "$TROUPE_COL_z}\n",
         0, "");
    files_free(d);
}

#define B_OF(foreach) "  - {name: b, run: x, after: [a], foreach: " foreach "}\n"

/* Without a word on outputs a stage may make anything. */
TEST("a list that is not there and that nobody makes is refused, else it is told")
{
    char *d = files_new();
    static const char wanted[] = "p.yaml:3:40: stage a: the list file l is not there; "
                                 "make it before the run, or add "
                                 "`allow_empty: true`\n";
    says(d, "  - {name: a, run: x, foreach: {lines: l}}\n", 0, wanted);
    says(d, "  - {name: a, run: x, foreach: {lines: l}, allow_empty: true}\n", 0, "");
    says(d, "  - {name: a, run: x, outputs: [m]}\n" B_OF("{product: {k: {table: l}}}"),
         1,
         "p.yaml:4:58: stage b: the table l is not there, and no stage before this one "
         "makes it; make it before the run, or add `allow_empty: true`\n");
    says(d,
         "  - {name: a, tasks: 2, run: x, outputs: [\"${task}/*\"]}\n" B_OF(
             "{table: 1/l}"),
         1, "");
    says(d, "  - {name: a, run: x}\n" B_OF("{table: l}"), 1,
         "4:52 stage b: the table l is not there; write into `outputs` which stage "
         "makes "
         "it\n");
    says(d, "  - {name: a, run: x, foreach: {files: \"*.none\"}}\n", 0, "");
    files_free(d);
}

TEST("what a stage makes is not taken while it runs")
{
#define A                                                                              \
    "  - {name: a, run: x, foreach: {files: \"in/*\"}, outputs: [\"out/${name}\"]}\n"
#define EACH(stage, foreach)                                                           \
    "  - {name: b, run: x, after: [{stage: " stage ", each: true}], foreach: " foreach \
    "}\n"
    says(NULL, A EACH("a", "{files: \"out/*.txt\"}"), 1,
         "p.yaml:4:73: stage b: out/*.txt is made by stage a, which is not over when "
         "this "
         "one begins, for it comes after it by each; give it the foreach or tasks of a "
         "and "
         "name the file of each task, or leave each out\n");
    says(NULL, A EACH("a", "{files: \"in/*\"}"), 1, "");
    says(NULL, A B_OF("{files: \"out/*\"}"), 1, "");
    says(NULL, A "  - {name: m, run: x, after: [a]}\n" EACH("m", "{files: \"out/*\"}"),
         2, "");
#undef A
#undef EACH
}

TEST("inputs that are not there and that nobody makes are told")
{
    char *d = files_new();
    files_put(d, "in/a.fq", "");
    files_put(d, "in/a.fai", "");
    files_put(d, "in/b.fq", "");
    says(d,
         "  - name: a\n    run: x\n    foreach: {files: \"in/*.fq\"}\n"
         "    inputs: [\"${item}\", \"${dir}/${stem}.fai\", ref, made]\n"
         "  - {name: b, run: x, outputs: [made]}\n",
         0,
         "6:13 stage a: inputs: no file matches in/b.fai, and no stage before this one "
         "makes "
         "it\n"
         "6:13 stage a: inputs: no file matches ref, and no stage before this one "
         "makes it\n"
         "6:13 stage a: inputs: no file matches made, and no stage before this one "
         "makes "
         "it\n");
    says(d,
         "  - {name: a, run: x, outputs: [\"m${task}\"]}\n"
         "  - {name: b, run: x, after: [a], inputs: [\"m0\", z]}\n",
         1,
         "4:43 stage b: inputs: no file matches z, and no stage before this one makes "
         "it\n");
    says(d, "  - {name: a, run: x}\n  - {name: b, run: x, after: [a], inputs: [z]}\n",
         1, "");
    files_free(d);
}

static void hear(void *context, const char *line)
{
    g_string_assign(context, line);
}

/* Of one list: what is kept is taken, a bad one and one that is too large change nothing
 * or leave nothing. */
TEST("a list that is kept is taken as it was")
{
    char *d = files_new();
    GString *heard = g_string_new("");
    struct trp_items items = {0};
    struct trp_kept_lists k = {
        .run_dir = d, .keeps = true, .say = hear, .say_context = heard};
    trp_pipeline *p = pipeline_of(HEAD "    foreach: {lines: l}\n");
    const struct trp_pipeline_stage *s = &p->stages[0];
    trp_error err;
    files_put(d, "state/x", "");
    files_put(d, "l", "one\ntwo\n");
    p->kept_lists = &k;
    g_assert_cmpint(trp_foreach_evaluate(p, s, d, &items, &err), ==, 0);
    trp_items_free(&items);
    files_put_bytes(d, "l", "\0\n", 2);
    g_assert_cmpint(trp_foreach_evaluate(p, s, d, &items, &err), ==, TRP_EINVAL);
    struct trp_kept_lists takes = {.run_dir = d, .takes = true};
    p->kept_lists = &takes;
    g_assert_cmpint(trp_foreach_evaluate(p, s, d, &items, &err), ==, 0);
    g_assert_cmpint(items.ntasks, ==, 2);
    g_assert_cmpstr(items.item[1].data, ==, "two");
    trp_items_free(&items);
    g_assert_cmpstr(heard->str, ==, "");
    trp_kept_list_put(&k, s, -1, NULL, (size_t)TRP_KEPT_LIST_MAX + 1); /* is not read */
    trp_kept_lists_settle(&k, s, true);
    g_assert_nonnull(strstr(heard->str, "stage s: what it works on is not kept"));
    g_assert_nonnull(strstr(heard->str, ": it has more than 256 MiB"));
    g_assert_cmpint(trp_foreach_evaluate(p, s, d, &items, &err), ==, TRP_EINVAL);
    trp_pipeline_free(p);
    g_string_free(heard, TRUE);
    files_free(d);
}

TEST("items are as written")
{
    items();
}
