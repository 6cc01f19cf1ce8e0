"""Tokenized BLEU against the formula, sacreBLEU, real Perl and published scores."""

import math
import pathlib
import shutil
import subprocess

import hypothesis
import pytest
import sacrebleu
from hypothesis import strategies

from tests.evaluation import papineni
from vaswani_jax.evaluation import bleu

SHARED_DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
SCORED_OUTPUTS = SHARED_DATA / "scored_outputs"
MULTI30K = SHARED_DATA / "multi30k_ende"
TOKENIZED = {"text_form": "tokenized", "target_language": "en", "lowercase": False}
needs_scored_outputs = pytest.mark.skipif(
    not SCORED_OUTPUTS.is_dir(), reason=f"needs the published outputs, {SCORED_OUTPUTS}"
)
needs_multi30k = pytest.mark.skipif(
    not MULTI30K.is_dir(), reason=f"needs the Multi30k captions, {MULTI30K}"
)
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


def read_lines(path):
    """The lines of a file that ends in a line feed, split at line feeds alone."""
    text = path.read_bytes().decode()
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.mark.shared
@needs_scored_outputs
@pytest.mark.parametrize(("system", "published"), [("sys1", 22.44), ("sys2", 24.04)])
def test_tokenized_bleu_of_compare_mt_outputs_is_as_published(system, published):
    outputs = read_lines(SCORED_OUTPUTS / f"comparemt_ted_slk-eng.{system}.tok.en")
    references = read_lines(SCORED_OUTPUTS / "comparemt_ted_slk-eng.ref.tok.en")
    (score,) = bleu.corpus_scores(outputs, references, **TOKENIZED)
    assert score.value == pytest.approx(published, abs=0.005)


@pytest.mark.shared
@needs_scored_outputs
def test_tokenized_bleu_of_tensorflow_nmt_output_is_as_published():
    outputs = read_lines(SCORED_OUTPUTS / "tfnmt_newstest2013_deen.hyp.tok.en")
    references = read_lines(SCORED_OUTPUTS / "tfnmt_newstest2013_deen.ref.tok.en")
    (score,) = bleu.corpus_scores(outputs, references, **TOKENIZED)
    assert score.value == pytest.approx(22.58, abs=0.005)
    # Its own script takes each of the 3 empty lines as one empty token.
    assert outputs.count("") == 3
    outputs = [line or "<empty>" for line in outputs]
    (score,) = bleu.corpus_scores(outputs, references, **TOKENIZED)
    assert score.value == pytest.approx(22.5855084573, abs=5e-8)


@pytest.mark.shared
@needs_multi30k
def test_moses_tokenize_equals_the_published_tokens_of_multi30k():
    # German, because upstream also moved the quotes of the English side.
    name = "test_2016_flickr.de"
    lines = [line.lower() for line in read_lines(MULTI30K / "raw" / name)]
    expected = read_lines(MULTI30K / "lc_norm_tok" / name)
    assert bleu.tokenize(lines, "de") == [line.strip() for line in expected]
