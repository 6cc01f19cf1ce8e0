"""Time training steps or beam searches on the devices of this machine.

vaswani benchmark train demo --workdir=runs/demo
vaswani benchmark train demo --shape=128x32x32
vaswani benchmark decode base_ende
python -m vaswani_jax.benchmark decode --config=configs/base_ende.py
"""

import dataclasses
import json
import re

from absl import flags

from vaswani_jax.benchmarks import decoding_speed, training_speed
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config, parallel, rules, types
from vaswani_jax.data import prepared, training_batches
from vaswani_jax.data.vocabulary_training import expected_size
from vaswani_jax.training import step

WORKDIR = path_flags.define_path(
    "workdir", None, "Time the batches of the data that is or will be prepared here."
)
SHAPE = flags.DEFINE_string(
    "shape", None, "Time random ids instead, ROWSxSOURCExTARGET tokens, unpadded."
)
VOCAB_SIZE = flags.DEFINE_integer(
    "vocab_size",
    None,
    "V of random ids, in place of the config's data.vocab_size.",
    lower_bound=types.UNK_ID + 2,
)
BATCHES = flags.DEFINE_list("batches", ["1", "16", "64"], "Sentences to decode.")
SOURCE_TOKENS = flags.DEFINE_integer(
    "source_tokens", 25, "Tokens of each sentence to decode.", lower_bound=2
)
OUTPUT_TOKENS = flags.DEFINE_integer(
    "output_tokens", 30, "Tokens of each decoded sentence.", lower_bound=1
)
STEPS = flags.DEFINE_integer("steps", 20, "Updates or batches to time.", lower_bound=1)
DEVICES = flags.DEFINE_integer(
    "devices",
    None,
    "How many devices, virtual ones on a CPU; all by default.",
    lower_bound=1,
)
JSON = flags.DEFINE_bool("json", False, "Print one JSON object.")


def train() -> None:
    """Time training steps."""
    settings = program.settings()
    workdir, shape = WORKDIR.value, SHAPE.value
    if (workdir is None) == (shape is None):
        problem = "are missing" if workdir is None else "are both given"
        raise ValueError(f"--workdir and --shape {problem}: give one of them")
    if workdir is not None and VOCAB_SIZE.value is not None:
        raise ValueError("--vocab_size needs --shape, whose ids are random")
    _use_devices()
    step.check_settings(settings)
    if workdir is None:
        vocab_size = _expected_size(settings.data)
        batch_at = training_speed.same_batch(
            str(shape), settings.model, vocab_size=vocab_size
        )
    else:
        directory = program.workdir(workdir)
        data = prepared.open_or_prepare(
            settings,
            prepared.data_directory(settings.data, directory),
            rebuild=False,
            required_fingerprint=lambda: select.recorded_vocabulary(directory),
        )
        vocab_size = data.vocabulary.size
        batch_at = training_batches.make_training_batches(
            settings.data,
            data.token_pairs("train"),
            seed=settings.seed,
            corpus_sizes=data.manifest.corpus_sizes,
        ).batch_at
    speed = training_speed.measure(
        settings, batch_at, vocab_size=vocab_size, steps=STEPS.value
    )
    if JSON.value:
        print(json.dumps(dataclasses.asdict(speed)))
    else:
        print(training_speed.format_speed(speed))


def decode() -> None:
    """Time beam searches with random parameters."""
    settings = program.settings()
    batches = _positive("--batches", BATCHES.value)
    for flag in (SOURCE_TOKENS, OUTPUT_TOKENS):
        rules.check_length(
            f"--{flag.name}={flag.value}", flag.value, model=settings.model
        )
    # Not `step.check_settings`: a search never uses cuDNN's fused attention.
    _use_devices()
    speeds = decoding_speed.measure(
        settings,
        vocab_size=_expected_size(settings.data),
        batches=batches,
        source_tokens=SOURCE_TOKENS.value,
        output_tokens=OUTPUT_TOKENS.value,
        repeats=STEPS.value,
    )
    if JSON.value:
        print(json.dumps([dataclasses.asdict(speed) for speed in speeds]))
    else:
        print(decoding_speed.format_speeds(speeds))


def _expected_size(data: config.DataConfig) -> types.VocabSize:
    """Return V of the configuration, with --vocab_size in place of its own."""
    if VOCAB_SIZE.value is not None:
        data = dataclasses.replace(data, vocab_size=VOCAB_SIZE.value, vocabulary="")
    return expected_size(data)


# Each task, and the flags that it reads beside --config.
SIZES = (VOCAB_SIZE, STEPS, DEVICES, JSON)
TASKS = {
    "train": (train, (WORKDIR, SHAPE, *SIZES)),
    "decode": (decode, (BATCHES, SOURCE_TOKENS, OUTPUT_TOKENS, *SIZES)),
}
TASK = flags.DEFINE_enum("task", None, list(TASKS), "What to time.", required=True)


def check_flags() -> None:
    """Refuse a flag that the task would not read."""
    names = {flag.name for flag in TASKS[TASK.value][1]}
    for owner, (_, flags_of_owner) in TASKS.items():
        for flag in flags_of_owner:
            if flag.present and flag.name not in names:
                raise ValueError(
                    f"--{flag.name} is a flag of {owner}, not of {TASK.value}"
                )


def main() -> None:
    """Run the task."""
    run_task = TASKS[TASK.value][0]
    run_task()


def _use_devices() -> None:
    if DEVICES.value is not None:
        parallel.use_devices(DEVICES.value)


def _positive(flag: str, values: list[str]) -> list[int]:
    for value in values or [""]:
        if not re.fullmatch(r"[1-9]\d*", value):
            raise ValueError(f"{flag} must be positive numbers, got {value!r}")
    return [int(value) for value in values]


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("task", "config"), takes_config=True),
    check_flags=check_flags,
    expected=(*program.EXPECTED_ERRORS, MemoryError),
)

if __name__ == "__main__":
    PROGRAM.run()
