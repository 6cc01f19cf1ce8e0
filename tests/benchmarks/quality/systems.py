"""Define the systems, run each by its worker, and parse their logs.

A worker is a program of a system's environment. It reads a job, JSON of these keys:

    action            "train", until killed, or "translate"
    text              the directory of subwords (see `text.py`)
    output            the directory of the run
    flags             our preset and the flags that name its text, for our own worker
    settings_name     the settings of the worker
    seed              the random seed
    threads, checkpoint_every, log_every, batch_tokens
    models            each translates with the mean of parameters of `checkpoints`
                      (one for Marian, which smooths its own); each of its `searches`
                      has `source`, `words`, `output`, `beam` and `penalty`;
                      `measure_loss` has `source`, `target`, `words`, `references` and
                      `output`, or is null
    batch, longest    sentences of a search, and the longest output
"""

import dataclasses
import json
import math
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping

from tests.benchmarks.against_peers import KEEP_MEMORY

FOLDER = pathlib.Path(__file__).parent
BATCH_TOKENS = 4096
THREADS = 2
VASWANI_JAX = "vaswani_jax"
# Early rates are too small for the digits of a log.
FIRST_CHECKED_STEP = 100
RATE_TOLERANCE = 0.05
THREAD_VARIABLES = {
    name: str(THREADS) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
}


@dataclasses.dataclass(frozen=True)
class Progress:
    """A line of a log: the training loss, target tokens a second, the learning rate."""

    elapsed_seconds: float
    step: int
    loss: float
    tokens_per_second: float
    learning_rate: float | None = None


@dataclasses.dataclass(frozen=True)
class Setting:
    """Settings of a worker in words, and their schedule: an inverse square root.

    Attributes:
        description: Layer norms, dropout, and where the settings come from.
        peak_rate: The highest learning rate.
        warmup_steps: Updates until then.
    """

    description: str
    peak_rate: float
    warmup_steps: int

    @property
    def words(self) -> str:
        """The settings as the page has them."""
        return (
            f"{self.description}; learning rate {self.peak_rate:.4g} after "
            f"{self.warmup_steps:,} updates, then its inverse square root"
        )

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of an update.

        >>> [Setting("", 0.8, 100).learning_rate(step) for step in (50, 100, 400)]
        [0.4, 0.8, 0.4]
        """
        warmup = self.warmup_steps
        return self.peak_rate * min(step / warmup, math.sqrt(warmup / step))

    def find_wrong_rate(self, progress: Iterable[Progress]) -> str:
        """Return the first logged learning rate that is not this schedule's, or ""."""
        for point in progress:
            rate = point.learning_rate
            if rate is None or point.step < FIRST_CHECKED_STEP:
                continue
            expected = self.learning_rate(point.step)
            if abs(rate - expected) > RATE_TOLERANCE * expected:
                return (
                    f"learning rate {rate:.3g} at update {point.step:,}; its settings "
                    f"say {expected:.3g}"
                )
        return ""


def _multi30k(layer_norms: str) -> Setting:
    """Return the settings published for this model on this text, of another toolkit."""
    return Setting(f"{layer_norms}; dropout 0.3; the rates of Revisit-MMT", 0.005, 2000)


def _longer_warmup(layer_norms: str) -> Setting:
    """Return ours, but with the warm-up that they had when the peers ran."""
    peak_rate = 0.8 * 128**-0.5 * 1000**-0.5
    return Setting(f"{layer_norms}; our rates with a longer warm-up", peak_rate, 1000)


@dataclasses.dataclass(frozen=True)
class System:
    """A system and how it is run.

    Attributes:
        name: On the command line.
        title: On the page.
        venv: Its environment in the directory of all; "" for ours.
        worker: The program that runs it.
        environment: Variables of its best allocator and of its threads.
        settings: The settings of its worker by their names.
        checkpoint_glob: The paths of its checkpoints in the run's directory.
        checkpoint_name: A regular expression of their names; its group is the step.
        counts: How many checkpoints may be averaged; 1 alone if it averages by itself.
        parse: Reads its log.
        penalty: Its form of length penalty, in words.
        average: How its parameters are averaged, in words.
        speed_name: Its name in docs/results/speed.json.
        checkpoint_interval_factor: Multiplies the updates between our checkpoints;
            below 1 for a system with slower updates, so that its checkpoints are about
            as many seconds apart.
        note: A sentence about it for the page's list of settings, or "".
    """

    name: str
    title: str
    venv: str
    worker: str
    environment: Mapping[str, str]
    settings: Mapping[str, Setting]
    checkpoint_glob: str
    checkpoint_name: str
    counts: tuple[int, ...]
    parse: Callable[[Iterable[tuple[float, str]]], list[Progress]]
    penalty: str
    average: str
    speed_name: str
    checkpoint_interval_factor: float = 1.0
    note: str = ""

    def python(self, venvs: pathlib.Path, default: str) -> str:
        """Return the interpreter that runs the worker."""
        return str(venvs / self.venv / "bin/python") if self.venv else default

    def find_checkpoints(self, directory: pathlib.Path) -> dict[int, pathlib.Path]:
        """Return the checkpoints of a run by their step."""
        paths = {}
        for path in directory.glob(self.checkpoint_glob):
            if match := re.fullmatch(self.checkpoint_name, path.name):
                paths[int(match[1])] = path
        return paths


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _parser(
    pattern: str,
) -> Callable[[Iterable[tuple[float, str]]], list[Progress]]:
    """Return a function that parses lines with a step, a loss and two rates."""
    compiled = re.compile(pattern)

    def parse(lines: Iterable[tuple[float, str]]) -> list[Progress]:
        matches = (
            (elapsed_seconds, compiled.search(line)) for elapsed_seconds, line in lines
        )
        return [
            Progress(
                elapsed_seconds=elapsed_seconds,
                step=int(_number(match["step"])),
                loss=_number(match["loss"]),
                tokens_per_second=_number(match["rate"]),
                learning_rate=float(match["lr"]) if match["lr"] else None,
            )
            for elapsed_seconds, match in matches
            if match
        ]

    return parse


def parse_counts(lines: Iterable[tuple[float, str]]) -> list[Progress]:
    """Read lines of JSON that count all target tokens so far."""
    result, last = [], (0.0, 0)
    for elapsed_seconds, line in lines:
        if line.startswith("PROGRESS "):
            record = json.loads(line.removeprefix("PROGRESS "))
            if "loss" in record:
                tokens = record["target_tokens"]
                rate = (tokens - last[1]) / max(elapsed_seconds - last[0], 1e-9)
                last = (elapsed_seconds, tokens)
                result.append(
                    Progress(
                        elapsed_seconds=elapsed_seconds,
                        step=record["step"],
                        loss=float(record["loss"]),
                        tokens_per_second=rate,
                        learning_rate=record.get("learning_rate"),
                    )
                )
    return result


SYSTEMS = {
    system.name: system
    for system in (
        System(
            name=VASWANI_JAX,
            title="vaswani_jax",
            venv="",
            worker="worker_vaswani_jax.py",
            environment={},  # It sets its own allocator and threads.
            settings={
                "recipe": Setting(
                    "post-norm; the recipe as it stands",
                    0.8 * 128**-0.5 * 250**-0.5,
                    250,
                )
            },
            checkpoint_glob="run/checkpoints/*",
            checkpoint_name=r"(\d+)",
            counts=(1, 4, 8, 16, 32),
            parse=_parser(
                r"step (?P<step>[\d,]+) of .* loss (?P<loss>[\d.]+) .*"
                r" lr (?P<lr>\S+) .* (?P<rate>[\d,]+) target tokens/s"
            ),
            penalty="log P / ((5 + length) / 6)^alpha",
            average="`vaswani average`",
            speed_name="vaswani_jax",
        ),
        System(
            name="joeynmt",
            title="JoeyNMT",
            venv="joey",
            worker="worker_joeynmt.py",
            environment={**KEEP_MEMORY, **THREAD_VARIABLES},
            settings={
                "published": Setting(
                    "pre-norm; dropout 0.3; its IWSLT14 model's", 0.0005, 4000
                ),
                "multi30k": _multi30k("pre-norm"),
                "recipe": _longer_warmup("pre-norm; dropout 0.3"),
            },
            checkpoint_glob="model/*.ckpt",
            checkpoint_name=r"(\d+)\.ckpt",
            counts=(1, 4, 8, 16, 32),
            parse=_parser(
                r"Step: +(?P<step>\d+), Batch Loss: +(?P<loss>[\d.]+), .*"
                r"Tokens per Sec: +(?P<rate>[\d,.]+), Lr: (?P<lr>[\d.e-]+)"
            ),
            penalty="log P / ((5 + length) / 6)^alpha",
            average="the mean of parameters, as scripts/average_checkpoints.py has it",
            speed_name="JoeyNMT",
            checkpoint_interval_factor=0.4,  # for the reason of the note
            note=(
                "Its batches of 4,096 tokens count the padding of pairs that it does "
                "not sort, so they hold less than half of the others' tokens."
            ),
        ),
        System(
            name="transformers",
            title="MarianMT, transformers' Trainer",
            venv="hf",
            worker="worker_transformers.py",
            environment={**KEEP_MEMORY, **THREAD_VARIABLES},
            settings={
                "multi30k": _multi30k("post-norm"),
                "lower_rate": Setting("post-norm; dropout 0.3", 0.0005, 4000),
                "recipe": _longer_warmup("post-norm; dropout 0.3"),
            },
            checkpoint_glob="checkpoint-*",
            checkpoint_name=r"checkpoint-(\d+)",
            counts=(1, 4, 8, 16, 32),
            parse=parse_counts,
            penalty="log P / length^alpha",
            average="the mean of parameters",
            speed_name="MarianMT, fused Adam",
        ),
        System(
            name="eole",
            title="EOLE",
            venv="eole",
            worker="worker_eole.py",
            environment={**KEEP_MEMORY, **THREAD_VARIABLES},
            settings={
                "published": Setting(
                    "pre-norm; dropout 0.1; its WMT17 recipe's schedule, our batch",
                    2 * 128**-0.5 * 4000**-0.5,
                    4000,
                ),
                "multi30k": _multi30k("pre-norm"),
                "recipe": _longer_warmup("pre-norm; dropout 0.3"),
            },
            checkpoint_glob="model/step_*",
            checkpoint_name=r"step_(\d+)",
            counts=(1, 4, 8, 16, 32),
            parse=_parser(
                r"Step +(?P<step>\d+)/.* xent: +(?P<loss>[\d.]+);.* "
                r"lr: (?P<lr>[\d.e-]+);.* \d+ */ *(?P<rate>\d+) tok/s"
            ),
            penalty="log P / ((5 + length) / 6)^alpha (`wu`)",
            average="the mean of parameters",
            speed_name="EOLE",
        ),
        System(
            name="marian",
            title="Marian",
            venv="marian",
            worker="worker_marian.py",
            # Its own allocator is the faster one, and its two replicas want a thread
            # each (docs/results/speed.md).
            environment={"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            settings={
                "published": Setting(
                    "post-norm; dropout 0.1; of `--task transformer-base`",
                    0.0003,
                    16000,
                ),
                "multi30k": _multi30k("post-norm"),
                "recipe": _longer_warmup("post-norm; dropout 0.3"),
                "prenorm": _longer_warmup(
                    "pre-norm, searched by CTranslate2; dropout 0.3"
                ),
            },
            checkpoint_glob="model.iter*.npz",
            checkpoint_name=r"model\.iter(\d+)\.npz",
            counts=(1,),
            parse=_parser(
                r"Up\. (?P<step>[\d,]+) : .*Cost (?P<loss>[\d.]+) .* "
                r"(?P<rate>[\d.]+) words/s(?:.* L\.r\. (?P<lr>[\d.e-]+))?"
            ),
            penalty="log P / length^alpha",
            average="its exponential smoothing",
            speed_name="Marian",
        ),
    )
}
