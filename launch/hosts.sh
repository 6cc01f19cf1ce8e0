#!/usr/bin/env bash
# Train on several hosts by address: launch/hosts.sh HOST... -- --config=... --workdir=...
#
# Each is reached by ssh, has this directory at the same path, and sees the same files.
# The first is the coordinator, on PORT (1234). When one fails, all end within a minute,
# or within five if not all were connected. The same command resumes. Stopping this
# script stops every host.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
hosts=()
while [ $# -gt 0 ] && [ "$1" != "--" ]; do
    hosts+=("$1")
    shift
done
if [ ${#hosts[@]} = 0 ] || [ "${1:-}" != "--" ]; then
    echo "usage: launch/hosts.sh HOST... -- --config=... --workdir=... [...]" >&2
    exit 2
fi
shift
pids=()
trap 'kill -TERM "${pids[@]}" 2>/dev/null' INT TERM
for id in "${!hosts[@]}"; do
    command=$(printf '%q ' launch/one_host.sh "$@" \
        "--coordinator=${hosts[0]#*@}:${PORT:-1234}" \
        "--num_processes=${#hosts[@]}" "--process_id=$id")
    echo "+ ssh ${hosts[$id]}: $command" >&2
    ssh -tt "${hosts[$id]}" "cd $(printf '%q' "$root") && $command" </dev/null &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || status=$?
done
exit "$status"
