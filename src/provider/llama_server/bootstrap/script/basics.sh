# shellcheck shell=sh
# Runs an inference server (llama.cpp) in this instance, for the Terraform resource damodel_llama_server.
#
# Fed on standard input of `sh -s`, after the settings (DAMODEL_...), with a verb as $1. It needs a POSIX shell, coreutils, grep, sed,
# awk, tar, flock and setsid; ss, timeout and systemd-run are used where they are. All records are kept in
#
#   workspace/.damodel/PORT/      status, worker, server,        records, each a list of quoted assignments, written by rename
#                                 restarts
#                                 run, owner, policy             words: which work is meant, whose server it is, whether it is restarted
#                                 former/                        during an update, the records of the server that serves or served before
#                                 server.log, work.log           what the server says; what the detached work says
#                                 api_key                        the key that the server asks for, mode 0600
#                                 bootstrap.sh                   this program, for the detached work; it holds no setting and no secret
#   workspace/.damodel/builds/    KEY/ the build folder, KEY.log the compile's log, KEY.done the mark of a finished one
#   workspace/.damodel/sources/, packages/                       what was fetched or unpacked
#
# Whatever is killed at whatever moment, the next `ensure` takes it up. The exit code means nothing: the report does.

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
    *[!A-Za-z0-9._/,+-]*) printf '%s %s:%s\n' "$mark" "$1" "$(printf '%s' "$2" | base64 | tr -d '\n')" ;;
    *) printf '%s %s=%s\n' "$mark" "$1" "$2" ;;
    esac
}

# A line in the log of the detached work.
say() {
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"
}

now() {
    date +%s
}

# A tenth of a second, where sleep knows fractions.
pause() {
    sleep 0.1 2>/dev/null || sleep 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# limited SECONDS COMMAND...: a question to a program that might never answer.
limited() {
    if has timeout; then
        timeout "$@" </dev/null
    else
        shift
        "$@" </dev/null
    fi
}

# hash: of standard input, in 16 hexadecimal digits.
hash() {
    sha256sum | cut -c 1-16
}

# expand PATH: sets $path, absolute. `~/` is the home, and a relative path begins there.
expand() {
    case $1 in
    '~') path=$HOME ;;
    '~/'*) path=$HOME/${1#??} ;;
    /* | '') path=$1 ;;
    *) path=$HOME/$1 ;;
    esac
}

# quote TEXT: sets $quoted, one word of the shell whatever the text holds. The dot keeps newlines at its end.
quote() {
    case $1 in
    *\'*)
        quoted=$(printf '%s.' "$1" | sed "s/'/'\\\\''/g")
        quoted="'${quoted%.}'"
        ;;
    *) quoted="'$1'" ;;
    esac
}

# first LINES: the beginning of what comes in, and how much was left out.
first() {
    awk -v most="$1" 'NR <= most { print } END { if (NR > most) print "... and " NR - most " more" }'
}

expand "${DAMODEL_WORKSPACE:-~/workspace}"
workspace=$path
port=${DAMODEL_PORT:-8000}
base=$workspace/.damodel
state=$base/$port
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)
# What only a check finds out, whatever the login exports.
has_facts='' same_hardware=''

