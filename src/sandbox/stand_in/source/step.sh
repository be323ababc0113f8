# Runs a step of the compile: step.sh SOURCE COMMAND… A file `slow-build` in the source holds how many seconds each is to take.
slow=$1/slow-build
shift
if [ -f "$slow" ]; then
    sleep "$(cat "$slow")"
fi
exec "$@"
