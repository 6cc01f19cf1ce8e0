"""Tiny settings, parameters and batches, from which most tests start."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from configs import base_ende
from vaswani_jax.core import config, parsing, types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.inference import generate
from vaswani_jax.model import transformer

# What a tiny model has otherwise than the paper's base model. Every axis has a size of
# its own, d_k and d_v too.
TINY = {
    "model.num_layers": 1,
    "model.d_model": 8,
    "model.d_ff": 10,
    "model.num_heads": 2,
    "model.d_k": 4,
    "model.d_v": 6,
    "model.dropout_rate": 0.0,
    "model.max_positions": 32,
    "data.source": "copy",
    "data.num_train": 48,
    "data.num_valid": 8,
    "data.num_test": 8,
    "data.vocab_size": 40,
    "data.sentencepiece_sample_size": 1000,
    "data.byte_fallback": False,
    "data.max_length": 16,
    "data.source_tokens_per_batch": 128,
    "data.target_tokens_per_batch": 128,
    "data.num_buckets": 2,
    "data.packed_length": 16,
    "optimizer.warmup_steps": 4,
    "training.num_steps": 4,
    "training.log_every_steps": 1,
    "training.evaluate_every_steps": 2,
    "training.checkpoint_every_steps": 2,
    "training.keep_checkpoints": 2,
    "training.average_checkpoints": 2,
    "training.max_skipped_batches": 0,
    "search.beam_size": 3,
    "search.max_extra_tokens": 5,
    "search.max_source_tokens": 16,
    "search.source_tokens_per_batch": 128,
}
# Two target languages, whose tags begin source lines.
TWO_TARGETS = {
    "data.source": "cldr",
    "data.target_locale": "de,fr",
    "data.user_symbols": "<2de>,<2fr>",
}
# A run of one corpus, whose lines have a tag.
TAGGED = {
    "data.source": "text",
    "data.text_directory": ".",
    "data.user_symbols": "<x>",
    "data.corpora": [{"name": "a", "source": "a.en", "target": "a.de", "tag": "<x>"}],
}
# A run that parses.
TREEBANK = {
    "data.source": "treebank",
    "data.text_directory": ".",
    "data.train_trees": "trees",
    "data.vocabulary_sharing": "separate",
    "training.best_metric": "f1",
}


def small_settings(**overrides: Any) -> config.Config:
    """Valid settings of a tiny model, with dotted overrides.

    >>> small_settings(**{"model.d_k": 5, "seed": 7}).model.d_k
    5
    """
    values = base_ende.get_config()
    values.update_from_flattened_dict(TINY | overrides)
    return parsing.parse(values)


@functools.cache
def letters_vocabulary() -> Vocabulary:
    """The letters a to h and two words; all else is spelt in bytes."""
    data = small_settings(**{"data.byte_fallback": True, "data.vocab_size": 300}).data
    return learn_vocabulary(["a b c d e f g h", "hello world again"] * 20, data)


def random_params(
    model: config.ModelConfig, *, vocab_size: types.VocabSize, seed: int
) -> Any:
    """Parameters without a zero or a one, so that each of them matters."""
    generator = np.random.default_rng(seed)

    def draw(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        centre = 1.0 if path[-1].key == "scale" else 0.0
        values = centre + 0.4 * generator.standard_normal(leaf.shape)
        return values.astype(np.float32)

    shapes = _params_shapes(model, vocab_size)
    return jax.tree_util.tree_map_with_path(draw, shapes)


@functools.cache
def _params_shapes(model: config.ModelConfig, vocab_size: types.VocabSize) -> Any:
    tokens = jnp.ones((1, 2), jnp.int32)

    def init(key: jax.Array) -> Any:
        network = transformer.Transformer(model, vocab_size)
        return network.init(key, tokens, tokens, deterministic=True)["params"]

    return jax.eval_shape(init, jax.random.key(0))


def random_batch(
    *,
    rows: int,
    source_length: int,
    target_length: int,
    vocab_size: int,
    seed: int,
) -> types.Batch:
    """Ragged random sentences; the first row fills both sides."""
    generator = np.random.default_rng(seed)

    def words(longest: int, row: int) -> np.ndarray:
        count = longest if row == 0 else generator.integers(1, longest + 1)
        return generator.integers(types.UNK_ID, vocab_size, count - 1)

    source = np.full((rows, source_length), types.PAD_ID, np.int32)
    target_in = np.full((rows, target_length), types.PAD_ID, np.int32)
    target_out = target_in.copy()
    for row in range(rows):
        sentence = [*words(source_length, row), types.EOS_ID]
        source[row, : len(sentence)] = sentence
        translation = words(target_length, row)
        length = len(translation) + 1
        target_in[row, :length] = [types.BOS_ID, *translation]
        target_out[row, :length] = [*translation, types.EOS_ID]
    return types.Batch(source, target_in, target_out)


def search_of(
    settings: config.Config, *, vocab_size: types.VocabSize, n_best: int = 1
) -> Callable[[Any, Any], types.Hypotheses]:
    """Return the search of one model, for rows of source ids."""
    run = generate.make_generator(
        settings,
        (settings.model,),
        vocab_size=vocab_size,
        n_best=n_best,
    )

    def search(params: Any, source: Any) -> types.Hypotheses:
        B = source.shape[0]
        nothing = jnp.zeros((B, 0), jnp.int32), jnp.zeros((B, 2), jnp.int32)
        return run((params,), generate.Rows(source, *nothing))

    return search


def learn_vocabulary(lines: Iterable[str], data: config.DataConfig) -> Vocabulary:
    """Return a shared vocabulary learned from lines."""
    return Vocabulary.shared(learn_subwords(lines, data))
