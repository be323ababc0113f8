# ---- Processes ----

# read_process PID: sets process_state and process_start; fails when there is none. The name stands in parentheses and may hold anything.
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

# end_process PID START BOOT: TERM and 10 s for requests in flight; TERM again, which ends those too; then KILL. Done when it is gone, which may take its
# time where much memory is given back.
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

# members RUN: the processes of a detached work, by what all of them inherit and the server does not.
members() {
    grep -lF "DAMODEL_RUN=$1" /proc/[0-9]*/environ 2>/dev/null
}

# end_run RUN: ends the detached work and all that it started (git, cmake, compilers), but the server.
end_run() {
    [ -n "$1" ] || return 0
    for end_step in TERM:20 KILL:100 KILL:100; do
        end_tenths=${end_step#*:}
        while [ "$end_tenths" -gt 0 ]; do
            end_members=$(members "$1")
            [ -n "$end_members" ] || return 0
            if [ "$end_tenths" = "${end_step#*:}" ]; then
                for end_member in $end_members; do
                    end_member=${end_member#/proc/}
                    kill -s "${end_step%:*}" "${end_member%/environ}" 2>/dev/null
                done
            fi
            pause
            end_tenths=$((end_tenths - 1))
        done
    done
    return 1
}

# listeners PORT: the numbers of the processes that listen there, a line each; `?` for one that this user may not see.
listeners() {
    if has ss && listen_lines=$(ss -ltnpH "sport = :$1" 2>/dev/null </dev/null); then
        [ -n "$listen_lines" ] || return 0
        printf '%s\n' "$listen_lines" | grep -o 'pid=[0-9]*' | cut -d = -f 2 | sort -u | grep . || echo '?'
        return
    fi
    listen_port=$(printf ':%04X' "$1")
    for listen_inode in $(awk -v port="$listen_port" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10 }' \
        /proc/net/tcp /proc/net/tcp6 2>/dev/null); do
        # shellcheck disable=SC2012
        ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v socket="socket:[$listen_inode]" '
            /^\/proc\// { split($0, parts, "/"); pid = parts[3] }
            $NF == socket { print pid; found = 1; exit }
            END { if (!found) print "?" }'
    done | sort -u
}

# rival PID: says who else than this process listens on the port; fails when nobody does. No arguments are shown: a stranger's may be secret.
rival() {
    for rival_pid in $(listeners "$port"); do
        [ "$rival_pid" != "$1" ] || continue
        if [ "$rival_pid" = '?' ]; then
            printf 'a process of another user'
        else
            printf 'process %s (%s, %s) of user %s' "$rival_pid" "$(cat "/proc/$rival_pid/comm" 2>/dev/null)" \
                "$(readlink "/proc/$rival_pid/exe" 2>/dev/null)" "$(stat -c %U "/proc/$rival_pid" 2>/dev/null)"
        fi
        return 0
    done
    return 1
}

# llama_rival PID: the number of another llama-server of this user that listens on the port, one that was started by hand.
llama_rival() {
    for rival_pid in $(listeners "$port"); do
        [ "$rival_pid" != "$1" ] && [ "$rival_pid" != '?' ] || continue
        case $(tr '\0' '\n' 2>/dev/null <"/proc/$rival_pid/cmdline" | head -n 1) in
        llama-server | */llama-server) printf '%s' "$rival_pid" && return 0 ;;
        esac
    done
    return 1
}

# end_rival: ends such a server, where the operator has seen it in a plan.
end_rival() {
    [ "$DAMODEL_END_RIVAL" ] && rival_pid=$(llama_rival "$server_pid") && read_process "$rival_pid" || return 0
    end_process "$rival_pid" "$process_start" "$boot" || refuse stuck "the server, process $rival_pid, does not end"
}

# own_server: the number of the recorded server, if it lives.
own_server() {
    load "$state/server" && is_alive "$server_pid" "$server_start" "$server_boot" && printf '%s' "$server_pid"
}

# check_port: whether nobody but our server listens on the port. Else sets $failed_kind and $failed_text. For some seconds the answer may be wrong: the
# work starts its server at this very moment, or one that was killed has not been cleared away.
check_port() {
    port_tries=50
    while rival_text=$(rival "$(own_server)"); do
        port_tries=$((port_tries - 1))
        [ "$port_tries" -gt 0 ] || break
        pause
    done
    [ "$rival_text" ] || return 0
    failed_kind=port_in_use
    failed_text="port $port is in use by $rival_text"
    return 1
}

