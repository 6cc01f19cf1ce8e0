"""Score a checkpoint on held-out text: perplexity, BLEU and chrF (section 6).

vaswani evaluate runs/demo --split=test
python -m vaswani_jax.evaluate --workdir=runs/demo --split=test
"""

from absl import flags

from vaswani_jax import api
from vaswani_jax.checkpoints import select
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.core import compilation_cache, processes, tensor_file
from vaswani_jax.data import prepared
from vaswani_jax.evaluation import scores

WORKDIR = path_flags.define_path(
    "workdir", "", "The directory of the run; runs/NAME of --config by default."
)
CHECKPOINT = flags.DEFINE_string(
    "checkpoint", "averaged", "averaged, newest, best, average:N or a step."
)
SPLIT = flags.DEFINE_enum("split", "test", ["valid", "test"], "Which text to score.")
SAMPLES = flags.DEFINE_integer("samples", 0, "Translations to print.", lower_bound=0)


def main() -> None:
    """Translate a split, score it, and write both beside a run's checkpoints."""
    settings = program.settings()
    workdir = None
    if tensor_file.is_tensor_file(WORKDIR.value):
        path = program.workdir(WORKDIR.value)
    else:
        workdir = program.open_workdir(WORKDIR.value)
        path = workdir.pull(skip=select.other_folders(CHECKPOINT.value))
    compilation_cache.enable()
    directory = prepared.data_directory(settings.data, path)
    data = prepared.open_matching(
        settings,
        directory,
        compare_text=True,
        has_checkpoints=lambda: select.recorded_vocabulary(path) is not None,
    )
    if SPLIT.value not in data.counts:
        raise ValueError(
            f"--split={SPLIT.value}: the data has only {', '.join(data.counts)}; name "
            f"config.data.{SPLIT.value}_source and config.data.{SPLIT.value}_target, "
            "and prepare it: `vaswani prepare` with --rebuild_data"
        )
    translator = api.load(
        path, checkpoint=CHECKPOINT.value, settings=settings, data=data
    )
    evaluation = scores.evaluate(
        translator,
        data,
        split=SPLIT.value,
        selected=CHECKPOINT.value,
        workdir=workdir,
    )
    if processes.is_main_process():
        print(evaluation.format(samples=SAMPLES.value))


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(
        arguments=("workdir",),
        takes_config=True,
        default_workdir=True,
        multi_process=True,
    ),
)

if __name__ == "__main__":
    PROGRAM.run()
