#!/usr/bin/env bash
# Compare training on half of Multi30k with and without back-translated text.
# launch/back_translation.sh TEXT RUNS [FLAGS]
#
# TEXT is DIR/lc_norm_tok of docs/results/multi30k.md. Of every four pairs, the first two
# are the parallel text; of the others only the German is kept. (Every second pair would
# select the shorter captions.) A model from German to English, trained on the parallel
# text, translates that German back (Sennrich et al., 2016). For each of SEEDS="1 2 3",
# the script trains RUNS/half/seed-SEED on the parallel text alone, and
# RUNS/mixed/seed-SEED on parallel and back-translated text, then on the parallel text
# alone for the last quarter. Finally, it compares RUNS/half with RUNS/mixed on the
# validation set. The learning rate falls to 0, so scores hardly depend on the number of
# averaged checkpoints. A second run with the same TEXT and FLAGS resumes. FLAGS are those
# of vaswani_jax.main, for every training.
set -euo pipefail
if (($# < 2)); then
    sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
for name in "$1" "$2"; do
    # realpath would turn a URL into a path in this directory.
    [[ $name != *://* ]] || { echo "error: $name must be a path on this machine, not a URL" >&2; exit 2; }
done
text=$(realpath -m "$1") runs=$(realpath -m "$2")
shift 2
flags=("$@")
read -ra seeds <<<"${SEEDS:-1 2 3}"
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
for name in {train,val}.{en,de}; do
    [ -r "$text/$name" ] || { echo "error: there is no $text/$name" >&2; exit 1; }
done
mkdir -p "$runs"

# run DIRECTORY [FLAGS...]: train in RUNS/DIRECTORY on the parallel text.
run() {
    launch/one_host.sh --config=configs/multi30k_ende.py --workdir="$runs/$1" \
        --config.data.text_directory="$runs/text" \
        --config.data.test_source= --config.data.test_target= \
        --config.data.user_symbols='<BT>' --config.data.vocab_size=6000 \
        --config.training.num_steps=3000 --config.training.average_checkpoints=4 \
        --config.optimizer.schedule=linear --config.optimizer.learning_rate=0.00225 \
        --config.optimizer.learning_rate_scale=1 --config.optimizer.warmup_steps=1000 \
        "${@:2}" "${flags[@]}"
}

if [ ! -d "$runs/text" ]; then
    part=$(mktemp -d "$runs/text.XXXXXX")
    cp "$text"/val.{en,de} "$part"
    for side in en de; do
        awk '(NR - 1) % 4 < 2' "$text/train.$side" >"$part/train.$side"
    done
    awk '(NR - 1) % 4 > 1' "$text/train.de" >"$part/monolingual.de"
    mv "$part" "$runs/text"
fi
run reverse \
    --config.data.source_locale=de --config.data.target_locale=en \
    --config.data.train_source=train.de --config.data.train_target=train.en \
    --config.data.valid_source=val.de --config.data.valid_target=val.en
"$python" -m vaswani_jax.back_translate_text --workdir="$runs/reverse" \
    --input="$runs/text/monolingual.de" --output="$runs/synthetic" \
    --config.search.beam_size=4 --config.search.length_penalty=0.6
{
    printf '[[corpora]]\nname = "parallel"\nsource = "train.en"\ntarget = "train.de"\n'
    cat "$runs/synthetic/corpora.toml"
} >"$runs/corpora.toml"
for seed in "${seeds[@]}"; do
    for arm in mixed half; do
        mixture=()  # The last quarter begins at update 2250.
        [ "$arm" = half ] || mixture=(--config.data.corpora="$runs/corpora.toml"
            --config.data.stages='2250: parallel=1')
        run "$arm/seed-$seed" --config.seed="$seed" \
            --config.data.vocabulary="$runs/reverse/data/vocabulary.model" "${mixture[@]}"
    done
done
"$python" -m vaswani_jax.compare "$runs/half" "$runs/mixed" --split=valid
