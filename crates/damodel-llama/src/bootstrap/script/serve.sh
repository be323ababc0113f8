# ---- The server, and the one that an update replaces ----

# server_says ARGUMENT...: the output of the binary.
server_says() {
    run_server 120 "$binary" "$@"
}

# offers PATTERN: whether the server's help has it. A server without help is taken for a new one.
offers() {
    [ -z "$server_help" ] || printf '%s\n' "$server_help" | grep -Eq -- "$1"
}

# launch ARGUMENT...: becomes the server, after its record is written: each server that runs is known.
launch() {
    # The number of this subshell, which $$ is not.
    read -r launched _ </proc/self/stat && read_process "$launched" || exit 1
    server_identity=$process_identity server_started=$(date +%s)
    # shellcheck disable=SC2086
    save "$folder/server" $server_record || { echo 'error: the record of the server cannot be written' && exit 1; }
    # A successor that has begun meanwhile sees this record, or is seen here.
    is_current || exit 1
    cd "$workspace" || exit 1
    umask "$login_umask"
    launched_libraries=$(library_path "$binary")
    for damodel_name in $(env | sed -n 's/^\(DAMODEL_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$damodel_name"; done
    set -- "$binary" "$@"
    export LD_LIBRARY_PATH="$launched_libraries"
    eval "$DAMODEL_ENVIRONMENT"
    exec "$@"
}

# serve: runs $binary until no server runs any more, then fails.
serve() {
    server_build=$DAMODEL_BUILD server_binary=$binary server_model=$DAMODEL_MODEL
    server_files=$DAMODEL_ADDITIONAL_FILES
    set_status start
    # A binary that does not run prints an error, which is no help.
    server_help=$(server_says --help) || server_help=''
    server_version=$(server_says --version | sed -n 's/^version: *//p' | head -n 1)
    say "starting $binary (${server_version:-unknown version})"
    # Where the server reads its key.
    key_file=/dev/stdin
    [ -e "$key_file" ] || key_file=/proc/self/fd/0
    # Sets the arguments of this function.
    eval "$DAMODEL_ARGUMENTS"
    # A binary that prints its version judges options without a start.
    if [ "$server_version" ] && ! judged=$(server_says "$@" --version) &&
        judged=$(printf '%s\n' "$judged" | grep -m 1 '^error'); then
        fail bad_option "$judged"
        return
    fi
    if sees_no_gpu "$binary" && in_time 20 ask_has_gpu | grep -q yes; then
        fail no_gpu "$(printf '%s\n' "$listed" | head -n 3)"
        return
    fi
    # An empty pipe would be a server that asks no client for a key.
    [ -z "$DAMODEL_HAS_KEY" ] || [ "$DAMODEL_API_KEY" ] || fail interrupted 'the work has lost the API key' || return
    obtain_files && end_previous || return
    restarts_count=0 restarts_last='' pause_seconds=0 is_restart=''
    while :; do
        # Both may have changed since the last start. A server that has served before waits for them.
        exit_code=''
        until ask_for_files && { within 50 is_free || fail port_in_use; }; do
            pause "$failed_kind" || return
        done
        if [ "$is_restart" ]; then
            restarts_count=$((restarts_count + 1))
            # shellcheck disable=SC2086
            save "$folder/restarts" $restarts_record
        fi
        [ ! -f "$state/server.log" ] || mv -f "$state/server.log" "$state/server.log.1"
        serve_kills=$(oom_kills)
        # The key lies in no file: each start reads it from a pipe.
        { [ -z "$DAMODEL_API_KEY" ] || printf '%s\n' "$DAMODEL_API_KEY"; } 2>/dev/null |
            launch "$@" >>"$state/server.log" 2>&1 7>&- &
        serve_child=$!
        serve_began=$(date +%s)
        set_status load
        wait "$serve_child"
        exit_code=$?
        say "the server, process $serve_child, exited with $exit_code"
        serves_again || return
    done
}

# ask_for_files: sets the fingerprints of the model and of the files beside it. A storage that does not answer is no
# missing file, and starts no server.
ask_for_files() {
    server_model_fingerprint=$(in_time 10 ask_model_fingerprint "$server_model") &&
        server_files_fingerprint=$(eval "in_time 10 ask_files_fingerprint $server_files")
    case $? in
    0) ;;
    3) fail no_answer 'no room in /dev/shm or /tmp' || return ;;
    *) fail no_answer "the storage of the model $server_model$server_files does not answer" || return ;;
    esac
    [ "$server_model_fingerprint" ] || fail missing_model || return
    [ "$server_files_fingerprint" ] || fail missing_file "a file of additional_files is missing, of:$server_files"
}

# serves_again: whether the server that has just ended is started once more; fails with the reason of its end.
serves_again() {
    is_restart=''
    is_current || { stand_by; return; }
    load "$folder/server"
    # The sender may have judged the server.
    load "$folder/status"
    is_to_restart && { set_status start; return; }
    status_exit=$exit_code status_seconds=$(($(date +%s) - serve_began)) status_out_of_memory=''
    [ "$exit_code" != 137 ] || [ "$(oom_kills)" = "$serve_kills" ] || status_out_of_memory=yes
    # A long service makes up for earlier ends.
    [ "$status_seconds" -lt 600 ] || pause_seconds=0
    pause "${status_kind:-exited}" && return
    fail "${status_kind:-exited}" "$status_text"
}

# pause KIND: waits for the next try to start a server that has served: one second, then twice as long each time, up to
# ten minutes. Fails if the server stays ended. A pause of a minute or more is recorded as a failure.
pause() {
    load "$folder/owner"
    [ "$status_proved" ] && [ "$owner_policy" = on_failure ] && ! was_asked_to_end || return 1
    pause_seconds=$((pause_seconds * 2))
    [ "$pause_seconds" -gt 0 ] || pause_seconds=1
    [ "$pause_seconds" -le 600 ] || pause_seconds=600
    restarts_last=${exit_code:-$restarts_last} is_restart=yes
    status_next=$(($(date +%s) + pause_seconds))
    if [ "$pause_seconds" -lt 60 ]; then set_status start; else set_status failed "$1"; fi
    pause_left=$pause_seconds
    while [ "$pause_left" -gt 0 ] && is_current && ! is_to_restart; do
        sleep 1
        pause_left=$((pause_left - 1))
    done
    # An update may have begun meanwhile.
    is_current || { is_restart='' && stand_by; } || return
    status_next='' status_exit='' status_seconds='' status_out_of_memory=''
    set_status start
}

# was_asked_to_end: whether the server ended as after a signal that asks for it.
was_asked_to_end() {
    case $exit_code in 0 | 130 | 143) ;; *) return 1 ;; esac
}

# is_to_restart: whether the restart of this process was asked for, once.
is_to_restart() {
    read_text "$state/restart"
    [ "$text" ] && [ "$text" = "$server_identity" ] && rm -f "$state/restart"
}

# tend_log: cuts the server's log at 64 MiB, before it fills the disk. It is a process of its own, which ends with the
# work, or at most ten seconds after work that was killed.
tend_log() {
    trap 'kill "$!" 2>/dev/null; exit' TERM
    while sleep 10 & wait "$!" && read -r tender_stat </proc/self/stat; do
        # shellcheck disable=SC2086
        set -- ${tender_stat##*) }
        [ "$2" = "${worker_identity%%.*}" ] || return
        log_size=$(stat -c %s "$state/server.log" 2>/dev/null)
        [ "${log_size:-0}" -gt 67108864 ] || continue
        cp "$state/server.log" "$state/server.log.1" 2>/dev/null || rm -f "$state/server.log.1"
        # What the server found at its start stays, without half a line, which may hold half a secret.
        head -c 65536 "$state/server.log.1" 2>/dev/null | sed '$d' >"$state/server.log"
    done
}

# is_current: whether no update has begun to end the server of this run.
is_current() {
    read_text "$state/run"
    [ "$text" = "$folder" ] || { [ -d "$text" ] && [ ! -e "$text/replaces" ]; }
}

# end_previous: just before the successor starts, whose records are in the variables of this shell. The previous work
# stays, with its options, its environment and its key, until the successor serves. The rival is a llama-server that was
# started by hand on the port: the plan has shown that it will be ended.
end_previous() {
    # Nothing that serves is ended for an apply that was given up during the download or the compile.
    (look && [ -z "$previous" ]) || ! is_unattended 5 || fail interrupted 'the work ended after the apply' || return
    printf '' 2>/dev/null >"$folder/replaces" || fail workspace || return
    (look && { ! is_previous_serving || end_process "$server_identity"; }) && end_process "$DAMODEL_RIVAL" ||
        fail stuck 'the previous server does not end' || return
    [ "$DAMODEL_ROLLS_BACK" ] || rm -f "$state/previous"
}

# stand_by: in the previous server's work, after its server has ended. Succeeds when it is to serve again. If the
# sender's run was killed, this work decides after a minute.
stand_by() {
    say 'standing by for a successor'
    while read_text "$state/previous" && [ "$text" = "$folder" ]; do
        sleep 1
        ! is_unattended 1 || DAMODEL_UNATTENDED=yes sh "$state/bootstrap.sh" rollback </dev/null >/dev/null 2>&1
    done
    is_current && load "$folder/status"
}

# is_unattended MINUTES: whether no sender has followed the update for so long.
is_unattended() {
    [ "$(find "$state/attended" -mmin "+$1" 2>/dev/null)" ]
}
