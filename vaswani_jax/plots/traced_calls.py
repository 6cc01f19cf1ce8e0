"""Trace a model: which modules it calls, in which order, with arrays of which shapes.

Nothing is computed: JAX traces the running module with shapes alone.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.extend import core as jax_core

from vaswani_jax.core import config, types
from vaswani_jax.model import attention, transformer

Shape = tuple[int, ...]
# Primes, which are unlikely sizes of a model: each length identifies its axis.
LENGTHS = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167)
# What primitives of JAX stand for in figure 2.
OPERATIONS = {"dot_general": "MatMul", "select_n": "Mask", "exp": "SoftMax"}


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a module's method that returns arrays.

    Attributes:
        path: Where the module lies, ("encoder", "layers_0").
        module: The name of its class.
        method: The name of the method.
        inputs: Shapes of the arrays among its arguments.
        named_inputs: Shapes of the arrays that are keyword arguments.
        outputs: Shapes of the arrays that it returns.
        calls: The calls during this one, in their order.
    """

    path: tuple[str, ...]
    module: str
    method: str
    inputs: tuple[Shape, ...]
    named_inputs: Mapping[str, Shape]
    outputs: tuple[Shape, ...]
    calls: tuple["Call", ...]

    @property
    def output(self) -> Shape:
        """The shape of its only array."""
        [shape] = self.outputs
        return shape

    def walk(self) -> Iterator["Call"]:
        """Return this call and all during it, each before those during it."""
        yield self
        for call in self.calls:
            yield from call.walk()

    def find(self, module: str, method: str = "__call__") -> list["Call"]:
        """Return the calls of a method of a class, in their order."""
        return [
            call
            for call in self.walk()
            if (call.module, call.method) == (module, method)
        ]


@dataclasses.dataclass(frozen=True)
class Trace:
    """The calls of a forward pass, and the names of its axes.

    Attributes:
        root: The call of the whole model.
        axes: "B", "S" or "T" by its length in the trace.
        params: The shape of each parameter by its path.
    """

    root: Call
    axes: Mapping[int, str]
    params: Mapping[str, Shape]

    def name(self, shape: Shape) -> str:
        """Return a shape with the letters of its axes, "[B, S, 512]"."""
        return name_shape(shape, self.axes)


@dataclasses.dataclass(frozen=True)
class Operation:
    """A step of scaled dot-product attention.

    Attributes:
        name: "MatMul", "Scale", "Mask" or "SoftMax".
        origins: Which of "Q", "K", "V" and "mask" its result depends on.
        shape: The shape of its result.
    """

    name: str
    origins: frozenset[str]
    shape: Shape


def name_shape(shape: Shape, axes: Mapping[int, str]) -> str:
    """Return a shape with the letters of its axes.

    >>> name_shape((101, 103, 37000), {101: "B", 103: "S"})
    '[B, S, 37,000]'
    """
    return f"[{', '.join(axes.get(size, f'{size:,}') for size in shape)}]"


def trace(model: config.ModelConfig, vocab_size: types.VocabSize) -> Trace:
    """Return the calls of a forward pass without dropout."""
    axes = _choose_lengths(model, vocab_size)
    B, S, T = axes
    network = transformer.Transformer(model, vocab_size)
    recorder = _Recorder()

    def run(key: jax.Array) -> Any:
        source, target_in = jnp.ones((B, S), jnp.int32), jnp.ones((B, T), jnp.int32)
        variables = network.init(key, source, target_in, deterministic=True)
        with nn.intercept_methods(recorder.intercept):
            return network.apply(variables, source, target_in, deterministic=True)

    jax.eval_shape(run, jax.random.key(0))
    [root] = recorder.calls
    return Trace(root, axes, transformer.param_shapes(model, vocab_size))


def trace_attention(
    model: config.ModelConfig, *, B: int, S: int, T: int
) -> list[Operation]:
    """Return the steps from queries, keys and values to the heads, in their order.

    Args:
        model: The architecture.
        B: Sentences.
        S: Keys of each.
        T: Queries of each.
    """
    module = attention.MultiHeadAttention(model)
    H, dtype = model.num_heads, jnp.dtype(model.dtype)
    arrays = {
        "Q": jax.ShapeDtypeStruct((B, T, H, model.d_k), dtype),
        "K": jax.ShapeDtypeStruct((B, S, H, model.d_k), dtype),
        "V": jax.ShapeDtypeStruct((B, S, H, model.d_v), dtype),
        "mask": jax.ShapeDtypeStruct((B, 1, 1, S), jnp.dtype(bool)),
        "x": jax.ShapeDtypeStruct((B, T, model.d_model), dtype),
    }

    def weigh(Q: Any, K: Any, V: Any, mask: Any, x: Any) -> Any:
        heads = []

        def without_projections(
            method: Any, args: Any, kwargs: Any, context: nn.module.InterceptorContext
        ) -> Any:
            if context.module.name == "query":
                return Q
            if context.module.name == "output":
                heads.extend(args)
                return x
            return method(*args, **kwargs)

        keys_values = attention.KeysValues(K, V)
        with nn.intercept_methods(without_projections):
            module.apply({}, x, keys_values, mask=mask, deterministic=True)
        return heads[0]

    closed = jax.make_jaxpr(weigh)(*arrays.values())
    origins = {
        variable: frozenset((name,))
        for variable, name in zip(closed.jaxpr.invars, arrays, strict=True)
    }
    return list(_operations(closed.jaxpr, origins))


def _choose_lengths(
    model: config.ModelConfig, vocab_size: types.VocabSize
) -> dict[int, str]:
    shapes = transformer.param_shapes(model, vocab_size).values()
    sizes = {size for shape in shapes for size in shape}
    free = [length for length in LENGTHS if length not in sizes]
    return dict(zip(free, "BST", strict=False))


class _Recorder:
    """Records calls of modules as flax intercepts them; `calls` has the outermost."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def intercept(
        self,
        method: Any,
        args: Any,
        kwargs: Any,
        context: nn.module.InterceptorContext,
    ) -> Any:
        outer, self.calls = self.calls, []
        result = method(*args, **kwargs)
        calls, self.calls = tuple(self.calls), outer
        if outputs := _shapes(result):
            shapes_by_name = {name: _shapes(value) for name, value in kwargs.items()}
            call = Call(
                path=context.module.path,
                module=type(context.module).__name__,
                method=context.method_name,
                inputs=_shapes(args),
                named_inputs={
                    name: shapes[0] for name, shapes in shapes_by_name.items() if shapes
                },
                outputs=outputs,
                calls=calls,
            )
            self.calls.append(call)
        return result


def _shapes(tree: Any) -> tuple[Shape, ...]:
    leaves = jax.tree.leaves(tree)
    return tuple(leaf.shape for leaf in leaves if isinstance(leaf, jax.Array))


def _operations(
    jaxpr: jax_core.Jaxpr, origins: dict[Any, frozenset[str]]
) -> Iterator[Operation]:
    """Return the operations of a program, those of functions that it calls, too.

    Args:
        jaxpr: The program.
        origins: What each variable depends on; completed here.
    """
    nothing: frozenset[str] = frozenset()

    def origin(variable: Any) -> frozenset[str]:
        is_literal = isinstance(variable, jax_core.Literal)
        return nothing if is_literal else origins.get(variable, nothing)

    for equation in jaxpr.eqns:
        inner = [
            value.jaxpr
            for value in equation.params.values()
            if isinstance(value, jax_core.ClosedJaxpr)
        ]
        from_inputs = nothing.union(*map(origin, equation.invars))
        if inner:
            inputs = zip(inner[0].invars, equation.invars, strict=True)
            of_inner = {variable: origin(outer) for variable, outer in inputs}
            yield from _operations(inner[0], of_inner)
            results = zip(equation.outvars, inner[0].outvars, strict=True)
            origins.update({out: of_inner.get(var, nothing) for out, var in results})
            continue
        [*_, result] = equation.outvars
        origins.update(dict.fromkeys(equation.outvars, from_inputs))
        name = OPERATIONS.get(equation.primitive.name)
        if equation.primitive.name == "mul" and any(
            not origin(variable) for variable in equation.invars
        ):
            name = "Scale"
        if name and from_inputs:
            aval: Any = result.aval
            yield Operation(name, from_inputs, aval.shape)
