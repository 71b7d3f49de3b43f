#!/usr/bin/env bash
# Runs the programs in findings/, all or those named, and says which changed.
set -euo pipefail
cd "$(dirname "$0")/../findings"

[ $# -gt 0 ] || set -- *.sh
changed=0
for finding in "$@"; do
    begun=$SECONDS
    if output=$("./${finding%.sh}.sh" 2>&1); then
        state='as seen'
    else
        state='CHANGED or not run'
        changed=$((changed + 1))
    fi
    echo "${finding%.sh}: $state, $((SECONDS - begun)) s"
    [ "$state" = 'as seen' ] || tail -n 20 <<<"$output" | sed 's/^/    /'
done
echo "$(($# - changed)) of $# as seen"
[ "$changed" -eq 0 ]
