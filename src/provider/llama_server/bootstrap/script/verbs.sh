# ---- The verbs ----

# take_lock: or the verb ends here.
take_lock() {
    if ! { mkdir -p "$state" && (: >>"$state.lock"); } 2>/dev/null; then
        check_room && failed_kind=workspace failed_text="the state directory $state cannot be written"
        refuse "$failed_kind" "$failed_text"
    fi
    lock || refuse busy "another run has been working on $state for a minute"
}

# is_meant: whether the server is the process that the caller speaks of, and lives.
is_meant() {
    settle
    [ "$DAMODEL_PROCESS" = "$server_identity" ] && [ "$server_alive" ]
}

# check: what can be judged of a job without a look at what runs.
check() {
    for tool in awk base64 flock grep head sed setsid sha256sum stat tail; do
        has "$tool" || refuse missing_tool "the program $tool is not installed"
    done
    check_model || refuse "$failed_kind" "$failed_text"
    check_package || refuse "$failed_kind" "$failed_text"
    take_lock
}

ensure() {
    check
    settle
    if is_under_way; then
        own
        report
        return
    fi
    check_room || refuse "$failed_kind" "$failed_text"
    end_rival
    check_port || refuse "$failed_kind" "$failed_text"
    keep_former || end_all
    own
    write "$state/api_key" "$DAMODEL_API_KEY"
    begin
}

# own: from now on this resource alone ends the server.
own() {
    if ! { write "$state/owner" "$DAMODEL_OWNER" && write "$state/policy" "$DAMODEL_RESTART_POLICY"; }; then
        check_room || refuse "$failed_kind" "$failed_text"
    fi
}

# is_owned: whether the caller may end the server. One that nobody owns may be ended by whoever has it in a state.
is_owned() {
    [ ! -s "$state/owner" ] || [ "$(word "$state/owner")" = "$DAMODEL_OWNER" ]
}

# is_under_way: whether the same job is being worked on, or served with the same model.
is_under_way() {
    [ "$worker_job" = "$DAMODEL_FINGERPRINT" ] || return 1
    case $status_phase in
    find | compile | start) ;;
    load | ready) [ "$server_model_fingerprint" = "$(model_fingerprint "$model")" ] ;;
    *) return 1 ;;
    esac
}

begin() {
    if ! start_worker; then
        # The server that serves keeps what it has.
        restore_words
        check_room || refuse "$failed_kind" "$failed_text"
        begin_said=$(tail -n 3 "$state/work.log" 2>/dev/null)
        refuse workspace "the detached work did not start within 30 s: ${begin_said:-it said nothing}"
    fi
    if ends_at_logout; then
        note "systemd ends the server with the last login of $(id -un) (KillUserProcesses=yes). Let the user linger: loginctl enable-linger $(id -un)"
    fi
    report
}

# end_all: the work first, or it would see the server's end as a failure and go on to compile.
end_all() {
    end_run "$worker_run" && end_run "$(run_of "$state/former/worker")" || refuse stuck "the work, process $worker_pid, does not end"
    drop_former
    # It may have started a server since we looked.
    settle
    end_process "$server_pid" "$server_start" "$server_boot" || refuse stuck "the server, process $server_pid, does not end: it is in state $process_state"
}

# judge PHASE [KIND TEXT]: the caller saw that the server infers, or that it does not.
judge() {
    take_lock
    if is_meant; then
        [ "$1" != ready ] || status_proved=yes
        set_status "$@" || check_room || refuse "$failed_kind" "$failed_text"
        [ "$1" != ready ] || drop_former
    fi
    report
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
    settle
    # The first answer was lost, and this is the second request.
    if [ "$server_alive" ] && [ "$server_identity" != "$DAMODEL_PROCESS" ]; then
        report
        return
    fi
    if ! is_restarting; then
        if [ -z "$server_alive" ] || [ -z "$worker_alive" ]; then
            refuse not_running "no server runs here that could be started again as it was (${status_kind:-$status_phase}${status_exit:+, exit code $status_exit})"
        fi
        # A server that could not come back is not ended.
        check_room && check_model "$server_model" || refuse "$failed_kind" "$failed_text"
        restart_identity=$server_identity
        if ! save "$state/restart" restart_identity; then
            check_room && failed_kind=workspace failed_text="the record $state/restart cannot be written"
            refuse "$failed_kind" "$failed_text"
        fi
    fi
    unlock
    end_process "$server_pid" "$server_start" "$server_boot" || refuse stuck "the server, process $server_pid, does not end"
    restart_tenths=100
    while [ "$restart_tenths" -gt 0 ]; do
        settle
        [ "$server_identity" = "$restart_identity" ] && [ "$worker_alive" ] || break
        restart_tenths=$((restart_tenths - 1))
        pause
    done
    report
}

# stop: also where nothing can be written any more.
stop() {
    [ -d "$state" ] || return 0
    lock || refuse busy "another run has been working on $state for a minute"
    settle
    is_owned || refuse foreign "another resource has taken the server over"
    end_all
    rm -f "$state/restart"
    # No status says the same.
    set_status absent || rm -f "$state/status"
}

destroy() {
    stop
    rm -rf "$state"
}

# Who follows an update decides about the way back.
if [ "${1-}" != work ] && [ -z "${DAMODEL_UNATTENDED-}" ] && [ -d "$state/former" ]; then
    : >"$state/attended"
fi 2>/dev/null
case ${1-} in
work) work ;;
check)
    check
    settle
    is_under_way || check_room || refuse "$failed_kind" "$failed_text"
    has_facts=yes
    if [ "$worker_because" ] && [ "$(hardware "$worker_package")" = "$worker_hardware" ]; then
        same_hardware=yes
    fi
    report
    ;;
ensure) ensure ;;
failed) judge failed no_inference "$DAMODEL_REASON" ;;
ready) judge ready ;;
restart) restart ;;
rollback) roll_back ;;
stop)
    stop
    report
    ;;
destroy)
    destroy
    report
    ;;
*) report ;;
esac
exit 0
