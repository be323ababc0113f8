#!/bin/sh
# Runs the tests of the module in this folder on their own sandbox. Needs terraform-provider-damodel on PATH.
set -eu

output=$(mktemp)
terraform-provider-damodel sandbox --listen 127.0.0.1:0 >"$output" &
sandbox=$!
trap 'kill "$sandbox"; rm "$output"' EXIT

# The sandbox prints "sandbox listening" last. If it has exited, `kill` fails, and this script with it.
until grep -q '^sandbox listening' "$output"; do
  kill -0 "$sandbox"
  sleep 0.1
done
eval "$(grep '^export' "$output")"

terraform init
terraform test
