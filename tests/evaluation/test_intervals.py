"""Scores of an evaluation are those of validation, with intervals and two more."""

import dataclasses

import numpy as np
import pytest
import sacrebleu

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.evaluation import bleu, intervals, metrics

REFERENCES = [f"Zeile {n}: das Wetter ist heute gut." for n in range(20)]
OUTPUTS = [
    line.replace("heute ", "") if n % 2 else line for n, line in enumerate(REFERENCES)
]


def data(**changes: object) -> config.DataConfig:
    plain = {"data.text_form": "detokenized", "data.target_locale": "de"}
    return settings.small_settings(**plain | changes).data


@pytest.mark.parametrize("form", ["detokenized", "tokenized"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_and_signatures_stay_those_of_validation(
    form: str, lowercase: bool
) -> None:
    settings_of_text = data(
        **{"data.text_form": form, "data.lowercase_scores": lowercase}
    )
    validation = bleu.score_outputs(OUTPUTS, REFERENCES, data=settings_of_text)
    scores = intervals.score_outputs(OUTPUTS, REFERENCES, data=settings_of_text)
    without = [dataclasses.replace(score, interval=None) for score in scores]
    names = {score.name for score in validation}
    assert [score for score in without if score.name in names] == validation
    more = [score.name for score in scores if score.name not in names]
    ending = "_lc" if lowercase else ""
    assert more == ([f"chrf++{ending}", "ter"] if form == "detokenized" else [])
    assert scores[0].interval is not None
    assert all(score.interval is None for score in validation)


def test_the_interval_is_that_of_resampled_lines() -> None:
    """BLEU of lines drawn with NumPy, one resample at a time."""
    outputs, references = OUTPUTS[:9], REFERENCES[:9]
    score, *_ = intervals.score_outputs(outputs, references, data=data())
    draws = np.random.default_rng(12345).choice(9, size=(1000, 9))
    values = sorted(
        sacrebleu.corpus_bleu(
            [outputs[n] for n in lines], [[references[n] for n in lines]], force=True
        ).score
        for lines in draws
    )
    assert score.interval is not None
    assert score.interval.mean == pytest.approx(np.mean(values), rel=1e-5)
    half_width = (values[-26] - values[25]) / 2
    assert score.interval.half_width == pytest.approx(half_width, rel=1e-5)


def test_too_large_texts_go_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "vaswani_jax")
    monkeypatch.setattr(intervals, "MAX_LINES", 19)
    monkeypatch.setattr(intervals, "MAX_TER_WORDS", 100)
    scores = intervals.score_outputs(OUTPUTS, REFERENCES, data=data())
    assert not any(score.interval for score in scores)
    assert "ter" not in {score.name for score in scores}
    lines, words = caplog.messages
    assert lines == "note: over 19 lines, scores have no intervals"
    assert words.startswith("note: no TER, as the references have over 100 words (140)")


@pytest.mark.parametrize(("max_words", "has_ter"), [(139, False), (140, True)])
@pytest.mark.parametrize(
    "outputs",
    [
        [line.rpartition(" ")[0] for line in OUTPUTS],
        [f"{line} und" for line in OUTPUTS],
    ],
    ids=["short", "long"],
)
def test_whether_a_text_has_ter_does_not_depend_on_the_outputs(
    monkeypatch: pytest.MonkeyPatch,
    outputs: list[str],
    max_words: int,
    has_ter: bool,
) -> None:
    monkeypatch.setattr(intervals, "MAX_TER_WORDS", max_words)
    scores = intervals.score_outputs(outputs, REFERENCES, data=data())
    assert ("ter" in {score.name for score in scores}) == has_ter


def test_the_last_line_has_the_intervals() -> None:
    interval = bleu.Interval(48.694, 1.534, metrics.RESAMPLES, "12345")
    scores = [
        bleu.Score("sacrebleu", 48.72, "s:1", interval),
        bleu.Score("paper_bleu", 47.0, "t"),
        bleu.Score("ter", 7.0, "u", bleu.Interval(7.01, 0.2, 1000, "12345")),
    ]
    *_, before, last = bleu.format_scores(scores, ["a"]).split("\n")
    assert before == "ter           7.00  u"
    assert last == (
        "95% of 1,000 resamples (bootstrap, seed 12345): sacrebleu 48.69 ± 1.53, "
        "ter 7.01 ± 0.20"
    )
