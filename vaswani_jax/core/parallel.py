"""Spread batches over devices (section 5.2); the only module that knows pmap.

State is replicated and has no device axis, but for what `shards` divides. Rows of a
batch are split over processes and, within a process, over its devices. What leaves a
step must be equal on all devices: sum it with `sum_over_devices` first.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.export
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import kept_programs, plurals, processes

AXIS = "devices"
# The vectors that GPUs sum gradients in: enough for the first to begin early.
NUM_BUCKETS = 6
Tree = TypeVar("Tree")
Result = TypeVar("Result")


class Target(NamedTuple):
    """A platform and devices that programs are traced and compiled for.

    Attributes:
        platform: "cpu", "gpu" or "tpu"; it decides the form of a computation.
        devices: The devices; they need not be here, as long as nothing is computed.
    """

    platform: str
    devices: tuple[Any, ...]


_target: Target | None = None


@contextlib.contextmanager
def targeting(platform: str, devices: Sequence[Any] | None = None) -> Iterator[None]:
    """Trace and compile for a platform within the context, whatever is here.

    Args:
        platform: "cpu", "gpu" or "tpu".
        devices: Those to compile for, of this process alone; without them the devices
            that are here compute in the form of the platform.
    """
    global _target
    outer = _target
    _target = Target(platform, tuple(jax.devices() if devices is None else devices))
    try:
        yield
    finally:
        _target = outer


def platform() -> str:
    """Return "cpu", "gpu" or "tpu": what programs are compiled for."""
    return _target.platform if _target else jax.default_backend()


def _devices() -> Sequence[Any]:
    return _target.devices if _target else jax.devices()


def use_devices(count: int) -> None:
    """Use this number of devices; on a CPU, divide it into virtual ones.

    Call it before the first use of a device.

    Raises:
        ValueError: JAX sees another number: fewer are available, or they cannot be
            chosen, as on TPUs.
    """
    jax.config.update("jax_num_cpu_devices", count)
    visible = ",".join(map(str, range(count)))
    jax.config.update("jax_cuda_visible_devices", visible)
    if jax.device_count() != count:
        requested = plurals.format_count(count, "device")
        raise ValueError(
            f"{requested} requested, but JAX sees {describe()}: request at most that "
            "many; on TPUs, exactly that many"
        )


def check_platform() -> None:
    """Check that JAX finds a device, of the platform in JAX_PLATFORMS if that is set.

    Raises:
        ValueError: It finds none.
    """
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0] or "JAX finds no such device"
        platforms = os.environ.get("JAX_PLATFORMS")
        raise ValueError(
            f"JAX_PLATFORMS={platforms}: {reason}; install the extra cuda or tpu "
            "(docs/install.md), or unset JAX_PLATFORMS"
            if platforms
            else f"JAX finds no device: {reason}"
        ) from error


def disable_async_dispatch() -> None:
    """Let a CPU with one device finish a step, and free its memory, before the next.

    Otherwise the temporaries of two steps may be allocated at the same time. Call it
    before the first use of a device.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def num_devices() -> int:
    """Return the number of devices of all processes."""
    return len(_devices())


def describe() -> str:
    """Return the devices in words, for the log."""
    devices = plurals.format_count(num_devices(), f"{platform()} device")
    count = plurals.format_count(jax.process_count(), "process", plural="processes")
    return f"{devices} ({device_kind()}), {count}"


def replicate(tree: Tree) -> Tree:
    """Copy the tree to every device of this process, without a device axis."""
    return jax.device_put(tree, _sharding())


def scatter(tree: Tree) -> Tree:
    """Give each device of this process its row of `[devices, ...]` leaves."""
    return jax.device_put(tree, _sharding(AXIS))


def _sharding(*axes: str) -> jax.sharding.Sharding:
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()), (AXIS,))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))


def gather(tree: Tree) -> Tree:
    """Return a replicated tree as NumPy arrays."""
    return jax.device_get(tree)


def _rows_per_device(rows: int, num_microbatches: int) -> int:
    return -(-rows // (num_devices() * num_microbatches)) * num_microbatches


def computed_rows(rows: int, *, num_microbatches: int) -> int:
    """Return how many rows all devices compute, including those `split_rows` adds."""
    return _rows_per_device(rows, num_microbatches) * num_devices()


def local_rows(rows: int, *, num_microbatches: int) -> range:
    """Return the range of a global batch's rows that `split_rows` gives a process."""
    count = _rows_per_device(rows, num_microbatches) * jax.local_device_count()
    start = min(rows, jax.process_index() * count)
    return range(start, min(rows, start + count))


def split_rows(tree: Tree, *, num_microbatches: int) -> Tree:
    """Return this process's rows of a global batch as `[devices, rows, ...]` leaves.

    Rows of zeros (padding, no sentence) are added until each device can divide its
    rows into microbatches of equal size; sums over real tokens do not change.
    """
    num_local = jax.local_device_count()
    first = jax.process_index() * num_local

    def split(leaf: np.ndarray) -> np.ndarray:
        per_device = _rows_per_device(leaf.shape[0], num_microbatches)
        num_missing = per_device * num_devices() - leaf.shape[0]
        padded = np.pad(leaf, [(0, num_missing)] + [(0, 0)] * (leaf.ndim - 1))
        by_device = padded.reshape(num_devices(), per_device, *leaf.shape[1:])
        return by_device[first : first + num_local]

    return jax.tree.map(split, tree)


def join_rows(tree: Tree) -> Tree:
    """Return `[devices, rows, ...]` leaves of all processes as `[rows, ...]` leaves."""

    def merge(leaf: np.ndarray) -> np.ndarray:
        # No -1: an axis may be empty.
        return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])

    local = gather(tree)
    if processes.num_processes() > 1:
        local = jax.tree.map(merge, processes.gather_from_all(local))
    global_rows: Tree = jax.tree.map(merge, local)
    return global_rows


def sync_on_cpu(outputs: Any) -> None:
    """On a CPU, wait for a step's outputs; on accelerators, do nothing.

    A CPU's devices allocate a step's temporaries when the step is dispatched, beside
    those of the step in flight. For one device `disable_async_dispatch` is enough.
    """
    if on_cpu():
        jax.block_until_ready(outputs)


def over_devices(
    step: Callable[..., Any],
    *,
    donate_state: bool,
    state_axes: Any = None,
    identity: kept_programs.Identity | None = None,
) -> Callable[..., Any]:
    """Compile `step(state, rows)` for all devices; its results are equal on all.

    Args:
        step: A function that sums its outputs with `sum_over_devices`.
        donate_state: Whether the new state reuses the memory of the old one.
        state_axes: Of a state that `shards.divide` has divided in part: that part's
            `axes`, and None for what is equal on all devices. The step then returns
            such a state, and results that are equal on all.
        identity: As for `over_rows`.
    """
    axes = _Axes(
        state_axes,
        outputs=None if state_axes is None else (state_axes, None),
        donated=(0,) if donate_state else (),
    )
    return _compile(step, axes, identity)


def over_rows(
    function: Callable[..., Any], *, identity: kept_programs.Identity | None = None
) -> Callable[..., Any]:
    """Compile `function(state, rows)` for all devices; each returns its part.

    Args:
        function: It is called when it must be traced.
        identity: What distinguishes the function from all others. A program that was
            kept under that identity is not traced again.
    """
    return _compile(function, _Axes(None, outputs=0), identity)


def can_keep_programs() -> bool:
    """Return whether programs of this process are kept for later ones."""
    return (
        _target is None
        and processes.num_processes() == 1
        and kept_programs.directory() is not None
    )


class _Axes(NamedTuple):
    """The device axis of each array of a program, None if it is equal on all devices.

    Attributes:
        state: Of the first argument; the second has axis 0.
        outputs: Of the outputs.
        donated: The indices of the arguments whose memory the outputs reuse.
    """

    state: Any
    outputs: Any
    donated: tuple[int, ...] = ()


def _compile(
    function: Callable[..., Any],
    axes: _Axes,
    identity: kept_programs.Identity | None,
) -> Callable[..., Any]:
    devices = _target.devices if _target else None
    traced = jax.pmap(
        function,
        AXIS,
        in_axes=(axes.state, 0),
        out_axes=axes.outputs,
        devices=devices,
        donate_argnums=axes.donated,
    )
    return traced if identity is None else _KeptProgram(traced, axes, identity)


class _KeptProgram:
    """A function over devices that is traced only if no kept program is the same.

    With several processes, and for devices that are not here, it is always traced.
    """

    def __init__(
        self, traced: Callable[..., Any], axes: _Axes, identity: kept_programs.Identity
    ) -> None:
        self._traced = traced
        self._axes = axes
        self._lock = threading.Lock()
        self.identity = identity

    def __call__(self, state: Any, rows: Any) -> Any:
        return self._function(rows)(state, rows)

    def lower(self, state: Any, rows: Any) -> Any:
        """Lower the program for arguments, or for their shapes."""
        return cast(Any, self._function(rows)).lower(state, rows)

    def _function(self, rows: Any) -> Callable[..., Any]:
        if not can_keep_programs():
            return self._traced
        is_for_all = jax.tree.leaves(rows)[0].shape[0] == jax.local_device_count()
        with self._lock:
            return self._program if is_for_all else self._traced

    @functools.cached_property
    def _program(self) -> Callable[..., Any]:
        """The program for each shape, as JAX looks it up when it would trace it.

        All threads need the same one, which has what is compiled.
        """

        def program(state: Any, rows: Any) -> Any:
            arguments = (state, rows)
            shapes = kept_programs.shapes(arguments)
            try:
                exported = kept_programs.load_or_export(
                    self.identity,
                    arguments=shapes,
                    devices=f"{describe()}, donated: {self._axes.donated}",
                    export=functools.partial(self._export, shapes),
                )
            except kept_programs.NotExportableError:
                return self._traced(state, rows)
            outputs = exported.call(*jax.tree.leaves(arguments))
            return jax.tree.unflatten(self._structure(arguments), outputs)

        program.__name__ = self.identity.name
        return jax.jit(
            program,
            in_shardings=_shardings((self._axes.state, 0)),
            out_shardings=_shardings(self._axes.outputs),
            donate_argnums=self._axes.donated,
        )

    def _structure(self, arguments: Any) -> Any:
        return jax.tree.structure(cast(Any, self.identity).outputs(*arguments))

    def _export(self, shapes: Any) -> jax.export.Exported:
        """Trace the function, with flat lists for its arguments and its outputs."""
        leaves, structure = jax.tree.flatten(shapes)
        expected = self._structure(shapes)

        def flat(*leaves: Any) -> Any:
            outputs = self._traced(*jax.tree.unflatten(structure, leaves))
            if jax.tree.structure(outputs) != expected:
                raise TypeError(
                    f"{self.identity.name} returns {jax.tree.structure(outputs)}, its "
                    f"identity says {expected}"
                )
            return jax.tree.leaves(outputs)

        shardings = jax.tree.broadcast(_shardings((self._axes.state, 0)), shapes)
        jitted = jax.jit(flat, in_shardings=tuple(jax.tree.leaves(shardings)))
        return jax.export.export(jitted)(*leaves)


def _shardings(axes: Any) -> Any:
    """Return where the arrays lie that have these device axes."""
    return jax.tree.map(
        lambda axis: _sharding() if axis is None else _sharding(AXIS),
        axes,
        is_leaf=lambda axis: axis is None,
    )


def on_gpu() -> bool:
    """Return True if programs are compiled for GPUs."""
    return platform() == "gpu"


def on_tpu() -> bool:
    """Return True if programs are compiled for TPUs."""
    return platform() == "tpu"


def on_cpu() -> bool:
    """Return True if programs are compiled for a CPU."""
    return platform() == "cpu"


def device_kind() -> str:
    """Return the manufacturer's name for the devices."""
    return str(_devices()[0].device_kind)


def sum_over_devices(tree: Tree) -> Tree:
    """Sum over the devices of all processes, inside a step.

    XLA merges the leaves' sums. No leaf is copied: a TPU would bring it into a vector's
    layout and back.
    """
    return jax.lax.psum(tree, AXIS)


def sum_in_buckets(tree: Tree) -> tuple[Tree, jax.Array]:
    """Sum over devices as `sum_over_devices`, and return the sums' norm, too.

    For GPUs, which take the time of a kernel for each array: leaves are joined to a few
    vectors. The sum of one begins while those before it in the model are computed.
    """
    leaves, structure = jax.tree.flatten(tree)
    num_buckets = 1 if num_devices() == 1 else NUM_BUCKETS
    limit = sum(leaf.size for leaf in leaves) / num_buckets
    buckets: list[list[Any]] = [[]]
    for leaf in leaves:
        if buckets[-1] and sum(x.size for x in buckets[-1]) + leaf.size > limit:
            buckets.append([])
        buckets[-1].append(leaf)
    sums: list[Any] = []
    square = jnp.zeros((), jnp.float32)
    for bucket in buckets:
        vector, unravel = jax.flatten_util.ravel_pytree(bucket)
        vector = jax.lax.psum(vector, AXIS)
        square += jnp.sum(jnp.square(vector))
        sums += unravel(vector)
    return jax.tree.unflatten(structure, sums), jnp.sqrt(square)


def device_index() -> jax.Array:
    """Return the index of the device that runs the step, inside the step."""
    return jax.lax.axis_index(AXIS)
