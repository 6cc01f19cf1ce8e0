"""Our training step or search beside the peers', interleaved: docs/results/speed.md.

    python -m tests.benchmarks.against_peers --peers=../shared/bench --size=tiny
    python -m tests.benchmarks.against_peers --peers=../shared/bench --decode=16

`--peers` holds scripts that time one peer each on fixed work and speak the protocol of
`train_worker.py` and `decode_worker.py`; `--venvs` holds the environments they run in.
All start and warm up, then each round times one step of every one, in a rotated order,
so that a drift of the machine meets all alike. A ratio is the median over rounds of
peer / ours: above 1 we are faster. `--tuned` gives the allocator's settings to all. A
peer that ends early is reported and left out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]
FUSED_ADAM = pathlib.Path(__file__).with_name("fused_adam.py")
LOGS = pathlib.Path(tempfile.gettempdir())
FUSED = "fused Adam"
PEERS = {
    "torch eager": ("hf", "bench_torch.py", ["--variant", "eager"]),
    "torch eager, fused Adam": ("hf", "bench_torch.py", ["--variant", "eager-fused"]),
    "torch compile": ("hf", "bench_torch.py", ["--variant", "compile"]),
    "torch compile, fused Adam": (
        "hf",
        "bench_torch.py",
        ["--variant", "compile-fused"],
    ),
    "torch compile, loss too": ("hf", "bench_torch.py", ["--variant", "compile-step"]),
    "transformers MarianMT": ("hf", "bench_hf.py", []),
    "transformers MarianMT, fused Adam": ("hf", "bench_hf.py", [FUSED]),
    "JoeyNMT": ("joey", "bench_joeynmt.py", []),
    "EOLE": ("eole", "bench_eole.py", []),
    "Marian": ("marian", "bench_marian.py", []),
    "Marian, one replica": ("marian", "bench_marian.py", ["--mode", "blas"]),
}
OUR_FLAGS = {
    "vaswani_jax": ["--dropout=everywhere"],
    "vaswani_jax, the paper's dropout": ["--dropout=paper"],
}
# As they come and in their best settings: workers that share a batch, MKL off.
DECODERS = {
    "transformers MarianMT": ("hf", "bench_hf.py", [], {}),
    "CTranslate2 float32": ("hf", "bench_ct2.py", [], {}),
    "CTranslate2 float32, tuned": (
        *("hf", "bench_ct2.py", ["--inter", "2"]),
        {"CT2_USE_MKL": "0"},
    ),
    "CTranslate2 int8": ("hf", "bench_ct2.py", ["--compute", "int8"], {}),
    "CTranslate2 int8, tuned": (
        *("hf", "bench_ct2.py", ["--compute", "int8", "--inter", "2"]),
        {},
    ),
    "Marian": ("marian", "bench_marian.py", [], {}),
    "JoeyNMT": ("joey", "bench_joeynmt.py", [], {}),
}
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "536870912",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


class Worker:
    """One program that times a step whenever it is asked."""

    def __init__(
        self, name: str, command: list[str], environment: dict[str, str]
    ) -> None:
        self.name = name
        self.seconds: list[float] = []
        self._log = LOGS / f"{name}.log"
        self._process = subprocess.Popen(
            [*command, "--worker", "--warmup", "3"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log.open("w"),
            text=True,
            bufsize=1,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        self._answer("READY ")

    def _answer(self, prefix: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(prefix):
                return line.removeprefix(prefix)
        raise RuntimeError(
            f"{self.name} ended with {self._process.wait()}: {self._log}"
        )

    def time_one(self) -> None:
        """Time one step."""
        assert self._process.stdin is not None
        self._process.stdin.write("GO\n")
        self.seconds.append(json.loads(self._answer("T "))["s"])

    def close(self) -> None:
        """End the program, which may have others to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()


def main() -> None:
    """Time, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument(
        "--venvs", type=pathlib.Path, default=pathlib.Path("~/.cache/peers/venvs")
    )
    parser.add_argument("--size", choices=["tiny", "base"], default="tiny")
    parser.add_argument("--decode", type=int, help="sentences of a batch to decode")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--only", default="", help="names that contain one of a,b,c")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    name_parts = [part for part in arguments.only.split(",") if part]
    workers: list[Worker] = []
    try:
        for name, (command, environment) in _commands(arguments).items():
            if name_parts and not any(
                part in name for part in ["vaswani_jax", *name_parts]
            ):
                continue
            try:
                workers.append(Worker(name, command, environment))
                print(f"ready: {name}", file=sys.stderr)
            except (RuntimeError, OSError) as error:
                if name in OUR_FLAGS:  # What all others are compared with.
                    raise
                print(f"left out: {error}", file=sys.stderr)
        _take_turns(workers, arguments.rounds)
    finally:
        for worker in workers:
            worker.close()
    print(_table(workers))
    if arguments.json:
        record = {worker.name: worker.seconds for worker in workers}
        arguments.json.write_text(json.dumps(record, indent=1))


def _take_turns(workers: list[Worker], rounds: int) -> None:
    for number in range(rounds):
        first = number % len(workers)
        for worker in workers[first:] + workers[:first]:
            time.sleep(0.2)
            try:
                worker.time_one()
            except (RuntimeError, OSError) as error:
                # Where memory is short the kernel may end one; the others go on.
                if worker.name in OUR_FLAGS:
                    raise
                print(f"left out in round {number + 1}: {error}", file=sys.stderr)
                workers.remove(worker)


def _commands(
    arguments: argparse.Namespace,
) -> dict[str, tuple[list[str], dict[str, str]]]:
    environment = KEEP_MEMORY if arguments.tuned else {}
    if arguments.decode:
        return _decoders(arguments, environment)
    size = ["--task", "train", "--size", arguments.size]
    our_command = [sys.executable, "-m", "tests.benchmarks.train_worker", *size]
    commands = {
        name: ([*our_command, *options], environment)
        for name, options in OUR_FLAGS.items()
    }
    venvs, scripts = arguments.venvs.expanduser(), arguments.peers.resolve()
    for name, (venv, script, options) in PEERS.items():
        # Where a script has no flag for it.
        wrapper = [str(FUSED_ADAM)] if FUSED in options else []
        flags = [flag for flag in options if flag != FUSED]
        command = [str(venvs / venv / "bin/python"), *wrapper, str(scripts / script)]
        commands[name] = ([*command, *flags, *size], environment)
    return commands


def _decoders(
    arguments: argparse.Namespace, environment: dict[str, str]
) -> dict[str, tuple[list[str], dict[str, str]]]:
    batch = ["--batch", str(arguments.decode)]
    our_command = [sys.executable, "-m", "tests.benchmarks.decode_worker", *batch]
    commands = {"vaswani_jax": (our_command, environment)}
    venvs, scripts = arguments.venvs.expanduser(), arguments.peers.resolve()
    for name, (venv, script, options, variables) in DECODERS.items():
        if arguments.decode == 1 and "--inter" in options:
            # One sentence has no second worker; int8 is faster on one core.
            options = (
                ["--compute", "int8", "--threads", "1"] if "int8" in options else []
            )
        command = [str(venvs / venv / "bin/python"), str(scripts / script), *options]
        size = ["--task", "decode", "--size", "base", *batch]
        commands[name] = ([*command, *size], {**environment, **variables})
    return commands


def _table(workers: list[Worker]) -> str:
    our_worker = workers[0]
    lines = ["| | median s | best s | peer / ours |", "| --- | --- | --- | --- |"]
    for worker in workers:
        pairs = zip(worker.seconds, our_worker.seconds, strict=True)
        ratio = statistics.median(
            peer_seconds / our_seconds for peer_seconds, our_seconds in pairs
        )
        median, best = statistics.median(worker.seconds), min(worker.seconds)
        lines.append(f"| {worker.name} | {median:.3f} | {best:.3f} | {ratio:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
