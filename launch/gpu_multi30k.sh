#!/usr/bin/env bash
# Multi30k to its BLEU on a GPU: launch/gpu_multi30k.sh TEXT_DIR WORKDIR [FLAGS...]
#
# TEXT_DIR is DIR/lc_norm_tok of docs/results/multi30k.md; WORKDIR is made, or resumed.
# FLAGS are those of vaswani_jax.main, for example --config.training.r_drop=5.0. Prints the scores, the
# minutes that this call took and those of all the calls with this WORKDIR (kept in its
# gpu_seconds); LIMIT seconds (570 by default) end it with its state saved, for which it
# has 20 more, and the same call resumes. PYTHON and .wheels/ are as in gpu_check.sh.
set -uo pipefail
if (($# < 2)); then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
for name in "$1" "$2"; do
    # realpath would turn a URL into a path in this directory.
    [[ $name != *://* ]] || { echo "error: $name must be a path on this machine, not a URL" >&2; exit 2; }
done
text=$(realpath -m "$1") workdir=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. launch/gpu_environment.bash
code=0
# What .wheels/ took counts; a limit of 0 would be none.
left=$((${LIMIT:-570} - SECONDS))
timeout -k 20 "$((left > 1 ? left : 1))" "$python" -m vaswani_jax.main \
    --config=configs/multi30k_ende.py --workdir="$workdir" \
    --config.data.text_directory="$text" "$@" || code=$?
taken=$SECONDS
mkdir -p "$workdir" && echo "$taken" >>"$workdir/gpu_seconds"
total=$(awk '{ total += $1 } END { print total + 0 }' "$workdir/gpu_seconds")
echo "$((taken / 60)) min $((taken % 60)) s (status $code)," \
    "with earlier calls $((total / 60)) min $((total % 60)) s"
exit $code
