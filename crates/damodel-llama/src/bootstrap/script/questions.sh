# ---- Questions about the instance, which may hang ----
#
# Each question is a function whose standard output is the answer. It runs in a child, see begin_question, and gets its
# arguments there. The sender judges the answers.

# library_path FILE: the folders of libraries for a server: the user's, those beside the file, the login's, CUDA's, and
# the driver's.
library_path() {
    printf '%s' "${DAMODEL_LIBRARIES:+$DAMODEL_LIBRARIES:}${1%/*}:${1%/*}/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    printf '%s' "${DAMODEL_CUDA_LIBRARIES:+:$DAMODEL_CUDA_LIBRARIES}:$DAMODEL_DRIVER_LIBRARIES"
}

# run_server SECONDS FILE ARGUMENT...: the output of a server that prints something and ends, with the libraries and the
# environment of a start. The shell that becomes the server reads them: no other process has them in its environment.
run_server() {
    run_limit=$1 run_file=$2
    shift 2
    # shellcheck disable=SC2016
    { library_path "$run_file" && printf '\n# end\n%s\n' "${DAMODEL_ENVIRONMENT-}"; } 2>/dev/null |
        timeout -s KILL "$run_limit" sh -c 'given=$(cat)
export LD_LIBRARY_PATH="${given%%
# end*}"
eval "${given#*
# end}"
exec "$@" 2>&1 </dev/null' sh "$run_file" "$@"
}

# sees_no_gpu FILE: whether a server that is to use GPUs certainly sees none. A full GPU ends it.
sees_no_gpu() {
    [ "${DAMODEL_WANTS_GPU-}" ] && listed=$(run_server 20 "$1" --list-devices) &&
        ! printf '%s\n' "$listed" | grep -v -i llvmpipe | grep -Eq '^ *(CUDA|ROCm|Vulkan|SYCL)[0-9]'
}

# ask_workspace FOLDER: nothing; only whether the file system answers.
ask_workspace() {
    ls -d "$1/." "$1/.damodel/."
}

# ask_room STATE_FOLDER WORKSPACE: nothing if a mebibyte can be written; else the error, and what df says.
ask_room() {
    { mkdir -p "$1" && head -c 1048576 /dev/zero >"$1/probe.$$"; } 2>&1 || df -Pk "$2" || df -Pk "$HOME"
    rm -f "$1/probe.$$"
}

ask_home() {
    printenv HOME
}

ask_user() {
    id -un
}

# ask_missing PROGRAM...: those that are not installed.
ask_missing() {
    for program; do command -v "$program" >/dev/null || echo "$program"; done
}

# ask_cards NAME: the GPUs, with their driver, and last the name. The tool prints errors and warnings among them.
ask_cards() {
    with_driver nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    echo "$1"
}

# ask_has_gpu: whether the instance shows a GPU.
ask_has_gpu() {
    with_driver nvidia-smi -L | grep -q '^GPU ' && echo yes && return
    ls /dev/nvidia[0-9]* >/dev/null && echo yes
}

# ask_model FILE: its kind and size, and how it begins. It is one question: a download may put the file there meanwhile.
ask_model() {
    stat -L -c %F/%s "$1" && head -c 4 "$1"
}

ask_size() {
    stat -L -c %s "$1"
}

# ask_loaders: the programs that can download a file. The first is used.
ask_loaders() {
    for program in curl python3; do ! command -v "$program" >/dev/null || echo "$program"; done
}

# ask_removed_parts FILE: nothing; removes the files whose paths are in it.
ask_removed_parts() {
    while IFS= read -r part; do rm -f "$part" "$part".*; done <"$1"
}

# ask_files_fingerprint FILE...: changes with each other content of any of them; nothing if one is missing.
ask_files_fingerprint() {
    for file; do [ -f "$file" ] || return; done
    for file; do ask_model_fingerprint "$file"; done | sha256sum | cut -c 1-16
}

# ask_missing_downloads FILE...: those that a start would download.
ask_missing_downloads() {
    for file; do [ -e "$file" ] || printf '%s\n' "$file"; done
}

# ask_model_missing_parts FILE...: those that are not there.
ask_model_missing_parts() {
    for part; do [ -f "$part" ] || printf '%s\n' "$part"; done
}

# ask_missing_files WORKSPACE FILE...: those that the server, which begins in the workspace, could not read.
ask_missing_files() {
    files_from=$1
    shift
    for file; do
        case $file in /*) found=$file ;; *) found=$files_from/$file ;; esac
        [ -r "$found" ] || printf '%s\n' "$file"
    done
}

# ask_models FOLDER...: the models there.
ask_models() {
    find -L "$@" -maxdepth 3 -name '*.gguf'
}

# ask_model_fingerprint FILE: size, time and a hash of the beginning. A model of 40 GB is never read whole.
ask_model_fingerprint() {
    [ -f "$1" ] && printf '%s:%s' "$(stat -L -c %s:%Y "$1")" "$(head -c 1048576 "$1" | sha256sum | cut -c 1-16)"
}

# ask_login: the user's number, whether systemd runs, and whether the user lingers.
ask_login() {
    id -u
    [ ! -d /run/systemd/system ] || echo systemd
    [ ! -e "/var/lib/systemd/linger/$(id -un)" ] || echo lingers
}

# ask_scope COMMAND: the command that makes a scope: with the end of a process for memory survived, or without.
ask_scope() {
    for policy in ' -p OOMPolicy=continue' ''; do
        # shellcheck disable=SC2086
        $1$policy true && echo "$1$policy" && return
    done
}

# ask_ends_at_logout: KillUserProcesses of systemd.
ask_ends_at_logout() {
    busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager KillUserProcesses
}

ask_package() {
    stat -L -c %F/%Y "$@"
}

# ask_servers FOLDER...: each executable server in the first folder that has one, at most 8: its path, its time, how its
# --version ended, what that printed, and whether it sees no GPU, which is asked if there are several.
ask_servers() {
    found=''
    for folder; do
        found=$(find -L "$folder" -maxdepth 5 -type f -name llama-server -perm -u+x | sort | head -n 8)
        [ -z "$found" ] || break
    done
    [ -z "$found" ] || printf '%s\n' "$found" | while IFS= read -r file; do
        printed=$(run_server 20 "$file" --version)
        code=$?
        printf '%s\0%s\0%s\0%s\0' "$file" "$(stat -L -c %Y "$file")" "$code" "$printed"
        [ "$file" = "$found" ] || ! sees_no_gpu "$file" || printf none
        printf '\0'
    done
}

# archive_table FILE, archived FILE ENTRY: the names in an archive, and the content of one.
archive_table() {
    case $1 in *.zip) unzip -Z1 "$1" ;; *) tar -tf "$1" ;; esac </dev/null
}

archived() {
    case $1 in *.zip) unzip -p "$1" "$2" ;; *) tar -xOf "$1" "$2" ;; esac </dev/null
}

# find_archive PATTERN WORD FOLDER_OR_FILE...: the first of at most 8 archives with an entry like this, which contains
# the word: its path, its size and time, and the entry.
find_archive() {
    archive_pattern=$1 archive_word=$2
    shift 2
    for folder; do
        find -L "$folder" -maxdepth 3 -type f \( -name '*.t?z' -o -name '*.tar*' -o -name '*.zip' \) | sort
    done | head -n 8 | while IFS= read -r file; do
        entry=$(archive_table "$file" | grep -E "$archive_pattern" | head -n 1)
        [ "$entry" ] && { [ -z "$archive_word" ] || archived "$file" "$entry" | grep -qi "$archive_word"; } || continue
        printf '%s\0%s\0%s\0' "$file" "$(stat -L -c %s:%Y "$file")" "$entry"
        break
    done
}

ask_server_archives() {
    find_archive '(^|/)llama-server$' '' "$@"
}

# ask_packages FOLDER...: what is there, for people.
ask_packages() {
    for folder; do (cd "$folder" && find . -maxdepth 3 ! -name . | sed 's|^\./||'); done
}

ask_capabilities() {
    with_driver nvidia-smi --query-gpu=compute_cap --format=csv,noheader
}

# ask_toolkits: each compiler of CUDA: its path, its version and its architectures.
ask_toolkits() {
    for nvcc in "$(command -v nvcc)" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc /opt/cuda/bin/nvcc; do
        [ -x "$nvcc" ] && [ -f "$nvcc" ] || continue
        listed=$("$nvcc" --list-gpu-arch) || listed=''
        printf '%s\t%s\t%s\n' "$nvcc" "$("$nvcc" --version | tr '\n' ' ')" "$(printf '%s' "$listed" | tr '\n' ' ')"
    done
}

# ask_driver: the version of CUDA that the driver supports.
ask_driver() {
    with_driver nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p'
}

ask_tools() {
    for tool in c++ clang++ cmake g++ git make ninja; do ! command -v "$tool" >/dev/null || echo "$tool"; done
}

ask_memory() {
    sed -n 's/^MemAvailable: *//p' /proc/meminfo
    cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes
}

ask_cores() {
    nproc
    cat /sys/fs/cgroup/cpu.max
}

# ask_cpu: what is built for one CPU may not run on the next one, which a private image or another machine brings.
ask_cpu() {
    sed -n '/^flags\|^Features/{p;q;}' /proc/cpuinfo
}

ask_compiler() {
    { c++ --version || g++ --version || clang++ --version; } | head -n 1
}

# ask_trees FOLDER...: each source tree of llama.cpp in the first folder that has one: its time and its path.
ask_trees() {
    for folder; do
        found=$(find -L "$folder" -maxdepth 4 -type f -name CMakeLists.txt -exec grep -qi llama {} \; -print)
        [ "$found" ] || continue
        printf '%s\n' "$found" | while IFS= read -r file; do
            printf '%s\0%s\0' "$(stat -L -c %Y "${file%/*}")" "${file%/*}"
        done
        break
    done
}

# ask_source_archives FOLDER_OR_FILE...: an archive with such a tree, and its CMakeLists.txt.
ask_source_archives() {
    find_archive '^(\./)?([^/]+/)?CMakeLists\.txt$' llama "$@"
}

ask_source() {
    stat -L -c %F "$1"
}

# ask_tree FOLDER: a hash of the files of a tree of llama.cpp; nothing for another folder.
ask_tree() {
    cd "$1" && grep -qi llama CMakeLists.txt &&
        find . -path './build*' -type d -prune -o -name .git -prune -o -type f -exec sha256sum {} + | sort | sha256sum
}

# ask_references URL REFERENCE: what a reference means, or the error of git.
ask_references() {
    GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -oBatchMode=yes' git -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=60 \
        ls-remote -- "$1" "$2" "$2^{}" 2>&1
}

# ask_reference FILE: the commit that a reference meant last.
ask_reference() {
    cat "$1"
}

# sockets PORT_IN_HEXADECIMAL: the processes that listen there, as the kernel's tables show them.
sockets() {
    for inode in $(awk -v port=":$1" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10 }' \
        /proc/net/tcp /proc/net/tcp6); do
        # shellcheck disable=SC2012
        ls -l /proc/[0-9]*/fd | awk -v socket="socket:[$inode]" \
            '/^\/proc\// { split($0, parts, "/") } $NF == socket { print "pid=" parts[3] }' | grep . || echo '?'
    done
}

# ask_listeners PORT PORT_IN_HEXADECIMAL: each process that listens there: its number, name, program, user, /proc line,
# arguments, and the folder of records of the work that started it; `?` for one that the user cannot see.
ask_listeners() {
    # Of a free port no process is sought, which reads all of /proc.
    if found=$(ss -ltnH "sport = :$1"); then
        [ -z "$found" ] || found=$(ss -ltnpH "sport = :$1")
    else
        found=$(sockets "$2")
    fi
    [ "$found" ] || return
    for pid in $(printf '%s\n' "$found" | grep -o 'pid=[0-9]*' | sort -u | grep . || echo '?'); do
        process=/proc/${pid#pid=}
        parent=$(sed -n 's/^PPid:[[:space:]]*//p' "$process/status")
        folder_of_work=$(tr '\0' '\n' <"/proc/$parent/environ" | sed -n 's/^DAMODEL_STATE=//p')
        printf '%s\0%s\0%s\0%s\0%s\0%s\0%s\0' "${pid#pid=}" "$(cat "$process/comm")" \
            "$(readlink "$process/exe")" "$(stat -c %U "$process")" "$(cat "$process/stat")" \
            "$(base64 <"$process/cmdline")" "$folder_of_work"
    done
}

# memory_folder: a new folder with room for answers, in memory if possible, for what a command alone reads.
memory_folder() {
    for memory in /dev/shm /run "${TMPDIR:-/tmp}"; do
        case $memory in /dev/shm | /run) [ "$(stat -f -c %T "$memory")" = tmpfs ] || continue ;; esac
        memory_made=$(mktemp -d "$memory/damodel.XXXXXX") || continue
        head -c 262144 /dev/zero >"$memory_made/room" && rm "$memory_made/room" && echo "$memory_made" && return
        rm -rf "$memory_made"
    done 2>/dev/null
    return 1
}

# begin_question FILE SECONDS FUNCTION ARGUMENT...: runs a question in a child, which writes its answer into the file,
# then FILE.whole if all of it was written, and FILE.done.
# A child that nothing can end, as on a stale mount, is left alone: it holds no lock, no channel and no work. What is
# secret comes through a pipe.
begin_question() {
    question_file=$1 question_limit=$2
    shift 2
    (assignments DAMODEL_LIBRARIES DAMODEL_ENVIRONMENT) </dev/null 2>/dev/null 7>&- 9>&- | (
        unset DAMODEL_RUN
        export DAMODEL_CUDA_LIBRARIES DAMODEL_WANTS_GPU question_file LC_ALL=C
        exec timeout -s KILL "$question_limit" sh -c "$DAMODEL_FUNCTIONS
eval \"\$(cat)\"; exec </dev/null; \"\$@\" | cat && : >\"\$question_file.whole\"; : >\"\$question_file.done\"" sh "$@"
    ) >"$question_file" 2>/dev/null 7>&- 9>&- &
}

# in_time SECONDS FUNCTION ARGUMENT...: the answer to one question; fails without one, with 3 if it finds no room.
in_time() {
    in_time_folder=$(memory_folder) || return 3
    in_time_tenths=$(($1 * 10))
    begin_question "$in_time_folder/answer" "$@"
    in_time_result=1
    ! within "$in_time_tenths" test -e "$in_time_folder/answer.done" || in_time_result=3
    [ ! -e "$in_time_folder/answer.whole" ] || { cat "$in_time_folder/answer" && in_time_result=0; }
    rm -rf "$in_time_folder"
    return "$in_time_result"
}

# ask KEY ARGUMENT...: begins a question of the sender.
ask() {
    asked_key=$1
    shift
    asked_keys="$asked_keys $asked_key"
    [ -z "$asked_folder" ] || begin_question "$asked_folder/$asked_key" 100 "ask_$asked_key" "$@"
}

all_answered() {
    for asked_key in $asked_keys; do [ -e "$asked_folder/$asked_key.done" ] || return 1; done
}

# report_answers: asks all questions of the sender at once, and reports what was answered within 100 s.
report_answers() {
    asked_folder=$(memory_folder) || asked_folder=''
    asked_keys='' unanswered='' lacks_room=''
    eval "$DAMODEL_QUESTIONS"
    [ -z "$asked_folder" ] || within 1000 all_answered
    for asked_key in $asked_keys; do
        if [ -e "$asked_folder/$asked_key.whole" ]; then
            emit "fact_$asked_key" <"$asked_folder/$asked_key"
        else
            unanswered="$unanswered $asked_key"
            [ "$asked_folder" ] && [ ! -e "$asked_folder/$asked_key.done" ] || lacks_room=yes
        fi
    done
    [ -z "$asked_folder" ] || rm -rf "$asked_folder"
    [ -z "$unanswered" ] || printf 'damodel-report/1 unanswered=%s\n' "${unanswered# }"
    [ -z "$lacks_room" ] || printf 'damodel-report/1 lacks_room=yes\n'
}
