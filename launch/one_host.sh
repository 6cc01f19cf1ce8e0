#!/usr/bin/env bash
# Train on all devices of this host: launch/one_host.sh --config=... --workdir=... [...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$root/.venv/bin/python
if [ ! -x "$python" ]; then
    python=python3
    needs='import sys; from importlib.util import find_spec
sys.exit(not all(map(find_spec, ("flax", "ml_collections", "vaswani_jax"))))'
    if ! "$python" -c "$needs" 2>/dev/null; then
        echo "error: there is no $root/.venv, and vaswani_jax is not installed for" \
            "python3: see README.md, Install" >&2
        exit 1
    fi
fi
set -x
exec "$python" -m vaswani_jax.main "$@"
