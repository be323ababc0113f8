
# ---- The detached work ----

# start_worker: sends the work off, and waits until it has written itself down. It outlives this shell and the login.
start_worker() {
    write "$state/bootstrap.sh" "$DAMODEL_PROGRAM" && : >"$state/attended" && write "$state/run" "$folder" || return 1
    [ ! -f "$state/work.log" ] || mv -f "$state/work.log" "$state/work.log.1"
    (
        # The subshell's copies alone are exported.
        # shellcheck disable=SC2086,SC2163
        export $DAMODEL_HANDED_OVER DAMODEL_RUN="${folder##*/}" DAMODEL_UMASK="$login_umask"
        trap '' HUP
        # A scope of its own where systemd runs: the end of the login ends what is in the login's. It inherits the
        # environment, which a service's properties would show.
        # shellcheck disable=SC2086
        exec setsid $DAMODEL_SCOPE sh "$state/bootstrap.sh" work
    ) </dev/null >>"$state/work.log" 2>&1 9>&- &
    sent=$!
    # A machine that compiles for another server is slow to start a shell.
    within 300 has_begun && load "$folder/worker"
}

# has_begun: whether the work that was sent off has written itself down, or has ended without.
has_begun() {
    load "$folder/worker" || ! read_process "$sent"
}

# work: the whole of it, in a session of its own. Nobody need be there.
work() {
    folder=$state/runs/$DAMODEL_RUN
    # The server's own variables are for the server: no compiler inherits them.
    environment=$DAMODEL_ENVIRONMENT
    unset DAMODEL_ENVIRONMENT
    read_process "$$"
    worker_identity=$process_identity
    load "$folder/status" && save "$folder/worker" worker_identity || exit 1
    case $DAMODEL_BUILD in
    prebuilt) provide && use "$DAMODEL_BINARY" && serve ;;
    source) provide && build_server && serve ;;
    esac
    say "failed: $failed_kind: $failed_text"
    set_status failed "$failed_kind" "$failed_text"
    exit 0
}

# ---- The verbs ----

# own RUN TOKEN POLICY: from now on the resource of this token alone ends the server.
own() {
    take_lock "$1"
    owner_token=$2 owner_policy=$3
    save "$folder/owner" owner_token owner_policy || refuse workspace
}

# end_all: the work first, or it would start the server again.
end_all() {
    end_run "$folder"
    end_run "$former"
    # It may have started a server since we looked.
    look
    end_server
    rm -f "$state/former"
}

# ensure: begins a run. It is complete before anything is ended for it, and it is the run of now before it works.
ensure() {
    take_lock "$DAMODEL_SEEN"
    # A llama-server that was started by hand: the operator has seen in a plan that it will be ended.
    end_process "$DAMODEL_END_RIVAL" || refuse stuck "the server, process ${DAMODEL_END_RIVAL%%.*}, does not end"
    begun=$state/runs/$boot-$$-$(date +%s) job_record=$DAMODEL_RECORD
    mkdir -p "$begun" && (
        folder=$begun owner_token=$DAMODEL_OWNER owner_policy=$DAMODEL_RESTART_POLICY
        status_exit='' status_seconds='' status_compile_log='' status_proved=''
        save "$folder/job" job_record && save "$folder/owner" owner_token owner_policy && set_status find && { [ -z "$DAMODEL_API_KEY" ] || write "$folder/api_key" "$DAMODEL_API_KEY"; }
    ) 2>/dev/null || unbegun
    look
    if [ "$former" ]; then
        end_run "$folder"
        look
        is_former_serving || end_server
    elif [ "$server_alive" ] && [ "$server_folder" = "$folder" ] && [ "$worker_alive" ] && [ "$status_proved" ]; then
        former=$folder
    else
        end_all
    fi
    [ -z "$former" ] || { write "$state/former" "$former" && write "$former/successor" "$state"; } || unbegun
    before=$folder folder=$begun
    start_worker || { end_run "$begun" && write "$state/run" "$before" && unbegun; }
    for run in "$state"/runs/*; do
        [ "$run" = "$begun" ] || [ "$run" = "$former" ] || rm -rf "$run"
    done
}

# unbegun: the verb ends here, and the run is none.
unbegun() {
    rm -rf "$begun"
    refuse workspace "$(tail -n 3 "$state/work.log" 2>/dev/null)"
}

# judge PROCESS PHASE [KIND TEXT]: the caller saw that the server infers, or that it does not.
judge() {
    take_lock
    [ "$1" = "$server_identity" ] && [ "$server_alive" ] && [ "$server_folder" = "$folder" ] || return
    shift
    [ "$1" != ready ] || status_proved=yes
    set_status "$@" || refuse workspace
    [ "$1" != ready ] || rm -f "$state/former"
}

# restart PROCESS: ends it, to be started again by its work; one that is gone already is on its way.
restart() {
    take_lock
    [ "$server_identity" = "$1" ] || [ -z "$server_alive" ] || return
    [ "$server_identity" = "$1" ] && [ "$worker_alive" ] && [ "$server_folder" = "$folder" ] || refuse not_running
    write "$state/restart" "$server_identity" || refuse workspace
    exec 9>&-
    end_server
}

# rollback: the former server serves again. Each step may be repeated; the run of now is the last.
rollback() {
    take_lock
    [ "$former" ] || return
    if [ "${DAMODEL_UNATTENDED-}" ]; then
        is_unattended "$state" || return
        # The successor still has its chance.
        [ "$status_phase" = failed ] || [ -z "$worker_alive$server_alive" ] || return
    fi
    end_run "$folder"
    look
    rolled_phase=ready
    is_former_serving || { end_server && rolled_phase=start; }
    folder=$former
    load "$folder/status"
    status_proved=yes
    set_status "$rolled_phase" || refuse workspace
    case $former in
    "$state"/*) write "$state/run" "$former" || refuse workspace ;;
    # It serves from another workspace, whose run it never ceased to be.
    *) rm -f "$state/run" ;;
    esac
    rm -f "$former/successor" "$state/former"
}

# stop TOKEN: also where nothing can be written any more.
stop() {
    [ -d "$state" ] || return 0
    take_lock
    # One without an owner may be ended by whoever has it in a state.
    [ -z "$owner_token" ] || [ "$owner_token" = "$1" ] || refuse foreign
    end_all
    # No status says the same.
    set_status absent || rm -f "$folder/status"
}

# destroy TOKEN: builds, sources and packages stay.
destroy() {
    stop "$1" && rm -rf "$state"
}

# Who follows an update decides about the way back.
[ "$1" = work ] || [ "${DAMODEL_UNATTENDED-}" ] || [ ! -f "$state/former" ] || { : >"$state/attended"; } 2>/dev/null
"$@"
report
exit 0
