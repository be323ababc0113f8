# ---- The downloads: of the model, and of files beside it ----
#
# A file that is there is never asked about on the network, and never overwritten. What has arrived of another one is in
# FILE.PORT-INSTANCE.part, with its length and its tag in FILE.PORT-INSTANCE.part.of: it is continued only as long as
# the server shows the same ones. The address and the token are on no command line and in no file.

# obtain_files: downloads what is missing, and checks the sums of what is there. Sets $server_model_verified: whether
# the sums of all files of the model are proved.
obtain_files() {
    models=$workspace/.damodel/models download_total=0 download_before=0 server_model_verified=''
    [ "$DAMODEL_FILES" ] || return 0
    each_file is_there || set_status download
    each_file measure_file && each_file has_room && each_file obtain_file || {
        name_part
        status_file=$file
        return 1
    }
    exec 7>&-
    unset DAMODEL_FILES token
    set_status start
}

# each_file FUNCTION: for each file.
each_file() {
    each_step=$1
    # Sets the arguments of this function.
    eval "set -- $DAMODEL_FILES"
    while [ "$#" -gt 0 ]; do
        file=$1 address=$2 sum_given=$3 token=$4 is_of_model=$5 part=$1.${state##*/}.part
        "$each_step" || return
        shift 5
    done
}

# lock_file: waits for another server that downloads it. Only one lock is held at a time, so none waits for ever.
lock_file() {
    lock_build "$models/$(name_of "$file").lock"
}

is_there() {
    [ -e "$file" ]
}

# name_part: adds what has arrived of the file to the text of the failure.
name_part() {
    [ "$(size_of "$part")" = 0 ] || failed_text="$failed_text. The downloaded part was kept: $part"
}

# name_of FILE: the name of its records.
name_of() {
    printf '%s' "$1" | sha256sum | cut -c 1-16
}

# remove_part: with what is beside it.
remove_part() {
    rm -f "$part" "$part".*
}

size_of() {
    stat -L -c %s "$1" 2>/dev/null || echo 0
}

# identity_of FILE: changes with each other file at this path. A part that is renamed keeps it.
identity_of() {
    stat -L -c '%i %s %y' "$1"
}

# measure_file: adds what is missing of it to the need of its disk.
measure_file() {
    lock_file
    ! is_there || return 0
    persist find_part || return
    find_disk
    eval "$disk=\$((\${$disk:-0} + length - part_size))"
    download_total=$((download_total + length))
}

# find_disk: sets $disk to a name of the disk of the file, and $disk_folder to a folder there.
find_disk() {
    disk_folder=${file%/*}
    until [ -d "$disk_folder/" ]; do disk_folder=${disk_folder%/*}; done
    disk=disk_$(stat -L -c %d "$disk_folder/")
}

# has_room: whether what is missing of all files on the disk of the file fits there, and 1 GiB more.
has_room() {
    find_disk
    eval "disk_need=\${$disk:-0}"
    [ "$disk_need" -gt 0 ] || return 0
    room=$(df -Pk "$disk_folder/" | awk 'NR == 2 { print $4 }')
    [ -z "$room" ] || [ "$((room * 1024 - 1073741824))" -ge "$disk_need" ] || fail model_room \
        "${file%/*} has $((room / 1024)) MiB left; $(((disk_need + 1048575) / 1048576)) MiB and 1 GiB are needed"
}

# obtain_file: downloads the file, if it is missing, and checks its sum.
obtain_file() {
    lock_file
    is_second=''
    until is_there; do
        persist load_part || return
        sum_of=$(identity_of "$part")
        if [ "$sum_wanted" ]; then
            sum=$(sha256sum <"$part" | cut -c 1-64) sum_proved=yes
            if [ "$sum" != "$sum_wanted" ]; then
                remove_part
                [ -z "$is_second" ] || fail wrong_sum "$file arrived with the sum $sum, not $sum_wanted" || return
                is_second=yes
                continue
            fi
            save "$models/$(name_of "$file")" sum_of sum sum_proved
        fi
        sync "$part" 2>/dev/null || sync
        # Neither replaces a file that has appeared meanwhile. Some file systems have no links.
        put_error=$({ ln -T "$part" "$file" || mv -n -T "$part" "$file"; } 2>&1)
        is_there || fail download "$part cannot be renamed: $put_error" || return
        download_before=$((download_before + length))
    done
    remove_part
    check_file
}

# check_file: whether the file can be read and has the sum that is wanted, which is computed once.
check_file() {
    [ -f "$file" ] && [ -r "$file" ] || fail download "$file is not a file that can be read" || return
    [ "$is_of_model" ] || is_permitted_begin "$(head -c 4 "$file" | tr -d '\000')" "$file" || return
    sum_now=$(identity_of "$file")
    load "$models/$(name_of "$file")" && [ "$sum_of" = "$sum_now" ] || { sum='' sum_proved=''; }
    if [ "$sum_given" ]; then
        if [ -z "$sum" ]; then
            set_status download
            (download_part=$file download_total=$(size_of "$file") download_before=0 && show_progress)
            sum=$(sha256sum <"$file" | cut -c 1-64)
        fi
        [ "$sum" != "$sum_given" ] || sum_proved=yes
        sum_of=$sum_now
        save "$models/$(name_of "$file")" sum_of sum sum_proved
        [ "$sum" = "$sum_given" ] || fail wrong_sum "$file has the sum $sum, not $sum_given" || return
    fi
    case $is_of_model:$sum_proved in
    yes:) server_model_verified=no ;;
    yes:yes) server_model_verified=${server_model_verified:-yes} ;;
    esac
}

# is_permitted_begin BEGIN FILE: whether a file that begins so can be what it is: a model begins with its magic.
is_permitted_begin() {
    case $is_of_model:$file:$1 in
    *:GGUF) ;;
    yes:* | *.gguf:*) fail download "$2 is not a GGUF file: $1" ;;
    esac
}

# show_progress: from now on the report shows the size of $download_part.
show_progress() {
    download_from=$(size_of "$download_part") download_began=$(date +%s)
    # shellcheck disable=SC2086
    save "$folder/download" $download_record
}

# persist COMMAND: repeats it while it fails in passing, with pauses of 1 s to 60 s or as long as the server asks for.
# Fails after ten attempts in a row that brought no new byte.
persist() {
    attempts=0 attempt_pause=1 attempt_most=$(size_of "$part") failed_kind='' tag_changes=0
    until "$1"; do
        [ -z "$failed_kind" ] || return
        say "$passing"
        attempt_size=$(size_of "$part")
        [ "$attempt_size" -le "$attempt_most" ] || attempts=0 attempt_pause=1 attempt_most=$attempt_size
        attempts=$((attempts + 1))
        [ "$attempts" -lt 10 ] || fail download \
            "ten attempts in a row downloaded nothing, the last one because $passing" || return
        sleep "${retry_after:-$attempt_pause}"
        attempt_pause=$((attempt_pause < 30 ? attempt_pause * 2 : 60))
    done
}

# pass REASON: fails in passing.
pass() {
    passing=$1
    return 1
}

# find_part: finds the server of the file, and what can be continued of the part.
find_part() {
    target=$address linked_sum='' redirects=0 retry_after=''
    while :; do
        ask_target
        [ "${#answer_linked}" != 64 ] || case $answer_linked in *[!0-9a-f]*) ;; *) linked_sum=$answer_linked ;; esac
        case $answer_status in 30[12378]) follow || return ;; *) break ;; esac
    done
    judge_answer || return
    [ "${linked_sum:-$sum_given}" = "${sum_given:-$linked_sum}" ] ||
        fail wrong_sum "the file at ${address%%[?#]*} has the sum $linked_sum, not $sum_given" || return
    # A sum proves more than a tag, which may differ between the machines of one server.
    sum_wanted=${sum_given:-$linked_sum} part_tag="$length ${sum_wanted:-$answer_tag}"
    part_size=$(size_of "$part")
    read_text "$part.of"
    if [ "$part_size" -le "$length" ]; then
        case $text in
        "$length ") ;;
        "$part_tag") return 0 ;;
        "$length \""*) [ -z "$sum_wanted" ] || return 0; begin_again || return ;;
        esac
    fi
    # Nothing is written before the download begins.
    rm -f "$part" "$part.of"
    part_size=0
}

# begin_again: the part has another tag than the answer. Fails for good after two such changes, and keeps the part.
begin_again() {
    [ "$part_size" -gt 0 ] || return 0
    tag_changes=$((tag_changes + 1))
    [ "$tag_changes" -le 2 ] || fail download "the answers of $(origin "$target") have different ETags: its machines \
disagree about the file, or the file changes. With sha256, a download continues whatever the ETag"
}

# load_part: completes the part.
load_part() {
    find_part || return
    download_part=$part
    show_progress
    [ "$part_size" -lt "$length" ] || return 0
    if [ "$part_size" = 0 ]; then
        # Its destroy removes it.
        grep -qsxF "$part" "$state/parts" || printf '%s\n' "$part" >>"$state/parts"
        begin_error=$( (umask "$login_umask" && mkdir -p "${file%/*}" && : >"$part") 2>&1) ||
            fail download "$part cannot be written: $begin_error" || return
    fi
    say "downloading $file: $part_size of $length bytes exist"
    send "$target" "$part_size-" 2>"$folder/error" | (umask "$login_umask" && accept)
    case $? in
    3) begin_again && rm -f "$part" || return ;;
    6) rm -f "$part" && pass "$(origin "$target") ignores ranges: what was cut off begins again" || return ;;
    4) remove_part && fail model_room "$part could not be written, and was removed" || return ;;
    esac
    part_size=$(size_of "$part")
    [ "$part_size" = "$length" ] || pass "the download ended early: $(head -n 1 "$folder/error")"
}

# accept: adds to the part what comes, if it is the rest of this very file. Exits with 3 if it is something else, with 4
# if it cannot be written, and with 6 if it is the whole file. What begins the part may have another tag than the answer
# before.
accept() {
    read_answer
    accepted_tag="$length ${sum_wanted:-$answer_tag}"
    case $answer_status:$answer_range:$part_size in
    206:"bytes 0-"*"/$length":0) ;;
    206:"bytes $part_size-"*"/$length":*) [ "$accepted_tag" = "$part_tag" ] || exit 3 ;;
    200:*:0) [ "$answer_length" = "$length" ] || exit 3 ;;
    200:*) exit 6 ;;
    2* | 412* | 416*) exit 3 ;;
    *) exit 5 ;;
    esac
    write "$part.of" "$accepted_tag" && cat >>"$part" || exit 4
}

# ask_target: what the server at $target answers to a request of the first four bytes, which are in $answer_begin. Where
# a redirect leads is in $answer_to, as curl or Python understands it: they print that after the answer.
ask_target() {
    # shellcheck disable=SC2030,SC2086
    eval "$( (send "$target" 0-3 2>"$folder/error" || echo "exit $?") | {
        read_answer
        case $answer_status in
        3*) answer_to=$(sed -n 's/"/%22/g; s/^leads to //p') ;;
        *) answer_begin=$(head -c 4 | tr -d '\000') ;;
        esac
        assignments $answer_values
    })"
}
answer_values='answer_status answer_begin answer_exit answer_after answer_length answer_linked answer_range answer_tag
    answer_to answer_type'

# read_answer: the status and the headers of an answer.
read_answer() {
    # shellcheck disable=SC2086
    forget $answer_values
    while IFS= read -r header; do
        header=${header%"$carriage_return"} header_value=${header#*:} header_value=${header_value# }
        case $(printf '%s' "${header%%:*}" | tr '[:upper:]' '[:lower:]') in
        http/*) answer_status=${header#* } answer_status=${answer_status%% *} ;;
        'exit '*) answer_exit=${header#* } ;;
        content-length) answer_length=$header_value ;;
        content-range) answer_range=$header_value ;;
        content-type) answer_type=$header_value ;;
        # A weak tag does not tell bytes apart.
        etag) case $header_value in [Ww]/*) ;; *) answer_tag=$header_value ;; esac ;;
        retry-after) answer_after=$header_value ;;
        x-linked-etag) answer_linked=${header_value#\"} answer_linked=${answer_linked%\"} ;;
        # More comes after an answer of 1xx.
        '') case $answer_status in '' | 1??) ;; *) return ;; esac ;;
        esac
    done
}

# judge_answer: sets the length of the file. Fails for good, or in passing.
judge_answer() {
    # The query may hold a key.
    from=${address%%[?#]*}
    [ "$(origin "$target")" = "$(origin "$address")" ] || from="$from (redirected to $(origin "$target"))"
    case $answer_status in
    200 | 206) ;;
    401 | 403) fail no_access "$from answered $answer_status" || return ;;
    404 | 410) fail no_such_model "$from answered $answer_status" || return ;;
    408 | 429 | 5??)
        case $answer_after in '' | *[!0-9]*) ;; ????*) retry_after=600 ;; *) retry_after=$answer_after ;; esac
        [ "${retry_after:-0}" -le 600 ] || retry_after=600
        pass "$from answered $answer_status" || return
        ;;
    '')
        error=$(head -n 1 "$folder/error")
        case $answer_exit in
        60 | 77) fail download "the certificate of $from is not trusted: $error" || return ;;
        2 | 126 | 127) fail download "$error. Install python3 or a newer curl" || return ;;
        esac
        pass "$from did not answer: $error" || return
        ;;
    *) fail download "$from answered $answer_status" || return ;;
    esac
    # shellcheck disable=SC2031
    case $answer_type:$answer_begin in
    *:GGUF*) ;;
    *[Hh][Tt][Mm][Ll]*) fail no_access "$from answered with a web page" || return ;;
    *) is_permitted_begin "$answer_begin" "the file at $from" || return ;;
    esac
    length=$answer_length
    [ "$answer_status" = 200 ] || case $answer_range in "bytes 0-"*) length=${answer_range##*/} ;; *) length='' ;; esac
    case $length in '' | *[!0-9]*) fail download "$from does not send the length of the file" ;; esac
}

# follow: sets $target to where the answer leads.
follow() {
    redirects=$((redirects + 1))
    [ "$redirects" -le 10 ] && is_permitted "$answer_to" ||
        fail download "$(origin "$target") redirects too often, or to an address that is not followed" || return
    target=$answer_to
}

# origin ADDRESS: its scheme, host and port, in one form.
origin() {
    origin_rest=${1#*://}
    printf '%s' "${1%%://*}://${origin_rest%%[/?#]*}" | tr '[:upper:]' '[:lower:]' |
        sed 's/^\(https:.*\):443$/\1/; s/^\(http:.*\):80$/\1/'
}

# is_permitted ADDRESS: https, or http from one loopback address to another.
is_permitted() {
    case $1 in
    *[!!-~]* | *\\*) return 1 ;;
    [Hh][Tt][Tt][Pp][Ss]://?*) ;;
    *) is_on_loopback "$target" && is_on_loopback "$1" ;;
    esac
}

is_on_loopback() {
    loopback_host=$(origin "$1")
    loopback_host=${loopback_host%:"${loopback_host##*[!0-9]}"}
    case $loopback_host in
    http://localhost | 'http://[::1]') ;;
    http://127.*) case ${loopback_host#http://} in *[!0-9.]*) return 1 ;; esac ;;
    *) return 1 ;;
    esac
}

# send ADDRESS RANGE: the answer with its headers. Only the server of $address gets the token. An old curl refuses some
# of the options: then Python sends it.
send() {
    send_token=$token
    [ "$(origin "$1")" = "$(origin "$address")" ] || send_token=''
    # shellcheck disable=SC2086
    if ! curl $curl_options -V >/dev/null 2>&1 && command -v python3 >/dev/null; then
        printf '%s\n' "$1" "$2" "$send_token" | python3 -c "$python_request"
        return
    fi
    # shellcheck disable=SC2086
    {
        printf 'url = "%s"\n' "$1"
        [ "$2" != 0-3 ] || printf '%s\n' 'write-out = "\nleads to %{redirect_url}\n"'
        [ -z "$send_token" ] || printf 'header = "Authorization: Bearer %s"\n' "$send_token"
    } | curl $curl_options -K - --range "$2" -H 'Accept-Encoding: identity'
}
curl_options='-q -sSigN --http1.1 --suppress-connect-headers --proto =http,https -A terraform-provider-damodel
    --connect-timeout 60 --speed-limit 1 --speed-time 60'
carriage_return=$(printf '\r')

# The same in Python, with the exit code of curl for a certificate that is not trusted.
python_request='
import string, sys, urllib.parse, urllib.request
class AsItIs(urllib.request.HTTPErrorProcessor):
    def http_response(self, request, response):
        return response
    https_response = http_response
address, span, token = sys.stdin.read().split("\n")[:3]
headers = {"Range": "bytes=" + span, "User-Agent": "terraform-provider-damodel"}
if token:
    headers["Authorization"] = "Bearer " + token
try:
    request = urllib.request.Request(address, headers=headers)
    answer = urllib.request.build_opener(AsItIs).open(request, timeout=60)
    sys.stdout.buffer.write(("HTTP/1.1 %d\n%s\n" % (answer.status, str(answer.headers).rstrip() + "\n")).encode())
    for piece in iter(lambda: answer.read1(1 << 20), b""):
        sys.stdout.buffer.write(piece)
        sys.stdout.flush()
    if answer.headers["Location"]:
        to = urllib.parse.quote(answer.headers["Location"], string.punctuation, "iso-8859-1")
        print("\nleads to " + urllib.parse.urlsplit(urllib.parse.urljoin(address, to)).geturl())
except Exception as error:
    reason = getattr(error, "reason", error)
    sys.stderr.write("%s: %s\n" % (type(reason).__name__, reason))
    sys.exit(60 if "CERTIFICATE_VERIFY_FAILED" in str(reason) else 1)
'
