"""The configuration of a run, from its workdir.

  python -m vaswani_jax.decode --config=configs/of_run.py:runs/opus --input=FILE

Whatever it was trained with, overrides on the command line too; flags of this call
override it in turn. Its workdir is that of the run. Hardware, time, score: those of
that run.
"""

import json

import ml_collections

from vaswani_jax.core import config as recorded_config
from vaswani_jax.core import remote


def get_config(workdir: str = "") -> ml_collections.ConfigDict:
    """What WORKDIR/config.json says, as `core.config.recorded` reads it."""
    if not workdir:
        raise ValueError("name the workdir: --config=configs/of_run.py:WORKDIR")
    path = remote.here(workdir, only=["config.json"]) / "config.json"
    try:
        values = recorded_config.recorded(dict(json.loads(path.read_text())))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    config = ml_collections.ConfigDict()
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if not section:
            config[name] = value
            continue
        if section not in config:
            config[section] = ml_collections.ConfigDict()
        config[section][name] = value
    return config
