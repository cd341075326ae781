/*
 * troupe: which subcommand it is. No logic of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "conf/wording.h"
#include "os/colour.h"
#include "os/title.h"

const struct trp_subcommand trp_subcommands[] = {
#define COMMAND_AS(word, name, usage, summary)                                         \
    {                                                                                  \
        word, usage, summary, &trp_line_##name, trp_launcher_##name                    \
    }
#define COMMAND(name, usage, summary) COMMAND_AS(#name, name, usage, summary)
    COMMAND(run, "[options] PIPELINE.yaml | -- APP [ARG…]",
            "run a pipeline or a program here"),
    COMMAND(submit, "[sbatch options] [options] PIPELINE.yaml | -- APP [ARG…]",
            "the same as a Slurm job"),
    COMMAND(plan, "[options] PIPELINE.yaml",
            "show stages, tasks, profiles and what never fits; run nothing"),
    COMMAND(check, "[options]",
            "for the admin: look whether site file and Slurm go together"),
    COMMAND(config, "[options] [KEY]",
            "show options: value, where it came from, default, bounds"),
    COMMAND(topo, "[options]", "show this machine as executors see it"),
    COMMAND_AS("site-shape", site_shape, "[options] PROFILE",
               "show what a site profile becomes in Slurm"),
    COMMAND(sim, "[options] FILE…",
            "run scenarios, play whole runs, replay traces in virtual time"),
    COMMAND(report, "[options] [RUN|EVENTS]",
            "summarise a run from its event log, also beside Slurm's accounting"),
    COMMAND(status, "[options] [RUN]",
            "show where a run is and what its stages wait for"),
    COMMAND(top, "[options] [RUN]", "the same, live on the terminal"),
    COMMAND(explain, "[options] RUN [STAGE]",
            "say why stages wait, and why tasks ran where and when they did"),
    COMMAND(logs, "[options] RUN [STAGE [TASK[.ATTEMPT]]]", "show what tasks printed"),
    COMMAND(ls, "[--json]", "list the runs of this folder"),
    COMMAND(cancel, "[--now] RUN", "end a run"),
    COMMAND(init, "[FOLDER]", "write a first pipeline, with comments"),
    COMMAND(completion, "bash|zsh|fish", "complete command lines of a shell"),
#undef COMMAND
#undef COMMAND_AS
    {NULL, NULL, NULL, NULL, NULL},
};

/* What a wrong call or a failure is told with. */
static void print_lead(void)
{
    fprintf(stderr, "%stroupe:%s ", trp_colour(2, TRP_COLOUR_BAD),
            trp_colour(2, TRP_COLOUR_NONE));
}

int trp_launcher_fail(const trp_error *err)
{
    print_lead();
    fprintf(stderr, "%s\n", err->text);
    return trp_error_exit_status(err->code);
}

int trp_launcher_misuse(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_lead();
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return 2;
}

int trp_launcher_printed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "troupe: cannot write to stdout: %s\n", strerror(errno));
    return 4;
}

static int call(const struct trp_subcommand *c, int argc, char **argv)
{
    trp_error err;
    int code = trp_args_read(c->line, argc, argv, &err);
    if (code < 0)
        return trp_launcher_fail(&err);
    return code > 0 ? trp_launcher_printed(0) : c->run();
}

static void print_help(FILE *out)
{
    fputs("usage: troupe COMMAND [options]\n\n", out);
    for (const struct trp_subcommand *c = trp_subcommands; c->name; c++)
        fprintf(out, "  troupe %s %s\n      %s\n", c->name, c->usage, c->summary);
    fputs("\n  troupe COMMAND --help    options of a command\n"
          "  troupe --version\n\n"
          "Exit status: 0 done, 1 the application failed, 2 wrong call or file,\n"
          "3 can never be satisfied here, 4 the platform failed, 75 time is up,\n"
          "130 cancelled. See troupe(1), troupe-pipeline(5), troupe-site(5).\n",
          out);
}

/* Descriptors 0, 1, 2 are there, so that nothing else gets their numbers. */
static void open_stdio(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

int main(int argc, char **argv)
{
    open_stdio();
    trp_process_title_init(argc, argv);
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
        strcmp(word, "help") == 0) {
        print_help(stdout);
        return trp_launcher_printed(0);
    }
    if (strcmp(word, "--version") == 0) {
        puts("troupe " TROUPE_VERSION);
        return trp_launcher_printed(0);
    }
    struct trp_nearest near = trp_nearest_of(word);
    for (const struct trp_subcommand *c = trp_subcommands; c->name; c++) {
        if (strcmp(word, c->name) == 0)
            return call(c, argc - 1, argv + 1);
        trp_nearest_try(&near, c->name);
    }
    trp_nearest_try(&near, "--version");
    trp_nearest_try(&near, "--help");
    return trp_launcher_misuse("unknown %s %s%s (see troupe --help)",
                               word[0] == '-' ? "option" : "command",
                               trp_show(word).text, trp_did_you_mean(&near).text);
}
