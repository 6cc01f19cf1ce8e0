"""Metrics give the scores of sacreBLEU's command line, and of multi-bleu."""

import json
import subprocess
import sys

import hypothesis
import pytest
from hypothesis import strategies

from tests import settings
from vaswani_jax.core import config
from vaswani_jax.evaluation import bleu, metrics

REFERENCES = [f"Das ist die Zeile {n}, und sie ist gut." for n in range(30)]
OUTPUTS = [
    line.replace("gut", "schlecht") if n % 3 else line.replace("die Zeile ", "")
    for n, line in enumerate(REFERENCES)
]
PLAIN = {"data.text_form": "detokenized", "data.target_locale": "de"}


def data(**changes: object) -> config.DataConfig:
    return settings.small_settings(**PLAIN | changes).data


@pytest.fixture(scope="module")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return what `sacrebleu --confidence` says of the outputs, by metric."""
    folder = tmp_path_factory.mktemp("lines")
    for name, lines in (("outputs", OUTPUTS), ("references", REFERENCES)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    words = [sys.executable, "-m", "sacrebleu", "references", "-i", "outputs"]
    words += ["--confidence", "-w", "9", "-f", "json", "-m"]
    scores = []
    for metrics_of_call in (
        ["bleu", "chrf", "ter"],
        ["chrf", "--chrf-word-order", "2"],
    ):
        printed = subprocess.run(
            [*words, *metrics_of_call], cwd=folder, capture_output=True, check=True
        )
        read = json.loads(printed.stdout)
        scores += read if isinstance(read, list) else [read]
    return {score["name"]: score for score in scores}


@pytest.mark.parametrize(
    ("name", "label"),
    [("sacrebleu", "BLEU"), ("chrf", "chrF2"), ("chrf++", "chrF2++"), ("ter", "TER")],
)
def test_scores_and_intervals_are_those_of_the_command_line(
    name: str, label: str, command_line: dict[str, dict[str, str]]
) -> None:
    expected = command_line[label]
    found = metrics.find_metrics(REFERENCES, data=data())
    [metric] = [metric for metric in found if metric.name == name]
    score = metric.score(OUTPUTS, REFERENCES, resamples=1000)
    assert score.value == pytest.approx(expected["score"], abs=1e-8)
    assert score.interval is not None and score.interval.half_width > 0
    # The bootstrap adds in float32.
    assert score.interval.mean == pytest.approx(expected["confidence_mean"], rel=1e-6)
    half_width = expected["confidence_var"]
    assert score.interval.half_width == pytest.approx(half_width, rel=1e-6)
    # The signature is that of the score, whatever was resampled.
    signature = expected["signature"]
    for part in ("bs:1000|", "seed:12345|"):
        assert part in signature
        signature = signature.replace(part, "")
    assert score.signature == f"{label}|{signature}"
    assert metric.score(OUTPUTS, REFERENCES, resamples=0).signature == score.signature
    assert metric.lower_is_better == (name == "ter")


def test_resamples_without_any_match_have_the_score_0() -> None:
    """sacreBLEU 2.6.0 itself fails on them."""
    outputs = ["a b c d", *"xyz"]
    [metric, *_] = metrics.find_metrics(outputs, data=data())
    score = metric.score(outputs, ["a b c d", *"uvw"], resamples=50)
    assert score.interval is not None
    assert 0 < score.interval.mean < 100 and score.interval.half_width > 0


def names(references: list[str], **changes: object) -> list[str]:
    found = metrics.find_metrics(references, data=data(**changes))
    return [metric.name for metric in found]


def test_the_form_of_the_text_decides_what_is_counted() -> None:
    lower = {"data.lowercase_scores": True}
    tokenized = {"data.text_form": "tokenized"}
    assert names(REFERENCES, **lower) == ["sacrebleu_lc", "chrf_lc", "chrf++_lc", "ter"]
    assert names(REFERENCES, **tokenized) == ["tokenized_bleu"]
    assert names(REFERENCES, **tokenized, **lower) == ["tokenized_bleu_lc"]
    chinese = ["这只路很绿号码是" * 2] * 2
    assert names(chinese) == ["sacrebleu", "chrf"]
    assert names(chinese, **tokenized) == ["chrf"]


LINES = strategies.lists(
    strategies.tuples(
        *[strategies.text("aAb \u00a0\u2028\x1f\t\x85", max_size=12)] * 2
    ),
    min_size=1,
    max_size=4,
)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(lines=LINES, lowercase=strategies.booleans())
def test_the_bleu_of_tokenized_text_is_multi_bleu(
    lines: list[tuple[str, str]], lowercase: bool
) -> None:
    outputs, references = map(list, zip(*lines, strict=True))
    form = data(**{"data.text_form": "tokenized", "data.lowercase_scores": lowercase})
    [metric] = metrics.find_metrics(references, data=form)
    [expected, *_] = bleu.score_outputs(outputs, references, data=form)
    score = metric.score(outputs, references, resamples=0)
    assert (score.name, score.signature) == (expected.name, expected.signature)
    assert score.value == pytest.approx(expected.value, rel=1e-9)


@pytest.mark.parametrize(
    ("value", "seed"),
    [(None, "12345"), ("7", "7"), ("None", "none"), ("0", "0"), ("-1", None)]
    + [(value, None) for value in ("", "abc", "1.5", "1e3")],
)
def test_the_seed_is_sacrebleus_and_a_wrong_one_is_named(
    value: str | None, seed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    if value is not None:
        monkeypatch.setenv("SACREBLEU_SEED", value)
    [metric, *_] = metrics.find_metrics(REFERENCES, data=data())
    if seed is not None:
        score = metric.score(OUTPUTS[:2], REFERENCES[:2], resamples=2)
        assert score.interval is not None
        assert metrics.read_seed() == score.interval.seed == seed
        return
    with pytest.raises(ValueError):
        metric.score(OUTPUTS[:2], REFERENCES[:2], resamples=2)
    with pytest.raises(
        ValueError,
        match=f"SACREBLEU_SEED must be a whole number from 0, or none .* got {value!r}",
    ):
        metrics.read_seed()
