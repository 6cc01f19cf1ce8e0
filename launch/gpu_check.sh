#!/usr/bin/env bash
# What one GPU does, in one call of under ten minutes: launch/gpu_check.sh [OUTPUT_DIR]
#
# 1. Correctness: the model's, the step's and the fused attention's tests on the GPU.
# 2. Speed: base and big, bfloat16 and float32, batches of 25,000 + 25,000 tokens, with
#    either attention, beside torch's compiled nn.Transformer on the same work.
#
# PYTHON names an interpreter that has jax with CUDA (and torch, for the comparison).
# Packages that it lacks are taken from the wheels in .wheels/, if that is there.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=${1:-runs/gpu_check}
mkdir -p "$out"
if [ -d .wheels ]; then
    "$python" -m pip install --quiet --no-index --find-links .wheels .wheels/*.whl
fi
export PYTHONPATH=$PWD XLA_PYTHON_CLIENT_PREALLOCATE=false
status=0

step() { # step SECONDS NAME COMMAND...: run it, keep its output, go on if it fails
    local seconds=$1 name=$2
    shift 2
    echo "+ $*"
    timeout "$seconds" "$@" >"$out/$name.txt" 2>"$out/$name.err" || {
        echo "failed: $name ($?)"
        tail -n 5 "$out/$name.err"
        status=1
    }
    tail -n 20 "$out/$name.txt"
}

step 20 device nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
step 150 correctness env JAX_PLATFORMS=cuda "$python" -m pytest -q -p no:cacheprovider -m gpu tests
# 25,000 + 25,000 tokens a batch, in rows of 32 + 32.
for size in base big; do
    for precision in "bfloat16 xla" "bfloat16 cudnn" "float32 xla"; do
        read -r dtype attention <<<"$precision"
        step 75 "$size-$dtype-$attention" "$python" -m vaswani_jax.benchmark train \
            --config="configs/own_text.py:$size" --shape=784x32x32 --steps=20 \
            --config.data.source_locale=en --config.data.target_locale=de \
            --config.model.dtype="$dtype" --config.model.attention="$attention"
    done
    step 75 "$size-torch" "$python" -m tests.benchmarks.torch_on_gpu --size="$size"
done
exit $status
