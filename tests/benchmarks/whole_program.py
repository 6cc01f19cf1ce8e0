"""Whole programs from start to end, beside another tree's and CTranslate2's.

    python -m tests.benchmarks.whole_program --input=FILE --ctranslate2=DIR -- FLAGS
    python -m tests.benchmarks.whole_program --module=evaluate --other=TREE \\
        --other_flags="--config=configs/demo.py --workdir=OLD" -- --workdir=NEW
    python -m tests.benchmarks.whole_program --module=main --until="step 1 of " ...

FLAGS are those of `vaswani_jax.decode`, or of another program with --module; DIR is
what `vaswani_jax.export` has written, TREE a checkout of this repository. Each program
starts, works and ends, in turn; a first run of each is not counted (it compiles, or
warms the files). With --until a program is killed when a line of its log begins so.

Measured are seconds of the cores, outside the kernel and in it: what the kernel takes
to give memory depends on the machine, not on the program alone. Then the seconds that
passed, the peak of the memory and the page faults. With `--engine` this is the
CTranslate2 program itself, which that package's environment runs.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
OURS, OTHER = "vaswani_jax", "other tree"


class Usage(NamedTuple):
    """What a program took, and its children."""

    core_seconds: float
    outside_kernel: float
    in_kernel: float
    passed_seconds: float
    peak_mib: float
    page_faults: float


class Program(NamedTuple):
    """A command of Python, and the checkout in which it runs."""

    command: list[str]
    tree: pathlib.Path
    until: str = ""


def engine(arguments: argparse.Namespace) -> None:
    """Lines in, lines out, as CTranslate2's documentation has it."""
    import ctranslate2
    import sentencepiece

    subwords = sentencepiece.SentencePieceProcessor(
        model_file=str(arguments.ctranslate2 / "source.spm")
    )
    translator = ctranslate2.Translator(
        str(arguments.ctranslate2),
        compute_type=arguments.compute_type,
        inter_threads=arguments.inter,
        intra_threads=2 // arguments.inter,
    )
    lines = arguments.input.read_text(encoding="utf-8").splitlines()
    results = translator.translate_batch(
        subwords.encode(lines, out_type=str),
        beam_size=arguments.beam_size,
        length_penalty=arguments.length_penalty,
        max_batch_size=64,
    )
    for result in results:
        print(subwords.decode(result.hypotheses[0]))


def programs(arguments: argparse.Namespace) -> dict[str, Program]:
    """Return what is measured, by name."""
    search = [
        f"--beam_size={arguments.beam_size}",
        f"--length_penalty={arguments.length_penalty}",
    ]
    shared = []
    if arguments.module == "decode":
        shared += [f"--config.search.{flag[2:]}" for flag in search]
        shared += [f"--input={arguments.input}"]

    def ours(tree: pathlib.Path, flags: list[str]) -> Program:
        module = f"vaswani_jax.{arguments.module}"
        command = [sys.executable, "-m", module, *flags, *shared]
        return Program(command, tree, arguments.until)

    measured = {OURS: ours(ROOT, arguments.flags)}
    if arguments.other:
        measured[OTHER] = ours(arguments.other, shlex.split(arguments.other_flags))
    if arguments.ctranslate2:
        command = [
            *(arguments.python, "-m", "tests.benchmarks.whole_program", "--engine"),
            *(f"--input={arguments.input}", f"--ctranslate2={arguments.ctranslate2}"),
            *search,
        ]
        measured |= {
            "CTranslate2 float32": Program(command, ROOT),
            "CTranslate2 float32, two workers": Program([*command, "--inter=2"], ROOT),
            "CTranslate2 int8": Program([*command, "--compute_type=int8"], ROOT),
        }
    return measured


def measure(program: Program, output: pathlib.Path) -> Usage:
    """Run a program and return what it took.

    Raises:
        RuntimeError: It failed, or ended before the line that it is to write.
    """
    log: list[bytes] = []
    with output.open("wb") as stream:
        start_time = time.perf_counter()
        process = subprocess.Popen(
            program.command,
            cwd=program.tree,
            env={**os.environ, "PYTHONPATH": str(program.tree)},
            stdout=stream,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        found = False
        for line in process.stderr:
            log.append(line)
            if program.until and line.startswith(program.until.encode()):
                found = True
                process.kill()
                break
        _, status, usage = os.wait4(process.pid, 0)
        passed_seconds = time.perf_counter() - start_time
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
    if (program.until and not found) or (not program.until and process.returncode):
        raise RuntimeError(f"{shlex.join(program.command)}\n{b''.join(log[-5:])!r}")
    return Usage(
        core_seconds=usage.ru_utime + usage.ru_stime,
        outside_kernel=usage.ru_utime,
        in_kernel=usage.ru_stime,
        passed_seconds=passed_seconds,
        peak_mib=usage.ru_maxrss / 1024,
        page_faults=usage.ru_minflt,
    )


def summary(usages: dict[str, list[Usage]]) -> dict[str, dict[str, float]]:
    """Return the medians of each program, and our seconds of a core by its."""
    summaries = {}
    for name, rounds in usages.items():
        medians = Usage(*map(statistics.median, zip(*rounds, strict=True)))
        ratios = [
            our.core_seconds / its.core_seconds
            for our, its in zip(usages[OURS], rounds, strict=True)
        ]
        summaries[name] = {
            **{key: round(value, 2) for key, value in medians._asdict().items()},
            "ours_by_it": round(statistics.median(ratios), 2),
        }
    return summaries


def main() -> None:
    """Measure the programs in turn and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", default="decode", help="of vaswani_jax")
    parser.add_argument("--input", type=pathlib.Path, help="lines, for decode")
    parser.add_argument("--other", type=pathlib.Path, help="another checkout")
    parser.add_argument("--other_flags", default="", help="those of its program")
    parser.add_argument("--until", default="", help="begins the last line of the log")
    parser.add_argument("--ctranslate2", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable, help="that has it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument("--length_penalty", type=float, default=0.6)
    parser.add_argument("--json", type=pathlib.Path, help="a file for the medians")
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--compute_type", default="float32")
    parser.add_argument("--inter", type=int, default=1)
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    if arguments.engine:
        engine(arguments)
        return
    if arguments.module == "decode" and arguments.input is None:
        parser.error("decode needs --input")
    measured = programs(arguments)
    usages: dict[str, list[Usage]] = {name: [] for name in measured}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds + 1):
            for name, program in measured.items():
                usage = measure(program, pathlib.Path(folder, "output"))
                if turn:
                    usages[name].append(usage)
    summaries = summary(usages)
    columns = list(summaries[OURS])
    print(f"| | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 1)}")
    for name, values in summaries.items():
        print(f"| {name} | {' | '.join(map(str, values.values()))} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(summaries, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
