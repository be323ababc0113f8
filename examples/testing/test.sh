#!/bin/sh
# Runs the tests of the module in this folder on their own sandbox. Needs terraform-provider-damodel and setsid on PATH.
set -eu

output=$(mktemp)
# A session of its own: Ctrl-C ends Terraform, which cleans up on the sandbox, and the sandbox afterwards.
setsid terraform-provider-damodel sandbox --listen 127.0.0.1:0 >"$output" &
sandbox=$!
trap 'kill "$sandbox"; rm "$output"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# The sandbox prints "sandbox listening" last. If it has exited, `kill` fails, and this script with it.
until grep -q '^sandbox listening' "$output"; do
  kill -0 "$sandbox"
  sleep 0.1
done
eval "$(grep '^export' "$output")"

terraform init
terraform test
