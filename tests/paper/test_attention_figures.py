"""The verdicts on figures 3 to 5 follow the weights, and a run's are found."""

import os
import pathlib

import numpy as np
import pytest

from tests import settings
from tests.paper.workdirs import ROWS, leave, leave_parser, parsing_settings, read
from vaswani_jax.core import config, parsing
from vaswani_jax.inference.results import Attention
from vaswani_jax.inference.translator import Translator
from vaswani_jax.paper import attention_figures
from vaswani_jax.paper.attention_figures import Heads, ShownRun
from vaswani_jax.plots import attention_layer
from vaswani_jax.plots.attention_layer import Layer

H = 4
TOKENS = {
    number: (*sentence.split(), "</s>")
    for number, sentence in attention_layer.SENTENCES.items()
}


def layers(*changes: tuple[int, int, str, str, float]) -> dict[int, Layer]:
    """Return layers of uniform heads, some of which look at a word.

    Args:
        *changes: Figure, head from 1, the token that looks, that it looks at, weight.
    """
    result = {}
    for number, tokens in TOKENS.items():
        S = len(tokens)
        weights = np.full((H, S, S), 1 / S)
        for figure, head, query, key, weight in changes:
            if figure == number:
                row = weights[head - 1, tokens.index(query)]
                row[:] = (1 - weight) / (S - 1)
                row[tokens.index(key)] = weight
        uniform = np.full(S, 1 / S)
        result[number] = Layer(tokens, weights, uniform, number=5, depth=6)
    return result


def translating(**changes: object) -> config.Config:
    overrides = {f"data.{key}": value for key, value in changes.items()}
    return parsing.override(ROWS["base"], overrides)


def leave_heads(workdir: pathlib.Path, settings: config.Config, **options) -> None:
    leave(workdir, settings, **options)
    (workdir / "averaged").mkdir()


@pytest.fixture
def run(tmp_path):
    leave_heads(
        tmp_path / "a", ROWS["base"], starts=[{"environment": {"revision": "abc"}}]
    )
    [run] = read(tmp_path)
    return run


def judge(run, *changes):
    judged = attention_figures.judge(Heads(run, layers(*changes)))
    return dict(zip(attention_figures.NUMBERS, judged, strict=True))


class SixLayers(Translator):
    """A model whose every word is a subword, and whose layers have heads of theirs."""

    def attention(self, source, target=None):
        subwords = (*(f"▁{word}" for word in source.split()), "</s>")
        S = len(subwords)
        weights = np.random.default_rng(S).dirichlet(np.ones(S), (6, H, S))
        return Attention(subwords, ("<s>",), ("</s>",), weights, weights, weights)


def test_the_heads_are_those_of_layer_5_of_6(run):
    configured = settings.small_settings(**{"data.text_form": "tokenized"})
    vocabulary = settings.learn_vocabulary(
        attention_layer.SENTENCES.values(), configured.data
    )
    translator = SixLayers(configured, vocabulary, members=[])
    heads = attention_figures.read_heads(ShownRun(run, translator))
    assert heads.run == run and list(heads.layers) == [3, 4, 5]
    for number, layer in heads.layers.items():
        attention = translator.attention(attention_layer.SENTENCES[number])
        assert layer.name == "layer 5 of 6" and layer.tokens == TOKENS[number]
        np.testing.assert_allclose(layer.weights, attention.encoder[4])


def test_without_a_run_nothing_is_judged():
    judged = attention_figures.judge(None)
    assert [claim.verdict for claim in judged] == ["not run"] * 3
    text = attention_figures.format_figures(judged)
    assert "not run" in text and attention_figures.TRAINING in text
    assert "![" not in text


def test_a_word_of_many_subwords_has_their_part_of_uniform_attention(run):
    words = attention_layer.SPIRIT.replace("difficult", "dif ▁fi ▁cu ▁lt")
    subwords = (*f"▁{words.replace(' ', ' ▁')}".replace("▁▁", "").split(), "</s>")
    S = len(subwords)
    weights = np.full((6, H, S, S), 1 / S)
    attention = Attention(subwords, ("<s>",), ("</s>",), weights, weights, weights)
    layer = attention_layer.read_layer(attention, 4, by_word=True)
    assert layer.tokens == TOKENS[3]
    claim, *_ = attention_figures.judge(Heads(run, layers() | {3: layer}))
    assert claim.verdict == "does not hold"
    assert list(claim.figures.values()) == pytest.approx([5 / S] * (H + 1))


def test_runs_that_cannot_be_read_are_named():
    for claim in attention_figures.judge(None, failures=["runs/a: no data"]):
        assert claim.because == "no run can be read: runs/a: no data"


def test_uniform_heads_show_nothing(run):
    for number, claim in judge(run).items():
        assert claim.verdict == "does not hold"
        assert claim.basis == "training" and claim.scale == "small"
        assert claim.runs == (str(run.workdir),) and claim.commits == ("abc",)
        assert claim.command == f"vaswani plot {run.workdir} --figure={number}"
        assert claim.figures


def test_heads_that_look_at_the_complement_are_counted(run):
    one = (3, 2, "making", "difficult", 0.4)
    claim = judge(run, one)[3]
    S = len(TOKENS[3])
    assert claim.verdict == "holds in part"
    assert claim.figures["uniform"] == pytest.approx(2 / S)
    assert claim.figures["head 2"] == pytest.approx(0.4 + 0.6 / (S - 1))
    assert claim.because.startswith("1 of 4 heads give “more” and “difficult” at least")
    assert "head 2 gives most, 0.42" in claim.because
    assert judge(run, one, (3, 4, "making", "more", 0.3))[3].verdict == "holds"
    # The other way round it is not what the paper shows.
    assert judge(run, (3, 2, "difficult", "making", 0.9))[3].verdict == "does not hold"


def test_heads_that_resolve_the_pronoun_are_sharp(run):
    law, application = (4, 3, "its", "Law", 0.9), (4, 1, "its", "application", 0.6)
    claim = judge(run, law, application)[4]
    assert claim.verdict == "holds"
    assert claim.figures == {"head 3": 0.9, "head 1": 0.6}
    assert "head 3 gives “Law” 0.90, head 1 gives “application” 0.60" in claim.because
    other = (4, 1, "its", "but", 0.95)
    assert judge(run, law, other)[4].verdict == "holds in part"
    assert judge(run, other)[4].verdict == "does not hold"
    # Neither the end mark nor the word itself is a word that it means.
    for key in ("</s>", "its"):
        claim = judge(run, (4, 2, "its", key, 0.99))[4]
        assert claim.verdict == "does not hold" and "0.99" not in claim.because


def test_heads_that_differ_do_different_tasks(run):
    tokens = TOKENS[5][:-1]
    before = [
        (5, 1, token, tokens[max(n - 1, 0)], 0.9) for n, token in enumerate(tokens)
    ]
    itself = [(5, 2, token, token, 0.9) for token in tokens]
    claim = judge(run, *before, *itself)[5]
    assert claim.verdict == "holds in part"
    assert claim.because.startswith("heads 1 and 2 differ most, by 0.")
    assert "structure is not measured" in claim.because
    assert claim.figures["distance"] > claim.figures["mean"] > 0


def test_figures_stand_beside_their_verdicts(run):
    text = attention_figures.format_figures(list(judge(run).values()))
    for number in (3, 4, 5):
        assert f"![figure {number}](figure{number}.png)" in text
        assert attention_figures.SHOWN[number] in text
    assert text.count("does not hold") == 3
    assert text.startswith(attention_figures.SCOPE)
    assert "Figure 3 holds if half of the heads do so, in part if any does." in text


def test_the_best_run_of_six_layers_that_reads_english_is_shown(tmp_path):
    find = attention_figures.find_runs
    leave(tmp_path / "no_average", ROWS["base"], bleu=40.0)
    leave_heads(tmp_path / "two_layers", ROWS["C1"], bleu=40.0)
    german = translating(source_locale="de", target_locale="en")
    leave_heads(tmp_path / "german", german, bleu=40.0)
    copies = translating(source="copy", num_train=9, num_valid=9, num_test=9)
    leave_heads(tmp_path / "copies", copies, bleu=40.0)
    leave_heads(tmp_path / "one_head", ROWS["A1"], bleu=40.0)
    leave_heads(tmp_path / "tested", ROWS["base"], split="test", bleu=40.0)
    leave_parser(tmp_path / "trees", parsing_settings())
    (tmp_path / "trees/averaged").mkdir()
    assert find(read(tmp_path)) == []
    leave_heads(tmp_path / "worse", ROWS["base"], bleu=20.0)
    leave_heads(tmp_path / "better", ROWS["base"], bleu=30.0)
    leave_heads(tmp_path / "unfinished", ROWS["base"], bleu=35.0, step=7)
    chrf = {"name": "chrf", "value": 60.0}
    leave_heads(tmp_path / "without_bleu", ROWS["base"], scores=[chrf])
    shown = [run.workdir.name for run in find(read(tmp_path))]
    assert shown == ["better", "worse", "without_bleu", "unfinished"]
    leave_heads(tmp_path / "newer", ROWS["base"], bleu=30.0)
    for name, time in (("better", 1e9), ("newer", 2e9)):
        [file] = (tmp_path / name / "evaluations").iterdir()
        os.utime(file, (time, time))
    assert find(read(tmp_path))[0].workdir.name == "newer"
