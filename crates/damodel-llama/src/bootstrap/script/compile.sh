# ---- The source and the compile ----

# provide: fetches or unpacks $DAMODEL_PROVIDED, once for all servers of the instance.
provide() {
    [ "$DAMODEL_PROVIDED" ] || return 0
    lock_build "${DAMODEL_PROVIDED%/*}/lock"
    # The commit of a reference, for a time without network.
    [ -z "$DAMODEL_REFERENCE_FILE" ] || write "$DAMODEL_REFERENCE_FILE" "$DAMODEL_SOURCE_NAME"
    provided=$DAMODEL_PROVIDED.$$
    [ -d "$DAMODEL_PROVIDED" ] || provide_error=$( (eval "$DAMODEL_FETCH") 2>&1 </dev/null) || {
        rm -rf "$provided"
        fail "$DAMODEL_PROVIDE_KIND" "$(printf '%s' "$provide_error" | tail -n 3)"
        return
    }
    exec 7>&-
}

# is_finished: whether the build was completed and its program still runs. Sets $binary.
is_finished() {
    load "$build.done" && [ -x "$done_binary" ] && binary=$done_binary && server_says --version >/dev/null
}

# build_server: sets $binary, compiled from $DAMODEL_SOURCE. The name of the folder is made of all that decides its
# content: a finished build is used again, and an unfinished one is continued.
build_server() {
    build=$DAMODEL_BUILD_FOLDER
    status_compile_log=$build.log
    is_finished || set_status compile
    lock_build "$build.lock"
    if ! is_finished; then
        was_cut_off=$(ls "$build.begun" "$build.done" 2>/dev/null)
        rm -f "$build.done"
        : >"$build.begun"
        say "compiling $DAMODEL_SOURCE in $build"
        # A power cut may leave damaged files that look finished: if the compile cannot continue, it starts again once.
        if ! compile && [ "$was_cut_off" ]; then
            say 'continuing the compile failed; starting it again'
            rm -rf "$build"
            compile
        fi
        rm -f "$build.begun"
        is_finished || fail compile || return
    fi
    exec 7>&-
}

# make_server: goes on with half the jobs in the same folder if the kernel killed a compiler for memory.
make_server() {
    make_jobs=$DAMODEL_JOBS
    while :; do
        make_kills=$(oom_kills) make_begin=$(($(wc -c <"$build.log") + 1))
        logged cmake --build "$build" --config Release --target llama-server -j "$make_jobs" && return
        make_exit=$?
        [ "$make_jobs" -gt 1 ] && ran_out_of_memory || return 1
        # Compilers that have lost their parent would write into the same folder.
        kill_others
        make_jobs=$((make_jobs / 2))
        say "memory ran out; continuing with $make_jobs files at once"
    done
}

# ran_out_of_memory: whether the compile that just ended says so, or the kernel.
ran_out_of_memory() {
    [ "$make_exit" = 137 ] || [ "$(oom_kills)" != "$make_kills" ] || tail -c "+$make_begin" "$build.log" |
        grep -Eq 'Killed signal terminated program|died due to signal 9|Error 137|code=137'
}

# kill_others: ends all that this work has started.
kill_others() {
    for other in $(grep -lF "DAMODEL_RUN=$DAMODEL_RUN" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3); do
        [ "$other" = "$$" ] || kill -s KILL "$other" 2>/dev/null
    done
}

# compile: some settings are given only if the source has the option, see start.rs.
compile() {
    mkdir -p "$build" || return 1
    set --
    for setting in $DAMODEL_CMAKE_WHERE; do
        ! grep -Eqs "option\(${setting%%:*}[ )]" "$DAMODEL_SOURCE/CMakeLists.txt" \
            "$DAMODEL_SOURCE/ggml/CMakeLists.txt" || set -- "$@" "-D${setting#*:}"
    done
    eval "logged cmake -S \"\$DAMODEL_SOURCE\" -B \"\$build\" $DAMODEL_CMAKE \"\$@\"" || return 1
    make_server || return 1
    done_binary=$build/bin/llama-server binary=$build/bin/llama-server
    # The log then names a missing library.
    server_says --version >>"$build.log" && save "$build.done" done_binary
}

# logged COMMAND...: with its output in the log of the compile, the toolkit on the PATH, and the driver's libraries.
logged() {
    printf '+ %s\n' "$*" >>"$build.log"
    (PATH=${DAMODEL_NVCC%/*}:$PATH && export LC_ALL=C && with_driver "$@") </dev/null >>"$build.log" 2>&1
}
