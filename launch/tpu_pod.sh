#!/usr/bin/env bash
# Train on a Cloud TPU pod: launch/tpu_pod.sh NAME ZONE --config=... --workdir=... [...]
#
# Every worker has this directory in its home as vaswani_jax, set up once by
#   gcloud compute tpus tpu-vm ssh NAME --zone=ZONE --worker=all --command="git clone
#   ... vaswani_jax && cd vaswani_jax && python3 -m venv .venv &&
#   .venv/bin/pip install -c constraints.txt -e '.[tpu]'"
# and sees the workdir and the data at the same path. python3 must be 3.11 or newer;
# the image tpu-ubuntu2204-base has 3.10: install a newer one there, and name it.
set -euo pipefail
if [ $# -lt 3 ]; then
    echo "usage: launch/tpu_pod.sh NAME ZONE --config=... --workdir=... [...]" >&2
    exit 2
fi
name=$1
zone=$2
command=$(printf '%q ' launch/one_host.sh "${@:3}" --coordinator=auto)
set -x
exec gcloud compute tpus tpu-vm ssh "$name" --zone="$zone" --worker=all \
    --command="cd vaswani_jax && $command"
