# ---- The compile ----

# find_toolkit: sets $nvcc and $nvcc_version, of the first toolkit that compiles for all of $architectures. CUDA 13 does not for V100 and P40.
find_toolkit() {
    toolkits=''
    for candidate in "$(command -v nvcc)" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc /opt/cuda/bin/nvcc; do
        [ -x "$candidate" ] && [ -f "$candidate" ] || continue
        nvcc=$candidate
        nvcc_version=$(limited 30 "$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        toolkits="$toolkits
$nvcc (${nvcc_version:-no version})"
        if toolkit_arches=$(limited 30 "$nvcc" --list-gpu-arch 2>/dev/null) && [ "$toolkit_arches" ]; then
            toolkit_lacks=''
            for toolkit_arch in $(printf '%s' "$architectures" | tr ';' ' '); do
                case $toolkit_arch in
                [0-9]*) printf '%s\n' "$toolkit_arches" | grep -qx "compute_${toolkit_arch%%-*}" || toolkit_lacks=yes ;;
                esac
            done
            [ -z "$toolkit_lacks" ] || continue
        fi
        return 0
    done
    if [ "$toolkits" ]; then
        failed_kind=architecture
        failed_text="no CUDA toolkit there compiles for the architecture $architectures (CUDA 13 dropped V100 and P40: take an image with CUDA 12 or 11). There is:$toolkits"
    else
        failed_kind=missing_toolkit
        failed_text='there is no CUDA toolkit to compile with: no nvcc on the PATH, in /usr/local/cuda* or /opt/cuda. Take an image with the CUDA development tools'
    fi
    return 1
}

# compile_jobs: as many as asked for; else as many as there are cores, and 1.5 GB of memory each. A container may be granted less than it sees.
compile_jobs() {
    if [ "$DAMODEL_JOBS" ]; then
        printf '%s' "$DAMODEL_JOBS"
        return
    fi
    jobs_memory=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
    for jobs_file in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
        jobs_limit=$(cat "$jobs_file" 2>/dev/null) || continue
        # "max", or the number near 2^63 that says the same.
        case $jobs_limit in
        '' | *[!0-9]* | ????????????????*) continue ;;
        esac
        [ "$((jobs_limit / 1048576))" -ge "${jobs_memory:-0}" ] || jobs_memory=$((jobs_limit / 1048576))
    done
    jobs_cores=$(nproc 2>/dev/null || echo 1)
    jobs_quota=$(awk '$1 != "max" { print int(($1 + $2 - 1) / $2) }' /sys/fs/cgroup/cpu.max 2>/dev/null)
    awk -v memory="${jobs_memory:-1536}" -v cores="$jobs_cores" -v quota="${jobs_quota:-$jobs_cores}" 'BEGIN {
        jobs = int(memory / 1536)
        if (jobs > cores) jobs = cores
        if (jobs > quota) jobs = quota
        print jobs < 1 ? 1 : jobs
    }'
}

# check_tools: what every compile needs.
check_tools() {
    tools_missing=''
    has cmake || tools_missing='cmake'
    has c++ || has g++ || has clang++ || tools_missing="$tools_missing a C++ compiler (g++)"
    has ninja || has make || tools_missing="$tools_missing make or ninja"
    [ "$tools_missing" ] || return 0
    failed_kind=missing_tool
    failed_text="the compile needs what is not installed: ${tools_missing# }"
    return 1
}

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
    build=$base/builds/$(printf '%s\n' "$status_source" "$source_folder" "$architectures" "$nvcc" "$nvcc_version" "$build_cpu" \
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
        say "compiling $source_folder ($status_source) for CUDA architecture $architectures with $nvcc $nvcc_version in $build"
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
    set -- -S "$source_folder" -B "$build" "-DCMAKE_CUDA_ARCHITECTURES=$architectures" "-DCMAKE_CUDA_COMPILER=$nvcc" $(compile_flags)
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
    logged cmake --build "$build" --config Release --target "$target" -j "$(compile_jobs)"
}

compile_check() {
    for binary in "$build/bin/$target" "$build/$target"; do
        if [ -x "$binary" ] && server_says --version >>"$build.log"; then
            done_binary=$binary done_source=$status_source done_architectures=$architectures done_nvcc=$nvcc_version
            save "$build.done" done_binary done_source done_architectures done_nvcc
            return
        fi
    done
    printf '%s was built, and does not run: %s\n' "$target" "$(server_says --version 2>&1 | tail -n 3)" >>"$build.log"
    return 1
}

# logged COMMAND...: into the log of the compile, with the toolkit on the PATH.
logged() {
    printf '+ %s\n' "$*" >>"$build.log"
    PATH=${nvcc%/*}:$PATH LC_ALL=C "$@" </dev/null >>"$build.log" 2>&1
}

failed_compile() {
    check_room || return 1
    failed_kind=compile
    if tail -c 65536 "$build.log" 2>/dev/null | grep -q 'No space left on device'; then
        failed_kind=disk_full
    fi
    failed_text="the compile of $source_folder ($status_source) for CUDA architecture $architectures failed; its log $build.log says:
$(decisive "$build.log")"
    return 1
}

