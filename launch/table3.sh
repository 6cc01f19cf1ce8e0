#!/usr/bin/env bash
# Train every row of table 3 in turn: launch/table3.sh [CONFIG] [RUNS] [FLAGS...]
#
# CONFIG is configs/table3.py (the paper's sizes) or configs/table3_small.py. Each row
# lies in RUNS/NAME_ROW; when this is run again, one that is scored is passed over, one
# that was interrupted resumes, and one that stopped early (training.patience) is scored
# again. RUNS may be a URL, where all rows are scored again. All share the text that is
# prepared in RUNS/NAME_data. ROWS="A1 A2" trains these alone. A row that fails is named
# in the end, when the others are done.
set -euo pipefail
runs=${2:-$(dirname "$0")/../runs}
[[ $runs == *://* ]] || runs=$(realpath -m "$runs")
cd "$(dirname "$0")/.."
config=${1:-configs/table3.py}
name=$(basename "$config" .py)
failed=()

# is_scored ROW [FLAGS...]: succeeds if the average after the row's last update is scored.
is_scored() {
    local steps record
    steps=$(launch/one_host.sh --config="$config:$1" "${@:2}" --print_config 2>/dev/null |
        sed -n 's/^--config\.training\.num_steps=//p') || return 1
    for record in "$runs/${name}_$1"/evaluations/valid-averaged-*.json; do
        grep -qs "^ \"step\": ${steps:-none},$" "$record" && return
    done
    return 1
}

for row in ${ROWS:-base A1 A2 A3 A4 B1 B2 C1 C2 C3 C4 C5 C6 C7 D1 D2 D3 D4 E big}; do
    is_scored "$row" "${@:3}" && continue
    status=0
    launch/one_host.sh --config="$config:$row" --workdir="$runs/${name}_$row" \
        --config.data.directory="$runs/${name}_data" "${@:3}" || status=$?
    # Hang-up, Ctrl-C and SIGTERM are meant for all rows; a kill for lack of memory is not.
    case $status in 129 | 130 | 143) exit "$status" ;; esac
    ((status == 0)) || failed+=("$row")
done
if ((${#failed[@]})); then
    echo "error: not trained: ${failed[*]}; what each said stands above" >&2
    exit 1
fi
