#!/usr/bin/env bash
# What one GPU does, in one call of under ten minutes: launch/gpu_check.sh [OUTPUT_DIR]
#
# 1. Correctness: tests of the model, of an update and of the fused attention, on it.
# 2. Speed: base and big, bfloat16 and float32, batches of 25,000 + 25,000 tokens, with
#    either attention, beside torch's compiled nn.Transformer on the same work.
# 3. The figures in one table, and whether they reach the goals; so says the status.
#
# PYTHON names an interpreter that has jax with CUDA (and torch, for the comparison).
# What else it lacks is installed from .wheels/, where there is no network:
#   pip download -c constraints.txt --no-deps --only-binary=:all: -d .wheels \
#       ml_collections tensorboardX sacremoses sacrebleu sentencepiece jaxtyping \
#       beartype hypothesis pytest sortedcontainers iniconfig pluggy portalocker \
#       wadler-lindig absl-py tabulate regex colorama lxml joblib tqdm click pyyaml
set -uo pipefail
out=$(realpath -m "${1:-$(dirname "$0")/../runs/gpu_check}")
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
mkdir -p "$out"
if [ -d .wheels ]; then
    "$python" -m pip install --quiet --no-deps --no-index .wheels/*.whl || exit 1
fi
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
export JAX_PLATFORMS=cuda XLA_PYTHON_CLIENT_PREALLOCATE=false
limit=590
status=0

step() { # step SECONDS NAME COMMAND...: run it, keep its output, go on if it fails
    local seconds=$1 name=$2 left=$((limit - SECONDS))
    shift 2
    echo "+ $*"
    timeout "$((seconds < left ? seconds : left))" "$@" \
        >"$out/$name.txt" 2>"$out/$name.err" || {
        echo "failed: $name ($?)"
        tail -n 5 "$out/$name.err"
        status=1
    }
    tail -n 5 "$out/$name.txt"
}

measure() { # measure SIZE DTYPE ATTENTION: 25,000 + 25,000 tokens in rows of 32 + 32
    step 100 "$1-$2-$3" "$python" -m vaswani_jax.benchmark train --json \
        --config="configs/own_text.py:$1" --shape=784x32x32 --steps=20 \
        --config.data.source_locale=en --config.data.target_locale=de \
        --config.model.dtype="$2" --config.model.attention="$3"
}

step 20 device nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
# Products in full float32, which NVIDIA's GPUs round otherwise; the GPU's jax may be
# another one, whose warnings are no errors here.
JAX_DEFAULT_MATMUL_PRECISION=highest step 150 correctness "$python" -m pytest -q \
    -p no:cacheprovider -o filterwarnings=default -m "not slow" \
    tests/model/test_fused_attention.py tests/model/test_transformer.py \
    tests/training/test_packed_steps.py
for size in big base; do
    measure "$size" bfloat16 cudnn
    measure "$size" bfloat16 xla
    step 100 "$size-bfloat16-torch" "$python" -m tests.benchmarks.torch_on_gpu \
        --size="$size"
done
measure base float32 xla
measure big float32 xla
"$python" -m tests.benchmarks.gpu_verdict "$out" || status=1
exit $status
