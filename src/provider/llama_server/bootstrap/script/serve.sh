
# ---- The server ----

# use FILE: sets $binary, and $libraries: where the user says, beside it, where the login says, and where CUDA's are.
use() {
    binary=$1
    libraries=${DAMODEL_LIBRARIES:+$DAMODEL_LIBRARIES:}${1%/*}:${1%/*}/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:${DAMODEL_NVCC:+${DAMODEL_NVCC%/bin/nvcc}/lib64:}/usr/local/cuda/lib64
}

# server_says ARGUMENT...: what the binary answers to a question, or its failure.
server_says() {
    LD_LIBRARY_PATH=$libraries timeout 120 "$binary" "$@" 2>&1 </dev/null
}

# offers PATTERN: whether the server's help speaks of it. One without help is taken for a new one.
offers() {
    [ -z "$server_help" ] || printf '%s\n' "$server_help" | grep -Eq -- "$1"
}

# launch ARGUMENT...: becomes the server. It writes itself down before it does: whoever is killed when, no server runs
# that is not known.
launch() {
    # The number of this subshell, which $$ is not.
    read -r launched _ </proc/self/stat && read_process "$launched" || exit 1
    server_identity=$process_identity server_started=$(date +%s)
    if ! save "$folder/server" server_identity server_started server_build server_binary server_version server_model server_model_fingerprint; then
        echo 'error: the record of the server cannot be written: No space left on device?'
        exit 1
    fi
    cd "$workspace" || exit 1
    umask "$login_umask"
    export LD_LIBRARY_PATH="$libraries"
    for damodel_name in $(env | sed -n 's/^\(DAMODEL_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$damodel_name"; done
    set -- "$binary" "$@"
    eval "$environment"
    exec "$@"
}

# serve: runs $binary until it ends. Returns when no server runs any more, with the failure.
serve() {
    server_build=$DAMODEL_BUILD server_binary=$binary server_model=$DAMODEL_MODEL
    set_status start
    server_help=$(server_says --help)
    server_version=$(server_says --version | sed -n 's/^version: *//p' | head -n 1)
    say "starting $binary (${server_version:-of no known version})"
    # Its arguments become those of this function, by what it offers.
    eval "$DAMODEL_ARGUMENTS"
    # Whether it understands them, without starting anything. A binary that does not even tell its version is not asked.
    if [ "$server_version" ] && ! judged=$(server_says "$@" --version) && judged=$(printf '%s\n' "$judged" | grep -m 1 '^error'); then
        fail bad_option "$judged"
        return
    fi
    end_former || return
    restarts_count=0 restart_times=''
    while :; do
        # Both may have changed since the work began: the server was ended to be started again. One that has served
        # waits for them.
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

# serves_again: whether the server that has just ended is to be started once more; else why it has ended.
serves_again() {
    if ! is_current; then
        stand_by
        return
    fi
    load "$folder/server"
    # Who followed the start has judged it, maybe.
    load "$folder/status"
    if [ "$(word "$state/restart")" = "$server_identity" ]; then
        set_status start
        return
    fi
    again_later && return
    status_exit=$exit_code status_seconds=$(($(date +%s) - serve_began))
    fail "${status_kind:-exited}" "$status_text"
}

# again_later: waits for the next try of a server that has served: five times in ten minutes, with growing pauses. One
# that was asked to end is not started again.
again_later() {
    load "$folder/owner"
    [ "$status_proved" ] && [ "$owner_policy" = on_failure ] || return 1
    case $exit_code in
    0 | 130 | 143) return 1 ;;
    esac
    again_now=$(date +%s) again_count=0 again_pause=1
    for restart_time in $restart_times; do
        [ "$restart_time" -lt "$((again_now - 600))" ] || again_count=$((again_count + 1)) again_pause=$((again_pause * 2))
    done
    [ "$again_count" -lt 5 ] || return 1
    restarts_count=$((restarts_count + 1)) restarts_last=${exit_code:-$restarts_last} restart_times="$restart_times $again_now"
    save "$folder/restarts" restarts_count restarts_last
    set_status start
    sleep "$again_pause"
    # An update may have begun meanwhile.
    is_current || stand_by
}

# ---- The server that an update replaces ----
#
# It serves until its successor is found or built and its options are judged. Then it is ended, but its work stays, with
# the options and the environment that it holds, until the successor is seen to serve.

# is_current: whether no update has begun that is to replace this run.
is_current() {
    successor=$(word "$folder/successor")
    [ -z "$successor" ] || [ "$(word "$successor/run")" = "$folder" ]
}

# end_former: the successor is about to start. In a subshell: its own records are in the variables.
end_former() {
    (look && { ! is_former_serving || end_process "$server_identity"; }) || fail stuck || return
    [ "$DAMODEL_ON_UPDATE_FAILURE" = rollback ] || rm -f "$state/former"
}

# stand_by: in the former server's work, once its server has ended. Succeeds when it is to serve again. A way back that
# the operator's own run does not decide about, because it was killed, is taken after a minute.
stand_by() {
    say 'a successor has begun; standing by'
    while [ "$(word "$successor/former")" = "$folder" ]; do
        sleep 1
        if is_unattended "$successor"; then
            DAMODEL_WORKSPACE=${successor%/.damodel/*} DAMODEL_UNATTENDED=yes sh "$successor/bootstrap.sh" rollback </dev/null >/dev/null 2>&1
        fi
    done
    is_current && load "$folder/status"
}

# is_unattended FOLDER: whether nobody has followed the update for a minute.
is_unattended() {
    [ "$(find "$1/attended" -mmin +1 2>/dev/null)" ]
}
