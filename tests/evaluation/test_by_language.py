"""Each target language has scores of its own, and the mean counts each once."""

import pytest
import sacrebleu

from tests import settings
from vaswani_jax.core import config, languages
from vaswani_jax.evaluation import bleu, by_language

# Of French there are twice as many lines, and all are wrong in one word of five.
FRENCH = [f"<2fr> line {n}" for n in range(8)]
GERMAN = [f"<2de> line {n}" for n in range(4)]
FRENCH_REFERENCES = [f"la ligne numéro {n}, bien" for n in range(8)]
GERMAN_REFERENCES = [f"die Zeile Nr. {n}, gut" for n in range(4)]
# German and French lines take turns.
ORDER = [8, 0, 1, 9, 2, 3, 10, 4, 5, 11, 6, 7]


def data(target_locale: str) -> config.DataConfig:
    changes = settings.TWO_TARGETS | {"data.target_locale": target_locale}
    return settings.small_settings(**changes).data


def mixed(french: list[str], german: list[str]) -> list[str]:
    lines = [*french, *german]
    return [lines[index] for index in ORDER]


SOURCE = mixed(FRENCH, GERMAN)
REFERENCES = mixed(FRENCH_REFERENCES, GERMAN_REFERENCES)
WRONG = [line.replace("bien", "mal") for line in FRENCH_REFERENCES]
OUTPUTS = mixed(WRONG, GERMAN_REFERENCES)


def test_each_language_is_scored_on_its_own_lines() -> None:
    scores = by_language.scores_by_locale(
        SOURCE, OUTPUTS, REFERENCES, data=data("fr,de")
    )
    expected = sacrebleu.corpus_bleu(WRONG, [FRENCH_REFERENCES]).score
    assert 0 < expected < 99
    assert list(scores) == ["fr", "de"]
    assert scores["fr"][0].value == pytest.approx(expected, rel=1e-9)
    assert scores["de"][0].value == pytest.approx(100)
    assert scores["de"] == bleu.score_outputs(
        GERMAN_REFERENCES, GERMAN_REFERENCES, data=data("de")
    )


def test_the_main_score_is_the_mean_over_languages_not_over_lines() -> None:
    main, *others = by_language.score_outputs(
        SOURCE, OUTPUTS, REFERENCES, data=data("de,fr")
    )
    values = {score.name: score.value for score in others}
    assert main.name == "mean"
    assert main.signature == "mean|of:sacrebleu[de],sacrebleu[fr]"
    expected = (values["sacrebleu[de]"] + values["sacrebleu[fr]"]) / 2
    assert main.value == pytest.approx(expected, rel=1e-12)
    # Compounds are split in German alone, and both languages have their tokenisers.
    assert "paper_bleu_split[de]" in values and "paper_bleu_split[fr]" not in values
    moses = {s.name: s.signature for s in others if s.name.startswith("paper_bleu[")}
    assert "moses-de-" in moses["paper_bleu[de]"]
    assert "moses-fr-" in moses["paper_bleu[fr]"]


def test_one_target_language_has_the_scores_of_the_whole_text() -> None:
    scores = by_language.score_outputs(SOURCE, OUTPUTS, REFERENCES, data=data("fr"))
    assert scores == bleu.score_outputs(OUTPUTS, REFERENCES, data=data("fr"))


def test_a_language_without_lines_has_no_scores() -> None:
    main, *others = by_language.score_outputs(
        FRENCH, WRONG, FRENCH_REFERENCES, data=data("de,fr")
    )
    assert main.value == others[0].value
    assert all(score.name.endswith("[fr]") for score in others)


def test_a_line_without_a_tag_is_refused() -> None:
    source = [*SOURCE[:2], "line", *SOURCE[3:]]
    with pytest.raises(ValueError, match=r"^line 3 must begin with a tag"):
        by_language.score_outputs(source, OUTPUTS, REFERENCES, data=data("de,fr"))


def test_lines_in_no_score_are_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "vaswani_jax")
    by_language.explain_tokens(SOURCE, REFERENCES, data=data("fr,de"))
    assert "in no score" not in caplog.text
    by_language.explain_tokens(
        [*SOURCE, "", " "], [*REFERENCES, "x", "y"], data=data("fr,de")
    )
    assert "note: empty lines, without a tag, are in no score: 2" in caplog.messages


def test_what_bleu_counts_is_told_for_each_language(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "vaswani_jax")
    source = ["<2de> one", "<2ja> one", "<2fr> two"]
    references = ["eins", "一つ", "二つ"]
    counts = {"data.num_valid": 3, "data.num_test": 3}
    several = {"data.source": "cldr", "data.target_locale": "de,ja,fr"}
    changes = several | {"data.user_symbols": "<2de>,<2ja>,<2fr>"} | counts
    data_of_three = settings.small_settings(**changes).data
    by_language.explain_tokens(source, references, data=data_of_three)
    japanese, french = caplog.messages
    assert "config.data.target_locale=ja has tok:char" in japanese
    assert "1 of 1 references have no spaces, but" in french
    assert "config.data.target_locale=fr is a language with spaces" in french
    assert (
        languages.bleu_tokenizers(source, references, data_of_three) == "13a,char,char"
    )
    assert languages.recorded_tokenizers(data_of_three) == "13a,char,13a"
