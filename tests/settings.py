"""What most tests start from: tiny settings, parameters and batches."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np

from vaswani_jax.core import config, parsing, types
from vaswani_jax.inference import generate
from vaswani_jax.model import transformer

# Every axis has a size of its own, d_k and d_v too.
DEFAULTS = {
    "seed": 1,
    "model": {
        "num_layers": 1,
        "d_model": 8,
        "d_ff": 10,
        "num_heads": 2,
        "d_k": 4,
        "d_v": 6,
        "dropout_rate": 0.0,
        "attention_dropout_rate": 0.0,
        "relu_dropout_rate": 0.0,
        "activation": "relu",
        "attention_bias": False,
        "logits_bias": False,
        "layer_norm_epsilon": 1e-6,
        "init_scale": 1.0,
        "layer_norm_position": "post",
        "positional_encoding": "sinusoidal",
        "max_positions": 32,
        "dtype": "float32",
        "attention": "xla",
        "rematerialize": False,
    },
    "data": {
        "source": "copy",
        "source_locale": "en",
        "target_locale": "de",
        "tfds_directory": "",
        "text_directory": "",
        "train_source": "",
        "train_target": "",
        "valid_source": "",
        "valid_target": "",
        "test_source": "",
        "test_target": "",
        "num_train": 48,
        "num_valid": 8,
        "num_test": 8,
        "directory": "",
        "subword_model": "bpe",
        "vocab_size": 40,
        "sentencepiece_sample_size": 1000,
        "byte_fallback": False,
        "normalization": "identity",
        "subword_dropout": 0.0,
        "subword_samples": 1,
        "max_length": 16,
        "source_tokens_per_batch": 128,
        "target_tokens_per_batch": 128,
        "batching": "buckets",
        "num_buckets": 2,
        "packed_length": 16,
        "text_form": "detokenized",
        "lowercase_scores": False,
    },
    "optimizer": {
        "beta1": 0.9,
        "beta2": 0.98,
        "epsilon": 1e-9,
        "warmup_steps": 4,
        "learning_rate_scale": 1.0,
    },
    "training": {
        "num_steps": 4,
        "accumulate_steps": "1",
        "label_smoothing": 0.1,
        "label_smoothing_form": "uniform",
        "r_drop": 0.0,
        "log_every_steps": 1,
        "evaluate_every_steps": 2,
        "checkpoint_every_steps": 2,
        "keep_checkpoints": 2,
        "average_checkpoints": 2,
        "best_metric": "bleu",
        "patience": 0,
        "max_skipped_batches": 0,
        "max_loss_rise": 0.0,
    },
    "search": {
        "beam_size": 3,
        "length_penalty": 0.6,
        "length_penalty_form": "paper",
        "max_extra_tokens": 5,
        "min_tokens": 1,
        "max_tokens": 0,
        "no_repeat_ngram": 0,
        "sampling": False,
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "max_source_tokens": 16,
        "source_tokens_per_batch": 128,
    },
}


def small_settings(**overrides: Any) -> config.Config:
    """Valid settings of a tiny model, with dotted overrides.

    >>> small_settings(**{"model.d_k": 5, "seed": 7}).model.d_k
    5
    """
    settings = ml_collections.ConfigDict(DEFAULTS)
    settings.update_from_flattened_dict(overrides)
    return parsing.parse(settings)


def random_params(model: config.ModelConfig, *, vocab_size: int, seed: int) -> Any:
    """Parameters without a zero or a one, so that each of them matters."""
    generator = np.random.default_rng(seed)
    tokens = jnp.ones((1, 2), jnp.int32)

    def init(key: jax.Array) -> Any:
        network = transformer.Transformer(model, vocab_size)
        return network.init(key, tokens, tokens, deterministic=True)["params"]

    def draw(path: tuple[Any, ...], leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        centre = 1.0 if path[-1].key == "scale" else 0.0
        values = centre + 0.4 * generator.standard_normal(leaf.shape)
        return values.astype(np.float32)

    shapes = jax.eval_shape(init, jax.random.key(0))
    return jax.tree_util.tree_map_with_path(draw, shapes)


def random_batch(
    *, rows: int, source_length: int, target_length: int, vocab_size: int, seed: int
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
    settings: config.Config, *, vocab_size: int, n_best: int = 1
) -> Callable[[Any, Any], types.Hypotheses]:
    """What one model finds for rows of source ids."""
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
