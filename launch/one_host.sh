#!/usr/bin/env bash
# Train on all devices of this host: launch/one_host.sh --config=... --workdir=... [...]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
set -x
exec "$python" -m vaswani_jax.main "$@"
