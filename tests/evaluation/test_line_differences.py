"""The lines that differ most, and the words in which they differ."""

import hypothesis
import numpy as np
import pytest
import sacrebleu
from hypothesis import strategies

from vaswani_jax.evaluation import line_differences
from vaswani_jax.evaluation.line_tables import Lines

REFERENCES = ["der Hund bellt", "die Katze schläft", "das Haus steht", "ja"]
FIRST = ["der Hund bellt", "die Katze", "ein Haus", "ja"]
SECOND = ["ein Tier", "die Katze schläft", "das Haus", "ja"]
LINES = Lines(["s1", "s2", "s3", "s4"], REFERENCES, [FIRST, SECOND])


def pair(num_lines: int) -> line_differences.PairOfSystems:
    scores = [
        line_differences.line_scores(outputs, REFERENCES, lowercase=False)
        for outputs in LINES.systems
    ]
    return line_differences.compare_pair(
        LINES, scores, first=0, second=1, num_lines=num_lines
    )


def test_scores_of_lines_are_sacrebleu_s_chrf() -> None:
    expected = [
        sacrebleu.sentence_chrf(output, [reference]).score
        for output, reference in zip(FIRST, REFERENCES, strict=True)
    ]
    scores = line_differences.line_scores(FIRST, REFERENCES, lowercase=False)
    assert scores == pytest.approx(expected)


def test_the_largest_differences_come_first_on_either_side() -> None:
    compared = pair(5)
    counts = (compared.num_first_better, compared.num_second_better, compared.num_equal)
    assert counts == (1, 2, 1)
    [first] = compared.first_better
    assert (first.line, first.source, first.reference) == (1, "s1", REFERENCES[0])
    assert first.first == pytest.approx(100) and first.second < 50
    gains = [line.second - line.first for line in compared.second_better]
    assert gains == sorted(gains, reverse=True) and min(gains) > 0
    assert {line.line for line in compared.second_better} == {2, 3}
    assert len(pair(1).second_better) == 1 and pair(0).first_better == []


def test_words_of_one_output_alone_are_told() -> None:
    [line] = pair(5).first_better
    assert [(span.side, span.text) for span in line.spans] == [
        ("first", "der Hund bellt"),
        ("second", "ein Tier"),
    ]
    assert [span.text for span in line.output("second")] == ["ein Tier"]


WORDS = strategies.lists(strategies.sampled_from("abc"), max_size=8).map(" ".join)


@hypothesis.given(WORDS, WORDS)
def test_the_pieces_give_both_outputs_back(first: str, second: str) -> None:
    spans = line_differences.word_difference(first, second)
    for side, output in (("first", first), ("second", second)):
        texts = [span.text for span in spans if span.side in ("both", side)]
        assert " ".join(texts) == output


@pytest.mark.parametrize(
    ("first", "second", "marked"),
    [
        ("他很高兴。", "他很开心。", "他很[-高兴-]{+开心+}。"),
        ("很好", "他很好", "{+他+}很好"),
        ("2007年", "在2007年", "{+在+}2007年"),
        ("I like 北京", "I love 北京", "I [-like-] {+love+} 北京"),
        ("天气 好", "天气好", "天气 好"),
        ("ฉันชื่อดี", "ฉันชื่นดี", "ฉันชื่[-อ-]{+น+}ดี"),
        ("ที", "ทิ", "[-ที-]{+ทิ+}"),
        ("サーバ", "サーバー", "サーバ{+ー+}"),
        ("한국 사람", "한국인 사람", "[-한국-] {+한국인+} 사람"),
    ],
)
def test_letters_of_text_without_spaces_are_told_apart(
    first: str, second: str, marked: str
) -> None:
    shown = ""
    marks = {"both": ("", ""), "first": ("[-", "-]"), "second": ("{+", "+}")}
    for span in line_differences.word_difference(first, second):
        space = " " if shown and span.space else ""
        shown += space + span.text.join(marks[span.side])
    assert shown == marked


LINES_WITHOUT_SPACES = strategies.text("我们aน้ 。 ", max_size=8)


@hypothesis.given(LINES_WITHOUT_SPACES, LINES_WITHOUT_SPACES)
def test_the_pieces_have_the_white_space_of_either_output(
    first: str, second: str
) -> None:
    spans = line_differences.word_difference(first, second)
    difference = line_differences.LineDifference(1, "", "", 0.0, 0.0, spans)
    sides: dict[line_differences.Side, str] = {"first": first, "second": second}
    for side, output in sides.items():
        text = ""
        for span in difference.output(side):
            text += (" " if text and span.has_space(side) else "") + span.text
        assert text == " ".join(output.split())


def test_of_several_seeds_the_output_nearest_to_their_mean_stands_for_them() -> None:
    references = ["ein Hund geht", "das Haus"]
    runs = [
        ["ein Hund geht", "das Haus"],
        ["ein Hund", "das"],
        ["nichts", "das Haus"],
    ]
    typical = line_differences.choose_typical_outputs(runs, references, lowercase=False)
    assert typical.outputs == ["ein Hund", "das Haus"]
    by_run = [
        line_differences.line_scores(run, references, lowercase=False) for run in runs
    ]
    assert typical.scores == pytest.approx(np.mean(by_run, axis=0))
    single = line_differences.choose_typical_outputs(
        runs[2:], references, lowercase=False
    )
    assert (single.outputs, single.scores) == (runs[2], by_run[2])
