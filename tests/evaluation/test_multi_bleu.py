"""The paper's BLEU equals its formula, sacreBLEU, and Perl where that is there."""

import math
import shutil
import subprocess

import hypothesis
import pytest
import sacrebleu
from hypothesis import strategies

from tests.evaluation import papineni
from vaswani_jax.evaluation import bleu

needs_perl = pytest.mark.skipif(
    shutil.which("perl") is None, reason="needs perl on the path"
)
# Few words, so that n-grams repeat and the clipping of counts matters.
words = strategies.sampled_from(["a", "b", "c", "A", "ü", "no\u00a0break", "\u2028"])
spaces = strategies.sampled_from([" ", "  ", "\t", "\r", "\x0b", "\x0c"])
tokenized_lines = strategies.lists(strategies.tuples(words, spaces), max_size=9).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)
corpora = strategies.lists(
    strategies.tuples(tokenized_lines, tokenized_lines), min_size=1, max_size=4
)


@hypothesis.given(corpus=corpora)
@hypothesis.settings(max_examples=300, deadline=None)
def test_multi_bleu_equals_the_formula(corpus):
    outputs, references = zip(*corpus, strict=True)
    expected = papineni.bleu_from_the_formula(outputs, references)
    hypothesis.target(expected)
    assert bleu.multi_bleu(outputs, references) == pytest.approx(expected, rel=1e-12)


@hypothesis.given(corpus=corpora)
@hypothesis.settings(deadline=None)
def test_multi_bleu_equals_sacrebleu_where_all_whitespace_is_ascii(corpus):
    corpus = [[side.replace("\u00a0", "_") for side in pair] for pair in corpus]
    corpus = [[side.replace("\u2028", "x") for side in pair] for pair in corpus]
    outputs, references = zip(*corpus, strict=True)
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    expected = metric.corpus_score(outputs, [references]).score
    hypothesis.target(expected)
    assert bleu.multi_bleu(outputs, references) == pytest.approx(
        expected, rel=1e-9, abs=1e-99
    )


@pytest.mark.parametrize(
    ("outputs", "references", "expected"),
    [
        (["a b c d"], ["a b c d"], 100.0),
        (["a b c d"], ["a b c d e"], 100 * math.exp(-1 / 4)),
        (["a b c d e"], ["a b c d"], 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25),
        (["a b c x"], ["a b c d"], 0.0),
        (["a b c"], ["a b c"], 0.0),
        ([""], [""], 0.0),
        ([""], ["a b c d"], 0.0),
        (["a b c d", "x"], ["a b c d", "y"], 100 * (4 / 5) ** 0.25),
        (["a a a a a"], ["a a a a b"], 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25),
    ],
    ids=[
        "equal",
        "brevity penalty",
        "longer output has no penalty",
        "no smoothing",
        "no 4-gram",
        "both empty",
        "output empty",
        "counts are added over the corpus",
        "counts are clipped",
    ],
)
def test_multi_bleu_of_small_corpora(outputs, references, expected):
    assert bleu.multi_bleu(outputs, references) == pytest.approx(expected, rel=1e-12)


def test_multi_bleu_takes_no_break_space_as_part_of_a_token():
    assert bleu.multi_bleu(["a b\u00a0c d"], ["a b\u00a0c d"]) == 0.0
    assert bleu.multi_bleu(["a b\u00a0c d e"], ["a b\u00a0c d e"]) == 100.0


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ""),
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc"),
        ("a-ü-c", "a ##AT##-##AT## ü ##AT##-##AT## c"),
        ("- a- -b", "- a- -b"),
        ("x--y", "x ##AT##-##AT## -y"),
        ("---", "- ##AT##-##AT## -"),
        ("1990\u20132000", "1990\u20132000"),
        ("&quot;-a", "&quot; ##AT##-##AT## a"),
    ],
)
def test_split_compounds_of_known_lines(line, expected):
    assert bleu.split_compounds(line) == expected


@needs_perl
@hypothesis.given(
    lines=strategies.lists(
        strategies.text(alphabet="-aü€ \t\r\u00a0\u2028\x1c\x85", max_size=12),
        min_size=1,
        max_size=50,
    )
)
@hypothesis.settings(max_examples=60, deadline=None)
def test_split_compounds_equals_perl(lines):
    perl = subprocess.run(
        ["perl", "-ple", r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"],
        input="".join(f"{line}\n" for line in lines).encode(),
        env={"LC_ALL": "C"},
        executable=shutil.which("perl"),
        capture_output=True,
        timeout=300,
        check=True,
    )
    expected = perl.stdout.decode()
    assert "".join(f"{bleu.split_compounds(line)}\n" for line in lines) == expected
