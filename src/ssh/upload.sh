# Writes its input to the path $1 with the mode $2, when the hash in the input's first line agrees.
set -eu
path=$1 mode=$2
case $path in "~/"*) path=$HOME/${path#"~/"} ;; esac
case $path in /*) ;; *) path=./$path ;; esac
if [ -d "$path" ]; then echo "it is a folder" >&2; exit 1; fi
IFS= read -r expected
umask 077
part=$path.part.$$
trap 'rm -f "$part"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$part"
if command -v sha256sum >/dev/null; then actual=$(sha256sum <"$part")
elif command -v shasum >/dev/null; then actual=$(shasum -a 256 <"$part")
elif command -v openssl >/dev/null; then actual=$(openssl dgst -r -sha256 <"$part")
else echo "none of sha256sum, shasum and openssl is there to check it with" >&2; exit 1; fi
actual=${actual%% *}
if [ "$actual" != "$expected" ]; then echo "what arrived is not what was sent" >&2; exit 1; fi
chmod "$mode" "$part"
mv -f "$part" "$path"
echo "$actual"
