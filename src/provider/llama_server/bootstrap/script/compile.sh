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
    load "$build.done" && [ -x "$done_binary" ] && use "$done_binary" && server_says --version >/dev/null
}

# build_server: sets $binary, compiled from $DAMODEL_SOURCE. The name of the folder is made of all that decides its
# content: a finished build is used again, and an unfinished one is continued.
build_server() {
    build=$DAMODEL_BUILD_FOLDER
    status_compile_log=$build.log
    set_status compile
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

# compile: some settings are given only if the source has the option, see recipe.rs.
compile() {
    mkdir -p "$build" || return 1
    set --
    for setting in $DAMODEL_CMAKE_WHERE; do
        ! grep -Eqs "option\(${setting%%:*}[ )]" "$DAMODEL_SOURCE/CMakeLists.txt" \
            "$DAMODEL_SOURCE/ggml/CMakeLists.txt" || set -- "$@" "-D${setting#*:}"
    done
    eval "logged cmake -S \"\$DAMODEL_SOURCE\" -B \"\$build\" $DAMODEL_CMAKE \"\$@\"" || return 1
    # The target was called "server" until June 2024.
    target=server
    ! grep -qs llama-server "$DAMODEL_SOURCE"/CMakeLists.txt "$DAMODEL_SOURCE"/*/server/CMakeLists.txt ||
        target=llama-server
    logged cmake --build "$build" --config Release --target "$target" -j "$DAMODEL_JOBS" || return 1
    done_binary=$build/$target
    [ ! -x "$build/bin/$target" ] || done_binary=$build/bin/$target
    # The log then names a missing library.
    use "$done_binary" && server_says --version >>"$build.log" && save "$build.done" done_binary
}

# logged COMMAND...: with its output in the log of the compile, and the toolkit on the PATH.
logged() {
    printf '+ %s\n' "$*" >>"$build.log"
    PATH=${DAMODEL_NVCC%/*}:$PATH LC_ALL=C "$@" </dev/null >>"$build.log" 2>&1
}
