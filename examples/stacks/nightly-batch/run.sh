#!/bin/sh
# Creates the instance, runs a job on it, fetches the results, and destroys the instance whatever happened.
#
#   run.sh JOB RESULTS   JOB is a shell script for the instance; RESULTS is the file that its standard output goes to
#
# Needs OpenSSH 8.4 or newer and setsid on PATH, and terraform-provider-damodel there or at $PROGRAM. The exit code is the job's; 129, 130 or
# 143 after the signal HUP, INT or TERM; and 1 if the instance was not destroyed. A systemd service needs
# KillMode=mixed, which signals this script alone, and time for the destroy, such as TimeoutStopSec=30min.
set -eu
terraform=${TERRAFORM:-terraform} program=${PROGRAM:-terraform-provider-damodel}
job=$1 results=$2

# Ends the last child, destroys the instance, and exits with this code, or with that of a signal during the destroy.
finish() {
  code=$1
  trap - EXIT
  trap '' HUP INT TERM
  # One signal to Terraform and none to its provider: Terraform then stores what exists.
  kill "${!-}" 2>/dev/null || true
  # In bash, a signal between two waits ends the next one early.
  while kill -0 "${!-}" 2>/dev/null; do wait "$!" || true; done
  trap 'code=129' HUP
  trap 'code=130' INT
  trap 'code=143' TERM
  # It prints a word if it succeeded: a trap changes the exit status in some shells.
  destroyed=$(trap '' HUP INT TERM
    setsid "$terraform" destroy -input=false -no-color -auto-approve >&2 && echo yes) || true
  if [ ! "$destroyed" ]; then
    echo "error: the instance was not destroyed and is billed: run this destroy again" >&2
    code=1
  fi
  exit "$code"
}

command -v setsid >/dev/null || { echo "error: setsid (of util-linux or busybox) is not on PATH" >&2; exit 1; }
"$terraform" init -input=false -no-color
trap 'finish $?' EXIT
trap 'finish 129' HUP
trap 'finish 130' INT
trap 'finish 143' TERM

# Each child has a session of its own, so that Ctrl-C reaches this script alone, and runs in the background: a shell
# runs no trap before its foreground child has ended.
setsid "$terraform" apply -input=false -no-color -auto-approve &
wait "$!"
# The host key of the new instance is accepted once, and kept by its UID.
setsid "$program" ssh --cli "$terraform" damodel_instance.gpu sh -s <"$job" >"$results" &
wait "$!"
