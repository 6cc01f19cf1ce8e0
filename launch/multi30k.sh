#!/usr/bin/env bash
# Multi30k and machine translations of it: launch/multi30k.sh TEXT RUNS [FLAGS...]
#
# Data diversification (Nguyen et al., 2020, their k = 1, one round): a teacher of each
# direction is trained on TEXT, DIR/lc_norm_tok of docs/results/multi30k.md, and
# translates its own source; the next model is trained on TEXT, its sources with their translations and its
# targets with theirs; the last one goes on from it, on TEXT alone, and is scored. All
# lies in RUNS, each stage in a directory of its name. Run again with the same TEXT and
# FLAGS, it resumes; for others name another RUNS. FLAGS are those of vaswani_jax.main,
# for every training.
set -euo pipefail
if (($# < 2)); then
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
for name in "$1" "$2"; do
    # realpath would turn a URL into a path in this directory.
    [[ $name != *://* ]] || { echo "error: $name must be a path on this machine, not a URL" >&2; exit 2; }
done
text=$(realpath -m "$1") runs=$(realpath -m "$2")
shift 2
flags=("$@")
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
# The test set is read last, hours from now.
for name in {train,val,test_2016_flickr}.{en,de}; do
    [ -r "$text/$name" ] || { echo "error: there is no $text/$name" >&2; exit 1; }
done
mkdir -p "$runs"

# run STAGE DIRECTORY [FLAGS...]: train in RUNS/STAGE on the files of a directory.
run() {
    launch/one_host.sh --config="configs/multi30k_ende.py:$1" --workdir="$runs/$1" \
        --config.data.text_directory="$2" "${@:3}" "${flags[@]}"
}

# teach STAGE SOURCE TARGET: a teacher of one direction, and RUNS/STAGE.TARGET by it.
teach() {
    local output=$runs/$1.$3
    [ -e "$output" ] && return
    run "$1" "$text"
    "$python" -m vaswani_jax.decode --workdir="$runs/$1" \
        --input="$text/train.$2" --output="$output.part"
    mv "$output.part" "$output"
}

teach forward en de
teach backward de en
if [ ! -d "$runs/text" ]; then
    part=$(mktemp -d "$runs/text.XXXXXX")
    cp "$text"/val.?? "$part"
    # awk, unlike cat, ends the last line of each file.
    awk 1 "$text"/train.en{,} "$runs/backward.en" >"$part/train.en"
    awk 1 "$text/train.de" "$runs/forward.de" "$text/train.de" >"$part/train.de"
    mv "$part" "$runs/text"
fi
run diversified "$runs/text"
run tuned "$text" --init_from="$runs/diversified@newest"
