"""The terms of a glossary in lines, against a search of their words."""

import gzip
import pathlib
import re

import hypothesis
import hypothesis.strategies as st
import pytest

from vaswani_jax.inference.glossary import Glossary, read_glossary

WORDS = st.sampled_from(["a", "b", "A", "ab", "a-b", "\u00e9", "e\u0301", "x1", "."])
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@hypothesis.given(
    st.dictionaries(PHRASES, PHRASES, max_size=4), st.lists(WORDS).map("  ".join)
)
def test_terms_are_those_that_a_pattern_finds(
    translations: dict[str, str], line: str
) -> None:
    """The independent search is one regular expression, the longest term first."""
    joined = r"[\w\u0301]"
    matches = []
    if translations:
        terms = sorted(translations, key=len, reverse=True)
        any_term = "|".join(
            f"(?i:{re.escape(term)})" if term == term.lower() else re.escape(term)
            for term in terms
        )
        # A term of punctuation may touch any word.
        edge = rf"(?:(?<!{joined})|(?!{joined}))"
        for match in re.finditer(f"{edge}({any_term}){edge}", " ".join(line.split())):
            term = match[1] if match[1] in translations else match[1].lower()
            matches.append(translations[term])
    assert list(Glossary(translations).find(line)) == matches


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Polish the table", ["polieren"]),
        ("a polish, a POLISH and the polished", ["polieren", "POLIEREN"]),
        ("the UN, us and U.N.", ["VN", "V.N."]),
        ("the un", []),
        ("New York City is in New  York", ["Stadt", "NY"]),
        ("New Yorkers", []),
        ("new york", []),
    ],
)
def test_lower_case_stands_for_any(line: str, expected: list[str]) -> None:
    glossary = Glossary(
        {
            "polish": "polieren",
            "POLISH": "POLIEREN",
            "UN": "VN",
            "U.N.": "V.N.",
            "New  York": "NY",
            "New York City": " Stadt ",
        }
    )
    assert list(glossary.find(line)) == expected


def test_a_language_without_spaces_has_terms_anywhere() -> None:
    glossary = Glossary({"\u6771\u4eac": "Tokio", "\u6771": "Osten"})
    line = "\u79c1\u306f\u6771\u4eac\u306e\u6771"
    assert list(glossary.find(line, has_spaces=False)) == ["Tokio", "Osten"]


def test_a_file_has_a_term_a_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "terms.tsv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfa b\tc\r\n\n d  e \t f\na b\tc\n"))
    assert dict(read_glossary(path)) == {"a b": "c", "d e": "f"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc d\n", "line 2: 'c d' must be a term, a tab and its translation"),
        ("a\tb\tc\n", "line 1: 'a.tb.tc' must be"),
        ("a\t \n", "line 1: .* must be a term"),
        ("a\tb\n\na \tc\n", "line 3: 'a' is 'b' in line 1: keep one"),
        ("\n", "has no term: leave it out"),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: pathlib.Path, text: str, message: str
) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"--glossary={path}.* {message}"):
        read_glossary(path)


def test_a_file_must_exist(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="--glossary: no file"):
        read_glossary(tmp_path)


def test_empty_and_equal_terms_are_refused() -> None:
    for empty in ({" ": "a"}, {"a": ""}):
        with pytest.raises(ValueError, match="neither may be empty"):
            Glossary(empty)
    with pytest.raises(ValueError, match="'a b' is there twice"):
        Glossary({"a b": "c", "a  b": "c"})
