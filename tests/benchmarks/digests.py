"""Print digests of training and decoding, to compare two versions bit for bit.

    python -m tests.benchmarks.digests --tree=BEFORE --directory=DIR_A > before.json
    python -m tests.benchmarks.digests --tree=AFTER --directory=DIR_B > after.json
    diff before.json after.json

A tree is a checkout of this repository. The digests are equal if a change moves no
digit. On one CPU device and on eight virtual ones, each tree trains `demo`,
`demo_resumed` (it stops half-way and resumes; equal to `demo`) and `table3_small`, and
decodes with `demo`. Compare on the same machine only: compiled programs depend on it.
"""

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

TRAINING = {
    # Both the warm-up and the decay of section 5.3, at a rate that learns something.
    "optimizer.warmup_steps": 40,
    "optimizer.learning_rate_scale": 0.2,
    "data.source_tokens_per_batch": 1024,
    "data.target_tokens_per_batch": 1024,
    "data.num_buckets": 2,
    "training.log_every_steps": 5,
    "training.checkpoint_every_steps": 100_000,
    "training.average_checkpoints": 1,
}
DEMO = {**TRAINING, "data.num_valid": 20, "data.num_test": 200}
SHORT_SEARCH = {"search.beam_size": 1, "search.max_tokens": 2}
DECODE = {"checkpoint": "newest", "format": "json", "token_scores": True}


class Programs:
    """The programs of a checkout on a number of CPU devices."""

    def __init__(
        self, root: pathlib.Path, directory: pathlib.Path, *, num_devices: int
    ) -> None:
        self._root = root
        self.directory = directory / f"devices_{num_devices}"
        self.directory.mkdir(parents=True)  # Fails if an older run lies there.
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(root),
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={num_devices}",
            # The resumed run takes what the other one compiled.
            "JAX_COMPILATION_CACHE_DIR": str(self.directory / "compiled"),
        }

    def run(
        self, program: str, name: str, *, changes: dict[str, Any], **flags: Any
    ) -> None:
        """Run a program in the workdir `name`; its messages go to a log beside that."""
        config = f"configs/{name.removesuffix('_resumed')}.py"
        options = {"config": config, "workdir": self.directory / name, **flags}
        options |= {f"config.{key}": value for key, value in changes.items()}
        command = [sys.executable, "-m", f"vaswani_jax.{program}"]
        command += [f"--{key}={value}" for key, value in options.items()]
        path = self.directory / f"{name}.log"
        print(f"{program}: {path}", file=sys.stderr, flush=True)
        with path.open("ab") as log:
            subprocess.run(
                command,
                check=True,
                cwd=self._root,
                env=self._environment,
                stdout=log,
                stderr=log,
            )


def digest_rows(rows: list[Any]) -> str:
    """Return the SHA-256 of JSON values, with every digit of their numbers."""
    text = "\n".join(json.dumps(row, sort_keys=True) for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()


def digest_arrays(folder: pathlib.Path) -> str:
    """Return the SHA-256 of the names, dtypes, shapes and bytes of Orbax's arrays."""
    tree = ocp.PyTreeCheckpointer().restore(folder)
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    total = hashlib.sha256()
    for name, leaf in sorted(
        (jax.tree_util.keystr(path), leaf) for path, leaf in leaves
    ):
        array = np.asarray(leaf)
        total.update(f"{name} {array.dtype} {array.shape}\n".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def digest_run(workdir: pathlib.Path, *, step: int) -> dict[str, str]:
    """Return digests of a checkpoint's arrays and of all metrics but times."""
    metadata = (workdir / "checkpoints" / str(step)).glob("*/_METADATA")
    digests = {path.parent.name: digest_arrays(path.parent) for path in metadata}
    rows = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
    metrics = [
        {key: value for key, value in row.items() if not key.startswith("time/")}
        for row in rows
    ]
    return digests | {"metrics": digest_rows(metrics)}


def digest_programs(
    programs: Programs, *, num_steps: int, text: dict[str, str]
) -> dict[str, dict[str, str]]:
    """Train and decode; return the digests of each run."""
    half, full = (
        SHORT_SEARCH
        | {"training.evaluate_every_steps": num_steps // 2, "training.num_steps": steps}
        for steps in (num_steps // 2, num_steps)
    )
    programs.run("main", "demo", changes=DEMO | full)
    programs.run("main", "demo_resumed", changes=DEMO | half)
    programs.run("main", "demo_resumed", changes=DEMO | full)
    programs.run("main", "table3_small", changes=TRAINING | full | text)
    source = programs.directory / "demo" / "data" / "test.source.txt"
    output = programs.directory / "demo_decoded.jsonl"
    files = {"input": source, "output": output}
    programs.run("decode", "demo", changes=DEMO, num_hypotheses=2, **DECODE, **files)
    rows = map(json.loads, output.read_text().splitlines())
    hypotheses = [hypothesis for row in rows for hypothesis in row["hypotheses"]]
    names = ("demo", "demo_resumed", "table3_small")
    return {
        name: digest_run(programs.directory / name, step=num_steps) for name in names
    } | {
        "demo_decoded": {
            "source": hashlib.sha256(source.read_bytes()).hexdigest(),
            "outputs": digest_rows([[h["text"], h["tokens"]] for h in hypotheses]),
            "scores": digest_rows([[h["score"], h["log_probs"]] for h in hypotheses]),
        }
    }


def main() -> None:
    """Run the programs on each number of devices; print the digests as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=pathlib.Path, default=".")
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument(
        "--text_directory",
        default="../shared/data/multi30k_ende/lc_norm_tok",
        help="of Multi30k; from the tree",
    )
    parser.add_argument("--num_steps", type=int, default=60, help="multiple of 10")
    arguments = parser.parse_args()
    text = {"data.text_directory": arguments.text_directory}
    digests = {}
    for num_devices in (1, 8):
        programs = Programs(
            arguments.tree.resolve(),
            arguments.directory.resolve(),
            num_devices=num_devices,
        )
        digests[f"devices_{num_devices}"] = digest_programs(
            programs,
            num_steps=arguments.num_steps,
            text=text,
        )
    print(json.dumps(digests, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
