# ---- The verbs ----

# take_lock: or the verb ends here.
take_lock() {
    if ! { mkdir -p "$state" && (: >>"$state.lock"); } 2>/dev/null; then
        check_room && failed_kind=workspace failed_text="the state directory $state cannot be written"
        refuse "$failed_kind" "$failed_text"
    fi
    lock || refuse busy "another run has been working on $state for a minute"
}

# is_current: whether the server is the process that the caller speaks of, and lives.
is_current() {
    settle
    [ "$DAMODEL_PROCESS" = "$server_identity" ] && [ "$server_alive" ]
}

# check: what can be judged of a job without a look at what runs.
check() {
    for tool in awk base64 grep head sed setsid sha256sum stat tail; do
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
        report
        return
    fi
    check_room && check_port || refuse "$failed_kind" "$failed_text"
    end_all
    if load "$state/fallback" && [ "$fallback_job" != "$DAMODEL_FINGERPRINT" ]; then
        rm -f "$state/fallback"
    fi
    write_key
    begin
}

# is_under_way: whether the same job is being worked on, or served with the same model.
is_under_way() {
    [ "$worker_job" = "$DAMODEL_FINGERPRINT" ] || return 1
    case $status_phase in
    preflight | find | compile | start) ;;
    load | probe | ready) [ "$server_model_fingerprint" = "$(model_fingerprint "$model")" ] ;;
    *) return 1 ;;
    esac
}

# write_key: the key's own file; printf is the shell's, so that the key is no argument of a process.
write_key() {
    rm -f "$state/api_key"
    [ "$DAMODEL_API_KEY" ] || return 0
    printf '%s\n' "$DAMODEL_API_KEY" >"$state/api_key.$$" && mv -f "$state/api_key.$$" "$state/api_key"
}

begin() {
    start_worker || check_room || refuse "$failed_kind" "$failed_text"
    if [ "$worker_run" != "$run" ]; then
        begin_said=$(tail -n 3 "$state/work.log" 2>/dev/null)
        refuse workspace "the detached work did not start within 30 s: ${begin_said:-it said nothing}"
    fi
    report
}

# end_all: the work first, or it would see the server's end as a failure and go on to compile.
end_all() {
    end_run "$worker_run" || refuse stuck "the work, process $worker_pid, does not end"
    # It may have started a server since we looked.
    settle
    end_process "$server_pid" "$server_start" "$server_boot" || refuse stuck "the server, process $server_pid, does not end: it is in state $process_state"
}

# failed: the caller saw no inference. Under auto the prebuilt server has had its chance.
failed() {
    take_lock
    if is_current && [ "$worker_job" = "$DAMODEL_FINGERPRINT" ]; then
        if [ "$DAMODEL_BUILD:$server_build" = auto:prebuilt ]; then
            # No compile cures that, and the server goes on.
            check_room || refuse "$failed_kind" "$failed_text"
            fall_back "$DAMODEL_REASON"
            end_all
            begin
            return
        fi
        if ! set_status failed no_inference "$DAMODEL_REASON"; then
            check_room || refuse "$failed_kind" "$failed_text"
        fi
    fi
    report
}

# advance PHASE: the caller saw the server come so far.
advance() {
    take_lock
    if is_current && ! set_status "$1"; then
        check_room || refuse "$failed_kind" "$failed_text"
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
            refuse not_running "no server runs here that could be started again as it was (${status_text:-phase $status_phase})"
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
    end_all
    rm -f "$state/restart"
    # No status says the same.
    set_status absent || rm -f "$state/status"
}

destroy() {
    stop
    rm -rf "$state"
}

case ${1-} in
work) work ;;
check)
    check
    check_room || refuse "$failed_kind" "$failed_text"
    report
    ;;
ensure) ensure ;;
failed) failed ;;
probing) advance probe ;;
ready) advance ready ;;
restart) restart ;;
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
