# ---- What there is now ----

# look: reads all records, and which of the processes live. The work first: how it ended is the last that it writes.
look() {
    status_phase=absent status_kind='' status_text='' status_exit='' status_seconds='' status_package='' status_source='' status_compile_log='' status_proved=''
    status_run='' worker_alive='' server_alive=''
    load "$state/worker" || worker_pid='' worker_start='' worker_boot='' worker_run='' worker_job='' worker_build='' worker_because='' worker_because_text='' worker_hardware=''
    ! is_alive "$worker_pid" "$worker_start" "$worker_boot" || worker_alive=yes
    load "$state/server" || server_pid='' server_start='' server_boot='' server_run=''
    ! is_alive "$server_pid" "$server_start" "$server_boot" || server_alive=yes
    server_identity=${server_pid:+$server_pid.$server_start.$server_boot}
    load "$state/status"
    # The work has not written down how far it is; what there is was written by another.
    if [ "${worker_alive:-$status_run}" ] && [ "$worker_run" ] && [ "$status_run" != "$worker_run" ]; then
        status_phase=find status_kind='' status_text='' status_proved='' status_package='' status_source='' status_compile_log=''
    fi
}

# model_fingerprint FILE: size, time and a hash of the beginning. A model of 40 GB is never read whole.
model_fingerprint() {
    [ -f "$1" ] && printf '%s:%s' "$(stat -L -c %s:%Y "$1" 2>/dev/null)" "$(head -c 1048576 "$1" 2>/dev/null | sha256sum | cut -c 1-16)"
}

# redact: replaces the API key in what comes in. The key stays in its file.
redact() {
    if [ -s "$state/api_key" ]; then
        awk 'FNR == NR { key = $0; next }
            {
                text = ""; rest = $0
                while (key != "" && (at = index(rest, key))) {
                    text = text substr(rest, 1, at - 1) "(redacted)"
                    rest = substr(rest, at + length(key))
                }
                print text rest
            }' "$state/api_key" -
    else
        cat
    fi
}

# emit_ending KEY FILE BYTES: the last whole lines of a log. Half a line may hold half a secret, which nobody would
# find.
emit_ending() {
    [ -f "$2" ] || return 0
    # One more byte is read: what the first line ends is not shown.
    tail -c "$(($3 + 1))" "$2" | if [ "$(stat -c %s "$2")" -gt "$3" ]; then sed 1d; else cat; fi | tr -d '\000' | tr '\r' '\n' | redact | emit_all "$1"
}

# report [KIND TEXT]: what there is now, and why the verb was refused, if it was.
report() {
    look
    printf '\n%s begin\n' "$mark"
    for emitted in phase:status_phase exit:status_exit seconds:status_seconds proved:status_proved package:status_package \
        compile_log:status_compile_log work_run:worker_run fingerprint:worker_job begun:worker_build because:worker_because \
        because_text:worker_because_text hardware:worker_hardware; do
        eval "emit ${emitted%:*} \"\$${emitted#*:}\""
    done
    emit failure "${1:-$status_kind}"
    emit failure_text "${2:-$status_text}"
    emit refused "${1:+yes}"
    emit work "${worker_alive:+alive}"
    emit rebooted "$([ "${worker_boot:-$boot}" = "$boot" ] || echo yes)"
    case $status_phase:$worker_alive$server_alive in
    absent: | failed: | *yes) ;;
    *) check_room || emit room "$failed_text" ;;
    esac
    emit owner "$(word "$state/owner")"
    if is_former_serving; then
        emit former serving
    elif is_former; then
        emit former ended
    fi
    emit_ending compile_tail "$status_compile_log" "$([ "$status_phase" = failed ] && echo 65536 || echo 16384)"
    if [ "$server_pid" ]; then
        for emitted in pid identity run started alive build binary version model_fingerprint; do
            eval "emit server_$emitted \"\$server_$emitted\""
        done
        emit model_now "$(model_fingerprint "$server_model")"
        [ -z "$server_alive" ] || emit_all command_line <"/proc/$server_pid/cmdline"
        if load "$state/restarts"; then
            emit restarts "$restarts"
            emit last_exit "$restart_last"
        fi
    fi
    # Not when ours was replaced by its successor while we looked.
    if rival "$server_pid" && { [ -z "$server_alive" ] || is_alive "$server_pid" "$server_start" "$server_boot"; }; then
        emit rival "$rival_text"
        emit rival_pid "$rival_pid"
        [ "$rival_pid" = '?' ] || emit_all rival_command_line <"/proc/$rival_pid/cmdline"
    fi
    if [ -f "$state/server.log" ]; then
        emit log_path "$state/server.log"
        emit_ending log_tail "$state/server.log" 32768
        emit log_cpu_only "$(head -c 65536 "$state/server.log" | tr -d '\000' | redact | grep -m 1 -E 'no usable GPU found|no CUDA-capable device|CUDA driver version is insufficient')"
    fi
    emit notes "$(redact 2>/dev/null <"$state/notes")"
    eval "${DAMODEL_QUESTIONS-}"
    printf '%s end\n' "$mark"
}

# refuse KIND TEXT: the verb ends here, and everything is as it was.
refuse() {
    report "$1" "$2"
    exit 0
}

