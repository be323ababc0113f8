# ---- The current state ----

# look: reads the records, and which of the processes exist. $former is the folder of the run that an update can return
# to: its work stands by. Until a run has started its own server, the server is the former one's.
look() {
    folder=$(word "$state/run") kept=$(word "$state/former")
    former=''
    [ "$kept" = "$folder" ] || ! (load "$kept/worker" && is_alive "$worker_identity") || former=$kept
    status_phase='' status_kind='' status_text='' status_exit='' status_seconds='' status_compile_log=''
    status_proved='' owner_token='' worker_identity='' worker_alive='' server_identity='' server_alive=''
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

# model_fingerprint FILE: size, time and a hash of the beginning. A model of 40 GB is never read whole.
model_fingerprint() {
    [ -f "$1" ] && printf '%s:%s' "$(stat -L -c %s:%Y "$1" 2>/dev/null)" \
        "$(head -c 1048576 "$1" 2>/dev/null | sha256sum | cut -c 1-16)"
}

# emit KEY: a line of the report (report.rs) with all of standard input.
emit() {
    printf 'damodel-report/1 %s:%s\n' "$1" "$(base64 | tr -d '\n')"
}

# ask COMMAND...: the answer to a question that comes with the verb.
ask() {
    LC_ALL=C timeout 120 "$@" 2>/dev/null </dev/null
}

# redact: replaces the server's API key in standard input.
redact() {
    [ -s "$server_folder/api_key" ] || exec cat
    awk 'FNR == NR { key = $0; next }
        {
            for (text = ""; key != "" && (at = index($0, key)); $0 = substr($0, at + length(key)))
                text = text substr($0, 1, at - 1) "(redacted)"
            print text $0
        }' "$server_folder/api_key" -
}

# emit_ending KEY FILE BYTES: the last whole lines of a log: half a line may hold half a secret, which redact misses.
# The line that is left out is the empty one if the log is short.
emit_ending() {
    { echo && tail -c "$3" "$2"; } | tail -c "$3" | sed 1d | tr -d '\000' | tr '\r' '\n' | redact | emit "$1"
}

# report [KIND TEXT]: the current state, and why the verb was refused.
report() {
    look
    refused=${1-} refused_text=${2-} server_log=$state/server.log model_now=''
    [ -z "$server_identity" ] || model_now=$(model_fingerprint "$server_model")
    printf '\ndamodel-report/1 begin\n'
    for emitted in "$folder/job" "$folder/owner" "$folder/worker" "$folder/status" "$folder/restarts" \
        "$server_folder/server"; do
        [ -z "${emitted%/*}" ] || [ ! -f "$emitted" ] || emit "record_${emitted##*/}" <"$emitted"
    done
    assignments refused refused_text boot folder former server_folder worker_alive server_alive model_now \
        server_log | emit record_now
    # Looks are frequent during a compile.
    [ ! -f "$status_compile_log" ] ||
        emit_ending compile_tail "$status_compile_log" "$([ "$status_phase" = failed ] && echo 65536 || echo 16384)"
    [ -z "$server_alive" ] || emit command_line <"/proc/$server_pid/cmdline"
    [ ! -f "$server_log" ] || emit_ending log_tail "$server_log" 32768
    eval "$DAMODEL_QUESTIONS"
    # If the server has ended during the questions, the listener on its port did not replace it.
    ! is_alive "$server_identity" || printf 'damodel-report/1 server_goes_on=yes\n'
    printf 'damodel-report/1 end\n'
}

# refuse KIND [TEXT]: ends the verb, which has changed nothing.
refuse() {
    report "$1" "${2-}"
    exit 0
}
