# ---- The compile ----

# is_finished: whether the build was completed, and what it made still runs. Sets $binary.
is_finished() {
    load "$build.done" || return 1
    binary=$done_binary
    [ -x "$binary" ] && server_says --version >/dev/null
}

# build_server: sets $binary, compiled from $source_folder; what is finished is never compiled again. The folder's name is made of all that
# decides its content, and whatever was done in it before, the compile goes on from there.
build_server() {
    mkdir -p "$base/builds"
    # What is built for one CPU may not run on the next one, which a private image or another machine brings.
    build_cpu=$(sed -n '/^flags\|^Features/{p;q;}' /proc/cpuinfo 2>/dev/null)
    build_compiler=$({ c++ --version || g++ --version || clang++ --version; } 2>/dev/null | head -n 1)
    build=$base/builds/$(printf '%s\n' "$status_source" "$source_folder" "$DAMODEL_ARCHITECTURES" "$DAMODEL_NVCC" "$DAMODEL_NVCC_VERSION" "$build_cpu" \
        "$build_compiler" "$(compile_flags)" | hash)
    status_compile_log=$build.log
    set_status compile
    # Compilers inherit the lock: while one of them lives, nobody else begins in this folder.
    if ! hold 7 "$build.lock"; then
        say "another server's work compiles in $build; waiting for it"
        until hold 7 "$build.lock"; do pause; done
    fi
    if is_finished; then
        say "the build $build is finished"
    else
        # A compile that was killed, or a finished build that does not run any more.
        was_cut_off=''
        if [ -f "$build.begun" ] || [ -f "$build.done" ]; then
            was_cut_off=yes
        fi
        rm -f "$build.done"
        : >"$build.begun"
        say "compiling $source_folder ($status_source) for CUDA architecture $DAMODEL_ARCHITECTURES with $DAMODEL_NVCC $DAMODEL_NVCC_VERSION in $build"
        # What a power cut left behind may look finished and be none: if going on fails, the second try begins anew.
        if ! compile_once && [ "$was_cut_off" ] && check_room; then
            say 'going on with what was there failed; once more from the beginning'
            rm -rf "$build"
            compile_once
        fi
        rm -f "$build.begun"
    fi
    is_finished || failed_compile
    build_result=$?
    release 7
    return "$build_result"
}

compile_once() {
    mkdir -p "$build" && compile_configure && compile_make && compile_check
}

# compile_flags: the settings of a build, a word each. The options went by several names, and an old one may be an error today: only what the source
# knows is given. The web page, which is not used here, would be downloaded.
compile_flags() {
    printf ' -D%s' CMAKE_BUILD_TYPE=Release LLAMA_BUILD_TESTS=OFF LLAMA_BUILD_SERVER=ON
    flags_cuda=GGML_CUDA
    for candidate in LLAMA_CUBLAS LLAMA_CUDA GGML_CUDA; do
        ! knows "$candidate" || flags_cuda=$candidate
    done
    printf ' -D%s=ON' "$flags_cuda"
    for candidate in LLAMA_CURL LLAMA_BUILD_UI LLAMA_USE_PREBUILT_UI LLAMA_BUILD_WEBUI LLAMA_USE_PREBUILT_WEBUI; do
        ! knows "$candidate" || printf ' -D%s=OFF' "$candidate"
    done
    # Until 2025 the server was one of the examples.
    [ ! -d "$source_folder/tools/server" ] || printf ' -DLLAMA_BUILD_EXAMPLES=OFF'
}

compile_configure() {
    # shellcheck disable=SC2046
    set -- -S "$source_folder" -B "$build" "-DCMAKE_CUDA_ARCHITECTURES=$DAMODEL_ARCHITECTURES" "-DCMAKE_CUDA_COMPILER=$DAMODEL_NVCC" $(compile_flags)
    # A folder keeps the generator with which it was begun.
    if [ -f "$build/CMakeCache.txt" ]; then
        :
    elif has ninja; then
        set -- "$@" -G Ninja
    else
        set -- "$@" -G 'Unix Makefiles'
    fi
    logged cmake "$@"
}

knows() {
    cat "$source_folder/CMakeLists.txt" "$source_folder/ggml/CMakeLists.txt" 2>/dev/null | grep -Eq "option\($1[ )]"
}

compile_make() {
    target=llama-server
    if ! grep -qs llama-server "$source_folder/CMakeLists.txt" "$source_folder/tools/server/CMakeLists.txt" "$source_folder/examples/server/CMakeLists.txt"; then
        # As it was called until June 2024.
        target=server
    fi
    logged cmake --build "$build" --config Release --target "$target" -j "$DAMODEL_JOBS"
}

compile_check() {
    for binary in "$build/bin/$target" "$build/$target"; do
        if [ -x "$binary" ] && server_says --version >>"$build.log"; then
            done_binary=$binary
            save "$build.done" done_binary
            return
        fi
    done
    printf '%s was built, and does not run: %s\n' "$target" "$(server_says --version 2>&1 | tail -n 3)" >>"$build.log"
    return 1
}

# logged COMMAND...: into the log of the compile, with the toolkit on the PATH.
logged() {
    printf '+ %s\n' "$*" >>"$build.log"
    PATH=${DAMODEL_NVCC%/*}:$PATH LC_ALL=C "$@" </dev/null >>"$build.log" 2>&1
}

failed_compile() {
    check_room || return 1
    failed_kind=compile
    if tail -c 65536 "$build.log" 2>/dev/null | grep -q 'No space left on device'; then
        failed_kind=disk_full
    fi
    failed_text="the compile of $source_folder ($status_source) for CUDA architecture $DAMODEL_ARCHITECTURES failed; its log $build.log says:
$(decisive "$build.log")"
    return 1
}

