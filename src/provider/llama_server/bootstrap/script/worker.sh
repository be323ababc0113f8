# ---- The detached work ----

# start_worker: sends the work off, and waits until it has written itself down. It outlives this shell and the login.
start_worker() {
    run=$boot-$$-$(date +%s)
    write "$state/run" "$run" && write "$state/bootstrap.sh" "$DAMODEL_PROGRAM" && : >"$state/attended" || return 1
    rm -f "$state/notes" "$state/restart" "$state/restarts"
    write "$state/notes" "$DAMODEL_NOTES"
    [ ! -f "$state/work.log" ] || mv -f "$state/work.log" "$state/work.log.1"
    (
        # The subshell's copies alone are exported.
        for start_name in $DAMODEL_HANDED_OVER; do
            export "DAMODEL_$start_name"
        done
        export DAMODEL_RUN="$run" DAMODEL_UMASK="$login_umask"
        trap '' HUP
        # A scope of its own where systemd runs: the end of the login ends what is in the login's. It inherits the
        # environment, which a service's properties would show.
        # shellcheck disable=SC2086
        exec setsid $DAMODEL_SCOPE sh "$state/bootstrap.sh" work
    ) </dev/null >>"$state/work.log" 2>&1 9>&- &
    # A machine that compiles for another server is slow to start a shell.
    start_tenths=300
    until load "$state/worker" && [ "$worker_run" = "$run" ]; do
        start_tenths=$((start_tenths - 1))
        # One that begins later finds that it is not wanted any more.
        [ "$start_tenths" -gt 0 ] || { rm -f "$state/run" && return 1; }
        pause
    done
}

# is_wanted: whether no other work was sent meanwhile, by who did not know of this one, and who sent this one still
# waits for it.
is_wanted() {
    [ "$(word "$state/run")" = "$DAMODEL_RUN" ]
}

# work: the whole of it, in a session of its own. Nobody need be there.
work() {
    # At most one for a state directory works until its server is started; the one before was ended by whoever sent us.
    hold 8 "$state.worker.lock" 300 && is_wanted || exit 0
    # The server's own variables are for the server: no compiler inherits them.
    for damodel_name in $DAMODEL_VARIABLES; do
        eval "variable_$damodel_name=\$DAMODEL_VARIABLE_$damodel_name"
        unset "DAMODEL_VARIABLE_$damodel_name"
    done
    read_process "$$"
    worker_pid=$$ worker_start=$process_start worker_boot=$boot worker_run=$DAMODEL_RUN worker_job=$DAMODEL_FINGERPRINT
    worker_build=$DAMODEL_BUILD worker_because=$DAMODEL_BECAUSE worker_because_text=$DAMODEL_BECAUSE_TEXT worker_hardware=$DAMODEL_HARDWARE
    save "$state/worker" worker_pid worker_start worker_boot worker_run worker_job worker_build worker_because worker_because_text \
        worker_hardware && is_wanted || exit 1
    status_exit='' status_seconds='' status_package=$DAMODEL_BINARY status_source='' status_compile_log='' status_proved=''
    case $DAMODEL_BUILD in
    prebuilt) set_status find && provide && use "$DAMODEL_BINARY" && serve prebuilt ;;
    source) set_status compile && provide && build_server && serve source ;;
    esac
    # It came to nothing, or the server ended. The records may be a successor's by now; a status that cannot be
    # written is judged by the next look.
    if is_current "$DAMODEL_RUN"; then
        say "failed: $failed_kind: $failed_text"
        set_status failed "$failed_kind" "$failed_text"
    fi
    exit 0
}

