"""Of real texts, only the one that is visibly misaligned is called serious."""

import pathlib

import pytest

import vaswani_jax
from tests.text_checks import texts
from vaswani_jax.core import types
from vaswani_jax.text_checks.report import DataReport
from vaswani_jax.text_checks.sample import Pair

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
NUM_PAIRS = 3000

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared"),
]


def read(stem: str, target_locale: str) -> list[Pair]:
    """The last pairs of a text: Tatoeba's, sorted by length, are its longest."""
    sides = [
        (SHARED / f"{stem}.{locale}").read_text("utf-8").removesuffix("\n").split("\n")
        for locale in ("en", target_locale)
    ]
    return list(zip(*sides, strict=True))[-NUM_PAIRS:]


def check(directory: pathlib.Path, pairs: list[Pair], **changes: str) -> DataReport:
    pytest.importorskip("py3langid")
    texts.write(directory, {"train": pairs})
    names = [f"data.{s}_{side}" for s in ("valid", "test") for side in types.SIDES]
    values = {"data.text_directory": str(directory), "data.source_locale": "en"}
    values |= {f"data.{key}": value for key, value in changes.items()}
    return vaswani_jax.check_data(
        vaswani_jax.load_config("own_text", dict.fromkeys(names, "") | values)
    )


@pytest.mark.parametrize(
    ("stem", "target_locale", "serious"),
    [
        ("multi30k_ende/raw/train", "de", set()),
        ("tatoeba_enfr/train", "fr", set()),
        ("wmt_samples/newstest2012_3000_tok_ende", "de", set()),
        ("wmt_samples/opennmt_10k_tok_ende", "de", set()),
        ("wmt_samples/zoph_10k_lctok_enfr", "fr", set()),
        ("wmt_samples/stanford_10k_tok_ende", "de", {"misaligned"}),
    ],
)
def test_only_misaligned_text_is_serious(
    stem: str, target_locale: str, serious: set[str], tmp_path: pathlib.Path
) -> None:
    report = check(
        tmp_path,
        read(stem, target_locale),
        target_locale=target_locale,
        text_form="tokenized" if "tok" in stem else "detokenized",
    )
    kinds = {f.kind for f in report.findings if f.severity == "serious"}
    assert kinds == serious, report.describe()
    # Minor are single broken characters and, where lines are wrong, their lengths.
    minor = {f.kind for f in report.findings} - serious
    assert minor <= {"broken_encoding", "control_characters", "entities"} | (
        {"length_ratio"} if serious else set()
    ), report.describe()


def test_a_tenth_of_the_lines_in_another_language_is_found(
    tmp_path: pathlib.Path,
) -> None:
    pairs = read("multi30k_ende/raw/train", "de")
    french = read("tatoeba_enfr/train", "fr")
    pairs[::10] = [
        (pair[0], other[1])
        for pair, other in zip(pairs[::10], french[::10], strict=True)
    ]
    report = check(tmp_path, pairs, target_locale="de")
    [finding] = [f for f in report.findings if f.kind == "language"]
    assert finding.severity == "minor" and 0.08 < finding.share < 0.105
    assert str(finding.examples[0]).startswith(f"line 1: {french[0][1][:60]}")
