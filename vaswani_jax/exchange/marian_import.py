"""Section 3's model from a MarianMT directory, the inverse of `marian`."""

import dataclasses
import pathlib
from collections.abc import Collection, Sequence
from typing import Any

import flax.traverse_util
import ml_collections
import numpy as np

from vaswani_jax.core import config, parsing, rules, types
from vaswani_jax.data import marian_vocabulary, vocabulary
from vaswani_jax.exchange import marian, marian_files, marian_settings
from vaswani_jax.model import transformer

# The sinusoids, which we compute.
COMPUTED = "embed_positions.weight"


@dataclasses.dataclass(frozen=True)
class Imported:
    """A model as our programs take it."""

    settings: config.Config
    params: Any
    subwords: vocabulary.Vocabulary
    notes: list[str]  # what its own programs would do otherwise


def load(
    directory: pathlib.Path,
    values: ml_collections.ConfigDict,
    languages: Sequence[str] = ("", ""),
    given: Collection[str] = (),
) -> Imported:
    """Read a directory that `MarianMTModel` and `MarianTokenizer` load.

    Args:
        directory: With config.json, model.safetensors or pytorch_model.bin,
            source.spm, target.spm and vocab.json.
        values: What MarianMT does not say: training, batches.
        languages: Of source and target; empty ones are read from
            tokenizer_config.json.
        given: Keys of `values` that a user has set: of the search they win.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or the model is none of ours: the value, the
            rule and the file are named.
        ImportError: What reads the weights is not installed.
    """
    theirs = marian_files.read_json(directory / "config.json")
    searching = directory / "generation_config.json"
    generation = marian_files.read_json(searching, missing={})
    tokenizer = marian_files.read_json(directory / "tokenizer_config.json", missing={})
    for key in given:
        if key in config.SETTINGS and config.SETTINGS[key].imported:
            raise ValueError(f"--config.{key}: {directory} decides that")
    marian_settings.check(theirs, tokenizer, directory / "config.json")
    for key, wanted in zip(("source", "target"), languages, strict=True):
        found = wanted or tokenizer.get(f"{key}_lang")
        if not found:
            raise ValueError(
                f"{directory / 'tokenizer_config.json'} has no {key}_lang: give "
                f"--{key}_locale"
            )
        if not rules.LOCALE.fullmatch(str(found)):
            raise ValueError(
                f"{directory / 'tokenizer_config.json'}: {key}_lang {found!r} is no "
                f"code of a language: give --{key}_locale"
            )
        values.data[f"{key}_locale"] = str(found)
    tensors = marian_files.tensors(directory)
    table = marian_files.take_table(tensors, directory)
    names = marian_files.names(directory, len(table))
    order = _order(theirs, names, directory / "config.json")
    subwords = _subwords(directory, names, order)
    values.model.update(marian_settings.model(theirs))
    values.data.vocab_size = subwords.size
    values.data.subword_model = "unigram"
    longest = tokenizer.get("model_max_length", marian_settings.MAX_LENGTH)
    if type(longest) is int and 2 <= longest <= values.data.source_tokens_per_batch:
        values.data.max_length = longest
    found, notes = marian_settings.search(generation, theirs, searching)
    if "search.sampling" in given and not values.search.sampling:
        found |= marian_settings.UNSAMPLED
    values.search.update(
        {key: value for key, value in found.items() if f"search.{key}" not in given}
    )
    try:
        settings = parsing.parse(values)
    except ValueError as error:
        raise ValueError(f"{directory}: {error}") from None
    params = _params(tensors, table, order, settings.model, directory)
    return Imported(settings, params, subwords, notes)


def _order(theirs: dict[str, Any], names: list[str], path: pathlib.Path) -> list[int]:
    """Which of their ids each of ours is: the special ones come first.

    What a sentence starts with is mostly one of the others, padding; it has a row of
    its own here.
    """
    keys = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
    special: list[Any] = [*(theirs.get(key) for key in keys), names.index("<unk>")]
    if not all(type(t) is int and 0 <= t < len(names) for t in special):
        raise ValueError(
            f"{path}: {', '.join(keys)} must be numbers below {len(names)}, the rows "
            f"of the embedding, got {special[:3]}"
        )
    return [*special, *(t for t in range(len(names)) if t not in special)]


def _subwords(
    directory: pathlib.Path, names: list[str], order: list[int]
) -> vocabulary.Vocabulary:
    models = []
    for name in marian_vocabulary.FILES:
        # Names the file that is missing or damaged.
        models.append(vocabulary.Vocabulary.load(directory / name).models[0])
    own = [names[token] for token in order]
    if order.count(order[types.BOS_ID]) > 1:
        own[types.BOS_ID] = "<s>" if "<s>" not in names else "<start>"
    return marian_vocabulary.MarianVocabulary((models[0], models[1]), own)


def _params(
    tensors: dict[str, np.ndarray],
    table: np.ndarray,
    order: list[int],
    model: config.ModelConfig,
    directory: pathlib.Path,
) -> Any:
    """Every parameter of ours, from all that is in the files."""
    tensors = {k: v for k, v in tensors.items() if not k.endswith(COMPUTED)}
    zeros = np.zeros(len(table), np.float32)
    bias = tensors.get("final_logits_bias", zeros).reshape(-1)
    if bias.shape != zeros.shape:
        raise ValueError(
            f"the weights in {directory}: final_logits_bias has {len(bias)} values, "
            f"the embedding {len(zeros)} rows"
        )
    bias = bias[order]
    pad, start, end, unknown = order[: types.UNK_ID + 1]
    if start in (pad, end, unknown):
        bias[types.BOS_ID] = types.NEVER
    if pad in (end, unknown):
        bias[types.PAD_ID] = types.NEVER
    tensors["final_logits_bias"] = bias
    tensors["model.shared.weight"] = table[order]
    interleaving = marian.interleaving(model.d_model)
    found = {}
    for name, shape in transformer.param_shapes(model, len(order)).items():
        path = tuple(name.split("/"))
        own = marian.place(path)
        if own.name not in tensors:
            raise ValueError(f"the weights in {directory} have no {own.name}")
        try:
            found[path] = own.to_ours(tensors.pop(own.name), interleaving, shape)
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"the weights in {directory}: {own.name} does not fit config.json: "
                f"{error}"
            ) from None
    if tensors:
        raise ValueError(
            f"the weights in {directory} have what our model has not: "
            f"{', '.join(sorted(tensors)[:5])}"
        )
    return flax.traverse_util.unflatten_dict(found)
