"""The command that starts training, for one host and for several."""

import pytest

from tests.programs import runs
from vaswani_jax.hardware import launch, topology


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        ("v5e:8", "launch/one_host.sh --config=demo"),
        ("v5p:8", "launch/tpu_pod.sh NAME ZONE --config=demo"),
        ("h100:4", "launch/one_host.sh --config=demo"),
        (
            "a100:32",
            "sbatch --nodes=4 --gpus-per-node=8 launch/slurm.sh --config=demo",
        ),
    ],
)
def test_each_kind_of_hardware_has_its_script(hardware: str, expected: str) -> None:
    command = launch.command(topology.parse(hardware), ["--config=demo"])
    assert command == expected
    [script] = [word for word in command.split() if word.startswith("launch/")]
    assert (runs.ROOT / script).is_file()


def test_no_script_starts_several_slices() -> None:
    text = launch.command(topology.parse("v5e:512"), ["--config=demo"])
    assert text == "no script starts 2 slices; launch/tpu_pod.sh starts one"


def test_flags_are_quoted_for_a_shell() -> None:
    command = launch.command(topology.parse("v5e:1"), ["--workdir=a b"])
    assert command == "launch/one_host.sh '--workdir=a b'"
