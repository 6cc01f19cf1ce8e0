"""Say how a run starts on some hardware: the scripts of `launch/`."""

import shlex
from collections.abc import Sequence

from vaswani_jax.hardware.topology import GPUS_PER_HOST, Hardware


def command(hardware: Hardware, flags: Sequence[str]) -> str:
    """Return the command that starts training, or why there is none.

    Args:
        hardware: Where.
        flags: Those of training, as --config=demo.

    >>> from vaswani_jax.hardware import topology
    >>> command(topology.parse("v5e:8"), ["--config=demo"])
    'launch/one_host.sh --config=demo'
    >>> command(topology.parse("h100:16"), ["--config=demo"])
    'sbatch --nodes=2 --gpus-per-node=8 launch/slurm.sh --config=demo'
    """
    if hardware.num_slices > 1:
        slices = f"{hardware.num_slices} slices"
        return f"no script starts {slices}; launch/tpu_pod.sh starts one"
    if hardware.num_hosts == 1:
        words = ["launch/one_host.sh"]
    elif hardware.chip.platform == "tpu":
        words = ["launch/tpu_pod.sh", "NAME", "ZONE"]
    else:
        words = ["sbatch", f"--nodes={hardware.num_hosts}"]
        words += [f"--gpus-per-node={GPUS_PER_HOST}", "launch/slurm.sh"]
    return shlex.join([*words, *flags])
