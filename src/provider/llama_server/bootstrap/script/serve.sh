# ---- The server ----

# find_libraries: sets $libraries: what the user asks for, what lies beside the binary, what the login has, CUDA's own.
find_libraries() {
    library_home=$(dirname "$binary")
    libraries=${variable_LD_LIBRARY_PATH-}
    for candidate in "$library_home" "$library_home/../lib" "${LD_LIBRARY_PATH-}" "${DAMODEL_NVCC:+${DAMODEL_NVCC%/bin/nvcc}/lib64}" /usr/local/cuda/lib64; do
        # The login's is a list of folders already.
        if [ "$candidate" ] && { [ -d "$candidate" ] || [ "$candidate" = "${LD_LIBRARY_PATH-}" ]; }; then
            libraries=${libraries:+$libraries:}$candidate
        fi
    done
}

# server_says ARGUMENT...: what the binary answers to a question, or its failure.
server_says() {
    find_libraries
    (
        clear_environment
        export LD_LIBRARY_PATH="$libraries"
        limited 120 "$binary" "$@" 2>&1
    )
}

offers() {
    printf '%s\n' "$server_help" | grep -Eq -- "$1"
}

# clear_environment: what the login has and would change the server unasked. Only in a subshell.
clear_environment() {
    for damodel_name in $(env | sed -n 's/^\(LLAMA_ARG_[A-Za-z0-9_]*\)=.*/\1/p; s/^\(DAMODEL_[A-Za-z0-9_]*\)=.*/\1/p') LLAMA_API_KEY AIP_MODE; do
        unset "$damodel_name"
    done
}

# launch ARGUMENT...: becomes the server. It writes itself down before it does: whoever is killed when, no server runs that is not known.
launch() {
    # The number of this subshell, which $$ does not tell.
    server_pid=$(exec sh -c 'echo "$PPID"')
    read_process "$server_pid"
    server_start=$process_start server_boot=$boot server_started=$(now) server_run=$DAMODEL_RUN
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
    clear_environment
    for damodel_name in $damodel_names; do
        # A few names are the shell's own, and cannot be set.
        if (eval "$damodel_name=") 2>/dev/null; then
            eval "$damodel_name=\$variable_$damodel_name && export $damodel_name"
        fi
    done
    export LD_LIBRARY_PATH="$damodel_libraries"
    exec "$@"
}

# judge_options ARGUMENT...: whether the binary understands them, without starting anything. A binary that does not even tell its version is not asked.
judge_options() {
    [ "$server_version" ] || return 0
    ! judge_text=$(server_says "$@" --version) || return 0
    printf '%s\n' "$judge_text" | grep -q '^error' || return 0
    failed_kind=bad_option
    failed_text="the server $binary ($server_version) refuses its options: $(printf '%s\n' "$judge_text" | grep '^error' | head -n 1 | cut -c 1-400)"
    return 1
}

# serve BUILD: runs $binary until it ends. Returns when no server runs any more, with $failed_kind and $failed_text.
serve() {
    server_build=$1 server_binary=$binary server_model=$model
    set_status start
    # Here too: whoever asks the binary a question does it in a subshell, which keeps what it finds.
    find_libraries
    server_help=$(server_says --help)
    server_version=$(server_says --version | sed -n 's/^version: *//p' | head -n 1)
    say "starting $binary (${server_version:-of no known version})"
    # A name might be resolved to the other loopback address, which is not the one that is asked.
    [ "$DAMODEL_HOST" != localhost ] || DAMODEL_HOST=127.0.0.1
    set -- -m "$model" --host "$DAMODEL_HOST" --port "$port" -c "$DAMODEL_CONTEXT_SIZE" -np "$DAMODEL_PARALLEL" -ngl "$DAMODEL_GPU_LAYERS"
    # The flag takes a value since August 2025, and none before.
    if [ -z "$server_help" ] || offers '^ *-fa.*\[on\|off\|auto\]'; then
        set -- "$@" -fa "$DAMODEL_FLASH_ATTENTION"
    elif [ "$DAMODEL_FLASH_ATTENTION" != off ]; then
        set -- "$@" -fa
    fi
    set -- "$@" -ctk "$DAMODEL_CACHE_TYPE_K" -ctv "$DAMODEL_CACHE_TYPE_V"
    for serve_flag in "${DAMODEL_JINJA:+--jinja}" "${DAMODEL_METRICS:+--metrics}"; do
        [ "$serve_flag" ] || continue
        if [ -z "$server_help" ] || offers "(^|[ ,])$serve_flag([ ,]|\$)"; then
            set -- "$@" "$serve_flag"
        else
            note "the server $binary ($server_version) is too old for $serve_flag, and runs without"
        fi
    done
    # On by default in newer servers.
    if [ -z "$DAMODEL_JINJA" ] && offers '--no-jinja'; then
        set -- "$@" --no-jinja
    fi
    key_in_environment=''
    if [ -s "$state/api_key" ]; then
        # Newer servers take a line with # for a comment, and would serve everyone.
        if { [ -z "$server_help" ] || offers '--api-key-file'; } && ! grep -q '^#' "$state/api_key"; then
            set -- "$@" --api-key-file "$state/api_key"
        elif offers LLAMA_API_KEY; then
            key_in_environment=yes
        else
            failed_kind=unsupported
            failed_text="the server $binary ($server_version) takes this API key neither from a file nor from its environment: take a newer one"
            return 1
        fi
    fi
    eval "set -- \"\$@\" $DAMODEL_EXTRA_ARGS"
    judge_options "$@" || return 1
    end_former || return 1
    status_proved='' restarts=0 restart_times='' restart_last=''
    while :; do
        # Both may have changed since the work began: the server was ended to be started again. One that has served waits for them.
        exit_code=''
        until check_model && check_port; do
            again_later || return 1
        done
        server_model_fingerprint=$(model_fingerprint "$model")
        [ ! -f "$state/server.log" ] || mv -f "$state/server.log" "$state/server.log.1"
        launch "$@" </dev/null >>"$state/server.log" 2>&1 7>&- 8>&- 9>&- &
        serve_child=$!
        serve_began=$(now)
        set_status load
        # The work is done, and a successor may begin.
        release 8
        wait "$serve_child"
        exit_code=$?
        say "the server, process $serve_child, ended with $exit_code"
        serves_again || return 1
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
    again_later && return 0
    ! is_current "$DAMODEL_RUN" || judge_end
    return 1
}

# again_later: waits for the next try, if there is to be one.
again_later() {
    may_restart || return 1
    restarts=$((restarts + 1)) restart_last=${exit_code:-$restart_last} restart_times="$restart_times $(now)"
    save "$state/restarts" restarts restart_last
    set_status start
    sleep "$restart_pause"
    # An update may have begun meanwhile.
    is_current "$DAMODEL_RUN" || stand_by
}

# may_restart: whether a server that has served is started again after it died: five times in ten minutes, with growing pauses. One that was asked to end
# is not. Sets $restart_pause, in seconds.
may_restart() {
    [ "$status_proved" ] && [ "$(word "$state/policy")" = on_failure ] || return 1
    case $exit_code in
    0 | 130 | 143) return 1 ;;
    esac
    restart_since=$(($(now) - 600)) restart_count=0 restart_pause=1
    for restart_time in $restart_times; do
        [ "$restart_time" -lt "$restart_since" ] || restart_count=$((restart_count + 1)) restart_pause=$((restart_pause * 2))
    done
    [ "$restart_count" -lt 5 ]
}

# judge_end: why the server ended, in $failed_kind and $failed_text, and how, in $status_exit and $status_seconds. The status was just read.
judge_end() {
    if [ "$status_proved" ]; then
        failed_kind=died
    elif [ "$status_phase" = failed ]; then
        # The caller has judged already.
        failed_kind=$status_kind failed_text=$status_text
        return
    else
        failed_kind=exited
        # The port was free a moment ago: someone else was faster.
        if grep -q "couldn't bind" "$state/server.log" 2>/dev/null && ! check_port; then
            return
        fi
        check_room || return
    fi
    failed_text=$(decisive "$state/server.log") status_exit=$exit_code status_seconds=$(($(now) - serve_began))
    # At once, so that nobody sees a ready server that does not run.
    [ "$failed_kind" != died ] || set_status failed "$failed_kind" "$failed_text"
}
