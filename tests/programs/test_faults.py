"""Runs that are killed, crowded out and moved: nothing of them is lost."""

import functools
import pathlib
import random
import shutil
import signal
import subprocess

import jax
import numpy as np
import pytest

from tests.programs import long_runs, runs
from vaswani_jax.checkpoints import store
from vaswani_jax.core import parallel, shards


def mix_corpora(directory: pathlib.Path) -> list[str]:
    """Write two corpora; return flags that mix them in two stages, nothing held out."""
    generator = random.Random(3)
    directory.mkdir()
    values = dict[str, object](source="text", text_directory=directory)
    tables = []
    for split in ("valid", "test"):
        values |= {f"{split}_{side}": "" for side in ("source", "target")}
    for name, count in {"crawl": 150, "news": 50}.items():
        lines = [
            "".join(f"{letter} " for letter in generator.choices("abcdefgh", k=length))
            for length in generator.choices(range(1, 9), k=count)
        ]
        for side in ("source", "target"):
            (directory / f"{name}.{side}").write_text("\n".join(lines) + "\n")
        tables.append(
            f'[[corpora]]\nname = "{name}"\nweight = 1\n'
            f'source = "{name}.source"\ntarget = "{name}.target"\n'
        )
    (directory / "corpora.toml").write_text("".join(tables))
    values |= {
        "corpora": directory / "corpora.toml",
        "stages": "2: news=1; 6: crawl=1 news=4",
    }
    values["vocab_size"] = 20
    return [f"--config.data.{key}={value}" for key, value in values.items()]


def test_the_number_of_devices_may_change(tmp_path: pathlib.Path) -> None:
    """Of a mixture with stages, and where they share the moments of W_1 and W_2.

    Without dropout, whose masks are each device's.
    """
    kernel = jax.ShapeDtypeStruct((64, 128), np.float32)
    for devices in (8, 2):
        with parallel.targeting("cpu", [None] * devices):
            assert shards.divided_shapes(kernel).parts
    flags = [
        *(*long_runs.FLAGS, "--config.model.dropout_rate=0.0"),
        *("--config.model.d_model=64", "--config.model.d_ff=128"),
        *mix_corpora(tmp_path / "text"),
        "--config.training.evaluate_every_steps=8",
        "--config.training.checkpoint_every_steps=4",
    ]
    sharded = "--config.training.shard_optimizer"
    ends = []
    for name, more, stages in (
        ("whole", [], [(1, 8)]),
        ("moved", [sharded], [(8, 4), (2, 8)]),
    ):
        for devices, steps in stages:
            goal = f"--config.training.num_steps={steps}"
            result = runs.vaswani(
                "main", tmp_path / name, *flags, *more, goal, devices=devices
            )
            assert result.returncode == 0, result.stderr.decode()
            messages = result.stderr.decode()
            assert f"{devices} cpu device" in messages
            assert "an epoch from batch 6 on: 200 pairs" in messages
        ends.append(long_runs.ended(tmp_path / name))
    (whole, losses), (moved, moved_losses) = ends
    assert moved.step == whole.step == 8
    assert sorted(moved_losses) == sorted(losses) == list(range(1, 9))
    for step, loss in losses.items():
        np.testing.assert_allclose(moved_losses[step], loss, rtol=1e-5)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
        moved.items,
        whole.items,
    )


FULL_DISK = """
set -e
mount -t tmpfs -o size={size} tmpfs {workdir}
{train} &
until grep -qs '"step": 22,' {workdir}/metrics.jsonl; do kill -0 $!; sleep 0.02; done
kill -STOP $!
head -c 1G /dev/zero > {workdir}/filler 2>/dev/null || true
kill -CONT $!
set +e
wait $!
echo "status $?"
cp -r {workdir}/checkpoints {kept}
rm {workdir}/filler
{train}
echo "status $?"
cp -r {workdir}/. {result}
"""


def test_a_full_disk_costs_no_checkpoint_that_is_there(
    tmp_path: pathlib.Path, uninterrupted_end: long_runs.Ended
) -> None:
    unshare = shutil.which("unshare")
    probe = unshare and subprocess.run([unshare, "-rm", "true"], timeout=300)
    if not probe or probe.returncode:
        pytest.skip("a file system of a test's own needs unshare and user namespaces")
    names = ("workdir", "kept", "result")
    directories = {name: tmp_path / name for name in names}
    more = "--config.training.keep_checkpoints=99"
    for name in ("workdir", "result"):
        directories[name].mkdir()
    command = [*runs.command("main", directories["workdir"]), *long_runs.FLAGS, more]
    script = FULL_DISK.format(
        size="100m",
        train=" ".join(command),
        **directories,
    )
    result = subprocess.run(
        [str(unshare), "-rm", "sh", "-c", script],
        capture_output=True,
        cwd=runs.ROOT,
        env=runs.environment(),
        timeout=300,
        check=False,
    )
    messages = result.stderr.decode()
    assert result.returncode == 0, messages
    assert "Traceback" not in messages, messages
    statuses = [o for o in result.stdout.decode().splitlines() if "status" in o]
    # It trained on, and failed at the end, when nothing had been kept of it.
    assert statuses == ["status 1", "status 0"], messages
    assert "training continues without it" in messages
    assert "MiB are free on that file system: free space" in messages
    last = store.steps(directories["kept"])[-1]
    assert 20 <= last < 60
    store.restore(directories["kept"], last, names=["params", "optimizer"])
    assert f"resumed at step {last}" in messages
    assert "metrics.jsonl cannot be written" in messages
    long_runs.assert_same(long_runs.ended(directories["result"]), uninterrupted_end)


@pytest.mark.slow
def test_a_run_that_is_killed_25_times_ends_as_if_it_never_was(
    tmp_path: pathlib.Path,
) -> None:
    """The demo task, saved often, so that kills hit its writing, too."""
    flags = [
        "--config=configs/demo.py",
        "--config.training.num_steps=300",
        "--config.training.checkpoint_every_steps=5",
        "--config.training.evaluate_every_steps=100",
        "--config.training.log_every_steps=1",
        "--config.data.num_train=4000",
        "--config.data.num_valid=100",
        "--config.data.num_test=100",
    ]

    def command(name: str) -> list[str]:
        program = runs.command("main", tmp_path / name)[:3]
        return [*program, *flags, f"--workdir={tmp_path / name}"]

    workdir = tmp_path / "killed"

    def num_lines(name: str) -> int:
        path = workdir / name
        return path.read_text().count("\n") if path.exists() else 0

    def is_writing() -> bool:
        return any((workdir / "checkpoints").glob("*orbax-checkpoint-tmp*"))

    generator = random.Random(11)
    cut_writes = step = 0
    with open(tmp_path / "log", "w") as log:
        for kill in range(25):
            starts = num_lines("starts.jsonl")
            with runs.running(command("killed"), stdout=log, stderr=log) as process:
                wait = functools.partial(long_runs.wait_until, process=process)
                wait(lambda n=starts: num_lines("starts.jsonl") > n, "start")
                # Some before the first update, most after a few more checkpoints.
                step += generator.choice([0, 5, 8, 11, 14])
                if step:
                    has_step = functools.partial(long_runs.has_step, workdir, step)
                    wait(has_step, f"step {step}")
                while kill % 5 == 4:  # in the middle of a write
                    wait(is_writing, "checkpoint that is being written")
                    process.send_signal(signal.SIGSTOP)
                    if is_writing():
                        break
                    process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(timeout=300)
            cut_writes += is_writing()
    assert cut_writes
    options = {"cwd": runs.ROOT, "env": runs.environment(), "timeout": 3600}
    for name in ("killed", "whole"):
        subprocess.run(command(name), check=True, **options)
    killed, uninterrupted = (
        long_runs.ended(tmp_path / "killed"),
        long_runs.ended(tmp_path / "whole"),
    )
    jax.tree.map(np.testing.assert_array_equal, killed[0].items, uninterrupted[0].items)
    assert killed[1] == uninterrupted[1]
    assert sorted(killed[1]) == list(range(1, 301))
