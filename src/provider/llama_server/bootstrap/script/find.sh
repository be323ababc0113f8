# ---- What the instance has ----

# check_model [FILE]: sets $model, to that of the job if no other is meant. Else sets $failed_kind and $failed_text, with what there is instead.
check_model() {
    expand "${1-$DAMODEL_MODEL}"
    model=$path
    failed_kind=missing_model
    if [ -d "$model" ]; then
        failed_text="the model $model is a directory. $(other_models "$model")"
    elif [ ! -e "$model" ]; then
        failed_text="there is no model at $model. $(other_models "$(dirname "$model")")"
    elif [ ! -r "$model" ]; then
        failed_text="the model $model may not be read by $(id -un)"
    elif [ "$(head -c 4 "$model" 2>/dev/null | tr -d '\000')" != GGUF ]; then
        failed_kind=no_gguf
        failed_text="$model does not begin as a GGUF file does: it may be a pointer of git-lfs, a page of a website, or cut off"
    else
        check_model_parts
        return
    fi
    return 1
}

# A model in parts (NAME-00001-of-00003.gguf) is loaded by its first, and needs them all.
check_model_parts() {
    model_name=${model##*/}
    case $model_name in
    *-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].gguf) ;;
    *) return 0 ;;
    esac
    model_parts=${model_name%.gguf}
    model_parts=${model_parts##*-of-}
    model_stem=${model%-[0-9][0-9][0-9][0-9][0-9]-of-*}
    model_part=0
    while [ "$model_part" -lt "$(expr "$model_parts" + 0)" ]; do
        model_part=$((model_part + 1))
        model_file=$model_stem-$(printf %05d "$model_part")-of-$model_parts.gguf
        if [ ! -f "$model_file" ]; then
            failed_text="the model is in $model_parts parts, and this one is missing: $model_file"
            return 1
        fi
    done
}

# other_models FOLDER: what could have been meant. Whoever restarts a server does not know the public storage.
other_models() {
    if [ "$DAMODEL_PUBLIC_STORAGE" ]; then
        expand "$DAMODEL_PUBLIC_STORAGE"
        set -- "$1" "$path/model"
    fi
    other_found=$(find -L "$@" -maxdepth 3 -name '*.gguf' 2>/dev/null | sort -u | first 40)
    if [ "$other_found" ]; then
        printf 'There is:\n%s' "$other_found"
    else
        printf 'No *.gguf file is in %s' "$1${2:+ or $2}"
    fi
}

# facts: emits what there is to compute and to compile with. nvidia-smi puts its errors on standard output.
facts() {
    facts_cards=$(limited 30 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null) || facts_cards=''
    emit cards "$(printf '%s\n%s\n' "$facts_cards" "$DAMODEL_GPU_NAME" | grep . | sort -u)"
    [ "$DAMODEL_BUILD" != prebuilt ] || return 0
    emit capabilities "$(limited 30 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)"
    emit toolkits "$(for candidate in "$(command -v nvcc)" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc /opt/cuda/bin/nvcc; do
        [ -x "$candidate" ] && [ -f "$candidate" ] || continue
        facts_list=$(limited 30 "$candidate" --list-gpu-arch 2>/dev/null) || facts_list=''
        printf '%s\t%s\t%s\n' "$candidate" "$(limited 30 "$candidate" --version 2>/dev/null | tr '\n' ' ')" "$(printf %s "$facts_list" | tr '\n' ' ')"
    done)"
    emit tools "$(for tool in c++ clang++ cmake g++ make ninja; do ! has "$tool" || echo "$tool"; done)"
    emit memory "$({
        sed -n 's/^MemAvailable: *//p' /proc/meminfo
        cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes
    } 2>/dev/null)"
    emit cores "$({
        nproc
        cat /sys/fs/cgroup/cpu.max
    } 2>/dev/null)"
}

# hardware FILE: what decides whether this prebuilt server can run, as one word: the cards, their driver, the file and the folder that it was found in.
hardware() {
    expand "${DAMODEL_PACKAGE:-$DAMODEL_PUBLIC_STORAGE/package}"
    {
        limited 30 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
        stat -L -c '%n %s %Y' "$1" "$path"
    } 2>/dev/null | hash
}

# better FILE [RANK]: keeps it in $best if it is better than that: of a higher rank, or newer.
better() {
    rank=${2:-0}
    # shellcheck disable=SC3013
    if [ -z "$best" ] || [ "$rank" -gt "$best_rank" ] || { [ "$rank" = "$best_rank" ] && [ "$1" -nt "$best" ]; }; then
        best=$1 best_rank=$rank
    fi
}

# find_server FOLDER: the best executable llama-server below, in $best. Globs, since a name may hold a newline.
find_server() {
    best=''
    for candidate in "$1"/llama-server "$1"/*/llama-server "$1"/*/*/llama-server "$1"/*/*/*/llama-server "$1"/*/*/*/*/llama-server; do
        # shellcheck disable=SC2015
        [ -f "$candidate" ] && [ -x "$candidate" ] && better "$candidate" "$(server_rank "$candidate")"
    done
    [ "$best" ]
}

# server_rank FILE: a server that runs before one that does not, then one for CUDA, then by the number of the build. A dotted version is of the
# numbering that came after the plain one.
server_rank() {
    binary=$1
    if rank_version=$(server_says --version); then
        rank_runs=1
    else
        rank_runs=0
    fi
    case $1 in
    *[Cc][Uu][Dd][Aa]*) rank_cuda=1 ;;
    *) rank_cuda=0 ;;
    esac
    printf '%s\n' "$rank_version" | awk -v runs="$rank_runs" -v cuda="$rank_cuda" '
        $1 == "version:" && !build { build = $2 ~ /^[0-9]+$/ ? $2 : 999999 }
        END { print runs * 10000000 + cuda * 1000000 + build }'
}

# archives FOLDER: runs over what may be one, as $archive, until the function $2 says yes.
archives() {
    for archive in "$1"/*.t?z "$1"/*.tar* "$1"/*.zip "$1"/*/*.t?z "$1"/*/*.tar* "$1"/*/*.zip "$1"/*/*/*.t?z "$1"/*/*/*.tar* "$1"/*/*/*.zip; do
        # shellcheck disable=SC2015
        [ -f "$archive" ] && "$2" && return 0
    done
    return 1
}

# contents FILE: the names in an archive.
contents() {
    case $1 in
    *.zip) unzip -Z1 "$1" </dev/null 2>/dev/null ;;
    *) tar -tf "$1" </dev/null 2>/dev/null ;;
    esac
}

# unpack FILE KIND: sets $unpacked, a folder below workspace/.damodel/KIND that is named after the content; done once.
unpack() {
    unpacked=$base/$2/$(hash <"$1")
    [ ! -d "$unpacked" ] || return 0
    mkdir -p "$unpacked.$$"
    case $1 in
    *.zip) unpack_error=$(unzip -q "$1" -d "$unpacked.$$" </dev/null 2>&1) ;;
    *) unpack_error=$(tar -xf "$1" -C "$unpacked.$$" </dev/null 2>&1) ;;
    esac && mv "$unpacked.$$" "$unpacked" && return 0
    rm -rf "$unpacked.$$"
    unpack_error="the archive $1 cannot be unpacked: $(printf '%s' "$unpack_error" | tail -n 2)"
    return 1
}

holds_server() {
    contents "$archive" | grep -Eq '(^|/)llama-server$'
}

# check_package: a path that was given must be there. Else sets $failed_kind and $failed_text.
check_package() {
    [ "$DAMODEL_PACKAGE" ] && [ "$DAMODEL_BUILD" != source ] || return 0
    expand "$DAMODEL_PACKAGE"
    [ ! -e "$path" ] || return 0
    package_missing "nothing is at $path"
}

# find_package: sets $status_package. A file is taken as it is, a folder is looked through, an archive unpacked.
find_package() {
    expand "${DAMODEL_PACKAGE:-$DAMODEL_PUBLIC_STORAGE/package}"
    package_root=$path
    if [ -f "$package_root" ]; then
        archive=$package_root
        case $archive in
        *.t?z | *.tar* | *.zip) ;;
        *) status_package=$package_root && return 0 ;;
        esac
    elif find_server "$package_root"; then
        status_package=$best && return 0
    elif ! archives "$package_root" holds_server; then
        package_missing "no executable llama-server is in $package_root"
        return
    fi
    if unpack "$archive" packages && find_server "$unpacked"; then
        status_package=$best && return 0
    fi
    package_missing "${unpack_error:-no llama-server is in the archive $archive}"
}

package_missing() {
    expand "$DAMODEL_PUBLIC_STORAGE"
    failed_kind=no_package
    package_found=$(cd "$path/package" 2>/dev/null && find . -maxdepth 3 ! -name . 2>/dev/null | sed 's|^\./||' | sort | first 40)
    if [ "$package_found" ]; then
        failed_text="$1. In $path/package there is:
$package_found"
    else
        failed_text="$1. There is nothing in $path/package"
    fi
    return 1
}

