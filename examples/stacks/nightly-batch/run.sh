#!/bin/sh
# Creates the instance, runs a job on it, fetches the results, and destroys the instance whatever happened.
#
#   run.sh JOB RESULTS   JOB is a shell script for the instance; RESULTS is the file that its standard output goes to
#
# Needs ssh and sshpass. The exit code is the job's; an instance that could not be destroyed is an error of its own.
set -eu
terraform=${TERRAFORM:-terraform}
job=$1 results=$2

finish() {
  code=$?
  if ! "$terraform" destroy -input=false -no-color -auto-approve; then
    echo "error: the instance was not destroyed and is billed: run this destroy again" >&2
    code=1
  fi
  exit "$code"
}

"$terraform" init -input=false -no-color
trap finish EXIT
"$terraform" apply -input=false -no-color -auto-approve
SSHPASS=$("$terraform" output -raw ssh_password)
export SSHPASS
# A new instance has a new host key each night: it is accepted once, for this job.
sshpass -e ssh -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile="$(mktemp)" \
  -p "$("$terraform" output -raw ssh_port)" "root@$("$terraform" output -raw ssh_host)" sh -s <"$job" >"$results"
