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
set -x
exec "$python" -m vaswani_jax.main "$@"
