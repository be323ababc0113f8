# ---- Records and locks ----

# save FILE VARIABLE...: the variables as quoted assignments, whole or not at all. The last line proves that nothing
# was cut off.
save() {
    save_file=$1
    shift
    {
        for save_name in "$@"; do
            eval "quote \"\${$save_name-}\""
            printf '%s=%s\n' "$save_name" "$quoted"
        done
        printf '# end\n'
    } 2>/dev/null >"$save_file.$$" &&
        [ "$(tail -n 1 "$save_file.$$" 2>/dev/null)" = '# end' ] &&
        mv -f "$save_file.$$" "$save_file" && return 0
    rm -f "$save_file.$$"
    return 1
}

# load FILE: takes its variables over. Tried in a subshell before, since a file that a power cut left in pieces would
# end this shell.
load() {
    # shellcheck disable=SC1090
    [ -f "$1" ] && (. "$1") >/dev/null 2>&1 && . "$1"
}

# write FILE TEXT: a word in a file of its own, whole or not at all; no file for no text.
write() {
    if [ -z "$2" ]; then
        rm -f "$1"
    elif [ "$(word "$1")" != "$2" ]; then
        printf '%s\n' "$2" 2>/dev/null >"$1.$$" && mv -f "$1.$$" "$1"
    fi
}

# word FILE: the text of such a file.
word() {
    cat "$1" 2>/dev/null
}

# hold DESCRIPTOR FILE [TENTHS]: takes the lock, and waits so long for it. The kernel releases it when the last
# process that has the descriptor ends.
hold() {
    (: >>"$2") 2>/dev/null || return 1
    eval "exec $1>>\"\$2\""
    hold_tenths=${3-}
    until flock -n "$1"; do
        [ "$hold_tenths" != 0 ] || return 1
        hold_tenths=${hold_tenths:+$((hold_tenths - 1))}
        pause
    done
}

# take_lock: for the short moments in which records change. A minute is longer than any verb holds it.
take_lock() {
    { mkdir -p "$state" && (: >>"$state.lock"); } 2>/dev/null || unwritten
    hold 9 "$state.lock" 600 || refuse busy "another run has been working on $state for a minute"
}

# set_status PHASE [KIND TEXT]; $status_proved says whether this server has served before.
set_status() {
    status_phase=$1 status_kind=${2-} status_text=${3-} status_run=$worker_run
    save "$state/status" status_run status_phase status_kind status_text status_exit status_seconds status_package status_source status_compile_log status_proved
}

# note TEXT: something that deserves a warning.
note() {
    say "note: $1"
    printf '%s\n' "$1" >>"$state/notes"
}

# check_room: whether the workspace takes what will be written.
check_room() {
    room_probe=$state/probe.$$
    room_error=$({ LC_ALL=C mkdir -p "$state" && LC_ALL=C head -c 1048576 /dev/zero >"$room_probe"; } 2>&1)
    room_result=$?
    rm -f "$room_probe"
    [ "$room_result" = 0 ] || fail room "$workspace
$room_error
$(df -Pk "$workspace" 2>/dev/null || df -Pk "$HOME" 2>/dev/null)"
}

# unwritten: the verb ends here, since a record cannot be written.
unwritten() {
    check_room && failed_kind=workspace failed_text="the records in $state cannot be written"
    refuse "$failed_kind" "$failed_text"
}

