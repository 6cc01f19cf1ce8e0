"""Parameters as MarianMT's tensors, and back.

MarianMT is the paper's post-norm model with other conventions: attention has biases,
matrices have their outputs first, and in each position all sines stand before all
cosines. The last is a permutation of d_model, which every other part of the network
takes along.
"""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import flax.traverse_util
import numpy as np

from vaswani_jax.core import config, errors, extras, types
from vaswani_jax.model import transformer

# Our modules, and those of MarianMT in the encoder and the decoder.
BLOCKS = {
    "self_attention": "self_attn",
    "memory_attention": "encoder_attn",
    "self_attention_residual": "self_attn_layer_norm",
    "memory_attention_residual": "encoder_attn_layer_norm",
    "feed_forward_residual": "final_layer_norm",
}
PARTS = {
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "output": "out_proj",
    "inner": "fc1",
    "outer": "fc2",
}
SHARED_TABLE = "model.shared.weight"
SOURCE_TABLE = "model.encoder.embed_tokens.weight"
TARGET_TABLE = "model.decoder.embed_tokens.weight"
SOFTMAX_TABLE = "lm_head.weight"
# Our embeddings, and the names of their tables, which are equal.
TABLES = {
    "embedding": (SHARED_TABLE, SOURCE_TABLE, TARGET_TABLE, SOFTMAX_TABLE),
    "source_embedding": (SOURCE_TABLE,),
    "target_embedding": (TARGET_TABLE, SOFTMAX_TABLE),
}
LOGITS_BIAS = "final_logits_bias"
# The sinusoids, which we compute.
COMPUTED = "embed_positions.weight"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The name and the layout of one of our arrays in MarianMT.

    A kernel `[in, out]` of ours, its heads flattened, is a weight `[out, in]` there.

    Attributes:
        name: Of the tensor.
        is_kernel: Whether the array is a matrix, hence transposed.
        permutes_input: Whether its input axis is d_model, which is permuted.
        permutes_output: Whether its output axis is.
    """

    name: str
    is_kernel: bool
    permutes_input: bool
    permutes_output: bool

    def to_marian(self, array: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Return our array as MarianMT's tensor."""
        if self.is_kernel:
            shape = (len(order), -1) if self.permutes_input else (-1, array.shape[-1])
            array = array.reshape(shape)
        elif not self.permutes_output:
            array = array.reshape(-1)
        array = array[order] if self.permutes_input else array
        array = array[..., order] if self.permutes_output else array
        return np.ascontiguousarray(array.T if self.is_kernel else array)

    def from_marian(
        self, tensor: np.ndarray, order: np.ndarray, *, shape: tuple[int, ...]
    ) -> np.ndarray:
        """Return MarianMT's tensor as our array of a shape."""
        inverse = np.argsort(order)
        array = tensor.T if self.is_kernel else tensor
        array = array[inverse] if self.permutes_input else array
        array = array[..., inverse] if self.permutes_output else array
        return np.ascontiguousarray(array.reshape(shape))


def interleaving(d_model: int) -> np.ndarray:
    """Return our dimension of each of MarianMT's: all sines, then all cosines.

    >>> interleaving(6)
    array([0, 2, 4, 1, 3, 5])
    """
    return np.concatenate([np.arange(0, d_model, 2), np.arange(1, d_model, 2)])


def layout_of(path: tuple[str, ...]) -> Layout:
    """Return the layout of the parameter with a path.

    >>> layout_of(("encoder", "layers_0", "self_attention", "output", "kernel")).name
    'model.encoder.layers.0.self_attn.out_proj.weight'
    """
    if path[0] in TABLES:
        is_table = path[-1] == "embedding"
        name = TABLES[path[0]][0] if is_table else LOGITS_BIAS
        return Layout(name, False, permutes_input=False, permutes_output=is_table)
    stack, layer, block, *names = path
    prefix = f"model.{stack}.layers.{layer.removeprefix('layers_')}"
    if block.endswith("residual"):
        kind = "weight" if names[-1] == "scale" else "bias"
        name = f"{prefix}.{BLOCKS[block]}.{kind}"
        return Layout(name, False, permutes_input=False, permutes_output=True)
    part, leaf = names
    modules = [BLOCKS[block]] if block in BLOCKS else []
    kind = "weight" if leaf == "kernel" else "bias"
    writes_d_model = part in ("output", "outer")
    return Layout(
        ".".join([prefix, *modules, PARTS[part], kind]),
        is_kernel=leaf == "kernel",
        permutes_input=leaf == "kernel" and not writes_d_model,
        permutes_output=writes_d_model,
    )


def export_params(params: Any, model: config.ModelConfig) -> dict[str, np.ndarray]:
    """Return our parameters by MarianMT's names, float32; tied ones are given once.

    Biases that our model lacks are zero.
    """
    order = interleaving(model.d_model)
    tensors = {}
    for path, leaf in flax.traverse_util.flatten_dict(params).items():
        layout = layout_of(path)
        tensors[layout.name] = layout.to_marian(np.asarray(leaf), order)
    for name, tensor in list(tensors.items()):
        if name.endswith("_proj.weight"):
            bias_name = name.removesuffix("weight") + "bias"
            tensors.setdefault(bias_name, np.zeros(len(tensor), np.float32))
    table = SHARED_TABLE if SHARED_TABLE in tensors else TARGET_TABLE
    rows = len(tensors[table])
    bias = tensors.get(LOGITS_BIAS, np.zeros(rows, np.float32))
    return tensors | {LOGITS_BIAS: bias.reshape(1, rows)}


def import_params(
    tensors: dict[str, np.ndarray],
    model: config.ModelConfig,
    *,
    orders: Mapping[str, Sequence[int]],
    directory: pathlib.Path,
) -> Any:
    """Return our parameters, which must take up every tensor.

    Args:
        tensors: Of `read_tensors`.
        model: Our settings of the model.
        orders: For each of our embeddings, see `TABLES`, the id in MarianMT of each of
            our ids.
        directory: Of the tensors, for errors.

    Raises:
        ValueError: A tensor is missing, left over, or of another size than the
            settings say.
    """
    tensors = {k: v for k, v in tensors.items() if not k.endswith(COMPUTED)}
    *_, target = orders  # or the shared one
    rows = len(tensors[TABLES[target][0]])
    tensors[LOGITS_BIAS] = _import_bias(
        tensors, orders[target], rows=rows, directory=directory
    )
    for embedding, order in orders.items():
        name = TABLES[embedding][0]
        tensors[name] = tensors[name][list(order)]
    sizes = [len(order) for order in orders.values()]
    vocab_size = sizes[0] if len(sizes) == 1 else types.VocabSizes(sizes[0], sizes[1])
    interleaved = interleaving(model.d_model)
    params = {}
    for name, shape in transformer.param_shapes(model, vocab_size).items():
        path = tuple(name.split("/"))
        layout = layout_of(path)
        if layout.name not in tensors:
            raise ValueError(f"the weights in {directory} have no {layout.name}")
        tensor = tensors.pop(layout.name)
        try:
            params[path] = layout.from_marian(tensor, interleaved, shape=shape)
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"the weights in {directory}: {layout.name} does not fit config.json: "
                f"{error}"
            ) from None
    if tensors:
        raise ValueError(
            f"the weights in {directory} have tensors that this model lacks: "
            f"{', '.join(sorted(tensors)[:5])}"
        )
    return flax.traverse_util.unflatten_dict(params)


def _import_bias(
    tensors: dict[str, np.ndarray],
    order: Sequence[int],
    *,
    rows: int,
    directory: pathlib.Path,
) -> np.ndarray:
    """Return the bias of the logits; a mark that shares a row is never chosen."""
    bias = tensors.get(LOGITS_BIAS, np.zeros(rows, np.float32)).reshape(-1)
    if len(bias) != rows:
        raise ValueError(
            f"the weights in {directory}: {LOGITS_BIAS} has {len(bias)} values, "
            f"the embedding {rows} rows"
        )
    bias = bias[list(order)]
    pad, start, end, unknown = order[: types.UNK_ID + 1]
    if start in (pad, end, unknown):
        bias[types.BOS_ID] = types.NEVER
    if pad in (end, unknown):
        bias[types.PAD_ID] = types.NEVER
    return bias


def read_tensors(directory: pathlib.Path, *, is_shared: bool) -> dict[str, np.ndarray]:
    """Read the tensors by name, float32, tied tables once; execute nothing.

    Args:
        directory: Where their file is.
        is_shared: Whether one table serves source, target and softmax; if not, the
            source has a table of its own.

    Raises:
        FileNotFoundError: There is no file of weights.
        ImportError: PyTorch, which reads pytorch_model.bin, is not installed.
        ValueError: It is damaged, or tables that must be equal are not.
    """
    safe, pickled = directory / "model.safetensors", directory / "pytorch_model.bin"
    if not safe.exists() and not pickled.exists():
        raise FileNotFoundError(
            f"{directory} has neither {safe.name} nor {pickled.name}"
        )
    path = safe if safe.exists() else pickled
    if path == pickled:
        extras.require(["torch"], extra="export", purpose=f"{path} needs")
    try:
        if path == safe:
            import safetensors.numpy

            tensors = safetensors.numpy.load_file(path)
        else:
            import torch

            state = torch.load(path, map_location="cpu", weights_only=True)
            tensors = {name: tensor.float().numpy() for name, tensor in state.items()}
    except Exception as error:  # Both raise many kinds.
        reason = errors.first_line(error)
        raise ValueError(f"{path} is damaged: {reason}") from error
    tensors = {name: np.asarray(t, np.float32) for name, t in tensors.items()}
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise ValueError(f"{path}: {name} has values that are not finite numbers")
    if is_shared:
        return _untie(tensors, "embedding", directory)
    tensors = _untie(tensors, "source_embedding", directory)
    return _untie(tensors, "target_embedding", directory)


def _untie(
    tensors: dict[str, np.ndarray], embedding: str, directory: pathlib.Path
) -> dict[str, np.ndarray]:
    """Return the tensors with an embedding's table under its main name only."""
    main = TABLES[embedding][0]
    names = [name for name in TABLES[embedding] if name in tensors]
    if not names:
        raise ValueError(f"the weights in {directory} have no {main}")
    table = tensors[names[0]]
    for name in names:
        if not np.array_equal(table, tensors.pop(name)):
            users = (
                "source, target and softmax"
                if embedding == "embedding"
                else ("target and softmax")
            )
            raise ValueError(
                f"the weights in {directory} have another {name} than {names[0]}: "
                f"one table serves {users} here (section 3.4)"
            )
    return tensors | {main: table}
