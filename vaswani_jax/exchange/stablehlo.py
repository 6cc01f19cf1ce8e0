"""Serialize two programs with `jax.export`: encoding, and decoding one position.

They are StableHLO with the parameters inside. Loading them needs JAX and nothing of
this package. They take any number of sentences, beams, source tokens and positions.
"""

import functools
import json
import pathlib
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp

from vaswani_jax.core import config, parallel, types
from vaswani_jax.model import attention, decoder, transformer

PLATFORMS = ("cpu", "cuda", "tpu")


class Programs(NamedTuple):
    """The saved programs, ready to call.

    `encode(source)` maps ids `[B, S]` to the memory's keys, values and mask, as a flat
    list. `decode_step(tokens, position, memory, beams)` maps the newest tokens
    `[B, W]`, their position, that list and the beams' flat list to logits
    `[B, W, V]` and the next beams.
    """

    encode: Any
    decode_step: Any
    record: dict[str, Any]


def save(
    directory: pathlib.Path,
    *,
    params: Any,
    model: config.ModelConfig,
    vocab_size: types.VocabSize,
) -> None:
    """Write encode.bin, decode_step.bin and programs.json, which describes both."""
    network = transformer.Transformer(model, vocab_size)
    params = jax.tree.map(jnp.asarray, params)
    apply: Any = functools.partial(network.apply, {"params": params})
    source = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, s"), jnp.int32)
    symbols = jax.export.symbolic_shape("b, s, w, t", constraints=["t*w >= w"])
    B, S, W, T = symbols

    def encode(source: jax.Array) -> list[jax.Array]:
        cache: Any = apply(source, beam_size=1, max_length=1, method="start_cache")
        return jax.tree.leaves((cache.memory, cache.memory_mask))

    def decode_step(
        tokens: jax.Array,
        position: jax.Array,
        memory: list[jax.Array],
        beams: list[jax.Array],
    ) -> tuple[jax.Array, list[jax.Array]]:
        cache = decoder.DecoderCache(
            jax.tree.unflatten(_structure(model, "beams"), beams),
            *jax.tree.unflatten(_structure(model, "memory"), memory),
        )
        logits, cache = apply(tokens, cache, position=position, method="decode_step")
        return logits, jax.tree.leaves(cache.beams)

    def shape(axes: tuple[Any, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(axes, dtype)

    H, dtype = model.num_heads, jnp.dtype(model.dtype)
    memory_layer = (
        shape((B, H, model.d_k, S), dtype),
        shape((B, H, S, model.d_v), dtype),
    )
    beam_layer = (
        shape((B, H, model.d_k, T * W), dtype),
        shape((B, H, T * W, model.d_v), dtype),
    )
    memory = [*memory_layer * model.decoder_layers, shape((B, 1, 1, S), bool)]
    beams = [*beam_layer * model.decoder_layers, shape((B, W, T), jnp.int32)]
    programs: dict[str, tuple[Any, Any]] = {
        "encode": (encode, (source,)),
        "decode_step": (
            decode_step,
            (shape((B, W), jnp.int32), shape((), jnp.int32), memory, beams),
        ),
    }
    directory.mkdir(parents=True, exist_ok=True)
    precision = "highest" if model.dtype == "float32" else "default"
    for name, (function, arguments) in programs.items():
        # The same form for all platforms, of which a CPU alone multiplies float32 in
        # float32 by default.
        with parallel.targeting("cpu"), jax.default_matmul_precision(precision):
            exported = jax.export.export(jax.jit(function), platforms=PLATFORMS)(
                *arguments
            )
        (directory / f"{name}.bin").write_bytes(exported.serialize())
    record = {
        "vocab_size": vocab_size,
        "platforms": PLATFORMS,
        "num_encoder_layers": model.encoder_layers,
        "num_decoder_layers": model.decoder_layers,
        "num_heads": H,
        "d_k": model.d_k,
        "d_v": model.d_v,
        "dtype": model.dtype,
        "pad, begin, end, unknown": [0, 1, 2, 3],
        "encode": "source [b, s] -> memory",
        "decode_step": "tokens [b, w], position [], memory, beams -> logits, beams",
        "memory": "for each decoder layer: key [b, h, d_k, s], value "
        "[b, h, s, d_v]; mask",
        "beams": "for each of these key [b, h, d_k, t*w], value [b, h, t*w, d_v], "
        "zeros at first; ancestors [b, w, t]: permute its second axis to permute beams",
    }
    (directory / "programs.json").write_text(
        json.dumps(record, indent=1), encoding="utf-8"
    )


def load(directory: pathlib.Path) -> Programs:
    """Return the programs that `save` has written."""
    encode, decode_step = (
        jax.export.deserialize(bytearray((directory / f"{name}.bin").read_bytes()))
        for name in ("encode", "decode_step")
    )
    record = json.loads((directory / "programs.json").read_text(encoding="utf-8"))
    return Programs(encode.call, decode_step.call, record)


def empty_beams(record: dict[str, Any], *, B: int, W: int, T: int) -> list[jax.Array]:
    """Return the beams before the first position, as programs.json describes them."""
    H, dtype = record["num_heads"], jnp.dtype(record["dtype"])
    layer = [
        jnp.zeros((B, H, record["d_k"], T * W), dtype),
        jnp.zeros((B, H, T * W, record["d_v"]), dtype),
    ]
    return [*layer * record["num_decoder_layers"], jnp.zeros((B, W, T), jnp.int32)]


def _structure(model: config.ModelConfig, part: str) -> Any:
    """Return the tree whose leaves the programs pass as a list."""
    leaf = jnp.zeros((1, 1, 1, 1))
    heads = (attention.CachedHeads(key=leaf, value=leaf),) * model.decoder_layers
    tree: Any = (heads, leaf)
    if part == "beams":
        ancestors = jnp.zeros((1, 1, 1), jnp.int32)
        tree = decoder.BeamCache(layers=heads, ancestors=ancestors)
    return jax.tree.structure(tree)
