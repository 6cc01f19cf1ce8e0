#!/usr/bin/env bash
# Train every row of table 3 in turn: launch/table3.sh [CONFIG] [RUNS] [FLAGS...]
#
# CONFIG is configs/table3.py (the paper's sizes) or configs/table3_small.py. Each row
# lies in RUNS/NAME_ROW; when this is run again, one that is scored is passed over, one
# that was interrupted resumes. All share the text that is prepared in RUNS/NAME_data.
# ROWS="A1 A2" trains these alone. A row that fails is named in the end, when the others
# are done.
set -euo pipefail
runs=${2:-$(dirname "$0")/../runs}
[[ $runs == *://* ]] || runs=$(realpath -m "$runs")
cd "$(dirname "$0")/.."
config=${1:-configs/table3.py}
name=$(basename "$config" .py)
failed=()
for row in ${ROWS:-base A1 A2 A3 A4 B1 B2 C1 C2 C3 C4 C5 C6 C7 D1 D2 D3 D4 E big}; do
    ls "$runs/${name}_$row"/evaluations/valid-averaged-*.json 2>/dev/null && continue
    status=0
    launch/one_host.sh --config="$config:$row" --workdir="$runs/${name}_$row" \
        --config.data.directory="$runs/${name}_data" "${@:3}" || status=$?
    # A signal is meant for all rows.
    ((status < 128)) || exit "$status"
    ((status == 0)) || failed+=("$row")
done
if ((${#failed[@]})); then
    echo "error: not trained: ${failed[*]}; what each said stands above" >&2
    exit 1
fi
