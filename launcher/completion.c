/*
 * `troupe completion SHELL`: a script by which the shell asks `troupe completion words`
 * what a command line can go on with (completion_words.h).
 */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "completion_words.h"

/* clang-format off */
/* bash takes `=` for the end of a word: what stands before it is taken off again. */
static const char bash[] =
    "# bash completion of troupe: source <(troupe completion bash)\n"
    "_troupe() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words word cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line != *[[:space:]] ]] || words+=('')\n"
    "    [ \"$cur\" != = ] || cur=''\n"
    "    local last=${words[${#words[@]} - 1]}\n"
    "    local before=${last%\"$cur\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word _; do\n"
    "        if [ \"$word\" = :files ]; then\n"
    "            compopt -o filenames\n"
    "            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "            continue\n"
    "        fi\n"
    "        [[ $word != *= ]] || compopt -o nospace\n"
    "        COMPREPLY+=(\"${word#\"$before\"}\")\n"
    "    done < <(\"${words[0]}\" completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _troupe troupe\n";

static const char zsh[] =
    "#compdef troupe\n"
    "# zsh completion of troupe: source <(troupe completion zsh)\n"
    "_troupe() {\n"
    "    local -a whole open texts\n"
    "    local word help files\n"
    "    while IFS=$'\\t' read -r word help; do\n"
    "        case $word in\n"
    "        :files) files=1 ;;\n"
    "        *=) open+=(\"$word\") ;;\n"
    "        *) whole+=(\"$word\") texts+=(\"$word -- $help\") ;;\n"
    "        esac\n"
    "    done < <(\"${words[1]}\" completion words -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)\n"
    "    (( ! $#whole )) || compadd -l -d texts -- \"${whole[@]}\"\n"
    "    (( ! $#open )) || compadd -S '' -- \"${open[@]}\"\n"
    "    if [ -n \"$files\" ]; then\n"
    "        compset -P '--*='\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _troupe ]; then _troupe \"$@\"; else compdef _troupe "
    "troupe; fi\n";

static const char fish[] =
    "# fish completion of troupe: troupe completion fish | source\n"
    "function __troupe_words\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] completion words -- $words[2..] 2>/dev/null)\n"
    "        if test \"$line\" = :files\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c troupe -f -a '(__troupe_words)'\n";
/* clang-format on */

static const struct {
    const char *name, *script;
} shells[] = {
    {"bash", bash},
    {"zsh",  zsh },
    {"fish", fish},
};

static struct {
    const char *shell;
    char **words;
    int n;
} call;

static int on_argument(struct trp_args *a, int what, const char *value, trp_error *err)
{
    if (what == TRP_ARG_REST) {
        call.words = a->argv + a->at;
        call.n = a->argc - a->at;
        return 0;
    }
    if (call.shell)
        return trp_error_set(err, TRP_EINVAL, "completion: one shell, please");
    call.shell = value;
    return 0;
}

const struct trp_line trp_line_completion = {
    "completion",
    "usage: troupe completion bash|zsh|fish\n\n"
    "Prints the shell's completion of troupe's commands, options, runs, stages\n"
    "and params. For this shell and those to come:\n\n"
    "  bash   source <(troupe completion bash)     also into ~/.bashrc\n"
    "  zsh    source <(troupe completion zsh)      also into ~/.zshrc\n"
    "  fish   troupe completion fish | source      also into config.fish\n",
    "", .table = TRP_ARGS_NONE, .take = on_argument};

int trp_launcher_completion(void)
{
    if (!call.shell)
        return trp_launcher_misuse("completion: which shell? bash, zsh or fish");
    if (call.words && strcmp(call.shell, "words") == 0) {
        trp_completion_words(call.words, call.n);
        return trp_launcher_printed(0);
    }
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(call.shell, shells[i].name) == 0) {
            fputs(shells[i].script, stdout);
            return trp_launcher_printed(0);
        }
    }
    return trp_launcher_misuse("completion: there is none for %.40s; bash, zsh or fish",
                               call.shell);
}
