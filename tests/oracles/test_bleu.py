"""Tokenized BLEU against published scores, tokens against published ones."""

import pathlib

import pytest

from vaswani_jax.evaluation import bleu

SHARED_DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
SCORED_OUTPUTS = SHARED_DATA / "scored_outputs"
MULTI30K = SHARED_DATA / "multi30k_ende"
needs_scored_outputs = pytest.mark.skipif(
    not SCORED_OUTPUTS.is_dir(), reason=f"needs the published outputs, {SCORED_OUTPUTS}"
)
needs_multi30k = pytest.mark.skipif(
    not MULTI30K.is_dir(), reason=f"needs the Multi30k captions, {MULTI30K}"
)
TOKENIZED = {"text_form": "tokenized", "target_language": "en", "lowercase": False}


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
