# ---- The detached work ----

# start_worker: sends the work off, and waits until it has written itself down. It outlives this shell and the login.
start_worker() {
    run=$boot-$$-$(now)
    write "$state/run" "$run" && write "$state/bootstrap.sh" "$DAMODEL_PROGRAM" && : >"$state/attended" || return 1
    rm -f "$state/notes" "$state/restart" "$state/restarts"
    [ ! -f "$state/work.log" ] || mv -f "$state/work.log" "$state/work.log.1"
    as_unit=''
    if is_systemd; then
        # A scope of its own: the end of the login ends what is in the login's. It inherits the environment, which a service's properties would show.
        as_unit="systemd-run $systemd_manager --scope --quiet --collect"
    fi
    (
        # The subshell's copies alone are exported.
        for start_name in $DAMODEL_HANDED_OVER; do
            export "DAMODEL_$start_name"
        done
        export DAMODEL_RUN="$run" DAMODEL_UMASK="$login_umask"
        trap '' HUP
        # shellcheck disable=SC2086
        exec setsid $as_unit sh "$state/bootstrap.sh" work
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

# is_systemd: whether systemd runs and makes us a scope that outlives the login. For anyone but root the user's own manager makes it, and ends it with
# the user's last login unless the user lingers; what stays in the login's own scope is ended only where KillUserProcesses=yes.
is_systemd() {
    [ -d /run/systemd/system ] && has systemd-run || return 1
    systemd_manager=''
    if [ "$(id -u)" != 0 ]; then
        [ -e "/var/lib/systemd/linger/$(id -un)" ] || return 1
        systemd_manager=--user
    fi
    # shellcheck disable=SC2086
    limited 60 systemd-run $systemd_manager --scope --quiet --collect true >/dev/null 2>&1
}

# ends_at_logout: whether systemd ends what this user runs with the user's last login.
ends_at_logout() {
    [ -d /run/systemd/system ] && [ "$(id -u)" != 0 ] && [ ! -e "/var/lib/systemd/linger/$(id -un)" ] || return 1
    logout_answer=$(limited 60 busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager \
        KillUserProcesses 2>/dev/null)
    [ "$logout_answer" = 'b true' ]
}

# is_wanted: whether no other work was sent meanwhile, by who did not know of this one, and who sent this one still waits for it.
is_wanted() {
    [ "$(word "$state/run")" = "$DAMODEL_RUN" ]
}

# work: the whole of it, in a session of its own. Nobody need be there.
work() {
    # At most one for a state directory works until its server is started; the one before was ended by whoever sent us.
    work_tenths=300
    until hold 8 "$state.worker.lock"; do
        work_tenths=$((work_tenths - 1))
        [ "$work_tenths" -gt 0 ] || exit 1
        pause
    done
    is_wanted || exit 0
    # The server's own variables are for the server: no compiler inherits them.
    for damodel_name in $DAMODEL_VARIABLES; do
        eval "variable_$damodel_name=\$DAMODEL_VARIABLE_$damodel_name"
        unset "DAMODEL_VARIABLE_$damodel_name"
    done
    read_process "$$"
    worker_pid=$$ worker_start=$process_start worker_boot=$boot worker_run=$DAMODEL_RUN worker_job=$DAMODEL_FINGERPRINT
    worker_build=$DAMODEL_BUILD worker_because=$DAMODEL_BECAUSE worker_because_text=$DAMODEL_BECAUSE_TEXT worker_package='' worker_hardware=''
    if [ "$worker_because" ]; then
        worker_package=$(load "$state/status" && printf '%s' "$status_package")
        worker_package=${worker_package:-$(load "$state/worker" && printf '%s' "$worker_package")}
        worker_hardware=$(hardware "$worker_package")
    fi
    save "$state/worker" worker_pid worker_start worker_boot worker_run worker_job worker_build worker_because worker_because_text \
        worker_package worker_hardware && is_wanted || exit 1
    status_exit='' status_seconds='' status_package='' status_source='' status_compile_log='' status_proved=''
    set_status find
    if check_model; then
        "work_$DAMODEL_BUILD"
    fi
    finish
}

work_prebuilt() {
    find_package || return 1
    binary=$status_package
    serve prebuilt
}

work_source() {
    set_status compile
    find_source && build_server && serve source
}

# finish: the work came to nothing, or the server ended. A status that cannot be written is judged by the next look.
finish() {
    # The records are its successor's.
    is_current "$DAMODEL_RUN" || exit 0
    say "failed: $failed_kind: $failed_text"
    set_status failed "$failed_kind" "$failed_text"
    exit 0
}

