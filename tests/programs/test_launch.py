"""The scripts of launch/, with a stub for python that writes down what it is asked."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jax
import pytest

LAUNCH = pathlib.Path(__file__).parents[2] / "launch"


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(LAUNCH, tmp_path / "launch")
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        '#!/bin/sh\ncase "$*" in *--print_config*)'
        " echo --config.training.num_steps=2000; exit;; esac\n"
        'echo "$@" >> "$(dirname "$0")/asked"\n'
    )
    python.chmod(0o755)
    return tmp_path


def run_script(
    script: pathlib.Path, *arguments: str | pathlib.Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, in a directory that it need not know."""
    return subprocess.run(
        [script, *arguments],
        cwd="/",
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def asked(root: pathlib.Path, *command: str) -> list[str]:
    result = run_script(root / "launch" / command[0], *command[1:])
    assert result.returncode == 0, result.stderr
    return (root / ".venv" / "bin" / "asked").read_text().splitlines()


def test_one_host_passes_its_flags_to_main(root: pathlib.Path) -> None:
    calls = asked(root, "one_host.sh", "--config=a.py", "--workdir=b c")
    assert calls == ["-m vaswani_jax.main --config=a.py --workdir=b c"]


def test_one_host_says_what_is_missing(root: pathlib.Path) -> None:
    shutil.rmtree(root / ".venv")
    # Many systems have absl.
    stub(root, "python3", script='case "$*" in *vaswani_jax*) exit 1;; esac\n')
    result = run_script(
        root / "launch/one_host.sh",
        "--config=a.py",
        PATH=f"{root}/bin:{os.environ['PATH']}",
    )
    assert result.returncode == 1
    assert result.stderr.startswith("error: there is no ")
    assert "README.md, Install" in result.stderr


def test_table3_trains_each_row_but_those_that_are_scored(root: pathlib.Path) -> None:
    for row, step in (("A2", 2000), ("A3", 20)):  # A3 was tried for 20 updates.
        scored = root / "out" / f"table3_small_{row}" / "evaluations"
        scored.mkdir(parents=True)
        record = json.dumps({"step": step, "averaged": None}, indent=1)
        (scored / "valid-averaged-beam4-alpha0.6.json").write_text(record)
    (root / "out" / "table3_small_A4").mkdir()  # begun, not scored
    calls = asked(
        root, "table3.sh", "configs/table3_small.py", str(root / "out"), "--x=1"
    )
    rows = "base A1 A3 A4 B1 B2 C1 C2 C3 C4 C5 C6 C7 D1 D2 D3 D4 E big".split()
    assert calls == [
        f"-m vaswani_jax.main --config=configs/table3_small.py:{row}"
        f" --workdir={root}/out/table3_small_{row}"
        f" --config.data.directory={root}/out/table3_small_data --x=1"
        for row in rows
    ]


def test_table3_passes_over_no_row_at_a_url(root: pathlib.Path) -> None:
    result = run_script(
        root / "launch/table3.sh",
        "configs/table3.py",
        "gs://bucket/runs",
        ROWS="A1 A2",
    )
    assert result.returncode == 0, result.stderr
    assert (root / ".venv/bin/asked").read_text().splitlines() == [
        f"-m vaswani_jax.main --config=configs/table3.py:{row}"
        f" --workdir=gs://bucket/runs/table3_{row}"
        " --config.data.directory=gs://bucket/runs/table3_data"
        for row in ("A1", "A2")
    ]


@pytest.mark.parametrize(
    ("status", "ends", "trained"),
    [(1, 1, "A1 A2 A3"), (137, 1, "A1 A2 A3"), (143, 143, "A1 A2")],
)
def test_a_row_that_fails_stops_no_other_and_a_signal_all(
    root: pathlib.Path, status: int, ends: int, trained: str
) -> None:
    python = root / ".venv" / "bin" / "python"
    case = f'case "$*" in *_A2*) exit {status};; esac\n'
    python.write_text(python.read_text() + case)
    script = root / "launch/table3.sh"
    result = run_script(script, "configs/table3.py", root / "out", ROWS="A1 A2 A3")
    assert result.returncode == ends
    asked = (root / ".venv/bin/asked").read_text()
    rows = re.findall(r"config=configs/table3.py:(\w+)", asked)
    assert rows == trained.split()
    if ends == 1:
        assert "error: not trained: A2;" in result.stderr


@pytest.mark.parametrize(
    "script", ["multi30k.sh", "back_translation.sh", "gpu_multi30k.sh"]
)
def test_a_url_is_refused_where_a_path_is_needed(
    root: pathlib.Path, script: str
) -> None:
    result = run_script(root / "launch" / script, root, "gs://bucket/run")
    assert result.returncode == 2
    assert "error: gs://bucket/run must be a path" in result.stderr


def stub(root: pathlib.Path, name: str, *, script: str = "") -> None:
    """A command that writes down what it is asked to do."""
    path = root / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/bash\necho "{name} $*" >> {root}/asked\n{script}')
    path.chmod(0o755)


def launched(
    root: pathlib.Path, *command: str, status: int = 0, **environment: str
) -> list[str]:
    """Return what the stubs were asked to do."""
    environment["PATH"] = f"{root}/bin:{os.environ['PATH']}"
    result = run_script(root / "launch" / command[0], *command[1:], **environment)
    assert result.returncode == status, result.stderr
    path = root / "asked"
    return path.read_text().splitlines() if path.exists() else []


TRAIN = ["--config=configs/big_enfr.py", "--workdir=/shared/a b"]


GPU_PYTHON = """#!/bin/sh
[ "$CUDA_VISIBLE_DEVICES" = 3 ] || exit 9
case "$*" in
"-m pytest"*) echo 1 failed >&2; exit {tests};;
*gpu_verdict.py*) exec {python} "$@";;
*torch_on_gpu*) echo '{{"step_seconds": 0.3, "target_tokens_per_second": 1,' \\
    '"loss": 9.0}}';;
*float32*) echo '{{"step_seconds": 0.4, "target_tokens_per_second": 1,' \\
    '"loss": 7.0, "model_flops_utilization": 0.2, "peak_from": "a stub"}}';;
*benchmark*) echo '{{"step_seconds": 0.2, "target_tokens_per_second": 2,' \\
    '"loss": {loss}, "model_flops_utilization": {share}, "peak_from": "a stub"}}';;
esac
"""


@pytest.mark.parametrize(
    ("tests", "share", "loss", "limit", "status", "message"),
    [
        (0, 0.5, "7.1", 590, 0, "both goals of speed are reached"),
        (0, 0.4, "7.1", 590, 1, "big: under 45% of the peak"),
        (0, 0.5, "7.2", 590, 1, "base: losses differ, base-bfloat16-cudnn 7.2000"),
        (0, 0.5, "NaN", 590, 1, "big: losses differ, big-bfloat16-cudnn nan"),
        (1, 0.5, "7.1", 590, 1, "failed: correctness (1)"),
        (0, 0.5, "7.1", 0, 1, "base-float32-xla: not measured"),
    ],
)
def test_a_gpu_is_checked_and_measured_in_the_time_there_is(
    tmp_path: pathlib.Path,
    tests: int,
    share: float,
    loss: str,
    limit: int,
    status: int,
    message: str,
) -> None:
    python = tmp_path / "python"
    script = GPU_PYTHON.format(
        tests=tests, share=share, loss=loss, python=sys.executable
    )
    python.write_text(script)
    python.chmod(0o755)
    stub(tmp_path, "nvidia-smi")
    result = run_script(
        LAUNCH / "gpu_check.sh",
        tmp_path / "out",
        PATH=f"{tmp_path}/bin:{os.environ['PATH']}",
        PYTHON=str(python),
        LIMIT=str(limit),
        CUDA_VISIBLE_DEVICES="3,1",
    )
    assert result.returncode == status, result.stderr
    assert message in result.stdout
    figures = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert figures.pop("jax") == jax.__version__
    assert len(figures) == (8 if limit else 0)


def test_multi30k_is_trained_on_a_gpu_in_the_time_there_is(
    tmp_path: pathlib.Path,
) -> None:
    stub(tmp_path, "python", script="exec sleep 300")
    arguments = [tmp_path / "a text", tmp_path / "work", "--config.seed=2"]
    names = {"PYTHON": str(tmp_path / "bin" / "python"), "LIMIT": "1"}
    total = 0
    for _ in range(2):
        result = run_script(LAUNCH / "gpu_multi30k.sh", *arguments, **names)
        spent = re.match(r"(\d+) min (\d+) s ", result.stdout)
        assert result.returncode == 124 and spent, result.stdout
        seconds = int(spent[1]) * 60 + int(spent[2])
        assert seconds >= 1
        total += seconds
        assert result.stdout.endswith(
            f"(status 124), with earlier calls {total // 60} min {total % 60} s\n"
        )
    asked = (tmp_path / "asked").read_text().splitlines()[-1]
    assert asked.endswith(
        "-m vaswani_jax.main --config=configs/multi30k_ende.py "
        f"--workdir={arguments[1]} --config.data.text_directory={arguments[0]} "
        "--config.seed=2"
    )
    missing = run_script(LAUNCH / "gpu_multi30k.sh")
    assert missing.returncode == 2 and "TEXT_DIR WORKDIR" in missing.stderr


def test_hosts_are_told_who_they_are(root: pathlib.Path) -> None:
    stub(root, "ssh", script='eval "${@: -1}"')
    calls = launched(
        root, "hosts.sh", "a.example", "b.example", "--", *TRAIN, PORT="99"
    )
    assert len(calls) == 2
    ran = (root / ".venv" / "bin" / "asked").read_text().splitlines()
    for number, host in enumerate(("a.example", "b.example")):
        [line] = [line for line in calls if f"--process_id={number}" in line]
        assert line.startswith(f"ssh -tt {host} cd {root} && launch/one_host.sh")
        asked = (
            f"-m vaswani_jax.main {' '.join(TRAIN)} --coordinator=a.example:99 "
            f"--num_processes=2 --process_id={number}"
        )
        assert asked in ran
    stub(root, "ssh", script="exit 7")
    launched(root, "hosts.sh", "a.example", "--", *TRAIN, status=7)
    launched(root, "hosts.sh", "a.example", *TRAIN, status=2)


@pytest.mark.parametrize(("status", "requeued"), [(0, False), (143, True), (1, False)])
def test_a_preempted_job_is_queued_again(
    root: pathlib.Path, status: int, requeued: bool
) -> None:
    stub(root, "srun", script=f"exit {status}")
    stub(root, "scontrol")
    calls = launched(root, "slurm.sh", *TRAIN, status=status, SLURM_JOB_ID="42")
    assert calls[0] == (
        "srun --kill-on-bad-exit=1 launch/one_host.sh "
        f"{' '.join(TRAIN)} --coordinator=auto"
    )
    assert calls[1:] == ["scontrol requeue 42"] * requeued
    options = re.findall(r"^#SBATCH (.*)", (LAUNCH / "slurm.sh").read_text(), re.M)
    assert {"--requeue", "--signal=TERM@120", "--ntasks-per-node=1"} <= set(options)


@pytest.mark.parametrize(
    ("gpus", "tasks", "chosen", "used"),
    [
        ("4", "1", "", "0,1,2,3"),
        ("1", "1", "", "0"),
        ("4", "1", "2,3", "2,3"),
        ("4", "4", "", ""),
        ("", "1", "", ""),
    ],
)
def test_the_only_process_of_a_node_uses_all_of_its_gpus(
    root: pathlib.Path, gpus: str, tasks: str, chosen: str, used: str
) -> None:
    stub(root, "srun", script=f'echo "GPUs $JAX_LOCAL_DEVICE_IDS" >> {root}/asked\n')
    calls = launched(
        root,
        "slurm.sh",
        *TRAIN,
        SLURM_GPUS_ON_NODE=gpus,
        SLURM_NTASKS_PER_NODE=tasks,
        JAX_LOCAL_DEVICE_IDS=chosen,
    )
    assert calls[1:] == [f"GPUs {used}"]


@pytest.mark.parametrize("cores", ["", "64"])
def test_the_process_of_a_node_has_the_cores_of_its_task(
    root: pathlib.Path, cores: str
) -> None:
    script = f'echo "cores ${{SRUN_CPUS_PER_TASK-none}}" >> {root}/asked\n'
    stub(root, "srun", script=script)
    calls = launched(root, "slurm.sh", *TRAIN, SLURM_CPUS_PER_TASK=cores)
    assert calls[1:] == [f"cores {cores or 'none'}"]


def test_all_workers_of_a_tpu_pod_run_the_same(root: pathlib.Path) -> None:
    stub(root, "gcloud", script='command="${@: -1}"; cd /; eval "echo ${command#*&&}"')
    [line] = launched(root, "tpu_pod.sh", "pod", "zone-a", *TRAIN)
    assert line.startswith("gcloud compute tpus tpu-vm ssh pod --zone=zone-a --worker=")
    assert "--worker=all --command=cd vaswani_jax && launch/one_host.sh" in line
    assert line.rstrip().endswith("--coordinator=auto")
    launched(root, "tpu_pod.sh", "pod", "zone-a", status=2)


@pytest.mark.parametrize("path", sorted(LAUNCH.glob("*.sh")), ids=lambda p: p.name)
def test_scripts_are_sound(path: pathlib.Path) -> None:
    subprocess.run(["bash", "-n", path], check=True, timeout=300)
    assert os.access(path, os.X_OK)
    text = path.read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert re.search(r"^set -e?uo pipefail$", text, re.M)
    shellcheck = pathlib.Path(sys.executable).with_name("shellcheck")
    checker = shellcheck if shellcheck.exists() else shutil.which("shellcheck")
    if checker is None:
        pytest.skip("shellcheck is not installed")
    subprocess.run([checker, "-x", path], cwd=LAUNCH.parent, check=True, timeout=300)
