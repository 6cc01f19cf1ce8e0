"""The terms of a glossary in lines, against a search of their words."""

import gzip
import pathlib
import re

import hypothesis
import hypothesis.strategies as st
import pytest

from vaswani_jax.inference.glossary import Glossary, read_glossary

WORDS = st.sampled_from(["a", "b", "A", "ab", "a-b", "\u00e9", "x1", "."])
PHRASES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
# Words may touch, and so may a word and punctuation.
LINES = st.lists(st.tuples(WORDS, st.sampled_from(["", " ", "  "]))).map(
    lambda parts: "".join(word + space for word, space in parts)
)


@hypothesis.given(st.dictionaries(PHRASES, PHRASES, max_size=4), LINES)
def test_terms_are_those_that_a_pattern_finds(
    translations: dict[str, str], line: str
) -> None:
    """The independent search is one regular expression, the longest term first."""
    matches = []
    if translations:
        # Of equal lengths, those with capitals are tried first.
        terms = sorted(translations, key=lambda term: (-len(term), term))
        any_term = "|".join(
            f"(?i:{re.escape(term)})" if term == term.lower() else re.escape(term)
            for term in terms
        )
        # A term of punctuation may touch any word.
        edge = r"(?:(?<!\w)|(?!\w))"
        for match in re.finditer(f"{edge}({any_term}){edge}", " ".join(line.split())):
            matches.append(match[1] if match[1] in translations else match[1].lower())
    assert list(Glossary(translations).find_terms(line)) == matches


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Polish the table", ["polish"]),
        ("a polish, a POLISH and the polished", ["polish", "POLISH"]),
        ("the UN, us and U.N.", ["UN", "U.N."]),
        ("the un", []),
        ("New York City in New  York", ["New York City", "New York"]),
        ("New Yorkers", []),
        ("new york", []),
        ("Caf\u00e9, CAFE\u0301 and cafe", ["caf\u00e9", "caf\u00e9"]),
        # The capital of Turkish is no capital of the letter that others write.
        ("\u0130stanbul \u0130s is", ["\u0130stanbul", "is"]),
    ],
)
def test_lower_case_matches_any_capitalisation(line: str, expected: list[str]) -> None:
    terms = ["polish", "POLISH", "UN", "U.N.", "New  York", "New York City", "is"]
    glossary = Glossary(dict.fromkeys([*terms, "cafe\u0301", "\u0130stanbul"], "x"))
    assert list(glossary.find_terms(line)) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("\u79c1\u306f\u6771\u4eac\u306e\u6771", ["\u6771\u4eac", "\u6771"]),
        # What begins first is used.
        ("\u6771\u4eac\u90fd", ["\u6771\u4eac"]),
        ("\u4eac\u90fd", ["\u4eac\u90fd"]),
        ("AbaB", ["ab", "aB"]),
    ],
)
def test_a_language_without_spaces_has_terms_anywhere(
    line: str, expected: list[str]
) -> None:
    terms = ["\u6771", "\u6771\u4eac", "\u4eac\u90fd", "ab", "aB"]
    found = Glossary(dict.fromkeys(terms, "x")).find_terms(line, has_spaces=False)
    assert list(found) == expected


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
        read_glossary(tmp_path / "terms.tsv")
    with pytest.raises(IsADirectoryError, match=r"--glossary: .* is a directory"):
        read_glossary(tmp_path)


def test_empty_and_equal_terms_are_refused() -> None:
    for empty in ({" ": "a"}, {"a": ""}):
        with pytest.raises(ValueError, match="neither may be empty"):
            Glossary(empty)
    with pytest.raises(ValueError, match="the term 'a b' appears twice"):
        Glossary({"a b": "c", "a  b": "c"})
