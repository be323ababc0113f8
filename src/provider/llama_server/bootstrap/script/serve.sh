# ---- The server, and the one that an update replaces ----

# use FILE: sets $binary, and $libraries: the user's folders, those beside the file, the login's, and CUDA's.
use() {
    binary=$1 libraries=${1%/*}:${1%/*}/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:$DAMODEL_CUDA_LIBRARIES
    libraries=${DAMODEL_LIBRARIES:+$DAMODEL_LIBRARIES:}$libraries
}

# server_says ARGUMENT...: the output of the binary.
server_says() {
    LD_LIBRARY_PATH=$libraries timeout 120 "$binary" "$@" 2>&1 </dev/null
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
    save "$folder/server" server_identity server_started server_build server_binary server_version server_model \
        server_model_fingerprint || { echo 'error: the record of the server cannot be written' && exit 1; }
    cd "$workspace" || exit 1
    umask "$login_umask"
    export LD_LIBRARY_PATH="$libraries"
    for damodel_name in $(env | sed -n 's/^\(DAMODEL_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$damodel_name"; done
    set -- "$binary" "$@"
    eval "$environment"
    exec "$@"
}

# serve: runs $binary until no server runs any more, then fails.
serve() {
    server_build=$DAMODEL_BUILD server_binary=$binary server_model=$DAMODEL_MODEL
    set_status start
    server_help=$(server_says --help)
    server_version=$(server_says --version | sed -n 's/^version: *//p' | head -n 1)
    say "starting $binary (${server_version:-unknown version})"
    # Sets the arguments of this function.
    eval "$DAMODEL_ARGUMENTS"
    # A binary that prints its version judges options without a start.
    if [ "$server_version" ] && ! judged=$(server_says "$@" --version) &&
        judged=$(printf '%s\n' "$judged" | grep -m 1 '^error'); then
        fail bad_option "$judged"
        return
    fi
    end_former || return
    restarts_count=0 restart_times=''
    while :; do
        # Both may have changed since the last start. A server that has served before waits for them.
        exit_code=''
        until { [ -r "$server_model" ] || fail missing_model; } && { within 50 is_free || fail port_in_use; }; do
            again_later || return
        done
        server_model_fingerprint=$(model_fingerprint "$server_model")
        [ ! -f "$state/server.log" ] || mv -f "$state/server.log" "$state/server.log.1"
        launch "$@" </dev/null >>"$state/server.log" 2>&1 7>&- &
        serve_child=$!
        serve_began=$(date +%s)
        set_status load
        wait "$serve_child"
        exit_code=$?
        say "the server, process $serve_child, ended with $exit_code"
        serves_again || return
    done
}

# serves_again: whether the server that has just ended is started once more; fails with the reason of its end.
serves_again() {
    is_current || { stand_by; return; }
    load "$folder/server"
    # The sender may have judged the server.
    load "$folder/status"
    [ "$(word "$state/restart")" != "$server_identity" ] || { set_status start; return; }
    again_later && return
    status_exit=$exit_code status_seconds=$(($(date +%s) - serve_began))
    fail "${status_kind:-exited}" "$status_text"
}

# again_later: waits for the next start of a server that has served: at most five in ten minutes, with growing pauses.
# One that was asked to end stays ended.
again_later() {
    load "$folder/owner"
    [ "$status_proved" ] && [ "$owner_policy" = on_failure ] || return 1
    case $exit_code in 0 | 130 | 143) return 1 ;; esac
    again_now=$(date +%s) again_count=0 again_pause=1
    for restart_time in $restart_times; do
        [ "$restart_time" -ge "$((again_now - 600))" ] || continue
        again_count=$((again_count + 1)) again_pause=$((again_pause * 2))
    done
    [ "$again_count" -lt 5 ] || return 1
    restarts_count=$((restarts_count + 1)) restarts_last=${exit_code:-$restarts_last}
    restart_times="$restart_times $again_now"
    save "$folder/restarts" restarts_count restarts_last
    set_status start
    sleep "$again_pause"
    # An update may have begun meanwhile.
    is_current || stand_by
}

# is_current: whether no update has begun that replaces this run.
is_current() {
    [ "$(word "$state/run")" = "$folder" ]
}

# end_former: just before the successor starts, whose records are in the variables of this shell. The former work stays,
# with its options and its environment, until the successor serves.
end_former() {
    (look && { ! is_former_serving || end_process "$server_identity"; }) || fail stuck || return
    [ "$DAMODEL_ON_UPDATE_FAILURE" = rollback ] || rm -f "$state/former"
}

# stand_by: in the former server's work, after its server has ended. Succeeds when it is to serve again. If the sender's
# run was killed, this work decides after a minute.
stand_by() {
    say 'standing by for a successor'
    while [ "$(word "$state/former")" = "$folder" ]; do
        sleep 1
        ! is_unattended || DAMODEL_UNATTENDED=yes sh "$state/bootstrap.sh" rollback </dev/null >/dev/null 2>&1
    done
    is_current && load "$folder/status"
}

# is_unattended: whether no sender has followed the update for a minute.
is_unattended() {
    [ "$(find "$state/attended" -mmin +1 2>/dev/null)" ]
}
