"""The files of a MarianMT model say what our settings say."""

import json
import pathlib
from typing import Any

import pytest

from tests import settings
from vaswani_jax.exchange import marian_export

SQUARE = {"model.d_v": 4, "model.num_layers": 3}


def test_the_model_is_described_in_marians_words() -> None:
    changes = {"model.dropout_rate": 0.25, "model.num_decoder_layers": 1}
    changes |= {"model.attention_dropout_rate": 0.5, "model.relu_dropout_rate": 0.125}
    model = settings.small_settings(**SQUARE, **changes).model
    values = marian_export.model_config(model, vocab_size=50)
    expected = {
        **{"encoder_layers": 3, "decoder_layers": 1},
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 10),
        **{"vocab_size": 50, "d_model": 8, "max_position_embeddings": 32},
        **{"activation_function": "relu", "dropout": 0.25, "scale_embedding": True},
        **{"attention_dropout": 0.5, "activation_dropout": 0.125},
        **{"pad_token_id": 0, "decoder_start_token_id": 1, "eos_token_id": 2},
    }
    assert values.items() >= expected.items()


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"model.layer_norm_position": "pre"}, "layer_norm_position=post"),
        ({"model.positional_encoding": "learned"}, "positional_encoding=sinusoidal"),
        ({"model.d_v": 6}, "d_k=d_v=d_model/num_heads"),
        ({"model.d_k": 2, "model.d_v": 2}, "d_k=d_v=d_model/num_heads"),
        ({"model.layer_norm_epsilon": 1e-4}, "layer_norm_epsilon at most 1e-5"),
    ],
)
def test_a_model_that_marian_has_not_is_refused(
    changes: dict[str, Any], rule: str
) -> None:
    marian_export.check_model(settings.small_settings(**SQUARE).model)
    model = settings.small_settings(**(SQUARE | changes)).model
    with pytest.raises(ValueError, match=f"MarianMT needs config.model.{rule}, got"):
        marian_export.model_config(model, vocab_size=50)


def test_the_vocabulary_and_the_languages_are_written(tmp_path: pathlib.Path) -> None:
    locales = {"data.source_locale": "en", "data.target_locale": "fr"}
    small = settings.small_settings(**SQUARE, **locales)
    vocabulary = settings.letters_vocabulary()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=1)
    marian_export.save(tmp_path, params=params, settings=small, vocabulary=vocabulary)
    ids = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    assert len(ids) == vocabulary.size and ids["</s>"] == 2
    assert vocabulary.encode(["a"]) == [[ids["\u2581a"]]]
    tokenizer = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (tokenizer["source_lang"], tokenizer["target_lang"]) == ("en", "fr")
    assert tokenizer["model_max_length"] == small.search.max_source_tokens
    search = json.loads((tmp_path / "generation_config.json").read_text())
    # Pads and begin marks are never chosen.
    assert search["bad_words_ids"] == [[0], [1]]
    assert search["num_beams"] == small.search.beam_size
    several = settings.small_settings(**SQUARE, **settings.TWO_TARGETS)
    marian_export.save(tmp_path, params=params, settings=several, vocabulary=vocabulary)
    tokenizer = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert tokenizer["target_lang"] == "mul"
