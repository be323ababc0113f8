# ---- What there is now ----

# settle: reads all records and judges them by what lives. A phase that nobody works on any more is a failure.
settle() {
    status_phase=absent status_kind='' status_text='' status_exit='' status_seconds='' status_package='' status_source='' status_compile_log='' status_proved=''
    status_run='' settle_tries=0
    while :; do
        load "$state/status"
        load "$state/worker" || worker_pid='' worker_start='' worker_boot='' worker_run='' worker_job='' worker_build='' worker_because='' worker_because_text=''
        load "$state/server" || server_pid='' server_start='' server_boot='' server_run=''
        worker_alive='' server_alive=''
        is_alive "$worker_pid" "$worker_start" "$worker_boot" && worker_alive=yes
        is_alive "$server_pid" "$server_start" "$server_boot" && server_alive=yes
        # The work has not written down how far it is; what there is was written by another.
        if [ "${worker_alive:-$status_run}" ] && [ "$worker_run" ] && [ "$status_run" != "$worker_run" ]; then
            status_phase=find status_kind='' status_text='' status_proved='' status_package='' status_source='' status_compile_log=''
        fi
        case $status_phase:$worker_alive:$server_alive in
        # The server has ended, and the work is about to write down how.
        load:yes: | ready:yes:) settle_most=20 ;;
        # The work has ended, perhaps between two of these records: the last that it wrote is read then.
        find::* | compile::* | start::* | load:: | ready::) settle_most=2 ;;
        *) break ;;
        esac
        settle_tries=$((settle_tries + 1))
        if [ "$settle_tries" -ge "$settle_most" ]; then
            # It has not yet: it alone knows whether the server starts again.
            [ -z "$worker_alive" ] || status_phase=start
            break
        fi
        pause
    done
    server_identity=${server_pid:+$server_pid.$server_start.$server_boot}
    case $status_phase in
    find | compile | start)
        if [ "$worker_alive" ]; then
            :
        elif [ "$status_phase" = start ] && [ "$server_alive" ] && [ "$server_run" = "$worker_run" ]; then
            status_phase=load
        else
            settle_interrupted "the work ended in the phase \"$status_phase\""
        fi
        ;;
    load)
        [ "$server_alive" ] || settle_interrupted 'the server ended before it was ready, and nobody saw how'
        ;;
    ready)
        [ "$server_alive" ] || settle_interrupted 'the server ended, and nobody saw how'
        ;;
    esac
}

settle_interrupted() {
    status_phase=failed status_kind=interrupted
    case ${worker_boot:-$boot} in
    "$boot") status_text="$1: someone killed it, or memory ran out" ;;
    *) status_text="$1: the instance was rebooted" ;;
    esac
    if ! check_room; then
        status_kind=$failed_kind status_text=$failed_text
    fi
}

# model_fingerprint FILE: size, time and a hash of the beginning. A model of 40 GB is never read whole.
model_fingerprint() {
    [ -f "$1" ] && printf '%s:%s' "$(stat -L -c %s:%Y "$1" 2>/dev/null)" "$(head -c 1048576 "$1" 2>/dev/null | hash)"
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

# ending FILE BYTES: the last whole lines of a log, without the API key. Half a line may hold half a secret, which nobody would find.
ending() {
    # Twice as much is read: the line that is cut here is none of those that are shown.
    tail -c "$(($2 * 2))" "$1" | tr -d '\000' | redact | LC_ALL=C awk -v left="$2" '
        { line[NR] = $0 }
        END {
            for (from = NR; from && (left -= length(line[from]) + 1) >= 0; from--);
            while (from++ < NR) print line[from]
        }'
}

# decisive FILE: the lines of a log that say what went wrong, or its end.
decisive() {
    [ -f "$1" ] || return 0
    decisive_lines=$(ending "$1" 65536 |
        grep -E ' E |[Ee]rror|ERROR|fatal|[Ff]ailed|terminate called|cannot open|not found|No space left|denied|Abort|CUDA' | tail -n 5)
    printf '%s\n' "${decisive_lines:-$(ending "$1" 65536 | tail -n 3)}" | cut -c 1-400
}

# compile_progress LOG: emits the end of it, which tells how far make or ninja is.
compile_progress() {
    emit compile_log "$1"
    [ ! -f "$1" ] || emit compile_tail "$(ending "$1" 16384 | tr '\r' '\n')"
}

# cpu_only: says so when the server found no card that it can use: it starts all the same, and is slow.
cpu_only() {
    head -c 65536 "$state/server.log" | tr -d '\000' | grep -E 'no usable GPU found|no CUDA-capable device|CUDA driver version is insufficient' |
        head -n 1 | sed 's/^/the server uses no GPU: /'
}

# report [KIND TEXT]: what there is now, and why the verb was refused, if it was.
report() {
    settle
    printf '\n%s begin\n' "$mark"
    emit phase "$status_phase"
    emit failure "${1:-$status_kind}"
    emit failure_text "${2:-$status_text}"
    emit exit "$status_exit"
    emit seconds "$status_seconds"
    emit refused "${1:+yes}"
    emit fingerprint "$worker_job"
    emit owner "$(word "$state/owner")"
    emit proved "$status_proved"
    emit begun "$worker_build"
    emit because "$worker_because"
    emit because_text "$worker_because_text"
    emit same_hardware "$same_hardware"
    [ -z "$has_facts" ] || facts
    if is_former_serving; then
        emit former serving
    elif is_former; then
        emit former ended
    fi
    emit package "$status_package"
    [ -z "$status_compile_log" ] || compile_progress "$status_compile_log"
    if [ "$server_pid" ]; then
        emit pid "$server_pid"
        emit identity "$server_identity"
        emit started "$server_started"
        emit alive "$server_alive"
        emit build_used "$server_build"
        emit binary "$server_binary"
        emit server_version "$server_version"
        emit model_fingerprint "$server_model_fingerprint"
        emit model_now "$(model_fingerprint "$server_model")"
        if [ "$server_alive" ]; then
            emit_command_line command_line "$server_pid"
        fi
        if load "$state/restarts"; then
            emit restarts "$restarts"
            emit last_exit "$restart_last"
        fi
    fi
    rival_text=$(rival "$server_pid")
    # Not when ours was replaced by its successor while we looked.
    if [ "$rival_text" ] && { [ -z "$server_alive" ] || is_alive "$server_pid" "$server_start" "$server_boot"; }; then
        emit rival "$rival_text"
        rival_pid=$(llama_rival "$server_pid") && emit_command_line rival_command_line "$rival_pid"
    fi
    if [ -f "$state/server.log" ]; then
        emit log_path "$state/server.log"
        emit log_tail "$(ending "$state/server.log" 16384 | tail -n 60)"
    fi
    emit notes "$({
        cat "$state/notes"
        cpu_only
    } 2>/dev/null | redact)"
    printf '%s end\n' "$mark"
}

# emit_command_line KEY PID
emit_command_line() {
    printf '%s %s:%s\n' "$mark" "$1" "$(base64 <"/proc/$2/cmdline" | tr -d '\n')"
}

# refuse KIND TEXT: the verb ends here, and everything is as it was.
refuse() {
    report "$1" "$2"
    exit 0
}

