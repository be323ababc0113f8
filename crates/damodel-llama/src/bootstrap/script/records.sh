# shellcheck shell=sh
# Runs an inference server (llama.cpp) in this instance, for the Terraform resource damodel_llama_server.
#
# Fed on standard input of `sh -s`, after the settings (DAMODEL_...), with a verb as $1. The sender decides what is
# done. Without a sender this program finishes a job, starts a server again that ended, and returns to a previous one.
# Any of its processes may be killed at any time: the next run resumes the work. The exit code has no meaning: the
# answer is the report.
#
# Its files, below .damodel/ in the workspace. A run is a job and the detached work on it. A record is a list of quoted
# assignments, written by rename. Verbs hold the lock while they write; the report reads what has no other reader.
#
# | file                     | content                              | writers                | readers              |
# |--------------------------|--------------------------------------|------------------------|----------------------|
# | PORT.lock                | nothing: it is locked                |                        | verbs that write     |
# | PORT-INSTANCE/           | the state folder of one server       | verbs                  | verbs, work          |
# | .../run                  | the folder of the current run        | ensure, rollback       | look, work           |
# | .../previous             | the run to which an update returns   | ensure; others remove  | look, work           |
# | .../attended             | its time: the last look at an update | all verbs              | work of the previous |
# | .../restart              | the process that a restart ends      | restart; work removes  | work                 |
# | .../bootstrap.sh         | this program without settings        | ensure                 | work                 |
# | .../work.log, .1         | the log of the work, and the last    | work                   | ensure               |
# | .../server.log, .1       | the log of the server, and the last  | server; work cuts it   | judge, work          |
# | .../runs/RUN/job         | the record of the job, without keys  | ensure                 |                      |
# | .../runs/RUN/owner       | resource, restart policy, probe      | ensure, own            | stop, work           |
# | .../runs/RUN/worker      | the process of the work              | work                   | look                 |
# | .../runs/RUN/server      | the process of the server            | work                   | look, work           |
# | .../runs/RUN/status      | phase, failure, next try             | work, judge, rollback  | look, work           |
# | .../runs/RUN/restarts    | how often it was started by itself   | work                   |                      |
# | .../runs/RUN/download    | the file that arrives, its progress  | work                   | look                 |
# | .../runs/RUN/error       | the last error of a request          | work                   | work                 |
# | .../runs/RUN/replaces    | a mark: the previous server is ended | work                   | look, work           |
# | .../parts                | the paths of incomplete downloads    | work                   | destroy              |
# | models/KEY, KEY.lock     | the sum of a file, and a lock        | work                   | work                 |
# | builds/KEY/, .log, .lock | a build folder, its log and its lock | work                   | work                 |
# | builds/KEY.begun, .done  | marks: begun, finished               | work                   | work                 |
# | sources/, packages/      | what was fetched or unpacked         | work                   | work                 |

unset IFS
eval "$DAMODEL_FUNCTIONS"
[ "${DAMODEL_DRIVER_LIBRARIES-}" ] || find_driver
login_umask=${DAMODEL_UMASK:-$(umask)}
umask 077
: "${HOME:=/root}"
workspace=$DAMODEL_WORKSPACE
# The work gets the folder that was chosen for it, see choose_state.
named_state=$workspace/.damodel/$DAMODEL_PORT-$DAMODEL_INSTANCE
state=${DAMODEL_STATE:-$named_state}
boot=''
{ read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null

# The variables of the records of a run.
owner_record='owner_token owner_policy owner_endpoint'
server_record='server_identity server_started server_build server_binary server_version server_model
    server_model_fingerprint server_model_verified server_files server_files_fingerprint'
status_record='status_phase status_kind status_text status_exit status_seconds status_out_of_memory status_next
    status_compile_log status_proved status_no_gpu status_no_gpu_of status_file'
restarts_record='restarts_count restarts_last'
download_record='download_part download_before download_total download_from download_began'

# say TEXT: a line in the log of the detached work.
say() {
    printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"
}

# within TENTHS COMMAND...: waits until the command succeeds. A tenth is a second if sleep knows no fractions.
within() {
    within_tenths=$1
    shift
    until "$@"; do
        [ "$within_tenths" -gt 0 ] || return 1
        within_tenths=$((within_tenths - 1))
        sleep 0.1 2>/dev/null || sleep 1
    done
}

# assignments VARIABLE...: one line for each, as a shell reads it. The dot keeps newlines at the end of a value. The
# last line proves that nothing was cut off.
assignments() {
    for assigned in "$@"; do
        eval "quoted=\${$assigned-}."
        case $quoted in *\'*) quoted=$(printf '%s' "$quoted" | sed "s/'/'\\\\''/g") ;; esac
        printf "%s='%s'\n" "$assigned" "${quoted%.}"
    done
    printf '# end\n'
}

# save FILE VARIABLE...: a record of them, whole or not at all. Without a run it would be in the root folder.
save() {
    save_file=$1
    shift
    [ "${save_file%/*}" ] && assignments "$@" 2>/dev/null >"$save_file.$$" &&
        [ "$(tail -n 1 "$save_file.$$" 2>/dev/null)" = '# end' ] &&
        mv -f "$save_file.$$" "$save_file" && return 0
    rm -f "$save_file.$$"
    return 1
}

# forget VARIABLE...: sets them to nothing.
forget() {
    for forgotten in "$@"; do eval "$forgotten=''"; done
}

# write FILE TEXT: a text in a file of its own, whole or not at all.
write() {
    [ "$(cat "$1" 2>/dev/null)" = "$2" ] || { printf '%s\n' "$2" >"$1.$$" && mv -f "$1.$$" "$1"; } 2>/dev/null
}

# load FILE: sets its variables. Read once, because another verb may remove it, and tried in a subshell first: a file
# that a power cut damaged would end this shell.
load() {
    [ "${1%/*}" ] && read_text "$1" && (eval "$text") >/dev/null 2>&1 && eval "$text"
}

# read_text FILE: sets $text to the text of such a file, or to nothing. A folder may have newlines in its name.
read_text() {
    text=''
    { while IFS= read -r text_line || [ "$text_line" ]; do text="${text:+$text
}$text_line"; done <"$1"; } 2>/dev/null
}

# take_lock [RUN]: before records change; then reads them. A minute is longer than any verb holds the lock, which all
# servers of the port share. The verb is refused if the current run is not the one that the sender has seen.
take_lock() {
    lock=$workspace/.damodel/$DAMODEL_PORT.lock
    { mkdir -p "${lock%/*}" && (: >>"$lock"); } 2>/dev/null || refuse workspace
    exec 9>>"$lock"
    within 600 has_lock || refuse busy
    [ -z "$lock_error" ] || refuse no_locks "$lock_error"
    choose_state
    mkdir -p "$state" 2>/dev/null || refuse workspace
    look
    [ "$folder" = "${1-$folder}" ] || refuse changed
}

# has_lock: whether the lock was taken, or cannot be: a lock that another verb holds is no message of flock.
has_lock() {
    lock_error=$(flock -n 9 2>&1) && lock_error='' || [ "$lock_error" ]
}

# lock_build FILE: for what is made once for all servers. The processes that make it inherit the lock.
lock_build() {
    mkdir -p "${1%/*}" && (: >>"$1") 2>/dev/null && exec 7>>"$1" && flock 7
}

# fail KIND [TEXT]: why the work cannot continue.
fail() {
    failed_kind=$1 failed_text=${2-}
    return 1
}

# set_status PHASE [KIND TEXT]: the progress of this run; $status_proved says whether its server has served before.
set_status() {
    status_phase=$1 status_kind=${2-} status_text=${3-}
    # shellcheck disable=SC2086
    save "$folder/status" $status_record
}
