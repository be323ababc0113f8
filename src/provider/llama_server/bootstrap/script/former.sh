# ---- The server that an update replaces ----
#
# It serves until its successor is found or built and its options are judged. Then it is ended, but its supervisor stays, with the options and the
# environment that it holds, until the successor is seen to serve. The folder former/ keeps its records; who has no such folder has no way back.

# run_of FILE: of which work a record is.
run_of() {
    (load "$1" && printf '%s' "$worker_run")
}

# is_current RUN: whether the records of the moment are those of this work.
is_current() {
    [ "$(run_of "$state/worker")" = "$1" ]
}

# is_former: whether there is a way back: a former server whose supervisor lives, and a successor that has begun.
is_former() {
    (load "$state/former/worker" && ! is_current "$worker_run" && is_alive "$worker_pid" "$worker_start" "$worker_boot")
}

# is_former_serving: whether the process that is recorded is still the former server. The records were just read.
is_former_serving() {
    [ "$server_alive" ] && [ "$server_run" = "$(run_of "$state/former/worker")" ] && is_former
}

# keep_former: the server that serves now becomes the former one, unless an update under way has one already. Fails when there is none to keep.
keep_former() {
    if is_former; then
        end_run "$worker_run" || refuse stuck "the work, process $worker_pid, does not end"
        settle
        is_former_serving || end_process "$server_pid" "$server_start" "$server_boot" ||
            refuse stuck "the server, process $server_pid, does not end: it is in state $process_state"
        return 0
    fi
    drop_former
    [ "$server_alive" ] && [ "$worker_alive" ] && [ "$server_run" = "$worker_run" ] || return 1
    case $status_phase:$status_proved in
    ready:* | *:yes) ;;
    *) return 1 ;;
    esac
    rm -rf "$state/former.new"
    if mkdir "$state/former.new" && cp "$state/status" "$state/former.new" && cp "$state/worker" "$state/former.new"; then
        for former_file in api_key owner policy; do
            [ ! -f "$state/$former_file" ] || cp "$state/$former_file" "$state/former.new"
        done
        mv "$state/former.new" "$state/former" && return 0
    fi
    check_room && failed_kind=workspace failed_text="the records in $state cannot be copied"
    refuse "$failed_kind" "$failed_text"
}

# restore_words: the key, the owner and the policy of the former server.
restore_words() {
    restore_result=0
    [ -d "$state/former" ] || return 0
    for former_file in api_key owner policy; do
        write "$state/$former_file" "$(word "$state/former/$former_file")" || restore_result=1
    done
    return "$restore_result"
}

# drop_former: there is no way back any more. The supervisor sees that and ends.
drop_former() {
    [ ! -d "$state/former" ] || mv "$state/former" "$state/former.$$" && rm -rf "$state/former.$$"
}

# end_former: the successor is about to start.
end_former() {
    # In a subshell: this work's own records are in the variables.
    if ! (settle && { ! is_former_serving || end_process "$server_pid" "$server_start" "$server_boot"; }); then
        failed_kind=stuck failed_text='the server that runs there does not end'
        return 1
    fi
    [ "$DAMODEL_ON_UPDATE_FAILURE" = rollback ] || drop_former
}

# stand_by: in the former server's supervisor, once its server has ended. Succeeds when it is to serve again. A way back that the operator's own run does not
# decide about, because it was killed, is taken after a minute.
stand_by() {
    say 'a successor has begun; standing by'
    while [ "$(run_of "$state/former/worker")" = "$DAMODEL_RUN" ]; do
        sleep 1
        if [ "$(find "$state/attended" -mmin +1 2>/dev/null)" ]; then
            DAMODEL_UNATTENDED=yes sh "$state/bootstrap.sh" rollback </dev/null >/dev/null 2>&1
        fi
    done
    is_current "$DAMODEL_RUN" && status_proved=yes
}

# roll_back: the former server serves again. Each step may be repeated; the record of the work is the last.
roll_back() {
    take_lock
    settle
    if ! is_former; then
        report
        return
    fi
    if [ "${DAMODEL_UNATTENDED-}" ] && { [ "$status_phase" != failed ] || [ -z "$(find "$state/attended" -mmin +1 2>/dev/null)" ]; }; then
        return
    fi
    end_run "$worker_run" || refuse stuck "the work, process $worker_pid, does not end"
    settle
    roll_phase=ready
    if ! is_former_serving; then
        end_process "$server_pid" "$server_start" "$server_boot" || refuse stuck "the server, process $server_pid, does not end"
        roll_phase=start
    fi
    restore_words || roll_phase=''
    load "$state/former/status"
    load "$state/former/worker"
    status_proved=yes
    if ! { [ "$roll_phase" ] && rm -f "$state/notes" && set_status "$roll_phase" && mv -f "$state/former/worker" "$state/worker"; }; then
        check_room && failed_kind=workspace failed_text="the records in $state cannot be written"
        refuse "$failed_kind" "$failed_text"
    fi
    drop_former
    report
}
