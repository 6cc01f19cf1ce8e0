"""The lines that `decode` writes, against translations and scores written out."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests import settings
from tests.data import small_vocabularies
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import types
from vaswani_jax.inference import decode_job, reranking
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.glossary import Glossary
from vaswani_jax.inference.results import Hypothesis, Output, PairScore
from vaswani_jax.inference.scoring import Scored
from vaswani_jax.inference.translator import Translator

PLAIN = decode_job.DecodeOptions(
    form="text",
    num_hypotheses=1,
    token_scores=False,
    alignments="",
    attention="",
    aligning_layer=None,
)
NUM_LAYERS, HEADS = 3, 2  # of the decoder, to which alignments belong


class Written(Translator):
    """Swaps the first two words of a line; a second hypothesis repeats the line.

    A subword's log-probability is minus its position, from 1. A target word looks at
    the source word that it is, in every layer but the last, where all look at the end.
    A source word looks at itself; a target word looks at it and at those before it.
    """

    def __init__(self, num_heads: Sequence[int] = (HEADS,)) -> None:
        members = [
            Member(
                settings.small_settings(
                    **{
                        "model.num_encoder_layers": 1,
                        "model.num_decoder_layers": NUM_LAYERS,
                        "model.num_heads": heads,
                    }
                ).model,
                Checkpoint(0, {}, {}),
            )
            for heads in num_heads
        ]
        super().__init__(
            settings.small_settings(**{"data.max_length": 3}),
            settings.letters_vocabulary(),
            members=members,
        )
        self.calls: list[Any] = []
        self.phrases: list[Any] = []

    def hypotheses(
        self,
        lines: Sequence[str],
        *,
        n_best: int = 1,
        prefixes: Sequence[str] | None = None,
        constraints: Sequence[Sequence[str]] | None = None,
        glossary: Mapping[str, str] | None = None,
        placeholders: str | None = None,
        first_line: int = 1,
        **search: Any,
    ) -> list[list[Hypothesis]]:
        self.calls.append((n_best, prefixes, first_line))
        self.phrases.append((constraints, glossary, placeholders))
        return [self._n_best(line)[:n_best] for line in lines]

    def _n_best(self, line: str) -> list[Hypothesis]:
        words = line.split()
        texts = [" ".join([*words[1::-1], *words[2:]]), line]
        [source] = self.vocabulary.encode([line])
        return [
            Hypothesis(
                text,
                -float(rank),
                tuple(text.split()),
                (Output(tuple(source), (*ids, types.EOS_ID), -float(rank)),),
            )
            for rank, (text, ids) in enumerate(
                zip(texts, self.vocabulary.encode(texts), strict=True), start=1
            )
        ]

    def score_ids(
        self, pairs: Any, *, layers: Mapping[str, Sequence[int]] | None = None
    ) -> list[Scored]:
        scored = []
        for source, target in pairs:
            S, T = len(source) + 1, len(target)
            looks = np.zeros((NUM_LAYERS, HEADS, T, S), np.float32)
            looks[:-1] = np.equal.outer(target, [*source, types.EOS_ID])
            looks[-1, :, :, -1] = 1
            weights = {
                "encoder": np.tile(np.eye(S, dtype=np.float32), (1, HEADS, 1, 1)),
                "decoder": np.tile(
                    np.tri(T, dtype=np.float32), (NUM_LAYERS, HEADS, 1, 1)
                ),
                "memory": looks,
            }
            attention = {
                kind: weights[kind][list(numbers)]
                for kind, numbers in (layers or {}).items()
            }
            scored.append(Scored(-np.arange(1.0, T + 1), attention))
        return scored

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, first_line: int = 1
    ) -> list[PairScore]:
        self.calls.append(first_line)
        return [
            PairScore(-2.0 * len(target), (*target, "</s>"), (-2.0,) * len(target))
            for target in targets
        ]


def test_lines_are_numbered_across_blocks() -> None:
    translator = Written()
    options = dataclasses.replace(PLAIN, form="tsv", num_hypotheses=2)
    job = decode_job.TranslationJob(translator, options)
    blocks = [decode_job.Block(["a b c", "c"]), decode_job.Block(["d e f"], ["p"])]
    assert list(job.run(blocks)) == [
        [
            "1\t1\t-1.000000\tb a c\n1\t2\t-2.000000\ta b c",
            "2\t1\t-1.000000\tc\n2\t2\t-2.000000\tc",
        ],
        ["3\t1\t-1.000000\te d f\n3\t2\t-2.000000\td e f"],
    ]
    assert translator.calls == [(2, None, 1), (2, ["p"], 3)]
    assert job.num_lines == 3
    # Three words and the end mark are more than data.max_length.
    assert +job.warnings.counts == {"data.max_length": 2}


def test_lines_with_unknown_characters_are_counted_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = decode_job.TranslationJob(Written(), PLAIN)
    blocks = [
        decode_job.Block(["a \U0001f600 b", "a\u00a0b"]),
        decode_job.Block(["\u200d☃\U0001f600", "z"]),
    ]
    assert len(list(job.run(blocks))) == 2
    job.warnings.log()
    long, record = caplog.records
    assert "over config.data.max_length=3 tokens" in long.message
    assert record.levelname == "WARNING"
    assert (
        "3 lines have characters that the vocabulary lacks: \U0001f600"
        in record.message
    )
    scoring = decode_job.ScoringJob(Written(), form="text")
    assert len(list(scoring.run([(["a", "x\u3000y"], ["b"] * 2)]))) == 1
    assert scoring.warnings.unknown.num_lines == 1


def test_token_scores_are_those_of_every_hypothesis() -> None:
    options = dataclasses.replace(
        PLAIN, form="json", num_hypotheses=2, token_scores=True
    )
    job = decode_job.TranslationJob(Written(), options)
    [[line]] = job.run([decode_job.Block(["a b"])])
    hypotheses = json.loads(line)["hypotheses"]
    assert [hypothesis["text"] for hypothesis in hypotheses] == ["b a", "a b"]
    assert [hypothesis["log_probs"] for hypothesis in hypotheses] == [[-1, -2, -3]] * 2


def test_the_best_hypothesis_is_aligned(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "alignments"
    options = dataclasses.replace(
        PLAIN, alignments=str(file), num_hypotheses=2, form="tsv"
    )
    job = decode_job.TranslationJob(Written(), options)
    list(job.run([decode_job.Block(["a b c"]), decode_job.Block(["d"])]))
    assert file.read_text() == "1-0 0-1 2-2\n0-0\n"


def test_the_aligning_layer_can_be_chosen(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "alignments"
    options = dataclasses.replace(
        PLAIN,
        alignments=str(file),
        aligning_layer=NUM_LAYERS,
        attention=str(tmp_path / "attention.npz"),  # of the other layers, too
    )
    # Nothing looks at a word there: all words align to the first.
    list(decode_job.TranslationJob(Written(), options).run([decode_job.Block(["a b"])]))
    assert file.read_text() == "0-0 0-1\n"
    for layer in (0, NUM_LAYERS + 1):
        wrong = dataclasses.replace(options, aligning_layer=layer)
        with pytest.raises(ValueError, match=f"aligning_layer={layer} must be from 1"):
            decode_job.TranslationJob(Written(), wrong)


def test_the_attention_of_all_layers_is_archived(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "attention.npz"
    options = dataclasses.replace(
        PLAIN, attention=str(file), num_hypotheses=2, form="tsv"
    )
    list(
        decode_job.TranslationJob(Written(), options).run(
            [decode_job.Block(["a b", "c"])]
        )
    )
    with np.load(file) as arrays:
        assert {name.rpartition("/")[0] for name in arrays.files} == {"1.1", "2.1"}
        assert arrays["1.1/source"].tolist() == ["\u2581a", "\u2581b", "</s>"]
        assert arrays["1.1/target"].tolist() == ["\u2581b", "\u2581a", "</s>"]
        swapped = [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
        at_the_end = [[0, 0, 1]] * 3
        expected = [[swapped] * HEADS] * 2 + [[at_the_end] * HEADS]
        np.testing.assert_array_equal(arrays["1.1/attention"], expected)
        itself = [[[[1, 0, 0], [0, 1, 0], [0, 0, 1]]] * HEADS]
        np.testing.assert_array_equal(arrays["1.1/encoder"], itself)
        earlier = [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]] * HEADS] * NUM_LAYERS
        np.testing.assert_array_equal(arrays["1.1/decoder"], earlier)


def test_models_of_other_heads_have_no_common_attention() -> None:
    two = Written(num_heads=(2, 4))
    decode_job.TranslationJob(two, PLAIN)
    options = dataclasses.replace(PLAIN, alignments="file")
    with pytest.raises(ValueError, match=r"one number of heads, got \[2, 4\]"):
        decode_job.TranslationJob(two, options)


def test_the_best_candidates_by_expected_gain_are_written() -> None:
    translator = Written()
    options = dataclasses.replace(PLAIN, mbr="chrf", num_candidates=2)
    job = decode_job.TranslationJob(translator, options)
    # e^-1 is more than e^-2: the best of two candidates stays.
    assert list(job.run([decode_job.Block(["a b c", "c"])])) == [["b a c", "c"]]
    assert translator.calls == [(2, None, 1)]
    options = dataclasses.replace(options, num_hypotheses=2, form="tsv")
    [[line]] = decode_job.TranslationJob(translator, options).run(
        [decode_job.Block(["a b c"])]
    )
    assert [row.split("\t")[3] for row in line.split("\n")] == ["b a c", "a b c"]


def test_reranked_candidates_are_written_with_their_alignment(
    tmp_path: pathlib.Path,
) -> None:
    translator, file = Written(), tmp_path / "alignments"
    options = dataclasses.replace(PLAIN, is_reranked=True, alignments=str(file))
    # The score of a pair of T tokens is -(1 + ... + T): as high for both candidates.
    changes = reranking.Reranking(forward=translator, forward_weight=0.5)
    job = decode_job.TranslationJob(translator, options, reranking=changes)
    assert list(job.run([decode_job.Block(["a b c"])])) == [["b a c"]]
    assert translator.calls == [(translator.config.search.beam_size, None, 1)]
    longer = reranking.Reranking(length_reward=-3.0)
    job = decode_job.TranslationJob(translator, options, reranking=longer)
    assert list(job.run([decode_job.Block(["a b c"])])) == [["b a c"]]
    assert file.read_text() == "1-0 0-1 2-2\n"


def test_only_written_translations_cause_warnings_about_phrases(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranking may put another candidate first than the search did."""
    search = Written.hypotheses

    def mark_second(self: Written, lines: Sequence[str], **options: Any) -> Any:
        return [
            [first, dataclasses.replace(second, missing_phrases=("d",))]
            for first, second in search(self, lines, **options)
        ]

    def reverse(lines: Sequence[str], hypotheses: Any, **options: Any) -> Any:
        return [n_best[::-1] for n_best in hypotheses]

    monkeypatch.setattr(Written, "hypotheses", mark_second)
    options = dataclasses.replace(PLAIN, mbr="chrf", num_candidates=2)
    for ranked, messages in (
        (False, []),
        (True, ["line 1: the translation lacks 'd'"]),
    ):
        if ranked:
            monkeypatch.setattr(decode_job.minimum_bayes_risk, "rank_lines", reverse)
        caplog.clear()
        job = decode_job.TranslationJob(Written(), options)
        [[written]] = job.run([decode_job.Block(["a b c"])])
        assert caplog.messages == messages
        assert written == ("a b c" if ranked else "b a c")


def test_placeholders_that_the_search_cannot_keep_are_refused_before_it() -> None:
    translator = Written()
    translator.config = dataclasses.replace(
        translator.config,
        search=dataclasses.replace(translator.config.search, sampling=True),
    )
    options = dataclasses.replace(PLAIN, placeholders=r"%\d")
    with pytest.raises(ValueError, match="sampling=True draws outputs at random"):
        decode_job.TranslationJob(translator, options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mbr": "chrf", "is_reranked": True}, "cannot be combined: leave one out"),
        ({"num_candidates": 2}, "--num_candidates needs --mbr, --rerank_with"),
        ({"mbr": "bleu", "num_candidates": 4}, "--num_candidates=4 is more than"),
        (
            {"is_reranked": True, "num_candidates": 1, "num_hypotheses": 2},
            "--format=text has one",
        ),
        (
            {"mbr": "bleu", "num_candidates": 1, "num_hypotheses": 2, "form": "tsv"},
            "--num_candidates=1 is less than --num_hypotheses=2",
        ),
        ({"num_hypotheses": 4}, "--num_hypotheses=4 is more than"),
        ({"num_hypotheses": 2}, "--format=text has one hypothesis"),
        ({"token_scores": True, "form": "tsv"}, "--token_scores needs --format=json"),
        ({"attention": "-"}, "--attention=-: name a file"),
        ({"aligning_layer": 1}, "--aligning_layer needs --alignments"),
    ],
)
def test_options_that_contradict_one_another_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    search = settings.small_settings(**{"search.beam_size": 3}).search
    PLAIN.check(search)
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(PLAIN, **changes).check(search)


def test_the_constraints_of_a_line_are_separated_by_tabs() -> None:
    translator = Written()
    terms = Glossary({"a": "b"})
    options = dataclasses.replace(PLAIN, placeholders="x", glossary=terms)
    job = decode_job.TranslationJob(translator, options)
    list(job.run([decode_job.Block(["a", "b"], None, ["c d\te", ""])]))
    assert translator.phrases == [([["c d", "e"], [""]], terms, "x")]


def test_a_glossary_that_cannot_be_written_is_found_before_any_translation() -> None:
    options = dataclasses.replace(PLAIN, glossary=Glossary({"a": "b", "c": "\ufb01"}))
    written = Written()
    written.vocabulary = small_vocabularies.trained("bpe", True, normalization="nfkc")
    with pytest.raises(ValueError, match="term 'c': the vocabulary spells '\ufb01'"):
        decode_job.TranslationJob(written, options)


def test_scores_are_summed_over_all_pairs() -> None:
    translator = Written()
    job = decode_job.ScoringJob(translator, form="text")
    blocks = [(["x", "y"], ["b", "cc"]), (["z"], ["ddd"])]
    expected = [["-2.000000", "-4.000000"], ["-6.000000"]]
    assert list(job.run(blocks)) == expected
    assert translator.calls == [1, 3]
    perplexity = math.exp(12 / 9)  # two, three and four tokens, with the end marks
    assert job.summary() == (
        f"3 pairs, 9 tokens, log P -12.0000, perplexity {perplexity:.4f}"
    )
