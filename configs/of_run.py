"""The configuration of a run, from its workdir.

  python -m vaswani_jax.decode --config=configs/of_run.py:runs/opus --input=FILE

These are the settings of the run's last start, with what its command line changed;
flags of this call override them in turn. The workdir is that of the run. Hardware,
time, score: those of that run.
"""

import ml_collections

from vaswani_jax.core import parsing, remote, seeds, tensor_file


def get_config(workdir: str = "") -> ml_collections.ConfigDict:
    """Return the settings that WORKDIR/config.json or FILE.safetensors has recorded."""
    if not workdir:
        raise ValueError("name the workdir: --config=configs/of_run.py:WORKDIR")
    if tensor_file.is_tensor_file(workdir):
        return parsing.read_record(remote.local_file(workdir))
    directory = remote.open_directory(workdir)
    return parsing.read_record(directory.pull(file_names=seeds.RECORDS))
