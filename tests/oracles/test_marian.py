"""Hugging Face's MarianMT and CTranslate2 with our weights: logits and beam search.

Both define the length penalty as log P / |Y|^alpha, the paper's source as
log P / ((5 + |Y|) / 6)^alpha; with alpha = 0 the three are one. With the paper's alpha
their own lists of finished hypotheses, ranked by the paper's formula, must not hold
a better one than ours. Their other habits are set to ours: a search ends when nothing
can overtake the best finished hypothesis. Pads and begin marks have their
probabilities; MarianMT is forbidden to choose them, in CTranslate2 they have none.
"""

import importlib.util
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests import settings
from vaswani_jax.core import config, types
from vaswani_jax.exchange import ctranslate, marian_export, marian_weights
from vaswani_jax.model import transformer
from vaswani_jax.training import loss, optimizer, step

if not importlib.util.find_spec("ctranslate2") and not (
    importlib.util.find_spec("torch") and importlib.util.find_spec("transformers")
):
    pytest.skip(
        "neither transformers with torch nor ctranslate2 is installed: .[oracles]",
        allow_module_level=True,
    )
V, SENTENCES, LONGEST, EXTRA = 60, 200, 10, 6
SIZES = {
    "model.num_layers": 2,
    "model.d_model": 32,
    "model.d_ff": 48,
    "model.num_heads": 4,
    "model.d_k": 8,
    "model.d_v": 8,
    "model.max_positions": 64,
    "model.dropout_rate": 0.0,
    "model.init_scale": 0.25,
    "optimizer.warmup_steps": 100,
    "optimizer.learning_rate_scale": 1.0,
    "search.length_penalty": 0.0,
    "search.max_extra_tokens": EXTRA,
    "search.beam_size": 4,
}
UPDATES, KEEP_RATE = 300, 0.7
Hypotheses = tuple[list[list[int]], list[float]]


@pytest.fixture(scope="module")
def small() -> config.Config:
    return settings.small_settings(**SIZES)


@pytest.fixture(scope="module")
def params(small: config.Config) -> Any:
    """Learnt from copies that leave out words at random: what follows is uncertain,
    sentences end, at different lengths, and a wider beam finds other ones."""
    generator = np.random.default_rng(6)
    model, adam = transformer.Transformer(small.model, V), optimizer.adam(small)
    state = step.create_state(small, vocab_size=V)

    def loss_of(params: Any, batch: types.Batch) -> Any:
        logits: Any = model.apply(
            {"params": params}, batch.source, batch.target_in, deterministic=True
        )
        sums = loss.smoothed_cross_entropy(
            logits, batch.target_out, label_smoothing=0.1
        )
        return sums.loss / sums.tokens

    @jax.jit
    def update(params: Any, moments: Any, batch: types.Batch) -> tuple[Any, Any]:
        gradients = jax.grad(loss_of)(params, batch)
        changes, moments = adam.update(gradients, moments, params)
        return optax.apply_updates(params, changes), moments

    params, moments = state.params, state.opt_state
    for _ in range(UPDATES):
        lines = [words(generator) for _ in range(64)]
        shortened = [
            [i for i in ids if generator.random() < KEEP_RATE] for ids in lines
        ]
        target_in = padded([[types.BOS_ID, *ids] for ids in shortened], end=False)
        batch = types.Batch(padded(lines), target_in, padded(shortened))
        params, moments = update(params, moments, batch)
    return jax.device_get(params)


@pytest.fixture(scope="module")
def sources() -> list[list[int]]:
    """Sentences of one to nine words, without their end marks."""
    generator = np.random.default_rng(5)
    return [words(generator) for _ in range(SENTENCES)]


def words(generator: np.random.Generator) -> list[int]:
    return generator.integers(
        types.UNK_ID + 1, V, generator.integers(1, LONGEST)
    ).tolist()


def padded(lines: list[list[int]], *, end: bool = True) -> np.ndarray:
    rows = np.zeros((len(lines), LONGEST), np.int32)
    for row, ids in zip(rows, lines, strict=True):
        marked = [*ids, types.EOS_ID] if end else ids
        row[: len(marked)] = marked
    return rows


def without_marks(ids: Any) -> list[int]:
    return [int(i) for i in ids if i not in (types.PAD_ID, types.BOS_ID, types.EOS_ID)]


def searched(
    params: Any, sources: list[list[int]], **changes: Any
) -> tuple[list[list[int]], np.ndarray]:
    """Our best hypotheses, their end marks on, and their scores."""
    changed = settings.small_settings(**(SIZES | changes))
    search = jax.jit(settings.search_of(changed, vocab_size=V))
    hypotheses = search(params, jnp.asarray(padded(sources)))
    best = np.asarray(hypotheses.tokens[:, 0])
    tokens = [[int(i) for i in ids if i] for ids in best]
    return tokens, np.asarray(hypotheses.scores[:, 0])


@pytest.fixture(scope="module")
def unpenalised(
    params: Any, sources: list[list[int]]
) -> tuple[list[list[int]], np.ndarray]:
    """Our best hypotheses and their scores, without a length penalty."""
    return searched(params, sources)


def test_the_sentences_ask_what_a_search_must_answer(
    params: Any,
    sources: list[list[int]],
    unpenalised: tuple[list[list[int]], np.ndarray],
) -> None:
    """Else the same translations would prove little."""
    wide, _ = unpenalised
    greedy, _ = searched(params, sources, **{"search.beam_size": 1})
    ended = [ids for ids in wide if ids[-1] == types.EOS_ID]
    assert len(ended) > 0.9 * SENTENCES
    assert len({len(ids) for ids in ended}) > 4
    assert sum(a != b for a, b in zip(wide, greedy, strict=True)) > SENTENCES // 4


@pytest.fixture(scope="module")
def network(small: config.Config, params: Any) -> Any:
    """MarianMT with our weights."""
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: pip install -e '.[oracles]'"
    )
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: .[oracles]"
    )
    values = marian_export.model_config(small.model, vocab_size=V)
    network = transformers.MarianMTModel(transformers.MarianConfig(**values)).eval()
    tensors = marian_weights.export_params(params, small.model)
    state = {name: torch.tensor(tensor) for name, tensor in tensors.items()}
    missing, unexpected = network.load_state_dict(state, strict=False)
    assert not unexpected
    # What is tied to the shared table, and positions, which are computed.
    assert all("embed_" in name or "lm_head" in name for name in missing)
    network.tie_weights()
    for module in network.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    return network


@pytest.fixture(scope="module")
def marian_beams(network: Any, sources: list[list[int]]) -> list[Hypotheses]:
    """MarianMT's beam of four for each sentence."""
    beams = {}
    for length in {len(ids) for ids in sources}:
        same_length = [ids for ids in sources if len(ids) == length]
        beams |= dict(
            zip(map(tuple, same_length), generated(network, same_length), strict=True)
        )
    return [beams[tuple(ids)] for ids in sources]


def test_marian_mt_has_our_logits(
    small: config.Config, params: Any, network: Any, sources: list[list[int]]
) -> None:
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
        marian_logits = network(
            input_ids=torch.tensor(source, dtype=torch.long),
            attention_mask=torch.tensor(source != types.PAD_ID),
            decoder_input_ids=torch.tensor(target_in, dtype=torch.long),
        ).logits.numpy()
    real = target_in != types.PAD_ID
    np.testing.assert_allclose(logits[real], marian_logits[real], rtol=1e-3, atol=1e-3)


def test_marian_mt_finds_our_translations_with_our_scores(
    sources: list[list[int]],
    unpenalised: tuple[list[list[int]], np.ndarray],
    marian_beams: list[Hypotheses],
) -> None:
    for ids, output, score, (beam, log_probs) in zip(
        sources, *unpenalised, marian_beams, strict=True
    ):
        # At the longest length they also list what has no end mark; we give that only
        # where nothing has ended.
        ended = (n for n, words in enumerate(beam) if len(words) < longest(ids))
        best = next(ended, 0)
        assert beam[best] == without_marks(output)
        np.testing.assert_allclose(log_probs[best], score, rtol=1e-3, atol=1e-3)


def test_marian_mt_finds_nothing_better_by_the_papers_penalty(
    params: Any,
    sources: list[list[int]],
    unpenalised: tuple[list[list[int]], np.ndarray],
    marian_beams: list[Hypotheses],
) -> None:
    tokens, scores = searched(params, sources, **{"search.length_penalty": 0.6})
    assert sum(a != b for a, b in zip(tokens, unpenalised[0], strict=True)) > 5
    same = 0
    for ids, output, score, (beam, log_probs) in zip(
        sources, tokens, scores, marian_beams, strict=True
    ):
        lengths = [min(len(words) + 1, longest(ids)) for words in beam]
        penalised = [
            log_prob / ((5 + length) / 6) ** 0.6
            for length, log_prob in zip(lengths, log_probs, strict=True)
        ]
        ended = [
            value
            for words, value in zip(beam, penalised, strict=True)
            if len(words) < longest(ids)
        ]
        assert score >= max(ended, default=-np.inf) - 1e-3
        if without_marks(output) in beam:
            same += 1
            penalised_score = penalised[beam.index(without_marks(output))]
            np.testing.assert_allclose(penalised_score, score, rtol=1e-3, atol=1e-3)
    assert same > 0.9 * SENTENCES


def longest(ids: list[int]) -> int:
    """Tokens of an output, its end mark among them."""
    return len(ids) + 1 + EXTRA


def generated(network: Any, sources: list[list[int]]) -> list[Hypotheses]:
    """MarianMT's beam of four: words and log-probabilities, the best first.

    The sources are of one length: nothing is padded.
    """
    torch = pytest.importorskip("torch")
    outputs = network.generate(
        torch.tensor([[*ids, types.EOS_ID] for ids in sources]),
        num_beams=4,
        num_return_sequences=4,
        length_penalty=0.0,
        early_stopping="never",
        # Ours counts the end mark on both sides, theirs the start, too.
        max_length=longest(sources[0]) + 1,
        bad_words_ids=[[types.PAD_ID], [types.BOS_ID]],
        forced_eos_token_id=None,
        output_scores=True,
        return_dict_in_generate=True,
    )
    words = [without_marks(sequence) for sequence in outputs.sequences]
    scores = outputs.sequences_scores.tolist()
    return [
        (words[start : start + 4], scores[start : start + 4])
        for start in range(0, len(words), 4)
    ]


def test_ctranslate2_finds_our_translations_with_our_scores(
    small: config.Config,
    params: Any,
    sources: list[list[int]],
    tmp_path: pathlib.Path,
) -> None:
    engine = pytest.importorskip(
        "ctranslate2", reason="ctranslate2 is not installed: .[oracles]"
    )
    names = ["<pad>", "<s>", "</s>", "<unk>", *(f"w{i}" for i in range(4, V))]
    ctranslate.save(
        tmp_path,
        params=params,
        model=small.model,
        spellings=(names, names),
        quantization=None,
    )
    translator = engine.Translator(str(tmp_path), intra_threads=1)
    # There these marks have no probability: nor have they here, for once.
    bias = np.zeros(V, np.float32)
    bias[[types.PAD_ID, types.BOS_ID]] = types.NEVER
    biased = {**params, "embedding": {**params["embedding"], "bias": bias}}
    tokens, scores = searched(biased, sources, **{"model.logits_bias": True})
    outputs = [without_marks(ids) for ids in tokens]
    compared = 0
    for ids, output, score in zip(sources, outputs, scores, strict=True):
        longest = len(ids) + 1 + EXTRA
        [translation] = translator.translate_batch(
            [[names[i] for i in ids]],
            beam_size=4,
            length_penalty=0.0,
            min_decoding_length=0,
            max_decoding_length=longest,
            return_scores=True,
        )
        output_there = [names.index(word) for word in translation.hypotheses[0]]
        if len(output_there) == longest:
            continue  # It takes what has no end mark yet for as good as the finished.
        compared += 1
        assert output_there == output
        np.testing.assert_allclose(translation.scores[0], score, rtol=1e-3, atol=1e-3)
    assert compared > 0.95 * SENTENCES
