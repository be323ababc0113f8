# ---- The server that an update replaces ----
#
# It serves until its successor is found or built and its options are judged. Then it is ended, but its supervisor
# stays, with the options and the environment that it holds, until the successor is seen to serve. The folder former/
# keeps its records; without that folder there is no way back.

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

# keep_former: the server that serves now becomes the former one, unless an update under way has one already. Fails
# when there is none to keep.
keep_former() {
    if is_former; then
        end_run "$worker_run"
        look
        is_former_serving || end_server
        return 0
    fi
    drop_former
    [ "$server_alive" ] && [ "$worker_alive" ] && [ "$server_run" = "$worker_run" ] || return 1
    [ "$status_phase" = ready ] || [ "$status_proved" ] || return 1
    rm -rf "$state/former.new"
    mkdir "$state/former.new" && cp "$state/status" "$state/worker" "$state/former.new" || unwritten
    for former_file in api_key owner policy; do
        [ ! -f "$state/$former_file" ] || cp "$state/$former_file" "$state/former.new" || unwritten
    done
    mv "$state/former.new" "$state/former" || unwritten
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
    (look && { ! is_former_serving || end_process "$server_pid" "$server_start" "$server_boot"; }) ||
        fail stuck 'the server that runs there does not end' || return
    [ "$DAMODEL_ON_UPDATE_FAILURE" = rollback ] || drop_former
}

# stand_by: in the former server's supervisor, once its server has ended. Succeeds when it is to serve again. A way
# back that the operator's own run does not decide about, because it was killed, is taken after a minute.
stand_by() {
    say 'a successor has begun; standing by'
    while [ "$(run_of "$state/former/worker")" = "$DAMODEL_RUN" ]; do
        sleep 1
        if is_unattended; then
            DAMODEL_UNATTENDED=yes sh "$state/bootstrap.sh" rollback </dev/null >/dev/null 2>&1
        fi
    done
    is_current "$DAMODEL_RUN" && status_proved=yes
}

# is_unattended: whether nobody has followed the update for a minute.
is_unattended() {
    [ "$(find "$state/attended" -mmin +1 2>/dev/null)" ]
}

# roll_back: the former server serves again. Each step may be repeated; the record of the work is the last.
roll_back() {
    take_lock
    look
    is_former || return 0
    if [ "${DAMODEL_UNATTENDED-}" ]; then
        is_unattended || return 0
        # The successor still has its chance.
        [ "$status_phase" = failed ] || ! { [ "$worker_alive" ] || [ "$server_alive" ]; } || return 0
    fi
    end_run "$worker_run"
    look
    roll_phase=ready
    is_former_serving || { end_server && roll_phase=start; }
    restore_words || unwritten
    load "$state/former/status"
    load "$state/former/worker"
    status_proved=yes
    rm -f "$state/notes" && set_status "$roll_phase" && mv -f "$state/former/worker" "$state/worker" || unwritten
    drop_former
}

