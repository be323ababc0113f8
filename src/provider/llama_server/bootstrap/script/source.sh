# ---- The source ----

# find_source: sets $source_folder, $status_source (what exactly it is) and, for a compile, all that it takes to tell it from another.
find_source() {
    mkdir -p "$base/sources"
    # Two servers of one instance may want the same source at once.
    until hold 7 "$base/sources/lock"; do pause; done
    if [ "$DAMODEL_SOURCE_PATH" ]; then
        expand "$DAMODEL_SOURCE_PATH"
        source_from_path "$path"
    elif [ "$DAMODEL_SOURCE_URL" ]; then
        source_from_git "$DAMODEL_SOURCE_URL" "$DAMODEL_SOURCE_REF"
    else
        expand "$DAMODEL_PUBLIC_STORAGE"
        if find_tree "$path/package" || archives "$path/package" holds_source; then
            source_from_path "${best:-$archive}"
        else
            source_from_git "$DAMODEL_DEFAULT_URL" "$DAMODEL_DEFAULT_REF"
        fi
    fi
    source_result=$?
    release 7
    return "$source_result"
}

is_tree() {
    [ -f "$1/CMakeLists.txt" ] && grep -qi llama "$1/CMakeLists.txt"
}

# find_tree FOLDER: the newest source tree below, in $best; those nearest to the folder are asked first.
find_tree() {
    best=''
    for tree_level in '' '/*' '/*/*' '/*/*/*'; do
        eval "set -- \"\$1\" \"\$1\"$tree_level"
        tree_root=$1
        shift
        for candidate in "$@"; do
            # shellcheck disable=SC2015
            is_tree "$candidate" && better "$candidate"
        done
        [ -z "$best" ] || return 0
        set -- "$tree_root"
    done
    return 1
}

holds_source() {
    contents "$archive" | grep -Eq '^(\./)?([^/]+/)?CMakeLists\.txt$'
}

no_source() {
    failed_kind=no_source failed_text=$1
    return 1
}

# source_from_path PATH: a tree is compiled where it is, and known by the hash of its files; an archive is known by its own.
source_from_path() {
    if [ -d "$1" ]; then
        if ! is_tree "$1"; then
            no_source "there is no source of llama.cpp in $1: it has no CMakeLists.txt that speaks of llama"
            return
        fi
        source_folder=$1
        status_source=tree-$(cd "$1" && find . -path './build*' -type d -prune -o -name .git -prune -o -type f -exec sha256sum {} + |
            LC_ALL=C sort | hash)
    elif [ -f "$1" ]; then
        if ! unpack "$1" sources; then
            check_room && no_source "$unpack_error"
            return 1
        fi
        if ! find_tree "$unpacked"; then
            no_source "there is no source of llama.cpp in the archive $1"
            return
        fi
        source_folder=$best
        status_source=archive-${unpacked##*/}
    else
        no_source "there is no source at $1"
    fi
}

# git without a question that nobody would answer, and without waiting for ever for a network that went away.
quiet_git() {
    GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -oBatchMode=yes' git -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=60 "$@" </dev/null
}

# source_from_git URL REF: fetches one commit, once. What a reference meant is remembered for a day without network.
source_from_git() {
    if ! has git; then
        failed_kind=missing_tool
        failed_text="git is not installed, and the source is to come from $1: install it, or give source.path"
        return 1
    fi
    git_known=$base/sources/$(printf '%s\n%s' "$1" "$2" | hash).ref
    if printf '%s' "$2" | grep -Eqx '[0-9a-f]{40}'; then
        git_commit=$2
    else
        git_error=$(quiet_git ls-remote -- "$1" "$2" "$2^{}" 2>&1 >"$git_known.$$")
        # A tag's commit before the tag itself, a tag before a branch.
        git_commit=$(awk -v ref="$2" '
            $2 == "refs/tags/" ref "^{}" { rank[4] = $1 } $2 == "refs/tags/" ref { rank[3] = $1 }
            $2 == "refs/heads/" ref { rank[2] = $1 } $2 == ref { rank[1] = $1 }
            END { for (i = 4; i; i--) if (rank[i]) { print rank[i]; exit } }' "$git_known.$$")
        rm -f "$git_known.$$"
        if [ "$git_commit" ]; then
            printf '%s\n' "$git_commit" >"$git_known.$$" && mv "$git_known.$$" "$git_known"
        elif [ "$git_error" ] && [ -s "$git_known" ]; then
            git_commit=$(cat "$git_known")
            note "the repository $1 could not be asked; the source is what $2 meant before, commit $git_commit"
        else
            no_source "$1 has no reference $2${git_error:+: $(printf '%s' "$git_error" | tail -n 3)}"
            return
        fi
    fi
    status_source=$git_commit
    source_folder=$base/sources/$(printf '%s\n%s' "$1" "$git_commit" | hash)
    [ ! -d "$source_folder" ] || return 0
    git_folder=$source_folder.$$
    if git_error=$({
        quiet_git init -q "$git_folder" &&
            { quiet_git -C "$git_folder" fetch -q --depth 1 -- "$1" "$git_commit" ||
                quiet_git -C "$git_folder" fetch -q --depth 1 -- "$1" "$2"; } &&
            quiet_git -C "$git_folder" checkout -q FETCH_HEAD
    } 2>&1) && is_tree "$git_folder" && mv "$git_folder" "$source_folder"; then
        return 0
    fi
    rm -rf "$git_folder"
    check_room || return 1
    no_source "$1 at $2 (commit $git_commit) could not be fetched: $(printf '%s' "${git_error:-it is no source of llama.cpp}" | tail -n 3)"
}

