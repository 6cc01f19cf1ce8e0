"""Validation counts every held-out pair once, each with its own reference."""

import logging
import math
import pathlib
import random
import re
from typing import Any

import numpy as np
import pytest
import sacrebleu

from tests import reference, settings
from vaswani_jax.core import parallel, types
from vaswani_jax.data import batching, prepared, token_files
from vaswani_jax.evaluation import validation
from vaswani_jax.inference import generate
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.training import loss

PAIRS, LONGEST, V = 37, 15, 9
Sentences = list[list[int]]
SMALL = settings.small_settings(
    **{
        "model.dropout_rate": 0.5,
        "data.num_buckets": 6,
        "data.source_tokens_per_batch": 96,
        "data.target_tokens_per_batch": 80,
        "training.label_smoothing": 0.3,
    }
)
WORDS = "ba ko ri tu sen mal do fi gra lo-pe zu-ri".split()
LINES, LONG, EMPTY = 23, 4, 7
# The options with which sacreBLEU computes each kind of score.
SACREBLEU = {
    ("detokenized", False): {},
    ("detokenized", True): {"lowercase": True},
    ("tokenized", False): {"tokenize": "none", "smooth_method": "none", "force": True},
}


def random_side(seed: int) -> Sentences:
    """Return sentences of 1 to LONGEST words."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, LONGEST + 1, PAIRS)
    return [generator.integers(types.UNK_ID, V, n).tolist() for n in lengths]


def token_file(path: pathlib.Path, sentences: Sentences) -> token_files.TokenFile:
    with token_files.open_writer(path, vocab_size=V) as writer:
        writer.write(sentences)
    return token_files.TokenFile.open(path)


def one_batch(sources: Sentences, targets: Sentences) -> types.Batch:
    """Return all pairs in one batch, padded to the longest of all."""
    batch = types.Batch(*(np.zeros((PAIRS, LONGEST + 1), np.int32) for _ in range(3)))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        batch.source[row, : len(source) + 1] = [*source, types.EOS_ID]
        batch.target_in[row, : len(target) + 1] = [types.BOS_ID, *target]
        batch.target_out[row, : len(target) + 1] = [*target, types.EOS_ID]
    return batch


def test_loss_evaluator_gives_the_means_over_all_pairs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources, targets = random_side(1), random_side(2)
    pairs = token_files.TokenPairs(
        token_file(tmp_path / "source", sources),
        token_file(tmp_path / "target", targets),
    )
    shapes: list[batching.Bucket] = []
    batch_at = batching.Batches.batch_at

    def recorded(
        batches: batching.Batches, step: int, local_rows: batching.LocalRows
    ) -> types.Batch:
        batch = batch_at(batches, step, local_rows)
        shapes.append(batching.Bucket(*batch.source.shape, batch.target_out.shape[1]))
        return batch

    monkeypatch.setattr(batching.Batches, "batch_at", recorded)
    batches = validation.make_batches(SMALL, pairs)
    evaluate = validation.loss_evaluator(SMALL, batches, vocab_size=V, name="held_out")
    every_pair = one_batch(sources, targets)
    # The second call must neither add to the first nor keep its parameters.
    for seed in (3, 4):
        params = settings.random_params(SMALL.model, vocab_size=V, seed=seed)
        losses = evaluate(parallel.replicate(params))
        sums = reference.loss_sums(
            reference.to_float64(params),
            every_pair,
            model=SMALL.model,
            label_smoothing=SMALL.training.label_smoothing,
        )
        assert sums["tokens"] == sum(len(target) + 1 for target in targets)
        assert 0 < sums["correct"] < sums["tokens"], "any accuracy would be right"
        expected = {
            "held_out/loss": sums["loss"] / sums["tokens"],
            "held_out/perplexity": math.exp(sums["nll"] / sums["tokens"]),
            "held_out/accuracy": sums["correct"] / sums["tokens"],
        }
        assert losses.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(losses[name], value, rtol=1e-5, err_msg=name)
    assert set(shapes) == set(batches.shapes)
    assert len(set(shapes)) > 1, "one bucket: nothing is tested"
    assert len(shapes) // 2 > len(set(shapes)), "one batch a bucket is too few"


def random_text() -> list[str]:
    """Return lines of a few words, one too long for the search and one empty."""
    generator = random.Random(1)
    lines = [" ".join(generator.choices(WORDS, k=3 + n % 6)) for n in range(LINES)]
    lines[LONG] = " ".join(WORDS * 4)
    lines[EMPTY] = ""
    return lines


def imperfect(outputs: list[str]) -> list[str]:
    """Return references to which each kind of score gives another distance."""
    references = list(outputs)
    references[0::5] = [line.title() for line in references[0::5]]
    references[1::5] = [f"{line}." for line in references[1::5]]
    references[2::5] = [" ".join(line.split()[::-1]) for line in references[2::5]]
    return references


def dictionary(seed: int) -> np.ndarray:
    """Return a permutation of the subwords that keeps the marks."""
    subwords = np.random.default_rng(seed).permutation(np.arange(types.UNK_ID + 1, 40))
    return np.concatenate([np.arange(types.UNK_ID + 1), subwords])


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> LineTranslator:
    """Return one that looks each subword up: its parameters are a dictionary."""
    small = settings.small_settings(
        **{"search.max_source_tokens": 24, "search.source_tokens_per_batch": 64}
    )
    subwords = settings.learn_vocabulary([" ".join(WORDS)] * 20, small.data)
    translator = LineTranslator(small, subwords)

    def look_up(params: Any, rows: generate.Rows) -> types.Hypotheses:
        ids = params[0][rows.source]
        return types.Hypotheses(ids[:, :, None], np.zeros((*ids.shape[:2], 1)))

    monkeypatch.setattr(translator, "search", look_up)
    return translator


@pytest.mark.parametrize(("text_form", "lowercase"), SACREBLEU)
def test_score_evaluator_scores_every_line_with_its_reference(
    translator: LineTranslator,
    text_form: str,
    lowercase: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, params = random_text(), dictionary(8)
    outputs = [translator.translate(params, [line])[0] for line in source]
    references = imperfect(outputs)
    assert any("-" in line for line in outputs), "split compounds would not be seen"

    def score(outputs: list[str], references: list[str]) -> float:
        kind = SACREBLEU[text_form, lowercase]
        return sacrebleu.corpus_bleu(outputs, [references], **kind).score

    data = settings.small_settings(
        **{"data.text_form": text_form, "data.lowercase_scores": lowercase}
    ).data
    caplog.set_level(logging.INFO, logger="vaswani_jax")
    evaluate = validation.score_evaluator(
        translator, (source, references), data=data, name="held_out"
    )
    right = score(outputs, references)
    assert evaluate(params) == {"held_out/bleu": pytest.approx(right, rel=1e-9)}
    logged = caplog.records[-1].message
    assert logged.startswith("1 line over config.search.max_source_tokens=24")
    # What another order, a line less or the source itself would have given.
    wrong = [
        score(outputs[::-1], references),
        score(outputs[1:], references[1:]),
        score(outputs[:-1], references[:-1]),
        score(source, references),
    ]
    assert all(abs(value - right) > 0.1 for value in wrong)


def test_score_evaluator_translates_with_the_parameters_it_is_given(
    translator: LineTranslator,
) -> None:
    source = random_text()
    references = translator.translate(dictionary(1), source)
    evaluate = validation.score_evaluator(
        translator,
        (source, references),
        data=settings.small_settings().data,
        name="valid",
    )
    scores = [evaluate(dictionary(seed))["valid/bleu"] for seed in (1, 2, 1)]
    assert scores == [pytest.approx(100), pytest.approx(0, abs=10), scores[0]]


def test_score_evaluator_gives_the_mean_and_the_score_of_each_language(
    translator: LineTranslator,
) -> None:
    source = [f"<2{'de' if n % 3 else 'fr'}> {line}" for n, line in enumerate(WORDS)]
    outputs = translator.translate(dictionary(1), source)
    references = [line if n % 3 else "-" for n, line in enumerate(outputs)]
    changes = settings.TWO_TARGETS
    evaluate = validation.score_evaluator(
        translator,
        (source, references),
        data=settings.small_settings(**changes).data,
        name="valid",
    )
    metrics = evaluate(dictionary(1))
    assert metrics == {
        "valid/bleu": pytest.approx(50, abs=10),
        "valid/bleu[de]": pytest.approx(100),
        "valid/bleu[fr]": pytest.approx(0, abs=20),
    }
    assert 2 * metrics["valid/bleu"] == pytest.approx(
        metrics["valid/bleu[de]"] + metrics["valid/bleu[fr]"]
    )


def text_files(directory: pathlib.Path) -> dict[str, Any]:
    """Write pairs whose targets are longer, and return the settings that read them."""
    generator = random.Random(1)
    for split, count in (("train", 200), ("valid", 61)):
        words = [generator.choices("abcdefgh", k=1 + n % 5) for n in range(count)]
        lines = [" ".join(letters) for letters in words]
        (directory / f"{split}.source").write_text("\n".join(lines))
        (directory / f"{split}.target").write_text("\n".join(f"{n} {n}" for n in lines))
    names = {
        f"data.{split}_{side}": f"{split}.{side}"
        for split in ("train", "valid")
        for side in ("source", "target")
    }
    return {"data.text_directory": str(directory), **names}


@pytest.mark.parametrize(
    ("changes", "notation"),
    [
        ({}, "rows x tokens"),
        (
            {
                "data.source": "text",
                "data.vocab_size": 20,
                "data.bucket_lengths": "separate",
            },
            "rows x tokens, or rows x source x target tokens",
        ),
    ],
)
def test_the_shapes_that_are_logged_are_those_that_are_computed(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    changes: dict[str, Any],
    notation: str,
) -> None:
    """Models that compute nothing record the shapes that they are called with."""

    def echo(params: object, rows: generate.Rows) -> types.Hypotheses:
        scores = np.zeros((*rows.source.shape[:2], 1), np.float32)
        return types.Hypotheses(rows.source[:, :, None], scores)

    def one_token(params: object, rows: types.Batch) -> loss.LossSums:
        return loss.LossSums(*(np.ones((), np.float32) for _ in range(4)))

    monkeypatch.setattr(LineTranslator, "search", staticmethod(echo))
    monkeypatch.setattr(validation, "compile_loss_step", lambda *_: one_token)
    computed: list[tuple[int, ...]] = []
    split_rows = parallel.split_rows

    def recorded(tree: Any, *, num_microbatches: int) -> Any:
        lengths = [tree.source.shape[1]]
        if isinstance(tree, types.Batch) and tree.target_out.shape[1] != lengths[0]:
            lengths.append(tree.target_out.shape[1])
        computed.append((len(tree.source), *lengths))
        return split_rows(tree, num_microbatches=num_microbatches)

    monkeypatch.setattr(parallel, "split_rows", recorded)
    small = settings.small_settings(
        **{
            "data.num_valid": 61,  # one is left when they are searched by fours
            "data.num_buckets": 6,
            "search.source_tokens_per_batch": 64,
            **text_files(tmp_path),
            **changes,
        }
    )
    data = prepared.open_or_prepare(small, tmp_path / "data", rebuild=False)
    caplog.set_level(logging.INFO, logger="vaswani_jax.evaluation")
    evaluators = validation.make_validators(small, data)
    [line] = [
        record.message
        for record in caplog.records
        if record.name == validation.__name__
    ]
    assert line.startswith(f"shapes of the validation ({notation}): loss in ")
    for part, evaluate in zip(line.split("; "), evaluators, strict=True):
        computed.clear()
        evaluate(np.zeros(1))
        texts = re.findall(r"\d+x[\dx]+", part)
        shapes = [tuple(map(int, text.split("x"))) for text in texts]
        by_length = sorted(set(computed), key=lambda shape: (shape[1:], shape))
        assert shapes == by_length and len(shapes) > 1


class Unsegmented(prepared.PreparedData):
    """Validation text that claims to be tokenised, and has no spaces."""

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        return {"valid": {}}

    def text(self, split: str) -> tuple[list[str], list[str]]:
        return ["<2zh> a b"], ["我今天去北京了，明天回上海，后天再来"]


class MostlySegmented(Unsegmented):
    """Half of the lines have another language, with spaces."""

    def text(self, split: str) -> tuple[list[str], list[str]]:
        source, target = super().text(split)
        return [*source, "<2de> a"], [*target, "Heute bin ich in Berlin ."]


@pytest.mark.parametrize(
    ("kind", "locale"), [(Unsegmented, "zh"), (MostlySegmented, "de,zh")]
)
def test_no_checkpoint_is_chosen_by_a_bleu_without_a_meaning(
    kind: type[Unsegmented], locale: str
) -> None:
    tokenized = settings.small_settings(
        **{"data.source": "cldr", "data.text_form": "tokenized"},
        **{"data.target_locale": locale, "data.user_symbols": "<2de>,<2zh>"},
        **{"training.best_metric": "bleu"},
    )
    data = object.__new__(kind)
    with pytest.raises(ValueError) as caught:
        validation.make_validators(tokenized, data)
    message = str(caught.value)
    assert message.startswith("config.training.best_metric=bleu: the references are")
    assert message.endswith("between the words, or config.training.best_metric=loss")
