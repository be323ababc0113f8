# ---- The current state ----

# choose_state: sets $state. Two addresses of one instance lead to one server: a folder of this port whose server exists
# here comes first, then one whose work exists, then the one with the name of this login.
choose_state() {
    [ -z "${DAMODEL_STATE-}" ] || return 0
    for chosen_by in server work; do
        for state in "$named_state" "$workspace/.damodel/$DAMODEL_PORT"-*; do
            [ -f "$state/run" ] && look || continue
            [ "$chosen_by" = work ] && [ "$worker_alive$former" ] && return
            [ "$server_alive" ] && return
        done
    done
    state=$named_state
}

# exists FOLDER: whether the work or the server of a run exists.
exists() (
    load "$1/worker" && is_alive "$worker_identity" || { load "$1/server" && is_alive "$server_identity"; }
)

# look: reads the records, and which of the processes exist. $former is the folder of the run that an update replaces,
# as long as its work or its server exists. Until a run has started its own server, the server is the former one's.
look() {
    folder=$(word "$state/run") kept=$(word "$state/former") former=''
    [ "$kept" = "$folder" ] || ! exists "$kept" || former=$kept
    status_phase='' status_kind='' status_text='' status_exit='' status_seconds='' status_out_of_memory=''
    status_next='' status_compile_log='' status_proved='' status_no_gpu='' owner_token='' owner_policy=''
    owner_endpoint='' worker_identity='' worker_alive='' server_identity='' server_alive=''
    load "$folder/status"
    load "$folder/owner"
    load "$folder/worker"
    ! is_alive "$worker_identity" || worker_alive=yes
    server_folder=$folder
    load "$folder/server" || { server_folder=$kept && load "$kept/server"; }
    ! is_alive "$server_identity" || server_alive=yes
    server_pid=${server_identity%%.*}
}

# is_former_serving: whether the process that was seen is still the former server.
is_former_serving() {
    [ "$former" ] && [ "$server_folder" = "$former" ] && [ "$server_alive" ]
}

# emit KEY: a line of the report (report.rs) with all of standard input.
emit() {
    printf 'damodel-report/1 %s:' "$1"
    base64 | tr -d '\n'
    echo
}

# emit_ending KEY FILE BYTES: the last whole lines of a log: half a line may hold half a secret, which the sender does
# not find. The line that is left out is the empty one if the log is short.
emit_ending() {
    { echo && tail -c "$3" "$2"; } | tail -c "$3" | sed 1d | tr -d '\000' | tr '\r' '\n' | emit "$1"
}

# processor_time PID: the time that a process has used, in hundredths of a second.
processor_time() {
    read -r process_stat <"/proc/$1/stat" || return
    # shellcheck disable=SC2086
    set -- ${process_stat##*) }
    echo "$((${12} + ${13}))"
}

# report [KIND TEXT]: the current state, and why the verb was refused.
report() {
    look
    refused=${1-} refused_text=${2-} server_log=$state/server.log model_now='' model_unknown='' server_time=''
    [ -z "$server_alive" ] || server_time=$(processor_time "$server_pid" 2>/dev/null)
    [ -z "$server_identity" ] || model_now=$(in_time 10 ask_model_fingerprint "$server_model") || model_unknown=yes
    printf '\ndamodel-report/1 begin\n'
    for emitted in "$folder/job" "$folder/owner" "$folder/worker" "$folder/status" "$folder/restarts" \
        "$server_folder/server"; do
        [ -z "${emitted%/*}" ] || [ ! -f "$emitted" ] || emit "record_${emitted##*/}" <"$emitted"
    done
    assignments refused refused_text boot state folder former server_folder worker_alive server_alive server_time \
        model_now model_unknown server_log | emit record_now
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
