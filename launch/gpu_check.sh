#!/usr/bin/env bash
# Test and time one GPU in under ten minutes: launch/gpu_check.sh [OUTPUT_DIR]
#
# 1. Correctness: the fused attention and an update, by their tests, on the GPU.
# 2. Speed: base and big, bfloat16 and float32, batches of 25,000 + 25,000 tokens, with
#    either attention, beside torch's compiled nn.Transformer on the same work.
# 3. The figures in one table, and whether they reach the goals; so says the status.
# 4. More tests, in what time is left; too little of it counts as a failure.
#
# OUTPUT_DIR gets figures.json, log.txt and compiled programs. PYTHON names an
# interpreter that has jax with CUDA, pytest and, for the comparison, torch. What else
# it lacks is taken from .wheels/ (not in git), where there is no network; these have no
# compiled parts, but hypothesis, which the Python that downloads it must fit:
#   pip download -c constraints.txt --no-deps -d .wheels \
#       ml_collections beartype sacremoses tensorboardX hypothesis sortedcontainers
# The first program that needs another missing package names it.
set -uo pipefail
out=$(realpath -m "${1:-$(dirname "$0")/../runs/gpu_check}")
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
: >"$out/log.txt"
. launch/gpu_environment.bash
# torch_on_gpu.py has one, so jax has no more.
CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}
# A second call with the same OUTPUT_DIR finds the large programs it measures.
export JAX_COMPILATION_CACHE_DIR=$out/compiled
limit=${LIMIT:-590}
central=test_gradient_is_that_of_the_formulas_by_central_differences
status=0

step() { # step SECONDS NAME COMMAND...: run it, keep its output, go on if it fails
    local seconds=$1 name=$2 left=$((limit - SECONDS)) code=0
    shift 2
    echo "+ $*"
    # What comes later is the less important; it gets the time that is left.
    if ((left < 5)); then
        echo "not run: $name, no time is left"
        status=1
        return
    fi
    timeout -k 5 "$((seconds < left ? seconds : left))" "$@" \
        >"$work/$name.txt" 2>"$work/$name.err" || code=$?
    echo "$name took $((left - limit + SECONDS)) s"
    {
        echo "+ $* ($code)"
        cat "$work/$name.txt" "$work/$name.err"
    } >>"$out/log.txt"
    if ((code)); then
        echo "failed: $name ($code)"
        tail -n 5 "$work/$name.err"
        status=1
    fi
    tail -n 5 "$work/$name.txt"
}

measure() { # measure SIZE DTYPE ATTENTION: 25,000 + 25,000 tokens in rows of 32 + 32
    step 90 "$1-$2-$3" "$python" -m vaswani_jax.benchmark train --json \
        --config="configs/own_text.py:$1" --shape=784x32x32 --steps=50 \
        --config.data.source_locale=en --config.data.target_locale=de \
        --config.model.dtype="$2" --config.model.attention="$3"
}

correct() { # correct SECONDS NAME TESTS...: run tests on the GPU
    # The GPU's jax may be another one, whose warnings are no errors here.
    local seconds=$1 name=$2
    shift 2
    step "$seconds" "$name" "$python" -m pytest -q -p no:cacheprovider \
        -o filterwarnings=default -m "not slow" "$@"
}

step 20 device nvidia-smi --query-gpu=name,memory.total --format=csv,noheader
correct 180 correctness tests/model/test_attention.py \
    -k "cudnn or xla or of_float32"
for size in big base; do
    measure "$size" bfloat16 cudnn
    step 90 "$size-bfloat16-torch" "$python" tests/benchmarks/torch_on_gpu.py \
        --size="$size"
done
for size in big base; do
    measure "$size" bfloat16 xla
    measure "$size" float32 xla
done
"$python" tests/benchmarks/gpu_verdict.py "$work" "$out/figures.json" || status=1
correct 150 more tests/training/test_step.py tests/training/test_packed_rows.py \
    tests/model/test_transformer.py \
    -k "packed or test_transformer or $central"
exit $status
