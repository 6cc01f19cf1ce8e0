"""Translations and attention of a model that has learned nothing."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from tests import reference, settings
from tests.inference import small_translators
from tests.inference.small_translators import (
    LINES,
    TWO_LAYERS,
    ids_of,
    make_translator,
    names,
)
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import decode_job, trees
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.results import Hypothesis
from vaswani_jax.inference.translator import Translator


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return small_translators.learn_vocabulary()


@pytest.fixture(scope="module")
def translator(vocabulary: Vocabulary) -> Translator:
    return make_translator(vocabulary)


@pytest.fixture(scope="module")
def parser() -> Translator:
    return small_translators.make_parser()


def test_translations_are_the_best_hypotheses(
    translator: Translator,
) -> None:
    texts = translator.translate(LINES)
    hypotheses = translator.hypotheses(LINES, n_best=3, beam_size=4)
    assert len(texts) == len(hypotheses) == len(LINES)
    assert texts[1] == ""
    assert hypotheses[1] == [Hypothesis("", 0.0, (), ())]
    for n_best in (hypotheses[0], hypotheses[2], hypotheses[3]):
        # A search may end with fewer.
        assert 1 <= len(n_best) <= 3
        scores = [hypothesis.score for hypothesis in n_best]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in n_best:
            assert translator.vocabulary.decode(hypothesis.outputs[0].ids) == (
                hypothesis.text
            )
    assert max(map(len, hypotheses)) > 1
    same_beam = translator.hypotheses(LINES, beam_size=3)
    assert [n_best[0].text for n_best in same_beam] == texts


def test_minimum_bayes_risk_and_reranking_reorder_the_hypotheses(
    translator: Translator,
) -> None:
    n_best = translator.hypotheses(LINES, n_best=3, beam_size=4)
    ranked = translator.minimum_bayes_risk(
        LINES, utility="bleu", num_candidates=3, beam_size=4
    )
    # The model's own scores once more: twice the sum, in the same order.
    again = translator.rerank(LINES, n_best, forward=translator)
    for old, by_utility, by_score in zip(n_best, ranked, again, strict=True):
        for new in (by_utility, by_score):
            plain = [dataclasses.replace(each, rank_score=None) for each in new]
            assert sorted(map(repr, plain)) == sorted(map(repr, old))
            scores = [each.rank_score or 0.0 for each in new]
            assert scores == sorted(scores, reverse=True)
    with pytest.raises(ValueError, match="num_candidates=4 is more than"):
        translator.minimum_bayes_risk(LINES, num_candidates=4)
    with pytest.raises(ValueError, match="equal numbers of lines, got 4 and 3"):
        translator.rerank(LINES, n_best[1:])


def test_a_parser_has_no_minimum_bayes_risk_and_is_not_reranked(
    parser: Translator,
) -> None:
    with pytest.raises(
        ValueError, match="need a run that translates, and this one parses"
    ):
        parser.minimum_bayes_risk(["a b"])
    with pytest.raises(
        ValueError, match="need a run that translates, and this one parses"
    ):
        parser.rerank(["a b"], [[]])


def test_an_ensemble_writes_trees_over_the_words(parser: Translator) -> None:
    lines = ["a b c d", "", "d ( f"]
    hypotheses = parser.hypotheses(lines, n_best=2)
    assert len(hypotheses[0]) == 2
    assert hypotheses[1] == [Hypothesis("", 0.0, (), (), ())]
    for line, n_best in zip(lines, hypotheses, strict=True):
        for hypothesis in n_best:
            trees.check_trees([line], [hypothesis.text], first_line=1)
            assert not hypothesis.is_repaired


def assert_records_equal_hypotheses(
    translator: Translator, lines: list[str], *, n_best: int, **arguments: Any
) -> None:
    hypotheses = translator.hypotheses(lines, n_best=n_best, **arguments)
    records = translator.record_search(lines, n_best=n_best, **arguments)
    assert [len(pieces) for pieces in records] == [
        len(line[0].outputs) for line in hypotheses
    ]
    for line, pieces in zip(hypotheses, records, strict=True):
        for record in pieces:
            # Hypotheses of the same text are one; here no two are.
            recorded = record.hypotheses[:n_best]
            outputs = [hypothesis.outputs[0] for hypothesis in line]
            assert [each.ids for each in recorded] == [each.ids for each in outputs]
            scores = [each.score for each in outputs]
            np.testing.assert_allclose(
                [each.score for each in recorded], scores, rtol=1e-5
            )
            scored_pairs = translator.score_ids(
                [(output.source, output.ids) for output in outputs]
            )
            np.testing.assert_allclose(
                [each.log_prob for each in recorded],
                [pair.log_probs.sum() for pair in scored_pairs],
                rtol=1e-4,
            )


def test_a_recorded_search_of_trees_by_an_ensemble_finds_its_hypotheses(
    parser: Translator,
) -> None:
    lines = ["a b c d", "", "d ( f"]
    assert_records_equal_hypotheses(parser, lines, n_best=2)


def test_a_recorded_search_begins_with_prefixes_and_repeats_nothing(
    vocabulary: Vocabulary,
) -> None:
    search = {"no_repeat_ngram": 1, "min_tokens": 3, "length_penalty_form": "power"}
    changes = {f"search.{key}": value for key, value in search.items()}
    translator = make_translator(vocabulary, **changes)
    prefixes = ["c d", "", "", "a"]
    assert_records_equal_hypotheses(translator, LINES, n_best=1, prefixes=prefixes)
    with pytest.raises(ValueError, match="sampling=True draws outputs at random"):
        translator.record_search(LINES, sampling=True)


def test_trees_have_no_prefix_and_no_alignment(parser: Translator) -> None:
    with pytest.raises(ValueError, match="prefix, line 4: a parser takes no prefixes"):
        parser.hypotheses(["a b", "c"], prefixes=["", "(S (NP"], first_line=3)
    options = decode_job.DecodeOptions(
        form="text",
        num_hypotheses=1,
        token_scores=False,
        alignments="file",
        attention="",
        aligning_layer=None,
    )
    with pytest.raises(ValueError, match="--alignments needs a run that translates"):
        decode_job.TranslationJob(parser, options)


def test_a_target_that_is_no_tree_has_no_attention(parser: Translator) -> None:
    with pytest.raises(ValueError, match="target, line 1: 0 trees for 1 words"):
        parser.attention("a", "")


def test_warnings_name_the_settings_of_the_call(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    translator.translate(["a b c d e f g h"], max_source_tokens=4)
    assert "1 line over config.search.max_source_tokens=4 tokens" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [{"model.num_decoder_layers": 1}, {"model.layer_norm_position": "pre"}],
)
def test_attention_is_that_of_the_reference_model(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    translator = make_translator(vocabulary, **TWO_LAYERS, **changes)
    line, target = "a b c d", "h g"
    source, target_in, target_out = ids_of(translator, line, target)
    expected: list[np.ndarray] = []

    def record(
        Q: np.ndarray, K: np.ndarray, V: np.ndarray, may_look: np.ndarray
    ) -> np.ndarray:
        scores = Q @ K.T / np.sqrt(K.shape[1])
        expected.append(reference.softmax(np.where(may_look, scores, -np.inf)))
        return expected[-1] @ V

    monkeypatch.setattr(reference, "attention", record)
    model = translator.config.model
    params = reference.to_float64(translator.params)
    reference.logits(params, source, target_in, model=model)

    attention = translator.attention(line, target)
    encoder, decoder = 2, model.num_decoder_layers or 2
    H, S, T = model.num_heads, len(source), len(target_in)
    assert attention.source == names(translator, source)
    assert attention.target_in == names(translator, target_in)
    assert attention.target_out == names(translator, target_out)
    assert attention.encoder.shape == (encoder, H, S, S)
    assert attention.decoder.shape == (decoder, H, T, T)
    assert attention.memory.shape == (decoder, H, T, S)
    # The encoder's layers first, head by head; then each decoder layer's two.
    weights = [*attention.encoder.reshape(encoder * H, S, S)]
    for layer in range(decoder):
        weights += [*attention.decoder[layer], *attention.memory[layer]]
    for head, exact in zip(weights, expected, strict=True):
        np.testing.assert_allclose(head, exact, rtol=1e-4, atol=1e-5)


def test_attention_without_a_target_is_that_of_the_translation(
    translator: Translator,
) -> None:
    [[hypothesis]] = translator.hypotheses(["a b c"])
    attention = translator.attention("a b c")
    assert attention.target_out == hypothesis.tokens
    empty = translator.attention("")
    assert (empty.source, empty.target_out) == (("</s>",), ("</s>",))


def test_the_attention_of_an_ensemble_is_the_mean_of_its_models(
    vocabulary: Vocabulary,
) -> None:
    first, second, both = (
        make_translator(vocabulary, seeds=seeds, **TWO_LAYERS)
        .attention("a b", "c")
        .memory
        for seeds in ((1,), (2,), (1, 2))
    )
    np.testing.assert_allclose(both, (first + second) / 2, rtol=1e-5, atol=1e-6)
    shallow = make_translator(
        vocabulary, **TWO_LAYERS, **{"model.num_decoder_layers": 1}
    )
    members = [*shallow.members, *make_translator(vocabulary, **TWO_LAYERS).members]
    mixed = Translator(shallow.config, vocabulary, members=members)
    with pytest.raises(ValueError, match=r"numbers of encoder layers.* \[\(2, 1, 2\),"):
        mixed.attention("a b", "c")
    with pytest.raises(ValueError, match="an ensemble of 2 models has no single"):
        make_translator(vocabulary, seeds=(1, 2)).params  # noqa: B018


@pytest.mark.parametrize("targets", [None, ["g f", "", "a"]])
def test_lines_together_attend_as_each_alone(
    translator: Translator, targets: list[str] | None
) -> None:
    lines = ["a b c", "", "d e f g"]
    pairs = translator.attend(lines, targets)
    texts = targets or translator.translate(lines)
    scores = translator.score(lines, texts)
    for number, (line, pair) in enumerate(zip(lines, pairs, strict=True)):
        assert pair.text == texts[number]
        alone = translator.attention(line, targets and targets[number])
        assert pair.attention.source == alone.source
        assert (
            pair.attention.target_out
            == alone.target_out
            == names(translator, np.array(pair.ids))
        )
        for kind in ("encoder", "decoder", "memory"):
            weights = getattr(pair.attention, kind)
            np.testing.assert_allclose(weights, getattr(alone, kind), atol=1e-6)
        if targets:
            np.testing.assert_allclose(
                pair.log_probs, scores[number].log_probs, rtol=1e-5, atol=1e-6
            )


def test_attention_of_no_number_is_refused(translator: Translator) -> None:
    [member] = translator.members
    params = jax.tree.map(lambda leaf: leaf * np.nan, member.params)
    broken = Translator(
        translator.config,
        translator.vocabulary,
        members=[Member(member.model, Checkpoint(0, {"params": params}, {}))],
    )
    with pytest.raises(ValueError, match=r"^line 4 has no probability: the param"):
        broken.attend(["a", "b c"], ["d", "e"], first_line=4)
    with pytest.raises(ValueError, match="parameters are not finite numbers"):
        broken.attention("a")


@pytest.mark.parametrize("method", ["translate", "hypotheses"])
def test_a_string_is_no_list_of_lines(translator: Translator, method: str) -> None:
    with pytest.raises(TypeError, match=r"lines must be a list of strings.*'a b'"):
        getattr(translator, method)("a b")


def test_wrong_arguments_are_refused_with_the_rule(
    translator: Translator,
) -> None:
    for arguments, sentence in (
        ({"n_best": 4}, "n_best=4 is more than config.search.beam_size=3"),
        ({"n_best": 0}, "n_best must be at least 1, got 0"),
        ({"beam": 2}, "unknown key config.search.beam; did you mean"),
        ({"beam_size": 0}, "config.search.beam_size"),
        ({"prefixes": ["a"]}, "lines and prefixes must have equal numbers of lines"),
    ):
        with pytest.raises(ValueError, match=sentence):
            translator.hypotheses(["a", "b"], **arguments)
    # Before the lines are translated.
    with pytest.raises(ValueError, match=r"unknown key config\.search\.prefixes"):
        translator.translate(["a", "b"], prefixes=["", ""])
    with pytest.raises(
        ValueError, match="sources and targets must have equal numbers of lines"
    ):
        translator.score(["a"], [])
    with pytest.raises(ValueError, match="target, line 2: 31 tokens are more than"):
        translator.score(["a", "b"], ["a", "b " * 30])
    with pytest.raises(ValueError, match="source, line 1: 31 tokens are more than"):
        translator.attention("b " * 30)


def test_the_search_of_a_call_fits_the_positions_of_every_member() -> None:
    """Beyond the table of learned positions a model computes no finite number."""
    several = make_translator(settings.letters_vocabulary(), seeds=(1, 2))
    first, second = several.members
    # 16 source tokens and 5 more fit into 21 positions.
    learned: Any = {"positional_encoding": "learned", "max_positions": 21}
    model = dataclasses.replace(second.model, **learned)
    together = Translator(
        several.config,
        several.vocabulary,
        members=[first, dataclasses.replace(second, model=model)],
    )
    sentence = r"^model 2 of 2: config\.model\.max_positions must be at least 22 .* 21$"
    with pytest.raises(ValueError, match=sentence):
        together.translate(["a b"], max_source_tokens=17)
    # A single model is not numbered.
    alone = Translator(several.config, several.vocabulary, members=together.members[1:])
    with pytest.raises(ValueError, match=r"^config\.model\.max_positions must be"):
        alone.translate(["a b"], max_source_tokens=17)


def test_a_model_of_several_languages_translates_no_line_without_a_tag(
    vocabulary: Vocabulary,
) -> None:
    changes = settings.TWO_TARGETS
    several = make_translator(vocabulary, **changes)
    sentence = r"^line 12 must begin with a tag .* <2de> or <2fr>, got 'a b'$"
    with pytest.raises(ValueError, match=sentence):
        several.hypotheses(["<2de> a", "a b"], first_line=11)
    with pytest.raises(ValueError, match=sentence):
        several.score(["<2de> a", "a b"], ["a", "b"], first_line=11)
    with pytest.raises(ValueError, match=r"^line 1 must begin with a tag"):
        several.attention("a b", "c")
