#!/bin/sh
# Runs the tests of the module in this folder on a sandbox of their own. Needs terraform-provider-damodel on PATH.
set -eu

said=$(mktemp)
terraform-provider-damodel sandbox --listen 127.0.0.1:0 >"$said" &
sandbox=$!
trap 'kill "$sandbox"; rm "$said"' EXIT

# It prints what to export, and last of all that it listens. If it has ended, `kill` fails and so does this script.
until grep -q '^sandbox listening' "$said"; do
  kill -0 "$sandbox"
  sleep 0.1
done
eval "$(grep '^export' "$said")"

terraform init
terraform test
