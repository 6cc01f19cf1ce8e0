"""Characters that should not be there, and forms of text."""

import dataclasses
import unicodedata

import pytest

from tests import settings
from tests.text_checks import texts
from vaswani_jax.core import config
from vaswani_jax.text_checks import characters
from vaswani_jax.text_checks.findings import Finding
from vaswani_jax.text_checks.sample import Pair

DATA = settings.small_settings(**{"data.normalization": "identity"}).data
CLEAN = texts.sentences(100)


def faults(pairs: list[Pair], data: config.DataConfig = DATA) -> list[Finding]:
    return characters.find_faults(texts.blocks(pairs), data=data, split="train")


def with_target(line: str) -> list[Pair]:
    """Clean text, but line 8."""
    return [*CLEAN[:7], (CLEAN[7][0], line), *CLEAN[8:]]


def test_clean_text_has_no_fault() -> None:
    assert faults(CLEAN) == []
    assert faults(texts.clean("de")["train"]) == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("broken_encoding", "Anna läuft im MÃ¤rz."),
        ("broken_encoding", "Anna l\ufffduft im Mai."),
        ("control_characters", "Anna l\x07äuft."),
        ("entities", "Anna &amp; Peter"),
        ("subword_marks", "An@@ na läuft"),
        ("decomposed", unicodedata.normalize("NFD", "Anna läuft")),
    ],
)
def test_each_fault_is_found_in_its_line(kind: str, line: str) -> None:
    [finding] = faults(with_target(line))
    assert (finding.kind, finding.severity) == (kind, "minor")
    assert finding.share == 0.01 and "target lines" in finding.message
    assert finding.remedies and str(finding.examples[0]).startswith("line 8: ")


def test_what_settings_expect_is_no_fault() -> None:
    tokenized = dataclasses.replace(DATA, text_form="tokenized")
    assert faults(with_target("Anna &amp; Peter"), tokenized) == []
    composing = dataclasses.replace(DATA, normalization="nmt_nfkc")
    line = unicodedata.normalize("NFD", "Anna läuft")
    assert faults(with_target(line), composing) == []


def test_characters_and_scripts_are_counted() -> None:
    measures = characters.measure(texts.blocks([("ab c!", "aя"), ("", "Я1")]))
    assert measures["source"] == {"characters": 5, "scripts": {"Latn": 1.0}}
    assert measures["target"]["scripts"] == {
        "Cyrl": pytest.approx(2 / 3, abs=1e-6),
        "Latn": pytest.approx(1 / 3, abs=1e-6),
    }


def tokenize(pairs: list[Pair]) -> list[Pair]:
    return [(s.replace(".", " ."), t.replace(".", " .")) for s, t in pairs]


def lowercase(pairs: list[Pair]) -> list[Pair]:
    return [(s.lower(), t.lower()) for s, t in pairs]


def forms(pairs: list[Pair]) -> list[characters.Forms]:
    return characters.forms(texts.blocks(pairs))


@pytest.mark.parametrize("form", ["tokenized", "detokenized"])
def test_a_text_of_another_form_is_found(form: str) -> None:
    data = dataclasses.replace(DATA, text_form=form)
    assert bool(characters.find_form(forms(CLEAN), data=data)) == (form == "tokenized")
    found = characters.find_form(forms(tokenize(CLEAN)), data=data)
    assert bool(found) == (form == "detokenized")
    for finding in found:
        assert finding.remedies == ["--config.data.text_form=tokenized"]


def test_segmented_chinese_has_another_form_than_raw_chinese() -> None:
    raw = [("a line", f"我喜欢第{n}个苹果，也喜欢梨。") for n in range(60)]
    segmented = [
        ("a line", f"我 喜欢 第 {n} 个 苹果 ， 也 喜欢 梨 。") for n in range(60)
    ]
    data = dataclasses.replace(DATA, text_form="detokenized")
    assert characters.find_form(forms(raw), data=data) == []
    assert len(characters.find_form(forms(segmented), data=data)) == 1
    [finding] = characters.find_unlike_forms(forms(segmented), forms(raw), split="test")
    assert finding.severity == "serious" and "target lines" in finding.message


def test_held_out_text_of_another_form_is_serious() -> None:
    train, held_out = CLEAN[:60], CLEAN[40:]

    def found(trained: list[Pair], other: list[Pair]) -> list[str]:
        return [
            finding.message
            for finding in characters.find_unlike_forms(
                forms(trained), forms(other), split="test"
            )
            if finding.severity == "serious"
        ]

    assert found(train, held_out) == []
    [source, _] = found(train, lowercase(held_out))
    assert source == (
        "the source lines of the test text are lower-cased, those of the training text "
        "are not"
    )
    assert (
        "target lines of the training text are tokenized"
        in found(tokenize(train), held_out)[1]
    )
    assert len(found(tokenize(lowercase(train)), held_out)) == 4


def test_names_in_another_script_give_a_language_no_case() -> None:
    words = [f"WTO 在 {number} 年成立了一个新的委员会" for number in range(50)]
    [_, chinese] = forms([("a line", line) for line in words])
    assert chinese.capitals is None
    [_, georgian] = forms([("a line", "ეს არის კარგი წიგნი.")] * 50)
    assert georgian.capitals is None
    [_, german] = forms([("a line", "Der WTO-Rat tagt.")] * 50)
    assert german.capitals == 1.0
