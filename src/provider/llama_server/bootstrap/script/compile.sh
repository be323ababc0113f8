
# ---- The source and the compile ----

# provide: what is to be fetched or unpacked, in $DAMODEL_PROVIDED; done once for all servers of the instance.
provide() {
    [ "$DAMODEL_PROVIDED" ] || return 0
    lock_build "${DAMODEL_PROVIDED%/*}/lock"
    # What a reference means is known for a day without network.
    [ -z "$DAMODEL_REFERENCE_FILE" ] || write "$DAMODEL_REFERENCE_FILE" "$DAMODEL_SOURCE_NAME"
    provided=$DAMODEL_PROVIDED.$$
    if [ ! -d "$DAMODEL_PROVIDED" ] && ! provide_error=$({ mkdir "$provided" && (eval "$DAMODEL_FETCH") </dev/null && mv "$provided" "$DAMODEL_PROVIDED"; } 2>&1); then
        rm -rf "$provided"
        fail "$DAMODEL_PROVIDE_KIND" "$(printf '%s' "$provide_error" | tail -n 3)"
        return
    fi
    exec 7>&-
}

# is_finished: whether the build was completed, and what it made still runs. Sets $binary.
is_finished() {
    load "$build.done" && [ -x "$done_binary" ] && use "$done_binary" && server_says --version >/dev/null
}

# build_server: sets $binary, compiled from $DAMODEL_SOURCE; what is finished is never compiled again. The folder's
# name is made of all that decides its content, and whatever was done in it before, the compile goes on from there.
build_server() {
    build=$base/builds/$DAMODEL_BUILD_KEY
    status_compile_log=$build.log
    set_status compile
    lock_build "$build.lock"
    if ! is_finished; then
        # A compile that was killed, or a finished build that does not run any more.
        was_cut_off=$(ls "$build.begun" "$build.done" 2>/dev/null)
        rm -f "$build.done"
        : >"$build.begun"
        say "compiling $DAMODEL_SOURCE in $build"
        # What a power cut left behind may look finished and be none: if going on fails, the second try begins anew.
        if ! compile && [ "$was_cut_off" ]; then
            say 'going on with what was there failed; once more from the beginning'
            rm -rf "$build"
            compile
        fi
        rm -f "$build.begun"
        is_finished || fail compile || return
    fi
    exec 7>&-
}

# compile: the settings went by several names, and an old one may be an error today: some are given only where the
# source knows an option.
compile() {
    mkdir -p "$build" || return 1
    set --
    for setting in $DAMODEL_CMAKE_WHERE; do
        ! grep -Eqs "option\(${setting%%:*}[ )]" "$DAMODEL_SOURCE/CMakeLists.txt" "$DAMODEL_SOURCE/ggml/CMakeLists.txt" || set -- "$@" "-D${setting#*:}"
    done
    eval "logged cmake -S \"\$DAMODEL_SOURCE\" -B \"\$build\" $DAMODEL_CMAKE \"\$@\"" || return 1
    # As it was called until June 2024.
    target=server
    ! grep -qs llama-server "$DAMODEL_SOURCE"/CMakeLists.txt "$DAMODEL_SOURCE"/*/server/CMakeLists.txt || target=llama-server
    logged cmake --build "$build" --config Release --target "$target" -j "$DAMODEL_JOBS" || return 1
    done_binary=$build/$target
    [ ! -x "$build/bin/$target" ] || done_binary=$build/bin/$target
    # A library that is missing is in the log then.
    use "$done_binary" && server_says --version >>"$build.log" && save "$build.done" done_binary
}

# logged COMMAND...: into the log of the compile, with the toolkit on the PATH.
logged() {
    printf '+ %s\n' "$*" >>"$build.log"
    PATH=${DAMODEL_NVCC%/*}:$PATH LC_ALL=C "$@" </dev/null >>"$build.log" 2>&1
}
