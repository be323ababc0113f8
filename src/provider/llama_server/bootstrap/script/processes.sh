# ---- Processes ----

# read_process PID: sets process_state and process_start; fails when there is none. The name stands in parentheses and
# may hold anything.
read_process() {
    process_stat=
    { read -r process_stat <"/proc/$1/stat"; } 2>/dev/null
    [ -n "$process_stat" ] || return 1
    # shellcheck disable=SC2086
    set -- ${process_stat##*) }
    process_state=$1 process_start=${20}
}

# is_alive PID START BOOT: the very process that was recorded, not one that has its number by now; a zombie is dead.
is_alive() {
    [ -n "$1" ] && [ "$3" = "$boot" ] && read_process "$1" && [ "$process_start" = "$2" ] || return 1
    case $process_state in
    Z | X) return 1 ;;
    esac
}

# end_process PID START BOOT: TERM and 10 s for requests in flight; TERM again, which ends those too; then KILL. Done
# when it is gone, which may take its time where much memory is given back.
end_process() {
    for end_step in TERM:100 TERM:20 KILL:300; do
        is_alive "$@" || return 0
        kill -s "${end_step%:*}" "$1" 2>/dev/null
        end_tenths=${end_step#*:}
        while [ "$end_tenths" -gt 0 ]; do
            is_alive "$@" || return 0
            pause
            end_tenths=$((end_tenths - 1))
        done
    done
    return 1
}

# end_server: ends the recorded one, or the verb ends here.
end_server() {
    end_process "$server_pid" "$server_start" "$server_boot" || refuse stuck "the server, process $server_pid, does not end"
}

# end_run RUN: ends the detached work and all that it started (git, cmake, compilers), by what all of them inherit and
# the server does not.
end_run() {
    end_tenths=220
    while
        end_members=${1:+$(grep -lF "DAMODEL_RUN=$1" /proc/[0-9]*/environ 2>/dev/null)}
        [ "$end_members" ]
    do
        [ "$end_tenths" -gt 0 ] || refuse stuck "the work, process $worker_pid, does not end"
        for end_member in $end_members; do
            end_member=${end_member#/proc/}
            kill -s "$([ "$end_tenths" -gt 200 ] && echo TERM || echo KILL)" "${end_member%/environ}" 2>/dev/null
        done
        end_tenths=$((end_tenths - 1))
        pause
    done
}

# listeners PORT: the numbers of the processes that listen there, a line each; `?` for one that this user may not see.
listeners() {
    if listen_lines=$(ss -ltnpH "sport = :$1" 2>/dev/null </dev/null); then
        [ -n "$listen_lines" ] || return 0
        printf '%s\n' "$listen_lines" | grep -o 'pid=[0-9]*' | cut -d = -f 2 | sort -u | grep . || echo '?'
        return
    fi
    for listen_inode in $(awk -v port="$(printf ':%04X' "$1")" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10 }' \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null); do
        # shellcheck disable=SC2012
        ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v socket="socket:[$listen_inode]" '
            /^\/proc\// { split($0, parts, "/"); pid = parts[3] }
            $NF == socket { print pid; found = 1; exit }
            END { if (!found) print "?" }'
    done | sort -u
}

# rival PID: whether another than this process listens on the port, in $rival_pid, and who it is in $rival_text. A
# stranger's arguments may be secret.
rival() {
    for rival_pid in $(listeners "$port"); do
        [ "$rival_pid" != "$1" ] || continue
        rival_text='a process of another user'
        [ "$rival_pid" = '?' ] || rival_text="process $rival_pid ($(cat "/proc/$rival_pid/comm"), $(readlink "/proc/$rival_pid/exe")) of user $(stat -c %U "/proc/$rival_pid")"
        return 0
    done 2>/dev/null
    return 1
}

# check_port: whether nobody but our server listens on the port. For some seconds the answer may be wrong: the work
# starts its server at this very moment, or one that was killed has not been cleared away.
check_port() {
    port_tries=50
    while rival "$(load "$state/server" && is_alive "$server_pid" "$server_start" "$server_boot" && printf '%s' "$server_pid")"; do
        port_tries=$((port_tries - 1))
        [ "$port_tries" -gt 0 ] || fail port_in_use "port $port is in use by $rival_text" || return
        pause
    done
}

