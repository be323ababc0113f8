# ---- The detached work and the verbs ----

# start_worker: starts the work, which outlives this shell and the login, and waits for its record.
start_worker() {
    write "$state/bootstrap.sh" "$DAMODEL_PROGRAM" && : >"$state/attended" && write "$state/run" "$folder" || return 1
    [ ! -f "$state/work.log" ] || mv -f "$state/work.log" "$state/work.log.1"
    # The key and the environment lie in no file and no environment: the work reads them.
    # shellcheck disable=SC2086,SC2163
    (printf '%s\n' "$DAMODEL_SECRETS") </dev/null 2>/dev/null 9>&- | (
        export $DAMODEL_HANDED_OVER DAMODEL_RUN="${folder##*/}" DAMODEL_STATE="$state" DAMODEL_UMASK="$login_umask"
        trap '' HUP
        # If systemd runs, in a scope of its own: that of the login ends with the login.
        exec setsid $DAMODEL_SCOPE sh "$state/bootstrap.sh" work
    ) >>"$state/work.log" 2>&1 9>&- &
    sent=$!
    # The instance may be busy with a compile for another server.
    within 300 has_begun && load "$folder/worker"
}

# has_begun: whether the work has written its record, or has ended without.
has_begun() {
    load "$folder/worker" || ! read_process "$sent"
}

# work: all that takes long, in a session of its own.
work() {
    folder=$state/runs/$DAMODEL_RUN
    # A core would hold the key. Every shell here has the option.
    # shellcheck disable=SC3045
    ulimit -c 0
    secrets=$(cat)
    exec </dev/null
    # A sender that was killed has sent a part of them.
    case $secrets in *'# end') eval "$secrets" ;; *) exit 1 ;; esac
    unset secrets
    read_process "$$"
    worker_identity=$process_identity
    load "$folder/status" && save "$folder/worker" worker_identity || exit 1
    tender=''
    provide && if [ "$DAMODEL_BUILD" = source ]; then build_server; else binary=$DAMODEL_BINARY; fi && {
        tend_log &
        tender=$!
        serve
    }
    [ -z "$tender" ] || { kill "$tender" && wait "$tender"; } 2>/dev/null
    say "failed: $failed_kind: $failed_text"
    set_status failed "$failed_kind" "$failed_text"
    exit 0
}

# own RUN TOKEN POLICY ENDPOINT: from now on only the resource with this token ends the server.
own() {
    take_lock "$1"
    owner_token=$2 owner_policy=$3 owner_endpoint=${4-}
    # shellcheck disable=SC2086
    save "$folder/owner" $owner_record || refuse workspace
}

# end_all: the work first, since it would start the server again, or has just started it.
end_all() {
    end_run "$folder"
    end_run "$previous"
    look
    end_server
    rm -f "$state/previous"
}

# ensure: begins a run. Its records are complete before anything is ended for it, and it is the current run before its
# work starts. What has served, or pauses before its next try, becomes the previous run: its successor ends it after the
# options were accepted.
ensure() {
    take_lock "$DAMODEL_SEEN"
    begun=$state/runs/$boot-$$-$(date +%s) job_record=$DAMODEL_RECORD
    mkdir -p "$begun" && (
        folder=$begun owner_token=$DAMODEL_OWNER owner_policy=$DAMODEL_RESTART_POLICY
        owner_endpoint=${DAMODEL_PROBE_ENDPOINT-}
        # shellcheck disable=SC2086
        forget $status_record
        # shellcheck disable=SC2086
        save "$folder/job" job_record && save "$folder/owner" $owner_record && set_status find
    ) 2>/dev/null || unbegun
    look
    if [ "$previous" ]; then
        end_run "$folder"
        look
        is_previous_left || end_server
    elif [ "$status_proved" ] && [ "$server_alive$worker_alive" ] && [ "$server_folder" = "$folder" ]; then
        previous=$folder
    else
        end_all
    fi
    [ -z "$previous" ] || write "$state/previous" "$previous" || unbegun
    before=$folder folder=$begun
    start_worker || { end_run "$begun" && write "$state/run" "$before" && unbegun; }
    for run in "$state"/runs/*; do
        [ "$run" = "$begun" ] || [ "$run" = "$previous" ] || rm -rf "$run"
    done
}

# unbegun: removes the run, and refuses the verb.
unbegun() {
    rm -rf "$begun"
    refuse workspace "$(tail -n 3 "$state/work.log" 2>/dev/null)"
}

# judge PROCESS PHASE [KIND TEXT]: the sender saw that the server generates tokens, or that it does not.
judge() {
    take_lock
    [ "$1" = "$server_identity" ] && [ "$server_alive" ] && [ "$server_folder" = "$folder" ] || return
    shift
    [ "$1" != ready ] || status_proved=yes
    # These words are at the beginning of the log, which is cut later: they are looked for once for each process.
    if [ "$1" = ready ] && [ "$status_no_gpu_of" != "$server_identity" ]; then
        status_no_gpu_of=$server_identity
        status_no_gpu=$(head -c 65536 "$state/server.log" | tr -d '\000' | grep -o -m 1 -E \
            'no usable GPU found|no CUDA-capable device|CUDA driver version is insufficient')
    fi
    set_status "$@" || refuse workspace
    [ "$1" != ready ] || rm -f "$state/previous"
    # A server that ignores its key is open to everyone. One that was ready before is left to its operator.
    [ "${2-}" != key_ignored ] || [ "$status_proved" ] || { exec 9>&- && end_server; }
}

# restart PROCESS: ends it, and its work starts it again. A process that has ended already is about to be started.
restart() {
    take_lock
    [ "$server_identity" = "$1" ] || [ -z "$server_alive" ] || return
    [ "$server_identity" = "$1" ] && [ "$worker_alive" ] && [ "$server_folder" = "$folder" ] || refuse not_running
    write "$state/restart" "$server_identity" || refuse workspace
    exec 9>&-
    end_server
    # Work that pauses before its next try looks each second. Until then its status is still that of the failure.
    [ "$status_phase" != failed ] || within 100 is_no_failure
}

# is_no_failure: whether the status of the current run is not, or no more, a failure.
is_no_failure() {
    load "$folder/status" && [ "$status_phase" != failed ]
}

# rollback: the previous server serves again. Each step may be repeated. The current run changes last.
rollback() {
    take_lock
    [ "$previous" ] || return
    if [ "${DAMODEL_UNATTENDED-}" ]; then
        is_unattended 1 || return
        # The successor may still succeed.
        [ "$status_phase" = failed ] || [ -z "$worker_alive$server_alive" ] || return
    fi
    end_run "$folder"
    look
    rolled_phase=ready
    is_previous_left || { end_server && rolled_phase=start; }
    folder=$previous
    load "$folder/status"
    status_proved=yes status_exit='' status_seconds='' status_out_of_memory='' status_next=''
    set_status "$rolled_phase" || refuse workspace
    # If its work pauses before the next try, that is now.
    [ "$rolled_phase" = ready ] || { load "$folder/server" && write "$state/restart" "$server_identity"; }
    write "$state/run" "$previous" || refuse workspace
    rm -f "$state/previous"
}

# stop TOKEN: works on a full disk too. Any resource ends a server without an owner.
stop() {
    [ -d "$state" ] || return 0
    take_lock
    [ -z "$owner_token" ] || [ "$owner_token" = "$1" ] || refuse foreign
    end_all
    rm -f "${folder:-$state}/status"
}

# destroy TOKEN: builds, sources, packages and models stay.
destroy() {
    stop "$1" || return
    [ ! -f "$state/parts" ] || in_time 10 ask_removed_parts "$state/parts"
    rm -rf "$state"
}

# A verb touches nothing in a workspace that does not answer. The work waits for its own.
[ "$1" = work ] || [ "${DAMODEL_UNATTENDED-}" ] || in_time 10 ask_workspace "$workspace" >/dev/null || [ "$?" = 3 ] || {
    refused=no_answer refused_text="the workspace $workspace does not answer"
    printf '\ndamodel-report/1 begin\n'
    assignments refused refused_text boot | emit record
    printf 'damodel-report/1 end\n'
    exit 0
}
choose_state
# A sender that looks at an update decides about its rollback.
[ "$1" = work ] || [ "${DAMODEL_UNATTENDED-}${DAMODEL_REFRESHES-}" ] || [ ! -f "$state/previous" ] ||
    { : >"$state/attended"; } 2>/dev/null
"$@"
report
exit 0
