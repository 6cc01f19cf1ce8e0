"""Check the text of a run, or whether it fits accelerators, before it starts.

--data looks for what spoils training or scores: sides that do not belong together,
wrong languages, test lines in the training text, broken characters. Status 2 means that
something is serious. Nothing is changed.

For --hardware, the compilers of accelerators that are not here compile the run's
programs; nothing is run. Facts of the compiler are kept apart from estimates.

  vaswani check own_text --data --config.data.text_directory=DIR ...
  vaswani check demo --hardware=v5e:8
  vaswani check configs/big_enfr.py --hardware=v5e:2x4,h100:8 --json
  python -m vaswani_jax.check --config=demo --hardware=v5p:2x2x2 --all_shapes
"""

import collections
import json
import logging
import pathlib
import sys
from typing import Any

from absl import flags

from vaswani_jax.cli import command_line, path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import config
from vaswani_jax.data import (
    manifest,
    prepared,
    training_batches,
    vocabulary_training,
)
from vaswani_jax.hardware import launch, summary, topology, worker, workload
from vaswani_jax.hardware.workload import Shape, Workload
from vaswani_jax.text_checks import checks

logger = logging.getLogger(__name__)
WORKDIR = path_flags.define_path(
    "workdir", "", "Where data is or will be prepared; runs/NAME of the preset."
)
DATA = flags.DEFINE_bool("data", False, "Check the text, and the vocabulary if any.")
HARDWARE = flags.DEFINE_list(
    "hardware",
    None,
    "Chips to compile for, such as v5e:2x4,h100:8: v4, v5e, v5p, v6e, tpu7x (extra "
    "tpu), h100, a100 (extra cuda), and their number or grid.",
)
ALL_SHAPES = flags.DEFINE_bool(
    "all_shapes", False, "Compile every shape, not only the largest and the commonest."
)
DOLLARS = flags.DEFINE_float(
    "dollars_per_hour", None, "The price of one chip.", lower_bound=0.0
)
JSON = flags.DEFINE_bool(
    "json", False, "Print JSON: a list for --hardware, an object for --data or both."
)
# The exit status if a finding is serious.
SERIOUS_STATUS = 2


def main() -> None:
    """Check the text, judge each hardware, or both."""
    settings = program.settings()
    all_hardware = [topology.parse(text) for text in HARDWARE.value or ()]
    for hardware in all_hardware:
        topology.require(hardware)
    workdir = program.workdir(WORKDIR.value, skip=("checkpoints", "best", "averaged"))
    # Refuse data of other settings before the text is read, which takes long.
    work = _workload(settings, workdir) if all_hardware else None
    report = checks.check_data(settings, workdir=workdir) if DATA.value else None
    if report and not JSON.value:
        print(report.describe(), flush=True)
    verdicts = _judge(work, all_hardware) if work else []
    if not JSON.value:
        if report and verdicts:
            print("\n\n")
        if verdicts:
            print("\n\n\n".join(map(summary.describe, verdicts)))
    elif report:
        record = report.to_dict()
        records = {"data": record, "hardware": verdicts}
        print(json.dumps(records if verdicts else record, indent=2, ensure_ascii=False))
    else:
        print(json.dumps(verdicts, indent=2))
    if report and report.is_serious:
        sys.exit(SERIOUS_STATUS)


def _check_flags() -> None:
    if not (DATA.value or HARDWARE.value):
        raise ValueError(
            "--hardware is missing: name chips, such as --hardware=v5e:8, or check the "
            "text with --data"
        )
    for flag in (ALL_SHAPES, DOLLARS):
        if flag.present and not HARDWARE.value:
            raise ValueError(f"--{flag.name} needs --hardware")


def _judge(
    work: Workload, all_hardware: list[topology.Hardware]
) -> list[dict[str, Any]]:
    """Judge each hardware, each platform in a process of its own."""
    by_name = {}
    for platform, group in _by_platform(all_hardware).items():
        logger.info(f"{platform}: {', '.join(hardware.name for hardware in group)}")
        for verdict in worker.run(work, group):
            by_name[verdict["hardware"]] = verdict
    training_flags = command_line.list_config_flags()
    if not flags.FLAGS["workdir"].using_default_value:
        training_flags.append(f"--workdir={WORKDIR.value}")
    return [
        {
            **by_name[hardware.name],
            "launch": launch.command(hardware, training_flags),
        }
        for hardware in all_hardware
    ]


def _by_platform(
    all_hardware: list[topology.Hardware],
) -> dict[str, list[topology.Hardware]]:
    groups = collections.defaultdict(list)
    for hardware in dict.fromkeys(all_hardware):
        groups[hardware.chip.platform].append(hardware)
    return dict(groups)


def _workload(settings: config.Config, workdir: pathlib.Path) -> Workload:
    data_directory = prepared.data_directory(settings.data, workdir)
    options: dict[str, Any] = {
        "settings": settings,
        "all_shapes": ALL_SHAPES.value,
        "dollars_per_hour": DOLLARS.value,
    }
    data = None
    if (data_directory / manifest.NAME).exists():
        data = prepared.open_matching(settings, data_directory, compare_text=False)
    if data is None or not data.manifest.text:  # An imported model has no text.
        bucket = workload.usual_bucket(settings.data)
        logger.info(
            f"no data is prepared in {data_directory}: batches of {bucket.rows:,} x "
            f"{bucket.describe_tokens()} stand for all shapes"
        )
        return Workload(
            vocab_size=data.vocabulary.size
            if data
            else vocabulary_training.expected_size(settings.data),
            shapes=[Shape(bucket=bucket, batches=0)],
            num_shapes=1
            if settings.data.batching == "packed"
            else settings.data.num_buckets,
            target_tokens=None,
            **options,
        )
    batches = training_batches.make_training_batches(
        settings.data,
        data.token_pairs("train"),
        seed=settings.seed,
        corpus_sizes=data.manifest.corpus_sizes,
    )
    shapes = [
        Shape(bucket=bucket, batches=count)
        for bucket, count in batches.num_batches.items()
    ]
    return Workload(
        vocab_size=data.vocabulary.size,
        shapes=shapes,
        num_shapes=len(batches.buckets),
        target_tokens=batches.tokens_per_epoch[1] / batches.batches_per_epoch,
        **options,
    )


PROGRAM = program.Program(
    main=main,
    check_flags=_check_flags,
    syntax=Syntax(arguments=("config",), takes_config=True, default_workdir=True),
    expected=(*program.EXPECTED_ERRORS, worker.WorkerError),
)

if __name__ == "__main__":
    PROGRAM.run()
