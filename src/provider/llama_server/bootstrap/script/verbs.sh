# ---- The verbs ----

# is_meant: whether the server is the process that the caller speaks of, and lives.
is_meant() {
    look
    [ "$DAMODEL_PROCESS" = "$server_identity" ] && [ "$server_alive" ]
}

# is_under_way: whether the same job is being worked on, or served with the same model.
is_under_way() {
    look
    [ "$worker_job" = "$DAMODEL_FINGERPRINT" ] || return 1
    case $status_phase:$worker_alive:$server_alive in
    find:yes:* | compile:yes:* | start:yes:*) ;;
    load:*:yes | ready:*:yes | start::yes) [ "$server_run" = "$worker_run" ] && [ "$server_model_fingerprint" = "$(model_fingerprint "$DAMODEL_MODEL")" ] ;;
    # Its supervisor is about to judge the end of it.
    load:yes: | ready:yes:) ;;
    *) return 1 ;;
    esac
}

# check: whether the job could be begun, and what the instance has. Changes nothing.
check() {
    take_lock
    is_under_way || check_room || refuse "$failed_kind" "$failed_text"
}

ensure() {
    take_lock
    if is_under_way; then
        own
        return
    fi
    check_room || refuse "$failed_kind" "$failed_text"
    # A llama-server that was started by hand: the operator has seen in a plan that it will be ended.
    if [ "$DAMODEL_END_RIVAL" ] && rival "$server_pid" && [ "$rival_pid" = "$DAMODEL_END_RIVAL" ] && read_process "$rival_pid"; then
        end_process "$rival_pid" "$process_start" "$boot" || refuse stuck "the server, process $rival_pid, does not end"
    fi
    check_port || refuse "$failed_kind" "$failed_text"
    keep_former || end_all
    own
    write "$state/api_key" "$DAMODEL_API_KEY"
    if ! start_worker; then
        # The server that serves keeps what it has.
        restore_words
        check_room && fail workspace "the detached work did not start within 30 s: $(tail -n 3 "$state/work.log" 2>/dev/null)"
        refuse "$failed_kind" "$failed_text"
    fi
}

# own: from now on this resource alone ends the server.
own() {
    write "$state/owner" "$DAMODEL_OWNER" && write "$state/policy" "$DAMODEL_RESTART_POLICY" || unwritten
}

# end_all: the work first, or it would see the server's end as a failure and go on to compile.
end_all() {
    end_run "$worker_run"
    end_run "$(run_of "$state/former/worker")"
    drop_former
    # It may have started a server since we looked.
    look
    end_server
}

# judge PHASE [KIND TEXT]: the caller saw that the server infers, or that it does not.
judge() {
    take_lock
    is_meant || return
    [ "$1" != ready ] || status_proved=yes
    set_status "$@" || check_room || refuse "$failed_kind" "$failed_text"
    [ "$1" != ready ] || drop_former
}

# is_restarting: whether the process that the caller speaks of was ended for this, and the next one is on its way.
is_restarting() {
    [ "$DAMODEL_PROCESS" ] && [ "$worker_alive" ] && [ -z "$server_alive" ] || return 1
    load "$state/restart" || restart_identity=''
    [ "$restart_identity" = "$DAMODEL_PROCESS" ] && return
    restart_identity=$DAMODEL_PROCESS
    [ "$status_phase" = start ]
}

restart() {
    take_lock
    look
    # The first answer was lost, and this is the second request.
    [ -z "$server_alive" ] || [ "$server_identity" = "$DAMODEL_PROCESS" ] || return
    if ! is_restarting; then
        [ "$server_alive" ] && [ "$worker_alive" ] || refuse not_running 'no server runs here that could be started again as it was'
        # A server that could not come back is not ended.
        [ -r "$server_model" ] || refuse missing_model "the model $server_model cannot be read"
        check_room || refuse "$failed_kind" "$failed_text"
        restart_identity=$server_identity
        save "$state/restart" restart_identity || unwritten
    fi
    exec 9>&-
    end_server
    restart_tenths=100
    while [ "$restart_tenths" -gt 0 ]; do
        look
        [ "$server_identity" = "$restart_identity" ] && [ "$worker_alive" ] || break
        restart_tenths=$((restart_tenths - 1))
        pause
    done
}

# stop: also where nothing can be written any more.
stop() {
    [ -d "$state" ] || return 0
    hold 9 "$state.lock" 600 || refuse busy "another run has been working on $state for a minute"
    look
    # One without an owner may be ended by whoever has it in a state.
    [ ! -s "$state/owner" ] || [ "$(word "$state/owner")" = "$DAMODEL_OWNER" ] || refuse foreign 'another resource has taken the server over'
    end_all
    rm -f "$state/restart"
    # No status says the same.
    set_status absent || rm -f "$state/status"
}

# Who follows an update decides about the way back.
if [ "${1-}" != work ] && [ -z "${DAMODEL_UNATTENDED-}" ] && [ -d "$state/former" ]; then
    : >"$state/attended"
fi 2>/dev/null
case ${1-} in
work) work ;;
check) check ;;
ensure) ensure ;;
failed) judge failed no_inference "$DAMODEL_REASON" ;;
ready) judge ready ;;
restart) restart ;;
rollback) roll_back ;;
stop) stop ;;
own) take_lock && own ;;
destroy) stop && rm -rf "$state" ;;
esac
report
exit 0
