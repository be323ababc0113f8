
# ---- Processes ----

# read_process PID: sets $process_identity, which tells it from any other, also after a reboot. Fails where none lives;
# a zombie is dead. The name stands in parentheses and may hold anything.
read_process() {
    process_identity=$1 process_stat=
    { read -r process_stat <"/proc/$1/stat"; } 2>/dev/null
    # shellcheck disable=SC2086
    set -- ${process_stat##*) }
    process_identity=$process_identity.${20-}.$boot
    case ${1:-X} in
    Z | X) return 1 ;;
    esac
}

# is_alive IDENTITY: the very process that was recorded, not one that has its number by now.
is_alive() {
    [ "${1##*.}" = "$boot" ] && read_process "${1%%.*}" && [ "$process_identity" = "$1" ]
}

is_gone() {
    ! is_alive "$1"
}

# end_process IDENTITY: TERM and 10 s for requests in flight; TERM again, which ends those too; then KILL. Done when it
# is gone, which may take its time where much memory is given back.
end_process() {
    for end_step in TERM:100 TERM:20 KILL:300; do
        is_gone "$1" && return
        kill -s "${end_step%:*}" "${1%%.*}" 2>/dev/null
        within "${end_step#*:}" is_gone "$1" && return
    done
}

# end_server: ends the recorded one, or the verb ends here.
end_server() {
    end_process "$server_identity" || refuse stuck "the server, process $server_pid, does not end"
}

# has_ended SIGNAL RUN: sends the signal to all that the detached work has started (git, cmake, compilers) and to the
# work itself, by what all of them inherit and the server does not. Whether none of them was there.
has_ended() {
    members=$(grep -lF "DAMODEL_RUN=$2" /proc/[0-9]*/environ 2>/dev/null)
    for member in $members; do
        member=${member#/proc/}
        kill -s "$1" "${member%/environ}" 2>/dev/null
    done
    [ -z "$members" ]
}

# end_run FOLDER: ends the detached work of a run, or the verb ends here.
end_run() {
    [ -z "$1" ] || within 20 has_ended TERM "${1##*/}" || within 200 has_ended KILL "${1##*/}" ||
        refuse stuck 'the detached work does not end'
}

# is_free: whether nobody listens on the port.
is_free() {
    [ -z "$(eval "$DAMODEL_LISTENERS" 2>/dev/null </dev/null)" ]
}
