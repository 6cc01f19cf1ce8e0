"""Flags of the TPUs' compiler, which reads them when the first device is used."""

from collections.abc import MutableMapping
from importlib import metadata

# The variable that libtpu reads.
VARIABLE = "LIBTPU_INIT_ARGS"
# Products of the gradients carry the sums of others on, so that these begin during
# backward. A libtpu that does not know a flag ends the process: only this one is asked.
VERSION = "0.0.42."
OVERLAP = (
    "--xla_enable_async_all_reduce=true "
    "--xla_tpu_enable_async_collective_fusion=true "
    "--xla_tpu_enable_async_collective_fusion_fuse_all_reduce=true "
    "--xla_tpu_enable_async_collective_fusion_fuse_kloop_fusions=true "
    "--xla_tpu_async_collective_fusion_fuse_multiple_collectives=true "
    "--xla_tpu_enable_data_parallel_all_reduce_opt=true "
    "--xla_tpu_data_parallel_opt_different_sized_ops=true "
    "--xla_jf_crs_combiner_threshold_in_bytes=1000000"
)


def set_defaults(variables: MutableMapping[str, str]) -> None:
    """Set the variable that libtpu reads, unless it is set or libtpu is another.

    Args:
        variables: The environment of this process, before the first use of a device,
            or that of another.
    """
    try:
        version = metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        return
    if version.startswith(VERSION):
        variables.setdefault(VARIABLE, OVERLAP)
