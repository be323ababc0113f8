# ---- Processes ----

# read_process PID: sets $process_identity, which is unique, also after a reboot. Fails if the process does not exist or
# is a zombie. The process name is in parentheses and may contain anything.
read_process() {
    process_identity=$1 process_stat=
    { read -r process_stat <"/proc/$1/stat"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- ${process_stat##*) }
    process_identity=$process_identity.${20-}.$boot
    case ${1:-X} in Z | X) return 1 ;; esac
}

# is_alive IDENTITY: false if another process has the number by now.
is_alive() {
    [ "${1##*.}" = "$boot" ] && read_process "${1%%.*}" && [ "$process_identity" = "$1" ]
}

is_gone() {
    ! is_alive "$1"
}

# end_process IDENTITY: TERM and 10 s for requests in flight; TERM again, which ends those too; then KILL, and time to
# give back much memory.
end_process() {
    for end_step in TERM:100 TERM:20 KILL:300; do
        is_gone "$1" && return
        kill -s "${end_step%:*}" "${1%%.*}" 2>/dev/null
        within "${end_step#*:}" is_gone "$1" && return
    done
}

# end_server: ends the recorded server, or the verb is refused.
end_server() {
    end_process "$server_identity" || refuse stuck "the server, process $server_pid, does not end"
}

# has_ended SIGNAL RUN: sends the signal to the detached work and to all that it has started (git, cmake, compilers),
# which inherit a variable that the server does not. Succeeds if none of them exists.
has_ended() {
    members=$(grep -lF "DAMODEL_RUN=$2" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3)
    # shellcheck disable=SC2086
    [ -z "$members" ] || { kill -s "$1" $members 2>/dev/null; return 1; }
}

# end_run FOLDER: ends the detached work of a run, or the verb is refused.
end_run() {
    [ -z "$1" ] || within 20 has_ended TERM "${1##*/}" || within 200 has_ended KILL "${1##*/}" ||
        refuse stuck 'the detached work does not end'
}

# oom_kills: what the kernel counts of the processes that it killed for memory, in the control groups of this one.
oom_kills() {
    oom_group=$(sed -n 's/^0:://p' /proc/self/cgroup)
    grep -hs '^oom_kill ' "/sys/fs/cgroup$oom_group/memory.events" /sys/fs/cgroup/memory.events \
        /sys/fs/cgroup/memory/memory.oom_control
}

# is_free: whether no process listens on the port.
is_free() {
    [ -z "$(eval "$DAMODEL_LISTENERS" 2>/dev/null </dev/null)" ]
}
