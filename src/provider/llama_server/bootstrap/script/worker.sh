# ---- The detached work ----

# start_worker: sends the work off, and waits until it has written itself down. It outlives this shell and the login.
start_worker() {
    run=$boot-$$-$(now)
    status_package='' status_source='' status_compile_log=''
    set_status preflight &&
        printf '%s\n' "$DAMODEL_PROGRAM" >"$state/bootstrap.sh.$$" &&
        mv -f "$state/bootstrap.sh.$$" "$state/bootstrap.sh" || return 1
    rm -f "$state/notes" "$state/restart"
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
        export DAMODEL_RUN="$run"
        trap '' HUP
        # shellcheck disable=SC2086
        exec setsid $as_unit sh "$state/bootstrap.sh" work
    ) </dev/null >>"$state/work.log" 2>&1 9>&- &
    # A machine that compiles for another server is slow to start a shell.
    start_tenths=300
    until load "$state/worker" && [ "$worker_run" = "$run" ]; do
        start_tenths=$((start_tenths - 1))
        [ "$start_tenths" -gt 0 ] || return 1
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
    limited 10 systemd-run $systemd_manager --scope --quiet --collect true >/dev/null 2>&1
}

# work: the whole of it, in a session of its own. Nobody need be there.
work() {
    # At most one for a state directory, ever; the one before was ended by whoever sent us.
    work_tenths=100
    until hold 8 "$state.worker.lock"; do
        work_tenths=$((work_tenths - 1))
        [ "$work_tenths" -gt 0 ] || exit 1
        pause
    done
    # The server's own variables are for the server: no compiler inherits them.
    for damodel_name in $DAMODEL_VARIABLES; do
        eval "variable_$damodel_name=\$DAMODEL_VARIABLE_$damodel_name"
        unset "DAMODEL_VARIABLE_$damodel_name"
    done
    read_process "$$"
    worker_pid=$$ worker_start=$process_start worker_boot=$boot worker_run=$DAMODEL_RUN worker_job=$DAMODEL_FINGERPRINT
    save "$state/worker" worker_pid worker_start worker_boot worker_run worker_job || exit 1
    status_package='' status_source='' status_compile_log='' nvcc='' build_given_up=''
    set_status find
    check_model || finish
    find_gpu
    say "cards: ${gpu_names:-none seen}"
    case $DAMODEL_BUILD in
    source) work_source ;;
    prebuilt) work_prebuilt ;;
    *)
        if needs_source; then
            say 'this card is served by a build from source'
            work_source
        elif load "$state/fallback" && [ "$fallback_job" = "$worker_job" ]; then
            note "the prebuilt server was given up before: $fallback_reason"
            build_given_up=yes
            work_source
        else
            work_prebuilt
            case $failed_kind in
            # No compile cures these; and a server that was ready did infer.
            died | disk_full | missing_model | no_inference | port_in_use | workspace) ;;
            *)
                fall_back "$failed_text" || finish
                note "the prebuilt server was given up: $fallback_reason"
                build_given_up=yes
                work_source
                ;;
            esac
        fi
        ;;
    esac
    finish
}

# fall_back REASON: remembers that the prebuilt server does not infer, for whoever takes this up. Kept as long as the job is the same.
fall_back() {
    fallback_job=$worker_job fallback_reason=$1
    save "$state/fallback" fallback_job fallback_reason
}

work_prebuilt() {
    find_package || return 1
    binary=$status_package
    serve prebuilt
}

work_source() {
    set_status find
    find_architectures && check_tools && find_toolkit || return 1
    status_compile_log=''
    set_status compile
    find_source && build_server && serve source
}

# finish: the work came to nothing, or the server ended. A status that cannot be written is judged by the next look.
finish() {
    if [ "$build_given_up" ]; then
        failed_text="$failed_text
Before that the prebuilt server was given up: $fallback_reason"
    fi
    say "failed: $failed_kind: $failed_text"
    set_status failed "$failed_kind" "$failed_text"
    exit 0
}

