"""Hugging Face's MarianMT and CTranslate2 with our weights: logits and beam search.

Both define the length penalty as log P / |Y|^alpha, the paper's source as
log P / ((5 + |Y|) / 6)^alpha; with alpha = 0 the three are one. Their other habits are
set to ours: a search ends when nothing can overtake the best finished hypothesis, and
neither pads nor begin marks are predicted.
"""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import config, types
from vaswani_jax.inference import ctranslate, marian, translate
from vaswani_jax.model import transformer

V, SENTENCES, LONGEST, EXTRA = 60, 200, 10, 6
SIZES = {
    "model.num_layers": 2,
    "model.d_model": 32,
    "model.d_ff": 48,
    "model.num_heads": 4,
    "model.d_k": 8,
    "model.d_v": 8,
    "model.max_positions": 64,
    "search.length_penalty": 0.0,
    "search.max_extra_tokens": EXTRA,
    "search.beam_size": 4,
}


@pytest.fixture(scope="module")
def small() -> config.Config:
    return settings.small_settings(**SIZES)


@pytest.fixture(scope="module")
def params(small: config.Config) -> Any:
    """Random, and so sharp that translations differ and end at different lengths."""
    return settings.random_params(small.model, vocab_size=V, seed=4)


@pytest.fixture(scope="module")
def sources() -> list[list[int]]:
    """Sentences of one to ten words, without their end marks."""
    generator = np.random.default_rng(5)
    lengths = generator.integers(1, LONGEST, SENTENCES)
    return [
        generator.integers(types.UNK_ID + 1, V, length).tolist() for length in lengths
    ]


def padded(sources: list[list[int]]) -> np.ndarray:
    rows = np.zeros((len(sources), LONGEST), np.int32)
    for row, ids in zip(rows, sources, strict=True):
        row[: len(ids) + 1] = [*ids, types.EOS_ID]
    return rows


def without_marks(ids: Any) -> list[int]:
    return [int(i) for i in ids if i not in (types.PAD_ID, types.BOS_ID, types.EOS_ID)]


@pytest.fixture(scope="module")
def ours(
    small: config.Config, params: Any, sources: list[list[int]]
) -> tuple[list[list[int]], np.ndarray]:
    """Our best hypotheses and their log-probabilities."""
    search = jax.jit(translate.search_rows(small, vocab_size=V))
    found = search(params, jnp.asarray(padded(sources)))
    best = [without_marks(ids) for ids in np.asarray(found.tokens[:, 0])]
    return best, np.asarray(found.scores[:, 0])


def marian_network(small: config.Config, params: Any) -> Any:
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: pip install -e '.[oracles]'"
    )
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: .[oracles]"
    )
    values = marian.settings(small.model, vocab_size=V)
    network = transformers.MarianMTModel(transformers.MarianConfig(**values)).eval()
    given = {
        name: torch.tensor(value)
        for name, value in marian.parameters(params, small.model).items()
    }
    missing, unexpected = network.load_state_dict(given, strict=False)
    assert not unexpected
    # What is tied to the shared table, and positions, which are computed.
    assert all("embed_" in name or "lm_head" in name for name in missing)
    network.tie_weights()
    for module in network.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    return network


def test_marian_mt_has_our_logits(
    small: config.Config, params: Any, sources: list[list[int]]
) -> None:
    network = marian_network(small, params)
    torch = pytest.importorskip("torch")
    source = padded(sources[:20])
    target_in = np.roll(source, 1, axis=1)
    target_in[:, 0] = types.BOS_ID
    logits: Any = transformer.Transformer(small.model, V).apply(
        {"params": params},
        jnp.asarray(source),
        jnp.asarray(target_in),
        deterministic=True,
    )
    with torch.no_grad():
        theirs = network(
            input_ids=torch.tensor(source, dtype=torch.long),
            attention_mask=torch.tensor(source != types.PAD_ID),
            decoder_input_ids=torch.tensor(target_in, dtype=torch.long),
        ).logits.numpy()
    real = target_in != types.PAD_ID
    np.testing.assert_allclose(logits[real], theirs[real], rtol=1e-3, atol=1e-3)


def test_marian_mt_finds_our_translations_with_our_scores(
    small: config.Config,
    params: Any,
    sources: list[list[int]],
    ours: tuple[list[list[int]], np.ndarray],
) -> None:
    network = marian_network(small, params)
    torch = pytest.importorskip("torch")
    outputs, scores = ours
    found = 0
    for ids, output, score in zip(sources, outputs, scores, strict=True):
        generated = network.generate(
            torch.tensor([[*ids, types.EOS_ID]]),
            num_beams=4,
            length_penalty=0.0,
            early_stopping="never",
            # Ours counts the end mark on both sides, theirs the start, too.
            max_length=len(ids) + 1 + EXTRA + 1,
            bad_words_ids=[[types.PAD_ID], [types.BOS_ID]],
            renormalize_logits=True,
            forced_eos_token_id=None,
            output_scores=True,
            return_dict_in_generate=True,
        )
        theirs = without_marks(generated.sequences[0])
        found += theirs == output
        if theirs == output:
            np.testing.assert_allclose(
                generated.sequences_scores[0], score, rtol=1e-3, atol=1e-3
            )
    assert found == SENTENCES


def test_ctranslate2_finds_our_translations_with_our_scores(
    small: config.Config,
    params: Any,
    sources: list[list[int]],
    ours: tuple[list[list[int]], np.ndarray],
    tmp_path: pathlib.Path,
) -> None:
    engine = pytest.importorskip(
        "ctranslate2", reason="ctranslate2 is not installed: .[oracles]"
    )
    names = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{i}" for i in range(4, V))]
    ctranslate.save(tmp_path, params, small.model, names, quantization=None)
    translator = engine.Translator(str(tmp_path), intra_threads=1)
    outputs, scores = ours
    found = 0
    for ids, output, score in zip(sources, outputs, scores, strict=True):
        [result] = translator.translate_batch(
            [[names[i] for i in ids]],
            beam_size=4,
            length_penalty=0.0,
            max_decoding_length=len(ids) + 1 + EXTRA,
            suppress_sequences=[["<pad>"], ["<s>"]],
            return_scores=True,
        )
        theirs = [names.index(word) for word in result.hypotheses[0]]
        found += theirs == output
        if theirs == output:
            np.testing.assert_allclose(result.scores[0], score, rtol=1e-3, atol=1e-3)
    assert found == SENTENCES
