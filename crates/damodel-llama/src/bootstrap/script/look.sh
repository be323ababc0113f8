# ---- The current state ----

# choose_state: sets $state. Two addresses of one instance lead to one server: a folder of this port whose server exists
# here comes first, then one whose work exists, then the one with the name of this login.
choose_state() {
    [ -z "${DAMODEL_STATE-}" ] || return 0
    for chosen_by in server work; do
        for state in "$named_state" "$workspace/.damodel/$DAMODEL_PORT"-*; do
            [ -f "$state/run" ] && look || continue
            [ "$chosen_by" = work ] && [ "$worker_alive$previous" ] && return
            [ "$server_alive" ] && return
        done
    done
    state=$named_state
}

# exists FOLDER: whether the work or the server of a run exists.
exists() (
    load "$1/worker" && is_alive "$worker_identity" || { load "$1/server" && is_alive "$server_identity"; }
)

# look: reads the records, and which of the processes exist. $previous is the folder of the run that an update replaces,
# as long as its work or its server exists. Until a run has started its own server, the server is the previous one's. A
# refresh sees the previous run until its server is ended.
look() {
    read_text "$state/run"
    folder=$text
    read_text "$state/previous"
    kept=$text previous=''
    [ -z "${DAMODEL_REFRESHES-}" ] || [ -z "$kept" ] || [ -e "$folder/replaces" ] || ! exists "$kept" || folder=$kept
    [ -z "$kept" ] || [ "$kept" = "$folder" ] || ! exists "$kept" || previous=$kept
    # shellcheck disable=SC2086
    forget $status_record $owner_record $server_record worker_identity worker_alive server_alive
    load "$folder/owner"
    load "$folder/worker"
    ! is_alive "$worker_identity" || worker_alive=yes
    server_folder=$folder
    load "$folder/server" || { server_folder=$kept && load "$kept/server"; }
    ! is_alive "$server_identity" || server_alive=yes
    server_pid=${server_identity%%.*}
    # Last: work that was seen to have ended has recorded why.
    load "$folder/status"
}

# is_previous_serving: whether the process that was seen is still the previous server.
is_previous_serving() {
    [ "$previous" ] && [ "$server_folder" = "$previous" ] && [ "$server_alive" ]
}

# is_previous_left: whether it serves, and its successor has not told it to end.
is_previous_left() {
    is_previous_serving && [ ! -e "$folder/replaces" ]
}

# emit KEY: a value of the report (wire.rs), all of standard input.
emit() {
    printf 'damodel-report/1 %s:\n' "$1"
    base64
}

# emit_ending KEY FILE BYTES: the end of a log after the rest of a line, of which the sender uses nothing: half a line
# may hold half a secret. It is empty if the log is short.
emit_ending() {
    { echo && tail -c "$3" "$2"; } | tail -c "$3" | emit "$1"
}

# read_server_time: sets $server_time to the processor time that the server has used, in hundredths of a second.
read_server_time() {
    read -r process_stat <"/proc/$server_pid/stat" || return
    # shellcheck disable=SC2086
    set -- ${process_stat##*) }
    server_time=$((${12} + ${13}))
}

# report [KIND TEXT]: the current state, and why the verb was refused.
report() {
    look
    refused=${1-} refused_text=${2-} server_log=$state/server.log model_now='' model_unknown='' server_time=''
    job_record='' files_now=''
    # shellcheck disable=SC2086
    forget $restarts_record $download_record download_bytes download_seconds
    load "$folder/job"
    # Its storage may hang.
    [ "$status_phase" != download ] || ! load "$folder/download" ||
        download_bytes=$(in_time 10 ask_size "$download_part") download_seconds=$(($(date +%s) - download_began))
    load "$folder/restarts"
    [ -z "$server_alive" ] || read_server_time 2>/dev/null
    [ -z "$server_identity" ] || model_now=$(in_time 10 ask_model_fingerprint "$server_model") || model_unknown=yes
    [ -z "$server_files" ] || files_now=$(eval "in_time 10 ask_files_fingerprint $server_files") || model_unknown=yes
    printf '\ndamodel-report/1 begin\n'
    # shellcheck disable=SC2086
    assignments refused refused_text boot HOME state folder previous job_record worker_identity worker_alive \
        $owner_record $status_record $restarts_record $download_record download_bytes download_seconds \
        server_folder server_alive server_time $server_record model_now \
        model_unknown files_now server_log | emit record
    # Looks are frequent during a compile.
    [ ! -f "$status_compile_log" ] ||
        emit_ending compile_tail "$status_compile_log" "$([ "$status_phase" = failed ] && echo 65536 || echo 16384)"
    [ -z "$server_alive" ] || emit command_line <"/proc/$server_pid/cmdline"
    [ ! -f "$server_log" ] || emit_ending log_tail "$server_log" 32768
    report_answers
    # If the server has ended during the questions, the listener on its port did not replace it.
    ! is_alive "$server_identity" || printf 'damodel-report/1 server_goes_on=yes\n'
    printf 'damodel-report/1 end\n'
}

# refuse KIND [TEXT]: ends the verb, which has changed nothing.
refuse() {
    report "$1" "${2-}"
    exit 0
}
