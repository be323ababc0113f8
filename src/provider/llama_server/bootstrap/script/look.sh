
# ---- What there is now ----

# look: reads the records, and which of the processes live. $former is the folder of the run to which there is a way
# back: its work stands by. While a run has begun no server of its own, the server is the former one's.
look() {
    folder=$(word "$state/run") kept=$(word "$state/former")
    [ "$kept" ] || kept=$(word "${DAMODEL_FORMER-}/run")
    former=$kept
    { [ "$kept" != "$folder" ] && (load "$kept/worker" && is_alive "$worker_identity"); } || former=''
    status_phase='' status_kind='' status_text='' status_exit='' status_seconds='' status_compile_log='' status_proved=''
    load "$folder/status"
    owner_token='' worker_identity='' worker_alive=''
    load "$folder/owner"
    load "$folder/worker"
    ! is_alive "$worker_identity" || worker_alive=yes
    server_folder=$folder server_identity='' server_alive=''
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
    [ -f "$1" ] && printf '%s:%s' "$(stat -L -c %s:%Y "$1" 2>/dev/null)" "$(head -c 1048576 "$1" 2>/dev/null | sha256sum | cut -c 1-16)"
}

# emit KEY: a line of the report, see report.rs, of all that comes in, NULs too.
emit() {
    printf 'damodel-report/1 %s:%s\n' "$1" "$(base64 | tr -d '\n')"
}

# ask KEY COMMAND...: emits what a command answers, if it does so in time. The questions come with the verb.
ask() {
    ask_key=$1
    shift
    LC_ALL=C timeout 120 "$@" 2>/dev/null </dev/null | emit "$ask_key"
}

# redact: replaces the server's API key in what comes in. The key stays in its file.
redact() {
    [ -s "$server_folder/api_key" ] || exec cat
    awk 'FNR == NR { key = $0; next }
        {
            text = ""; rest = $0
            while (key != "" && (at = index(rest, key))) {
                text = text substr(rest, 1, at - 1) "(redacted)"
                rest = substr(rest, at + length(key))
            }
            print text rest
        }' "$server_folder/api_key" -
}

# emit_ending KEY FILE BYTES: the last whole lines of a log. Half a line may hold half a secret, which nobody would
# find.
emit_ending() {
    # One more byte is read: what the first line ends is not shown.
    tail -c "$(($3 + 1))" "$2" | if [ "$(stat -c %s "$2")" -gt "$3" ]; then sed 1d; else cat; fi | tr -d '\000' | tr '\r' '\n' | redact | emit "$1"
}

# report [KIND TEXT]: what there is now, and why the verb was refused, if it was.
report() {
    look
    refused=${1-} refused_text=${2-} successor=$(word "$folder/successor") server_log=$state/server.log model_now=''
    [ -z "$server_identity" ] || model_now=$(model_fingerprint "$server_model")
    printf '\ndamodel-report/1 begin\n'
    for emitted in "$folder/job" "$folder/owner" "$folder/worker" "$folder/status" "$server_folder/server" "$folder/restarts"; do
        [ ! -f "$emitted" ] || emit "record_${emitted##*/}" <"$emitted"
    done
    assignments refused refused_text boot folder successor former server_folder worker_alive server_alive model_now \
        server_log | emit record_now
    [ ! -f "$status_compile_log" ] ||
        emit_ending compile_tail "$status_compile_log" "$([ "$status_phase" = failed ] && echo 65536 || echo 16384)"
    [ -z "$server_alive" ] || emit command_line <"/proc/$server_pid/cmdline"
    [ ! -f "$server_log" ] || emit_ending log_tail "$server_log" 32768
    eval "$DAMODEL_QUESTIONS"
    # One that has ended meanwhile was not replaced by who listens now.
    ! is_alive "$server_identity" || printf 'damodel-report/1 server_goes_on=yes\n'
    printf 'damodel-report/1 end\n'
}

# refuse KIND [TEXT]: the verb ends here, and everything is as it was.
refuse() {
    report "$1" "${2-}"
    exit 0
}
