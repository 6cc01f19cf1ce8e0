"""Write and read the files of a checkpoint with Orbax, in this process alone.

`store` imports this module when it writes or reads one: Orbax takes long to import.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import orbax.checkpoint as ocp


def write(
    path: pathlib.Path, *, trees: Mapping[str, Any], records: Mapping[str, Any]
) -> None:
    """Write a directory of trees of arrays and of records, by their names.

    Raises:
        Exception: Orbax and TensorStore raise many kinds.
    """
    arguments: dict[str, Any] = {
        **{name: ocp.args.StandardSave(tree) for name, tree in trees.items()},
        **{name: ocp.args.JsonSave(record) for name, record in records.items()},
    }
    with _checkpointer() as checkpointer:
        checkpointer.save(path, args=ocp.args.Composite(**arguments))


def read(
    path: pathlib.Path, *, trees: Sequence[str], records: Sequence[str]
) -> Mapping[str, Any]:
    """Return trees of arrays and records of a directory, by their names.

    Raises:
        Exception: Orbax and TensorStore raise many kinds.
    """
    arguments: dict[str, Any] = {
        **{name: ocp.args.StandardRestore() for name in trees},
        **{name: ocp.args.JsonRestore() for name in records},
    }
    with _checkpointer() as checkpointer:
        trees_and_records = checkpointer.restore(
            path, args=ocp.args.Composite(**arguments)
        )
    return {name: trees_and_records[name] for name in arguments}


def _checkpointer() -> ocp.Checkpointer:
    process_index = jax.process_index()
    options = ocp.options.MultiprocessingOptions(
        primary_host=process_index,
        active_processes={process_index},
        barrier_sync_key_prefix=str(process_index),
    )
    handler = ocp.CompositeCheckpointHandler(
        composite_options=ocp.CompositeOptions(multiprocessing_options=options)
    )
    return ocp.Checkpointer(handler, multiprocessing_options=options)
