# shellcheck shell=sh
# Runs an inference server (llama.cpp) in this instance, for the Terraform resource damodel_llama_server.
#
# Fed on standard input of `sh -s`, after the settings (DAMODEL_...), with a verb as $1. It needs a POSIX shell,
# coreutils, grep, sed, awk, flock and setsid; ss and timeout are used where they are. All records are kept in
#
#   workspace/.damodel/PORT/      status, worker, server,        records, each a list of quoted assignments, written by rename
#                                 restarts
#                                 run, owner, policy             words: which work is meant, whose server it is, whether it is restarted
#                                 former/                        during an update, the records of the server that serves or served before
#                                 server.log, work.log           the logs of the server and of the detached work
#                                 api_key                        the key that the server asks for, mode 0600
#                                 bootstrap.sh                   this program, for the detached work; it holds no setting and no secret
#   workspace/.damodel/builds/    KEY/ the build folder, KEY.log the compile's log, KEY.done the mark of a finished one
#   workspace/.damodel/sources/, packages/                       what was fetched or unpacked
#
# Whatever is killed at whatever moment, the next `ensure` resumes it. The exit code means nothing: the report does.

unset IFS
login_umask=${DAMODEL_UMASK:-$(umask)}
umask 077
: "${HOME:=/root}"

# What the report begins its lines with; see report.rs.
mark=damodel-report/1

# emit KEY VALUE: a line of the report. Plain where nothing can go wrong, else base64.
emit() {
    case $2 in
    '') ;;
    *[!A-Za-z0-9._/,+-]*) printf '%s' "$2" | emit_all "$1" ;;
    *) printf '%s %s=%s\n' "$mark" "$1" "$2" ;;
    esac
}

# emit_all KEY: the same of all that comes in, NULs too.
emit_all() {
    printf '%s %s:%s\n' "$mark" "$1" "$(base64 | tr -d '\n')"
}

# ask KEY COMMAND...: emits what a command answers, if it does so in time. The questions come with the verb.
ask() {
    ask_key=$1
    shift
    limited 120 env LC_ALL=C "$@" 2>/dev/null | emit_all "$ask_key"
}

# limited SECONDS COMMAND...: for a program that might never answer.
limited() {
    if command -v timeout >/dev/null; then
        timeout "$@" </dev/null
    else
        shift
        "$@" </dev/null
    fi
}

# A line in the log of the detached work.
say() {
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"
}

# A tenth of a second, where sleep knows fractions.
pause() {
    sleep 0.1 2>/dev/null || sleep 1
}

# quote TEXT: sets $quoted, one word of the shell whatever the text holds. The dot keeps newlines at its end.
quote() {
    quoted=$(printf '%s.' "$1" | sed "s/'/'\\\\''/g")
    quoted="'${quoted%.}'"
}

# fail KIND [TEXT]: why the work or the verb cannot go on, in $failed_kind and $failed_text.
fail() {
    failed_kind=$1 failed_text=${2-}
    return 1
}

# An older version hands its work the folder as it was configured.
workspace=$DAMODEL_WORKSPACE
case $workspace in
'~' | '~/'*) workspace=$HOME${workspace#?} ;;
/*) ;;
*) workspace=$HOME/$workspace ;;
esac
port=$DAMODEL_PORT
base=$workspace/.damodel
state=$base/$port
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)

