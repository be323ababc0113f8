# ---- The source and the compile ----

# provide: what is to be fetched or unpacked, in $DAMODEL_PROVIDED; done once for all servers of the instance.
provide() {
    [ "$DAMODEL_PROVIDED" ] || return 0
    mkdir -p "${DAMODEL_PROVIDED%/*}"
    hold 7 "${DAMODEL_PROVIDED%/*}/lock"
    # What a reference means is known for a day without network.
    [ -z "$DAMODEL_REFERENCE_FILE" ] || write "$DAMODEL_REFERENCE_FILE" "$DAMODEL_SOURCE_COMMIT"
    provide_folder=$DAMODEL_PROVIDED.$$
    if [ ! -d "$DAMODEL_PROVIDED" ] && ! provide_error=$({ fetch && mv "$provide_folder" "$DAMODEL_PROVIDED"; } 2>&1); then
        rm -rf "$provide_folder"
        check_room && fail "$DAMODEL_PROVIDE_KIND" "$DAMODEL_PROVIDE_TEXT: $(printf '%s' "$provide_error" | tail -n 3)"
        return 1
    fi
    exec 7>&-
}

fetch() {
    mkdir -p "$provide_folder" || return 1
    case $DAMODEL_ARCHIVE in
    '')
        quiet_git init -q && { quiet_git fetch -q --depth 1 -- "$DAMODEL_SOURCE_URL" "$DAMODEL_SOURCE_COMMIT" ||
            quiet_git fetch -q --depth 1 -- "$DAMODEL_SOURCE_URL" "$DAMODEL_SOURCE_REF"; } && quiet_git checkout -q FETCH_HEAD
        ;;
    *.zip) unzip -q "$DAMODEL_ARCHIVE" -d "$provide_folder" </dev/null ;;
    *) tar -xf "$DAMODEL_ARCHIVE" -C "$provide_folder" </dev/null ;;
    esac
}

# git without a question that nobody would answer, and without waiting for ever for a network that went away.
quiet_git() {
    GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -oBatchMode=yes' git -C "$provide_folder" -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=60 "$@" </dev/null
}

# is_finished: whether the build was completed, and what it made still runs. Sets $binary.
is_finished() {
    load "$build.done" && [ -x "$done_binary" ] && use "$done_binary" && server_says --version >/dev/null
}

# build_server: sets $binary, compiled from $DAMODEL_SOURCE; what is finished is never compiled again. The folder's
# name is made of all that decides its content, and whatever was done in it before, the compile goes on from there.
build_server() {
    mkdir -p "$base/builds"
    build=$base/builds/$DAMODEL_BUILD_KEY
    status_source=$DAMODEL_SOURCE_NAME status_compile_log=$build.log
    set_status compile
    # Compilers inherit the lock: while one of them lives, nobody else begins in this folder.
    hold 7 "$build.lock"
    if is_finished; then
        say "the build $build is finished"
    else
        # A compile that was killed, or a finished build that does not run any more.
        was_cut_off=$(ls "$build.begun" "$build.done" 2>/dev/null)
        rm -f "$build.done"
        : >"$build.begun"
        say "compiling $DAMODEL_SOURCE ($status_source) for CUDA architecture $DAMODEL_ARCHITECTURES with $DAMODEL_NVCC in $build"
        # What a power cut left behind may look finished and be none: if going on fails, the second try begins anew.
        if ! compile && [ "$was_cut_off" ] && check_room; then
            say 'going on with what was there failed; once more from the beginning'
            rm -rf "$build"
            compile
        fi
        rm -f "$build.begun"
        if ! is_finished; then
            check_room && fail compile "the compile of $DAMODEL_SOURCE ($status_source) for CUDA architecture $DAMODEL_ARCHITECTURES failed"
            return 1
        fi
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
    for done_binary in "$build/bin/$target" "$build/$target"; do
        [ ! -x "$done_binary" ] || break
    done
    # A library that is missing is in the log then.
    use "$done_binary" && server_says --version >>"$build.log" && save "$build.done" done_binary
}

# logged COMMAND...: into the log of the compile, with the toolkit on the PATH.
logged() {
    printf '+ %s\n' "$*" >>"$build.log"
    PATH=${DAMODEL_NVCC%/*}:$PATH LC_ALL=C "$@" </dev/null >>"$build.log" 2>&1
}

