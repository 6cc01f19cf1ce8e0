"""Train a model from Python: `vaswani_jax.train`.

    import vaswani_jax
    config = vaswani_jax.load_config("demo", {"training.num_steps": 500})
    result = vaswani_jax.train(config, "runs/demo")
    print(result.step, result.metrics["valid/bleu"])
    print(vaswani_jax.train_seeds(config, "runs/seeds", num_seeds=3).format())

The program `main` calls it, too.
"""

import contextlib
import dataclasses
import functools
import logging
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence

from vaswani_jax.checkpoints import compatibility, run_record, select, store
from vaswani_jax.core import (
    compilation_cache,
    extras,
    files,
    parallel,
    processes,
    remote,
    seeds,
    tensor_file,
    tpu_flags,
)
from vaswani_jax.core.config import Config
from vaswani_jax.core.types import Evaluator, MetricsLogger
from vaswani_jax.data import prepared, treebank_checks
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.evaluation import metrics, scores, spread, validation
from vaswani_jax.plots import canvas, learning_curves
from vaswani_jax.training import divergence, initial_model, loggers, loop, step
from vaswani_jax.training.initial_model import InitialModel

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class TrainingResult(loop.Outcome):
    """The step, the metrics and the scores that a run has reached.

    Attributes:
        step: Number of updates made.
        best_step: The step with the best validation score; 0 if there is none.
        metrics: The latest value of each logged metric, as "valid/bleu".
        evaluations: Each an `Evaluation`, the scores of the mean of the last
            checkpoints: on the validation set, and on the test set if there is one.
        workdir: The run's directory on this machine.
    """

    evaluations: list[scores.Evaluation]
    workdir: pathlib.Path

    @property
    def checkpoints(self) -> pathlib.Path:
        """The directory of the last checkpoints, by their steps."""
        return self.workdir / "checkpoints"

    @property
    def best(self) -> pathlib.Path:
        """The directory of the parameters with the best validation score."""
        return self.workdir / "best"

    @property
    def averaged(self) -> pathlib.Path:
        """The directory of the mean of the last checkpoints."""
        return self.workdir / "averaged"


@dataclasses.dataclass(frozen=True)
class SeedsResult:
    """The results of runs that differ in their seeds alone.

    Attributes:
        runs: The result of each run by its seed.
    """

    runs: dict[int, TrainingResult]

    def spreads(self) -> dict[str, spread.Spread]:
        """Return how each score differs between the seeds, by "test/sacrebleu"."""
        values: dict[str, list[float]] = {}
        for result in self.runs.values():
            for evaluation in result.evaluations:
                for score in evaluation.scores:
                    name = f"{evaluation.split}/{score.name}"
                    values.setdefault(name, []).append(score.value)
        return {name: spread.Spread(scores) for name, scores in values.items()}

    def format(self) -> str:
        """Return mean and spread of each score as lines of text."""
        spreads = self.spreads()
        width = max(map(len, spreads), default=0)
        lines = [
            f"{name:<{width}}  {score_spread.mean:6.2f}  {score_spread.format_range()}"
            for name, score_spread in spreads.items()
        ]
        return "\n".join(
            [f"mean of the seeds {', '.join(map(str, self.runs))}", *lines]
        )


def train(
    config: Config,
    workdir: str | os.PathLike[str],
    *,
    evaluators: Sequence[Evaluator] = (),
    metrics_loggers: Sequence[MetricsLogger] = (),
    init_from: str = "",
    rebuild_data: bool = False,
    on_evaluation: Callable[[scores.Evaluation], None] | None = None,
) -> TrainingResult:
    """Prepare the data if needed, train, average the last checkpoints, and score them.

    A run that was interrupted resumes from its newest checkpoint. While it trains,
    SIGTERM, SIGINT (Ctrl-C) and SIGHUP save it and raise `Stopped`, if this is the main
    thread.

    Sets options of JAX for the whole process; none changes results. The compilation
    cache is VASWANI_JAX_CACHE, else vaswani_jax in XDG_CACHE_HOME, else in ~/.cache;
    JAX_COMPILATION_CACHE_DIR, if set, gets the compiled programs instead.
    If JAX has not used a device yet, asynchronous dispatch on CPUs is off.

    Args:
        config: All settings, as `load_config` returns them.
        workdir: Where the run lies or will lie: a directory, or a URL (gs://, s3://).
        evaluators: Functions from the parameters (a tree of arrays on the devices) to
            metrics by name, called every `training.evaluate_every_steps` after those
            of the validation loss and BLEU.
        metrics_loggers: Functions that take the step and its metrics by name, called
            with the finite values of each record of metrics.jsonl, beside those of
            `training.loggers`.
        init_from: Start a new run from these parameters: WORKDIR, `WORKDIR@CHECKPOINT`,
            WORKDIR/checkpoints/STEP or FILE.safetensors. Ignored if the run has
            checkpoints; until then, a run that began with it needs it again.
        rebuild_data: Prepare the data again, even if they are there.
        on_evaluation: Called with each `Evaluation` as soon as it is complete.

    Returns:
        The step, metrics and scores of the run; the same again for a finished run.

    Raises:
        ValueError: A setting, the text or a checkpoint is invalid, or
            another program trains in the workdir. The message says what to do.
        TypeError: `config` is no `Config`.
        OSError: A file or a store cannot be read or written.
        ImportError: A package that the settings need is not installed.
        DivergedError: Too many batches gave a loss that is not finite or a spike.
        Stopped: A signal stopped the run; its state is saved.
        KeyboardInterrupt: Ctrl-C came while the state was being saved, after the signal
            that stops the run. The run resumes from the checkpoint before.
    """
    return _train(
        config,
        workdir,
        evaluators=evaluators,
        metrics_loggers=metrics_loggers,
        init_from=init_from,
        rebuild_data=rebuild_data,
        on_evaluation=on_evaluation,
    )


def train_seeds(
    config: Config,
    workdir: str | os.PathLike[str],
    *,
    num_seeds: int,
    evaluators: Sequence[Evaluator] = (),
    metrics_loggers: Sequence[MetricsLogger] = (),
    init_from: str = "",
    rebuild_data: bool = False,
    on_evaluation: Callable[[int, scores.Evaluation], None] | None = None,
) -> SeedsResult:
    """Train runs that differ in their seeds alone, one after the other.

    The seeds are `config.seed`, the next one, and so on. Each run lies in
    WORKDIR/seed-SEED. It equals, bit for bit, what `train` trains with this seed. The
    same call resumes an interrupted one; a call with more seeds trains those that are
    missing. All use the data that the first prepares, unless data depends on the seed:
    generated text, noise, subword dropout.

    Args:
        config: All settings, with the first seed.
        workdir: The directory of all runs, or a URL.
        num_seeds: The number of runs, from 1 to `core.seeds.MAX_SEEDS`.
        evaluators: See `train`.
        metrics_loggers: Get the metrics of all runs.
        init_from: Parameters that each run starts from.
        rebuild_data: Prepare the data of each run again.
        on_evaluation: Called with the seed and each `Evaluation`.

    Raises:
        ValueError: The number of seeds is out of range, the workdir holds one run,
            seeds that need data of their own would share `data.directory`, or a
            finished run was trained with other settings. All errors of `train` are
            raised, too.
    """
    _check_config(config)
    seeds.check_range(seed=config.seed, num_seeds=num_seeds)
    name = os.fspath(workdir)
    check_seeds_directory(name)
    results: dict[int, TrainingResult] = {}
    shared_data = None
    if prepared.depends_on_seed(config.data):
        if config.data.directory and num_seeds > 1:
            raise ValueError(
                f"config.data.directory={config.data.directory}: the data depends on "
                "the seed, so seeds cannot share a directory; leave it out"
            )
        logger.info("each seed prepares its own data, which depends on the seed")
    runs = {
        seed: f"{name.rstrip('/')}/{seeds.folder_name(seed)}"
        for seed in range(config.seed, config.seed + num_seeds)
    }
    _set_up_jax()
    # Process 0 alone: the others could see files that are on their way.
    check = functools.partial(_check_seeds, config, runs)
    processes.run_on_main(check, ValueError, OSError)
    for seed, run in runs.items():
        logger.info(f"seed {seed}, {len(results) + 1} of {num_seeds}: {run}")
        results[seed] = _train(
            dataclasses.replace(config, seed=seed),
            run,
            evaluators=evaluators,
            metrics_loggers=metrics_loggers,
            init_from=init_from,
            rebuild_data=rebuild_data,
            on_evaluation=on_evaluation and functools.partial(on_evaluation, seed),
            shared_data=shared_data,
        )
        if not (config.data.directory or prepared.depends_on_seed(config.data)):
            shared_data = results[seed].workdir / "data"
    return SeedsResult(results)


def check_seeds_directory(name: str) -> None:
    """Check that a directory for several seeds holds no single run.

    Raises:
        ValueError: The directory holds one run, or its name is invalid.
        OSError: It is on a store that cannot be read.
    """
    workdir = remote.open_workdir(name).pull(file_names=seeds.RECORDS)
    if (workdir / "config.json").exists() or select.has_checkpoints(workdir):
        raise ValueError(f"{name} holds one run; several seeds need another directory")


def _check_seeds(config: Config, runs: Mapping[int, str]) -> None:
    """Refuse settings with which a seed that has checkpoints was not trained.

    A finished run, by its recorded settings or these, keeps all that would make it
    train on, or that decided its updates. Another run keeps what it must to resume.

    Raises:
        ValueError: A setting differs from the recorded one.
        OSError: A run is on a store that cannot be read.
    """
    for seed, run in runs.items():
        directory = remote.open_workdir(run).pull() / "checkpoints"
        if not (steps := store.steps(directory)):
            continue
        record = store.read_record(directory, steps[-1])
        changes = compatibility.find_changes(
            record.get("config", {}), dataclasses.replace(config, seed=seed)
        )
        compatibility.refuse_after_training(
            changes, settings=config, record=record, step=steps[-1], run=run
        )
        compatibility.refuse_fixed(
            changes,
            step=steps[-1],
            num_batches=steps[-1] + len(record.get("skipped", [])),
            directory=directory,
        )


def _check_config(config: Config) -> None:
    if not isinstance(config, Config):
        raise TypeError(
            f"config must be a Config, as load_config returns it; got {config!r}"
        )


def _set_up_jax() -> None:
    """Set what JAX reads before its first use of a device."""
    parallel.disable_async_dispatch()
    tpu_flags.set_defaults(os.environ)


def _train(
    config: Config,
    workdir: str | os.PathLike[str],
    *,
    evaluators: Sequence[Evaluator],
    metrics_loggers: Sequence[MetricsLogger],
    init_from: str,
    rebuild_data: bool,
    on_evaluation: Callable[[scores.Evaluation], None] | None,
    shared_data: pathlib.Path | None = None,
) -> TrainingResult:
    """Train as `train` does; link data that is missing from `shared_data`."""
    _check_config(config)
    _set_up_jax()
    name = os.fspath(workdir)
    directory = remote.open_workdir(name)
    seeds.refuse_seeds_directory(directory.pull(file_names=seeds.RECORDS))
    step.check_settings(config)
    metrics.read_seed()  # The scores after training need it.
    loggers.require(config)
    with contextlib.ExitStack() as stack:

        def hold() -> None:
            stack.enter_context(directory.hold())
            if not select.has_checkpoints(directory.path):
                run_record.refuse_other_config(directory.path)
                if not init_from:
                    run_record.refuse_random_restart(directory.path, name=name)

        processes.run_on_main(hold, ValueError, OSError)
        if not processes.is_main_process():
            directory.pull(is_follower=True)
        run_loggers = processes.run_on_main(
            lambda: stack.enter_context(loggers.open_loggers(config, directory.path)),
            ValueError,
        )
        has_checkpoints = select.has_checkpoints(directory.path)
        if not has_checkpoints:
            seeds.check_range(seed=config.seed, num_seeds=1)
        if init_from and has_checkpoints:
            logger.info(
                "note: --init_from gives no parameters, since this run has checkpoints"
            )
        initial = None
        if init_from and not has_checkpoints:
            initial = _load_initial(config, init_from)
        data = _prepare(
            config,
            directory,
            initial=initial,
            init_from=init_from,
            rebuild=rebuild_data,
            shared_data=shared_data,
        )
        if data.vocabulary.is_trees:
            treebank_checks.warn_of_lengths(
                data.token_pairs("train"),
                settings=config,
                counts=data.counts["train"],
                vocabulary=data.vocabulary,
            )
        compilation_cache.enable()
        try:
            outcome = loop.train(
                config,
                data,
                workdir=directory,
                evaluators=[*validation.make_validators(config, data), *evaluators],
                loggers=[*metrics_loggers, *(run_loggers or ())],
                initial_params=initial.params if initial else None,
                init_from="" if has_checkpoints else init_from,
            )
        except divergence.DivergedError:
            if processes.is_main_process():
                # The original error says more.
                with contextlib.suppress(OSError, files.SupersededError):
                    directory.push()
            raise
        if processes.is_main_process():
            _draw_curves(name, directory.path)
        processes.run_on_main(directory.push, ValueError, OSError)
        if not processes.is_main_process():
            directory.pull(is_follower=True)
        evaluations = []
        for evaluation in scores.score_average(config, data, workdir=directory):
            evaluations.append(evaluation)
            if on_evaluation:
                on_evaluation(evaluation)
        return TrainingResult(
            **vars(outcome), evaluations=evaluations, workdir=directory.path
        )


def _load_initial(config: Config, init_from: str) -> InitialModel:
    """Return the model that --init_from names, downloaded if it is on a store.

    Of a run, only the folder of the checkpoint that is read is downloaded.
    """
    folder, name = select.split_name(init_from)
    if tensor_file.is_tensor_file(folder):
        path = remote.local_file(folder)
    else:
        directory = remote.open_directory(folder)
        for choice in [name] if name else select.FIRST_CHOICES:
            path = directory.pull(skip=select.other_folders(choice))
            if select.paths(path, choice):
                break
    return initial_model.load(config, path=path, name=name)


def _draw_curves(name: str, workdir: pathlib.Path) -> None:
    """Draw WORKDIR/curves.png, or log what that needs."""
    if not canvas.is_available():
        logger.info(f"no curves.png: {extras.how_to_install('plot')} draws it")
        return
    try:
        figure = learning_curves.draw([learning_curves.read(name, workdir)])
        canvas.save(figure, workdir / "curves.png")
    except Exception as error:  # A picture must not make a finished run fail.
        logger.warning(f"curves.png is not drawn: {error}")


def _prepare(
    config: Config,
    workdir: files.Directory,
    *,
    initial: InitialModel | None,
    init_from: str,
    rebuild: bool,
    shared_data: pathlib.Path | None,
) -> prepared.PreparedData:
    """Prepare the data in the main process; the others open what it has prepared."""

    def find_lost_vocabulary() -> Vocabulary | None:
        return _load_initial(config, init_from).vocabulary if init_from else None

    def prepare(*, rebuild: bool) -> prepared.PreparedData:
        return prepared.open_or_prepare(
            config,
            prepared.data_directory(config.data, workdir.path),
            rebuild=rebuild,
            required_fingerprint=lambda: select.recorded_vocabulary(workdir.path),
            initial_vocabulary=initial.vocabulary if initial else None,
            find_lost_vocabulary=find_lost_vocabulary,
        )

    def prepare_and_push() -> prepared.PreparedData:
        if shared_data and not rebuild:
            directory = prepared.data_directory(config.data, workdir.path)
            prepared.link_data(shared_data, directory)
        data = prepare(rebuild=rebuild)
        prepared.push(config.data, workdir)
        return data

    data = processes.run_on_main(prepare_and_push, ValueError, OSError, ImportError)
    if data is None:
        workdir.pull(is_follower=True)
        data = prepare(rebuild=False)
    return data
