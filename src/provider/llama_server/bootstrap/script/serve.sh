# ---- The server ----

# use FILE: sets $binary, and $libraries: where the user says, beside it, where the login says, and where CUDA's are.
use() {
    binary=$1
    libraries=${variable_LD_LIBRARY_PATH:+$variable_LD_LIBRARY_PATH:}${1%/*}:${1%/*}/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:${DAMODEL_NVCC:+${DAMODEL_NVCC%/bin/nvcc}/lib64:}/usr/local/cuda/lib64
}

# server_says ARGUMENT...: what the binary answers to a question, or its failure.
server_says() {
    (
        export LD_LIBRARY_PATH="$libraries"
        limited 120 "$binary" "$@" 2>&1
    )
}

# offers PATTERN: whether the server's help speaks of it. One without help is taken for a new one.
offers() {
    [ -z "$server_help" ] || printf '%s\n' "$server_help" | grep -Eq -- "$1"
}

# choose_options PATTERN THEN ELSE NOTE...: sets $options to quoted words, by what the server offers.
choose_options() {
    options=''
    while [ $# -gt 0 ]; do
        if offers "$1"; then
            options="$options $2"
        else
            options="$options $3"
            [ -z "$4" ] || note "the server $binary ($server_version) $4"
        fi
        shift 4
    done
}

# launch ARGUMENT...: becomes the server. It writes itself down before it does: whoever is killed when, no server runs
# that is not known.
launch() {
    # The number of this subshell, which $$ is not.
    server_pid=$(exec sh -c 'echo "$PPID"')
    read_process "$server_pid"
    server_start=$process_start server_boot=$boot server_started=$(date +%s) server_run=$DAMODEL_RUN
    if ! save "$state/server" server_pid server_start server_boot server_run server_started server_build server_binary server_version \
        server_model server_model_fingerprint; then
        echo 'error: the record of the server cannot be written: No space left on device?'
        exit 1
    fi
    cd "$workspace" || exit 1
    umask "$login_umask"
    [ -z "$key_in_environment" ] || variable_LLAMA_API_KEY=$(cat "$state/api_key")
    set -- "$binary" "$@"
    damodel_names=$DAMODEL_VARIABLES${key_in_environment:+ LLAMA_API_KEY}
    damodel_libraries=$libraries
    for damodel_name in $(env | sed -n 's/^\(DAMODEL_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$damodel_name"; done
    for damodel_name in $damodel_names; do
        # A few names are the shell's own, and cannot be set.
        if (eval "$damodel_name=") 2>/dev/null; then
            eval "$damodel_name=\$variable_$damodel_name && export $damodel_name"
        fi
    done
    export LD_LIBRARY_PATH="$damodel_libraries"
    exec "$@"
}

# serve BUILD: runs $binary until it ends. Returns when no server runs any more, with the failure.
serve() {
    server_build=$1 server_binary=$binary server_model=$DAMODEL_MODEL
    set_status start
    server_help=$(server_says --help)
    server_version=$(server_says --version | sed -n 's/^version: *//p' | head -n 1)
    say "starting $binary (${server_version:-of no known version})"
    eval "choose_options $DAMODEL_OPTIONS"
    key_in_environment=''
    if [ -s "$state/api_key" ]; then
        if [ "$DAMODEL_KEY_FITS_FILE" ] && offers '--api-key-file'; then
            options="$options --api-key-file \"\$state/api_key\""
        elif [ "$server_help" ] && offers LLAMA_API_KEY; then
            key_in_environment=yes
        else
            fail unsupported "the server $binary ($server_version) takes this API key neither from a file nor from its environment"
            return
        fi
    fi
    eval "set -- $options $DAMODEL_EXTRA_ARGS"
    # Whether it understands them, without starting anything. A binary that does not even tell its version is not asked.
    if [ "$server_version" ] && ! judge_text=$(server_says "$@" --version) && judge_text=$(printf '%s\n' "$judge_text" | grep -m 1 '^error'); then
        fail bad_option "the server $binary ($server_version) refuses its options: $(printf '%s\n' "$judge_text" | cut -c 1-400)"
        return
    fi
    end_former || return
    status_proved='' restarts=0 restart_times='' restart_last=''
    while :; do
        # Both may have changed since the work began: the server was ended to be started again. One that has served
        # waits for them.
        exit_code=''
        until { [ -r "$server_model" ] || fail missing_model "the model $server_model cannot be read"; } && check_port; do
            again_later || return
        done
        server_model_fingerprint=$(model_fingerprint "$server_model")
        [ ! -f "$state/server.log" ] || mv -f "$state/server.log" "$state/server.log.1"
        launch "$@" </dev/null >>"$state/server.log" 2>&1 7>&- 8>&- 9>&- &
        serve_child=$!
        serve_began=$(date +%s)
        set_status load
        # The work is done, and a successor may begin.
        exec 8>&-
        wait "$serve_child"
        exit_code=$?
        say "the server, process $serve_child, ended with $exit_code"
        serves_again || return
    done
}

# serves_again: whether the server that has just ended is to be started once more.
serves_again() {
    if ! is_current "$DAMODEL_RUN"; then
        stand_by
        return
    fi
    load "$state/server"
    load "$state/status"
    if load "$state/restart" && [ "$restart_identity" = "$server_pid.$server_start.$server_boot" ]; then
        set_status start
        rm -f "$state/restart"
        return 0
    fi
    [ "$status_phase" != ready ] || status_proved=yes
    again_later && return
    ! is_current "$DAMODEL_RUN" || judge_end
    return 1
}

# again_later: waits for the next try of a server that has served: five times in ten minutes, with growing pauses. One
# that was asked to end is not started again.
again_later() {
    [ "$status_proved" ] && [ "$(word "$state/policy")" = on_failure ] || return 1
    case $exit_code in
    0 | 130 | 143) return 1 ;;
    esac
    again_now=$(date +%s) again_count=0 again_pause=1
    for restart_time in $restart_times; do
        [ "$restart_time" -lt "$((again_now - 600))" ] || again_count=$((again_count + 1)) again_pause=$((again_pause * 2))
    done
    [ "$again_count" -lt 5 ] || return 1
    restarts=$((restarts + 1)) restart_last=${exit_code:-$restart_last} restart_times="$restart_times $again_now"
    save "$state/restarts" restarts restart_last
    set_status start
    sleep "$again_pause"
    # An update may have begun meanwhile.
    is_current "$DAMODEL_RUN" || stand_by
}

# judge_end: why the server ended, and how. The status was just read.
judge_end() {
    status_exit=$exit_code status_seconds=$(($(date +%s) - serve_began))
    if [ "$status_proved" ]; then
        fail died
        # At once, so that nobody sees a ready server that does not run.
        set_status failed died
    elif [ "$status_phase" = failed ]; then
        # The caller has judged already.
        fail "$status_kind" "$status_text"
    elif grep -qs "couldn't bind" "$state/server.log" && ! check_port; then
        # The port was free a moment ago: another process was faster.
        :
    elif check_room; then
        fail exited
    fi
}

