# shellcheck shell=sh
# Runs an inference server (llama.cpp) in this instance, for the Terraform resource damodel_llama_server.
#
# Fed on standard input of `sh -s`, after the settings (DAMODEL_...), with a verb as $1. What is to be done is decided
# by who sends it; what works here alone, while nobody follows, is that a job is done, a server that dies is started
# again, and a former server comes back. It needs a POSIX shell, coreutils, grep, sed, awk, flock and setsid. What it
# keeps where is told in mod.rs beside it.
#
# Whatever is killed at whatever moment, the next run takes it up. The exit code means nothing: the report does.

unset IFS
login_umask=${DAMODEL_UMASK:-$(umask)}
umask 077
: "${HOME:=/root}"
workspace=$DAMODEL_WORKSPACE
port=$DAMODEL_PORT
base=$workspace/.damodel
state=$base/$port
boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)

# A line in the log of the detached work.
say() {
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"
}

# within TENTHS COMMAND...: waits until the command succeeds, for so many tenths of a second.
within() {
    within_tenths=$1
    shift
    until "$@"; do
        [ "$within_tenths" -gt 0 ] || return 1
        within_tenths=$((within_tenths - 1))
        # Where sleep knows fractions.
        sleep 0.1 2>/dev/null || sleep 1
    done
}

# quote TEXT: sets $quoted, one word of the shell whatever the text holds. The dot keeps newlines at its end.
quote() {
    quoted=$1.
    case $1 in
    *\'*) quoted=$(printf '%s.' "$1" | sed "s/'/'\\\\''/g") ;;
    esac
    quoted="'${quoted%.}'"
}

# assignments VARIABLE...: as a shell reads them. The last line proves that nothing was cut off.
assignments() {
    for assigned in "$@"; do
        eval "quote \"\${$assigned-}\""
        printf '%s=%s\n' "$assigned" "$quoted"
    done
    printf '# end\n'
}

# save FILE VARIABLE...: a record of them, whole or not at all.
save() {
    save_file=$1
    shift
    assignments "$@" 2>/dev/null >"$save_file.$$" &&
        [ "$(tail -n 1 "$save_file.$$" 2>/dev/null)" = '# end' ] &&
        mv -f "$save_file.$$" "$save_file" && return 0
    rm -f "$save_file.$$"
    return 1
}

# load FILE: takes its variables over. Tried in a subshell before, since a file that a power cut left in pieces would
# end this shell.
load() {
    # shellcheck disable=SC1090
    [ -f "$1" ] && (. "$1") >/dev/null 2>&1 && . "$1"
}

# write FILE TEXT: a text in a file of its own, whole or not at all.
write() {
    [ "$(word "$1")" = "$2" ] || { printf '%s\n' "$2" >"$1.$$" && mv -f "$1.$$" "$1"; } 2>/dev/null
}

# word FILE: the text of such a file.
word() {
    cat "$1" 2>/dev/null
}

# take_lock [RUN]: for the short moments in which records change, which are read then. A minute is longer than any verb
# holds it. The verb ends here where the run of now is another than the one that its caller has decided about.
take_lock() {
    { mkdir -p "$state" && (: >>"$state.lock"); } 2>/dev/null || refuse workspace
    exec 9>>"$state.lock"
    within 600 flock -n 9 || refuse busy
    look
    [ "$folder" = "${1-$folder}" ] || refuse changed
}

# lock_build FILE: waits until nobody else works on what is made once for all servers. Those that work on it inherit
# the lock: while one of them lives, nobody else begins.
lock_build() {
    mkdir -p "${1%/*}" && (: >>"$1") 2>/dev/null && exec 7>>"$1" && flock 7
}

# fail KIND [TEXT]: why the work cannot go on, in $failed_kind and $failed_text.
fail() {
    failed_kind=$1 failed_text=${2-}
    return 1
}

# set_status PHASE [KIND TEXT]: how far this run is; $status_proved says whether its server has served before.
set_status() {
    status_phase=$1 status_kind=${2-} status_text=${3-}
    save "$folder/status" status_phase status_kind status_text status_exit status_seconds status_compile_log status_proved
}
