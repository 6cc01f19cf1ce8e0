"""Write the directory that transformers' `MarianMTModel` and tokenizer load."""

import json
import logging
import pathlib
from typing import Any

from vaswani_jax.core import config, languages, types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.exchange import marian_settings, marian_weights, special_tokens

logger = logging.getLogger(__name__)

MARKS = {
    "pad_token_id": types.PAD_ID,
    "bos_token_id": types.BOS_ID,
    "eos_token_id": types.EOS_ID,
    "decoder_start_token_id": types.BOS_ID,
}


def save(
    directory: pathlib.Path,
    *,
    params: Any,
    settings: config.Config,
    vocabulary: Vocabulary,
) -> None:
    """Write all but the SentencePiece files, source.spm and target.spm.

    Logs which of our search MarianMT has not.

    Raises:
        ValueError: MarianMT has no such model.
    """
    import safetensors.numpy

    names = special_tokens.name_subwords(vocabulary)
    tokens = {
        file: {name: token for token, name in enumerate(side)}
        for file, side in zip(("vocab.json", "target_vocab.json"), names, strict=True)
    }
    if vocabulary.is_shared:
        del tokens["target_vocab.json"]
    files = {
        "config.json": {
            "model_type": "marian",
            **model_config(settings.model, vocab_size=vocabulary.size),
        },
        "generation_config.json": {
            **MARKS,
            **marian_settings.export_search(settings.search),
            "bad_words_ids": [[types.PAD_ID], [types.BOS_ID]],
        },
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "source_lang": settings.data.source_locale,
            "target_lang": _language(settings.data),
            "model_max_length": settings.search.max_source_tokens,
            "separate_vocabs": not vocabulary.is_shared,
            "pad_token": names[0][types.PAD_ID],
            "bos_token": names[0][types.BOS_ID],
            "eos_token": names[0][types.EOS_ID],
            # A special token that a text spells stays text.
            "split_special_tokens": True,
        },
        **tokens,
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (directory / name).write_text(text, encoding="utf-8")
    tensors = marian_weights.export_params(params, settings.model)
    path = str(directory / "model.safetensors")
    safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    for note in marian_settings.unexported(settings.search):
        logger.info(note)


def _language(data: config.DataConfig) -> str:
    """Return the target language, or ISO 639-2's code for several."""
    return "mul" if languages.locales_by_tag(data) else data.target_locale


def model_config(
    model: config.ModelConfig, *, vocab_size: types.VocabSize
) -> dict[str, Any]:
    """Return the values of transformers' MarianConfig.

    Raises:
        ValueError: MarianMT has no such model.
    """
    check_model(model)
    sides = {
        f"{side}_{key}": count
        for side in ("encoder", "decoder")
        for key, count in (
            ("attention_heads", model.num_heads),
            ("ffn_dim", model.d_ff),
        )
    }
    return {
        "encoder_layers": model.encoder_layers,
        "decoder_layers": model.decoder_layers,
        **sides,
        **MARKS,
        "architectures": ["MarianMTModel"],
        **_vocabulary_config(vocab_size),
        "d_model": model.d_model,
        "activation_function": model.activation,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "tie_word_embeddings": True,
        "max_position_embeddings": model.max_positions,
        "dropout": model.dropout_rate,
        "attention_dropout": model.attention_dropout_rate,
        "activation_dropout": model.relu_dropout_rate,
        "forced_eos_token_id": None,
    }


def _vocabulary_config(vocab_size: types.VocabSize) -> dict[str, Any]:
    if isinstance(vocab_size, types.VocabSizes):
        return {
            "vocab_size": vocab_size.source,
            "decoder_vocab_size": vocab_size.target,
            "share_encoder_decoder_embeddings": False,
        }
    return {"vocab_size": vocab_size, "share_encoder_decoder_embeddings": True}


def check_model(model: config.ModelConfig) -> None:
    """Refuse a model that MarianMT does not have.

    Raises:
        ValueError: Names the rule and the model.
    """
    rules = {
        "layer_norm_position=post": model.layer_norm_position == "post",
        "positional_encoding=sinusoidal": model.positional_encoding == "sinusoidal",
        "d_k=d_v=d_model/num_heads": model.d_k == model.d_v
        and model.d_k * model.num_heads == model.d_model,
        "layer_norm_epsilon at most 1e-5": model.layer_norm_epsilon <= 1e-5,
    }
    for rule, holds in rules.items():
        if not holds:
            raise ValueError(f"MarianMT needs config.model.{rule}, got {model}")
