#!/usr/bin/env bash
# Compile the paper's models for GPUs that this machine lacks:
# launch/gpu_compile.sh [HARDWARE] [OUTPUT_DIR]
#
# HARDWARE is h100:8 by default. OUTPUT_DIR (runs/gpu_compile) gets a JSON file for each
# model and attention. PYTHON names an interpreter with the extra cuda; nothing is run.
set -euo pipefail
hardware=${1:-h100:8}
out=$(realpath -m "${2:-$(dirname "$0")/../runs/gpu_compile}")
cd "$(dirname "$0")/.."
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
mkdir -p "$out"
for preset in base_ende big_enfr; do
    for attention in xla cudnn; do
        "${PYTHON:-python3}" -m vaswani_jax check "$preset" --json \
            --hardware="$hardware" --workdir="$out/$preset" \
            --config.model.dtype=bfloat16 --config.model.attention="$attention" \
            >"$out/${preset}_$attention.json"
    done
done
