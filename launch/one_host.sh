#!/usr/bin/env bash
# Train on all devices of this host: launch/one_host.sh --config=... --workdir=... [...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$root/.venv/bin/python
if [ ! -x "$python" ]; then
    python=python3
    if ! "$python" -c 'import absl' 2>/dev/null; then
        echo "error: there is no $root/.venv, and vaswani_jax is not installed for" \
            "python3: see README.md, Install" >&2
        exit 1
    fi
fi
# On TPUs sums of gradients begin during backward. GPUs and CPUs do not read it; set it to
# nothing for a libtpu that does not know a flag.
export LIBTPU_INIT_ARGS=${LIBTPU_INIT_ARGS-$("$python" -c \
    'from vaswani_jax.hardware import topology; print(topology.OVERLAP)')}
set -x
exec "$python" -m vaswani_jax.main "$@"
