"""Divide what devices need not all have, such as an optimizer's moments, over them.

Gradients are summed into each device's part (reduce-scatter), which updates its part of
the parameters; then all get the whole of these (all-gather). As many bytes cross the
devices as in an all-reduce (Rajbhandari et al., 2020, stage 1).
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import parallel, processes

# A device keeps its part of an array in whole tiles of a TPU; otherwise it would be
# copied into another layout. No array is divided that grows by more than this thereby.
TILE = (8, 128)
GROWTH = 1.125


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["part"],
    meta_fields=["axis", "length"],
)
@dataclasses.dataclass(frozen=True)
class Shard:
    """A device's part of a leaf, within a step.

    Attributes:
        part: The part, with zeros that fill tiles.
        axis: The axis of the leaf that is divided.
        length: The length of the part along that axis, without the zeros.
    """

    part: Any
    axis: int
    length: int


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["replicated", "parts"],
    meta_fields=["structure"],
)
@dataclasses.dataclass(frozen=True)
class Divided:
    """A tree whose large leaves are divided over the devices, between steps.

    Attributes:
        replicated: The leaves that every device has.
        parts: The leaves that are divided, as `[devices, ...]`.
        structure: The structure of the tree, with a `Shard` for each of `parts`.
    """

    replicated: Any
    parts: Any
    structure: Any

    @classmethod
    def pack(cls, tree: Any) -> "Divided":
        """Divide a tree with shards; within a step the parts have no device axis."""
        nodes = jax.tree.leaves(tree, is_leaf=is_shard)
        replicated = tuple(node for node in nodes if not is_shard(node))
        parts = tuple(node.part for node in nodes if is_shard(node))
        return cls(replicated, parts, jax.tree.structure(tree))

    def unpack(self) -> Any:
        """Return the tree with shards that was packed."""
        replicated, parts = iter(self.replicated), iter(self.parts)
        template = jax.tree.unflatten(self.structure, range(self.structure.num_leaves))

        def fill(node: Any) -> Any:
            if is_shard(node):
                return dataclasses.replace(node, part=next(parts))
            return next(replicated)

        return jax.tree.map(fill, template, is_leaf=is_shard)

    @property
    def axes(self) -> "Divided":
        """The device axis of all leaves, as `over_devices` takes it."""
        return dataclasses.replace(self, replicated=None, parts=0)


def divide(tree: Any) -> Divided:
    """Copy the tree to the devices, to each a part of every large leaf."""
    first = jax.process_index() * jax.local_device_count()
    local = slice(first, first + jax.local_device_count())

    def put(leaf: Any) -> Any:
        axis = _divided_axis(leaf.shape)
        if axis is None:
            return parallel.replicate(leaf)
        parts = np.split(np.asarray(leaf), parallel.num_devices(), axis)
        shards = [_fill_tiles(part, axis, leaf.shape) for part in parts[local]]
        stacked = np.stack([shard.part for shard in shards])
        placed = parallel.scatter(stacked)
        return dataclasses.replace(shards[0], part=placed)

    return Divided.pack(jax.tree.map(put, tree))


def divided_shapes(tree: Any) -> Divided:
    """Return the shapes of what `divide` returns for a tree of these shapes."""

    def shape(leaf: Any) -> Any:
        axis = _divided_axis(leaf.shape)
        if axis is None:
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
        part = list(leaf.shape)
        length = part[axis] // parallel.num_devices()
        part[axis] = _in_tiles(length, axis, leaf.shape)
        parts = jax.ShapeDtypeStruct((parallel.num_devices(), *part), leaf.dtype)
        return Shard(parts, axis, length)

    return Divided.pack(jax.tree.map(shape, tree))


def parts_of_a_device(tree: Any) -> Any:
    """Return the tree with the shapes of one device's part of what is divided."""

    def of_one(node: Any) -> Any:
        if not isinstance(node, Divided):
            return node
        parts = [
            jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype) for leaf in node.parts
        ]
        return dataclasses.replace(node, parts=tuple(parts))

    return jax.tree.map(of_one, tree, is_leaf=_is_divided)


def _divided_axis(shape: Sequence[int]) -> int | None:
    """Return the axis of a leaf that is divided over the devices, None for none.

    The shortest that the devices divide into whole tiles, or nearly so: an axis of
    heads before one of features.
    """
    count = parallel.num_devices()
    if math.prod(shape) < count * math.prod(TILE):
        return None
    for axis in sorted(range(len(shape)), key=lambda axis: shape[axis]):
        length, is_short = divmod(shape[axis], count)
        if not is_short and _in_tiles(length, axis, shape) <= GROWTH * length:
            return axis
    return None


def _in_tiles(length: int, axis: int, shape: Sequence[int]) -> int:
    """Return the length of whole tiles for a part of an axis of a leaf.

    A TPU has the last axis in the rows of its tiles; one that is shorter than a tile
    gives way to the longest.
    """
    order = list(range(len(shape)))
    if shape[-1] < TILE[1]:
        order.sort(key=lambda axis: shape[axis])
    tile = dict(zip(reversed(order), reversed(TILE), strict=False)).get(axis, 1)
    return -(-length // tile) * tile


def _fill_tiles(part: Any, axis: int, shape: Sequence[int]) -> Shard:
    """Add zeros to a leaf's part, until it has whole tiles; NumPy stays NumPy."""
    length = part.shape[axis]
    missing = _in_tiles(length, axis, shape) - length
    if missing:
        pad = np.pad if isinstance(part, np.ndarray) else jnp.pad
        widths = [(0, missing if i == axis else 0) for i in range(part.ndim)]
        part = pad(part, widths)
    return Shard(part, axis, length)


def gather(tree: Any) -> Any:
    """Return a tree on the devices as NumPy arrays, what is divided as a whole."""

    def join(node: Any) -> Any:
        if not is_shard(node):
            return node
        parts = node.part
        if processes.num_processes() > 1:
            parts = np.concatenate(processes.gather_from_all(parts))
        unpadded = np.split(parts, [node.length], node.axis + 1)[0]
        return np.concatenate(unpadded, node.axis)

    def join_all(node: Any) -> Any:
        if not _is_divided(node):
            return node
        return jax.tree.map(join, node.unpack(), is_leaf=is_shard)

    return jax.tree.map(join_all, jax.device_get(tree), is_leaf=_is_divided)


def sum_to_shards(tree: Any) -> tuple[Any, jax.Array]:
    """Sum over devices inside a step; of large leaves a device gets its part alone.

    Returns:
        The sums, with a `Shard` for each leaf that `divide` divides, and their norm.
    """
    square = jnp.zeros((), jnp.float32)
    part_square = jnp.zeros((), jnp.float32)
    sums = []
    leaves, structure = jax.tree.flatten(tree)
    for leaf in leaves:
        axis = _divided_axis(leaf.shape)
        if axis is None:
            sums.append(jax.lax.psum(leaf, parallel.AXIS))
            square += jnp.sum(jnp.square(sums[-1]))
            continue
        part = jax.lax.psum_scatter(
            leaf, parallel.AXIS, scatter_dimension=axis, tiled=True
        )
        part_square += jnp.sum(jnp.square(part))
        sums.append(_fill_tiles(part, axis, leaf.shape))
    norm = jnp.sqrt(square + jax.lax.psum(part_square, parallel.AXIS))
    return jax.tree.unflatten(structure, sums), norm


def take_shards(tree: Any) -> Any:
    """Take the device's parts of a replicated tree inside a step, as `divide` does."""

    def take(leaf: jax.Array) -> Any:
        axis = _divided_axis(leaf.shape)
        if axis is None:
            return leaf
        length = leaf.shape[axis] // parallel.num_devices()
        start = parallel.device_index() * length
        part = jax.lax.dynamic_slice_in_dim(leaf, start, length, axis)
        return _fill_tiles(part, axis, leaf.shape)

    return jax.tree.map(take, tree)


def join_shards(tree: Any) -> Any:
    """Give every device the whole of a tree with shards, inside a step."""

    def join(node: Any) -> jax.Array:
        if not is_shard(node):
            return node
        part = jax.lax.slice_in_dim(node.part, 0, node.length, axis=node.axis)
        return jax.lax.all_gather(part, parallel.AXIS, axis=node.axis, tiled=True)

    return jax.tree.map(join, tree, is_leaf=is_shard)


def is_shard(node: Any) -> bool:
    """Return whether a node of a tree is a device's part of a leaf."""
    return isinstance(node, Shard)


def _is_divided(node: Any) -> bool:
    return isinstance(node, Divided)
