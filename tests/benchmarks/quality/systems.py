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
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping

from tests.benchmarks.against_peers import KEEP_MEMORY

FOLDER = pathlib.Path(__file__).parent
BATCH_TOKENS = 4096
THREADS = 2
VASWANI_JAX = "vaswani_jax"
SCHEDULE = "our rates: inverse square root, 0.0022 after 1,000 updates"
THREAD_VARIABLES = {
    name: str(THREADS) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
}


@dataclasses.dataclass(frozen=True)
class Progress:
    """A line of a log: the training loss, and target tokens a second."""

    elapsed_seconds: float
    step: int
    loss: float
    tokens_per_second: float


@dataclasses.dataclass(frozen=True)
class System:
    """A system and how it is run.

    Attributes:
        name: On the command line.
        title: On the page.
        venv: Its environment in the directory of all; "" for ours.
        worker: The program that runs it.
        environment: Variables of its best allocator and of its threads.
        settings: The settings of its worker in words, the default first.
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
    """

    name: str
    title: str
    venv: str
    worker: str
    environment: Mapping[str, str]
    settings: Mapping[str, str]
    checkpoint_glob: str
    checkpoint_name: str
    counts: tuple[int, ...]
    parse: Callable[[Iterable[tuple[float, str]]], list[Progress]]
    penalty: str
    average: str
    speed_name: str
    checkpoint_interval_factor: float = 1.0

    @property
    def default_settings_name(self) -> str:
        """The name of its first settings."""
        return next(iter(self.settings))

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
    """Return a function that parses lines with a step, a loss and a rate."""
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
                        elapsed_seconds, record["step"], float(record["loss"]), rate
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
            settings={"recipe": f"post-norm; the recipe as it stands; {SCHEDULE}"},
            checkpoint_glob="run/checkpoints/*",
            checkpoint_name=r"(\d+)",
            counts=(1, 4, 8, 16, 32),
            parse=_parser(
                r"step (?P<step>[\d,]+) of .* loss (?P<loss>[\d.]+) .* "
                r"(?P<rate>[\d,]+) target tokens/s"
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
                "recipe": "pre-norm; dropout 0.3, of attention and hidden units too; "
                f"{SCHEDULE}",
                "published": "pre-norm; dropout 0.3; the rates of its IWSLT14 model: "
                "inverse square root, 0.0005 after 4,000 updates",
            },
            checkpoint_glob="model/*.ckpt",
            checkpoint_name=r"(\d+)\.ckpt",
            counts=(1, 4, 8, 16, 32),
            parse=_parser(
                r"Step: +(?P<step>\d+), Batch Loss: +(?P<loss>[\d.]+), .*"
                r"Tokens per Sec: +(?P<rate>[\d,.]+),"
            ),
            penalty="log P / ((5 + length) / 6)^alpha",
            average="the mean of parameters, as scripts/average_checkpoints.py has it",
            speed_name="JoeyNMT",
            # Its updates are the slowest: it does not sort pairs by length.
            checkpoint_interval_factor=0.4,
        ),
        System(
            name="transformers",
            title="MarianMT, transformers' Trainer",
            venv="hf",
            worker="worker_transformers.py",
            environment={**KEEP_MEMORY, **THREAD_VARIABLES},
            settings={
                "recipe": f"post-norm; dropout 0.3; {SCHEDULE}",
                "lower_rate": "post-norm; dropout 0.3; inverse square root, 0.0005 "
                "after 4,000 updates",
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
                "recipe": f"pre-norm; dropout 0.3; {SCHEDULE}",
                "published": "pre-norm; dropout 0.1; the rates of its WMT17 recipe: "
                "inverse square root, 0.0028 after 4,000 updates",
            },
            checkpoint_glob="model/step_*",
            checkpoint_name=r"step_(\d+)",
            counts=(1, 4, 8, 16, 32),
            parse=_parser(
                r"Step +(?P<step>\d+)/.* xent: +(?P<loss>[\d.]+);.* "
                r"\d+ */ *(?P<rate>\d+) tok/s"
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
                "recipe": f"post-norm; dropout 0.3; {SCHEDULE}",
                "published": "post-norm; dropout 0.1; the rates of `--task "
                "transformer-base`: inverse square root, 0.0003 after 16,000 updates",
                "prenorm": f"pre-norm; dropout 0.3; {SCHEDULE}",
            },
            checkpoint_glob="model.iter*.npz",
            checkpoint_name=r"model\.iter(\d+)\.npz",
            counts=(1,),
            parse=_parser(
                r"Up\. (?P<step>[\d,]+) : .*Cost (?P<loss>[\d.]+) .* "
                r"(?P<rate>[\d.]+) words/s"
            ),
            penalty="log P / length^alpha",
            average="its exponential smoothing",
            speed_name="Marian",
        ),
    )
}
