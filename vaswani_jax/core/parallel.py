"""Section 5.2: the batch spread over devices; the only module that knows pmap.

State is replicated and has no device axis. Rows of a batch are split over processes
and, within one, over its devices. What leaves a step must be equal everywhere, so it
is summed with `sum_over_devices` first.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import jax
import jax.flatten_util
import numpy as np

from vaswani_jax.core import processes

AXIS = "devices"
Tree = TypeVar("Tree")


def use_devices(count: int) -> None:
    """Use so many devices; virtual ones on a CPU. Before any work is done on one.

    Raises:
        ValueError: There are not so many.
    """
    jax.config.update("jax_num_cpu_devices", count)
    visible = ",".join(map(str, range(count)))
    jax.config.update("jax_cuda_visible_devices", visible)
    if jax.device_count() != count:
        raise ValueError(f"{count} devices were asked for: this is {describe()}")


def compute_in_turn() -> None:
    """Let a CPU's only device begin nothing before what it does is done and freed.

    Otherwise what a step had is sometimes there when the next one asks for memory,
    which then takes more. Before any work is done on a device.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def num_devices() -> int:
    """Devices of all processes."""
    return jax.device_count()


def describe() -> str:
    """The devices in words, for the log."""
    return (
        f"{jax.device_count()} {jax.default_backend()} device(s) ({device_kind()}), "
        f"{jax.process_count()} process(es)"
    )


def replicate(tree: Tree) -> Tree:
    """The tree on every device of this process, without a device axis."""
    mesh = jax.sharding.Mesh(np.array(jax.local_devices()), (AXIS,))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return jax.device_put(tree, everywhere)


def gather(tree: Tree) -> Tree:
    """The replicated tree as NumPy arrays."""
    return jax.device_get(tree)


def _share(rows: int, multiple: int) -> int:
    return -(-rows // (num_devices() * multiple)) * multiple


def computed_rows(rows: int, *, multiple: int) -> int:
    """How many rows all devices compute for so many: `split_rows` adds empty ones."""
    return _share(rows, multiple) * num_devices()


def own_rows(rows: int, *, multiple: int) -> range:
    """Which of the rows of a global batch `split_rows` gives to this process."""
    mine = _share(rows, multiple) * jax.local_device_count()
    start = min(rows, jax.process_index() * mine)
    return range(start, min(rows, start + mine))


def split_rows(tree: Tree, *, multiple: int) -> Tree:
    """This process's rows of a global batch, `[devices, rows, ...]` in each leaf.

    Rows of zeros (padding, no sentence) are added until each device's share is a
    multiple of `multiple`; sums over real tokens do not change.
    """
    here, local = jax.process_index(), jax.local_device_count()

    def split(leaf: np.ndarray) -> np.ndarray:
        share = _share(leaf.shape[0], multiple)
        missing = share * num_devices() - leaf.shape[0]
        padded = np.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1))
        split_leaf = padded.reshape(num_devices(), share, *leaf.shape[1:])
        return split_leaf[here * local : (here + 1) * local]

    return jax.tree.map(split, tree)


def join_rows(tree: Tree) -> Tree:
    """`[devices, rows, ...]` of all processes as `[rows of all, ...]`, in each leaf."""

    def merge(leaf: np.ndarray) -> np.ndarray:
        # No -1: an axis may be empty.
        return leaf.reshape(leaf.shape[0] * leaf.shape[1], *leaf.shape[2:])

    found = gather(tree)
    if processes.num_processes() > 1:
        found = jax.tree.map(merge, processes.gather_from_all(found))
    joined: Tree = jax.tree.map(merge, found)
    return joined


def one_at_a_time(made: Any) -> None:
    """On a CPU, wait for what the step before makes; accelerators need not.

    A CPU's devices allocate a step's temporaries when they are asked for the step: with
    one in flight they would lie beside those of the one before. For a single device
    `compute_in_turn` is enough.
    """
    if on_cpu():
        jax.block_until_ready(made)


def over_devices(step: Callable[..., Any], *, donate_state: bool) -> Callable[..., Any]:
    """`step(state, rows)` on all devices; its result is equal on every one."""
    donate = 0 if donate_state else ()
    return jax.pmap(step, AXIS, in_axes=(None, 0), out_axes=None, donate_argnums=donate)


def over_rows(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(state, rows)` on all devices; each gives the result of its rows."""
    return jax.pmap(function, AXIS, in_axes=(None, 0), out_axes=0)


@contextlib.contextmanager
def compiling_ahead(
    run: Callable[..., Any],
    state: Any,
    several: Sequence[Any],
    *,
    told: Callable[[str], None],
) -> Iterator[None]:
    """Meanwhile compile a program of `over_devices` for more shapes of rows.

    For accelerators alone: on a CPU it would take the cores that the steps need. And
    for one process: with several, pmap lowers nothing from shapes without values. What
    cannot be compiled is told, and compiled when it is needed.
    """
    if on_cpu() or processes.num_processes() > 1:
        yield
        return
    arguments = (run, _shapes(state), [_shapes(rows) for rows in several])
    enough = threading.Event()
    thread = threading.Thread(target=_compile, args=(*arguments, enough, told))
    thread.start()
    try:
        yield
    finally:
        # An interpreter must not end inside of the compiler.
        enough.set()
        thread.join()


def _compile(
    run: Callable[..., Any],
    state: Any,
    several: Sequence[Any],
    enough: threading.Event,
    told: Callable[[str], None],
) -> None:
    for rows in several:
        if enough.is_set():
            return
        try:
            cast(Any, run).lower(state, rows).compile()
        except RuntimeError as error:
            told(f"note: compiling ahead ends: {str(error).splitlines()[0]}")
            return


def _shapes(tree: Any) -> Any:
    """The tree without its values; the placement is part of what is compiled for."""

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        placed = getattr(leaf, "sharding", None)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=placed)

    return jax.tree.map(shape, tree)


def has_gpu() -> bool:
    """Whether the devices are GPUs."""
    return jax.default_backend() == "gpu"


def on_cpu() -> bool:
    """Whether the devices are virtual ones of a CPU."""
    return jax.default_backend() == "cpu"


def device_kind() -> str:
    """What the devices are, as their maker names them."""
    return str(jax.devices()[0].device_kind)


def sum_over_devices(tree: Tree) -> Tree:
    """The sum over all devices of all processes, inside a step: one all-reduce."""
    if on_cpu():
        # XLA joins the leaves' sums here, without copies of them.
        return jax.lax.psum(tree, AXIS)
    # On accelerators it would join them up to some size only.
    leaves, structure = jax.tree.flatten(tree)
    flat, restored = jax.flatten_util.ravel_pytree(leaves)
    summed = restored(jax.lax.psum(flat, AXIS))
    return cast(Tree, jax.tree.unflatten(structure, summed))


def device_index() -> jax.Array:
    """Which device a step runs on, inside the step."""
    return jax.lax.axis_index(AXIS)
