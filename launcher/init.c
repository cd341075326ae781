/*
 * `troupe init`: a first pipeline that runs as it is, with a word on each thing in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "os/whole_file.h"

/* clang-format off */
static const char pipeline[] =
    "# Counts the words of some files. troupe-pipeline(5) has all keys.\n"
    "troupe: 1\n"
    "name: words\n"
    "\n"
    "params:\n"
    "  top: 5               # ${top} below; troupe run --param top=10 pipeline.yaml\n"
    "\n"
    "# What stages need. An executor runs tasks; it has as many slots as fit into it.\n"
    "profiles:\n"
    "  small: {executor: {cores: 2, memory: 512m}, task: {cpus: 1}}  # two at once\n"
    "  large: {executor: {cores: 1, memory: 2g}, task: {cpus: 1}}\n"
    "  # gpu: {executor: {cores: 4, memory: 16g, gpu: 1}, task: {cpus: 4, gpu: 1}}\n"
    "\n"
    "stages:\n"
    "  - name: count        # a task for each file\n"
    "    foreach: {files: \"/usr/share/common-licenses/GPL*\"}\n"
    "    # foreach: {items: [a, b]}, {lines: l.txt}, {table: t.tsv, key: id}; or tasks: 8\n"
    "    profile: small\n"
    "    # run stops at the first command that fails; grep x file || true goes on.\n"
    "    run: |\n"
    "      mkdir -p counts\n"
    "      tr -cs A-Za-z '\\n' <\"$TROUPE_ITEM\" | sort | uniq -c >\"counts/$TROUPE_TASK\"\n"
    "    outputs: [\"counts/${task}\"]   # --resume runs a task again when it is missing\n"
    "\n"
    "  - name: check        # task i waits for task i of count only\n"
    "    after: [{stage: count, each: true}]\n"
    "    foreach: {files: \"/usr/share/common-licenses/GPL*\"}\n"
    "    run: test -s \"counts/$TROUPE_TASK\"\n"
    "    timeout: 10m\n"
    "    retries: {max_failures: 2}   # without it a command is tried once\n"
    "\n"
    "  - name: total        # one task, which waits for all of check\n"
    "    after: [check]\n"
    "    profile: large\n"
    "    run: |\n"
    "      awk '{ n[$2] += $1 } END { for (w in n) print n[w], w }' counts/* |\n"
    "        sort -rn | head -n \"$TROUPE_PARAM_top\" >total\n"
    "    outputs: [total]\n"
    "\n"
    "  # - name: solve      # an MPI program: all its ranks start at once\n"
    "  #   after: [total]\n"
    "  #   mpi: {ranks: 8}\n"
    "  #   argv: [./solver, total]\n";
/* clang-format on */

static const char *folder;

static int write_pipeline(trp_error *err)
{
    char file[4096];
    const char *at = folder ? folder : ".";
    int n = snprintf(file, sizeof file, "%s%spipeline.yaml", folder ? folder : "",
                     folder ? "/" : "");
    if (n >= (int)sizeof file)
        return trp_error_set(err, TRP_EINVAL, "init: the folder's name is too long");
    if (mkdir(at, 0777) < 0 && errno != EEXIST)
        return trp_error_set(err, TRP_EINVAL, "init: cannot make %s: %m", at);
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return trp_error_set(err, TRP_EINVAL, "init: cannot make %s: %s", file,
                             errno == EEXIST ? "it exists already; name another folder"
                                             : strerror(errno));
    int reason = trp_file_write(fd, pipeline, sizeof pipeline - 1) < 0 ? errno : 0;
    if (close(fd) < 0 && !reason)
        reason = errno;
    if (reason) {
        unlink(file);
        return trp_error_set(err, TRP_ESYSTEM, "init: cannot write %s: %s", file,
                             strerror(reason));
    }
    printf("%s is a pipeline of three stages. Next:\n\n", file);
    if (folder && strcmp(folder, ".") != 0 && strcmp(folder, "./") != 0)
        printf("  cd %s\n", folder);
    printf("  troupe plan pipeline.yaml     what it comes to; runs nothing\n"
           "  troupe run pipeline.yaml      here, or in the Slurm job that you are in\n"
           "  troupe submit pipeline.yaml   as a Slurm job\n");
    return 0;
}

const struct trp_line trp_line_init = {
    "init",
    "usage: troupe init [FOLDER]\n\n"
    "Writes a first pipeline, pipeline.yaml, into FOLDER (here without one),\n"
    "which is made when it is missing.\n",
    "\nExit status: 0; 2 it is there already, or FOLDER cannot be made.\n",
    .table = TRP_ARGS_NONE,
    .words = {&folder},
    .please = "one FOLDER, please"};

int trp_launcher_init(void)
{
    trp_error err;
    int code = write_pipeline(&err);
    return code < 0 ? trp_launcher_fail(&err) : trp_launcher_printed(0);
}
