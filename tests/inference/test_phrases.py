"""Translations with terms and placeholders, against a search of their text."""

import dataclasses
import re
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from tests import interpreter, settings
from tests.data import small_vocabularies
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import parallel
from vaswani_jax.data.marian_subwords import MarianSubwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import phrases
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.glossary import Glossary
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.inference.phrases import Phrase, PhraseFinder
from vaswani_jax.inference.results import Hypothesis
from vaswani_jax.inference.translator import Translator

LINES = ["a b c", "", "d e f g", "h a a", "hello world", "b"]


def make_translator(*, seeds: tuple[int, ...] = (1,), **overrides: Any) -> Translator:
    vocabulary = settings.letters_vocabulary()
    small = settings.small_settings(**{"search.max_extra_tokens": 14, **overrides})
    members = [
        Member(
            small.model,
            Checkpoint(
                0,
                {
                    "params": settings.random_params(
                        small.model, vocab_size=vocabulary.size, seed=seed
                    )
                },
                {},
            ),
        )
        for seed in seeds
    ]
    return Translator(small, vocabulary, members=members)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator()


def whole_words(text: str, phrase: str) -> int:
    after = r"(?!\w)" if phrase[-1].isalnum() else ""
    return len(re.findall(rf"(?<!\w)(?={re.escape(phrase)}{after})", text))


def phrase_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings, without those of outputs that a random model does not end."""
    return [message for message in caplog.messages if "without an end" not in message]


def finder(**changes: Any) -> PhraseFinder:
    small = settings.small_settings(
        **{key: value for key, value in changes.items() if "." in key}
    )
    return PhraseFinder(
        vocabulary=settings.letters_vocabulary(),
        settings=small,
        models=(small.model,),
        placeholders=changes.get("placeholders"),
        glossary=changes.get("glossary"),
    )


TERMS = st.sampled_from(["a", "h", "hello", "world again", "b c", "again", "d.", "x"])


@pytest.fixture(scope="module")
def free(translator: Translator) -> list[list[Hypothesis]]:
    """The hypotheses of the lines without terms."""
    return translator.hypotheses(LINES, n_best=2)


@hypothesis.settings(max_examples=12)
@hypothesis.given(
    st.lists(st.lists(TERMS, max_size=3), min_size=len(LINES), max_size=len(LINES))
)
def test_every_term_is_in_the_translation_and_other_lines_stay(
    translator: Translator,
    free: list[list[Hypothesis]],
    constraints: list[list[str]],
) -> None:
    found = translator.hypotheses(LINES, n_best=2, constraints=constraints)
    for line, terms, before, after in zip(LINES, constraints, free, found, strict=True):
        if not line:
            # An empty line stays empty, and is named.
            assert after[0].text == ""
            assert set(after[0].missing_phrases) == set(terms)
        elif not terms:
            assert after == before
        for hypothesis_ in after if line else []:
            assert hypothesis_.missing_phrases == ()
            for term in terms:
                assert whole_words(hypothesis_.text, term) >= terms.count(term)


def test_a_line_with_terms_does_not_depend_on_the_other_lines(
    translator: Translator,
) -> None:
    constraints = [["hello", "again"], [], ["b c"], [], ["a", "a"], ["world hello a"]]
    together = translator.hypotheses(LINES, constraints=constraints)
    for line, terms, [expected] in zip(LINES, constraints, together, strict=True):
        [[alone]] = translator.hypotheses([line], constraints=[terms])
        assert alone.text == expected.text
        assert alone.score == pytest.approx(expected.score, rel=1e-4)


def test_eight_devices_find_what_one_finds(translator: Translator) -> None:
    constraints = [["hello"], [], ["b c", "a"], [], ["a"], ["again"]]
    line_phrases = translator.phrase_finder(None).find(LINES, constraints, first_line=1)
    assert parallel.num_devices() == 8
    spread = translator.hypotheses(LINES, constraints=constraints)
    # The batches that one device alone would search.
    one = LineTranslator(
        translator.config, translator.vocabulary, batch_for_each_device=True
    ).hypotheses(translator.replicated_params, LINES, phrases=line_phrases)
    assert [n_best[0].text for n_best in one] == [n_best[0].text for n_best in spread]


def test_models_together_write_the_terms_after_a_prefix() -> None:
    several = make_translator(seeds=(1, 2), **{"search.no_repeat_ngram": 1})
    [[best], [free]] = several.hypotheses(
        ["a b c", "d e"],
        prefixes=["b c", "b"],
        constraints=[["b", "hello", "hello"], []],
    )
    assert best.text.startswith("b c")
    assert whole_words(best.text, "hello") == 2
    assert free.text.startswith("b")


def test_placeholders_are_kept_as_often_as_the_source_has_them(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["a {b} c {b}", "a({c})d", "b", "{e} {é}"]
    found = translator.hypotheses(
        lines, placeholders=r"\{\w+\}", constraints=[["{b}"], [], [], []]
    )
    texts = [n_best[0].text for n_best in found]
    assert texts[0].count("{b}") == 2
    assert "{c}" in texts[1]
    assert texts[2] == translator.translate(["b"])[0]
    assert not phrase_warnings(caplog)
    # The second copy of a listed placeholder is a match alone.
    [listed, *_] = translator.phrase_finder(r"\{\w+\}").find(
        lines[:1], [["{b}"]], first_line=1
    )
    assert [phrase.text for phrase in listed] == ["{b}", "{b}"]


def test_a_placeholder_touches_its_neighbours_as_in_the_source() -> None:
    [found] = finder(placeholders=r"\{\w\}|[A-Z]\d").find(
        ["{a} x{b} ({c}) D1 D2E xF3"], None, first_line=1
    )
    assert [(each.text, each.starts_word, each.ends_word) for each in found] == [
        ("{a}", True, False),
        ("{b}", False, False),
        ("{c}", True, False),
        ("D1", True, True),
        ("D2", True, False),
        ("F3", False, True),
    ]


def test_a_placeholder_beside_letters_without_spaces_is_a_word_of_its_own() -> None:
    chinese = finder(placeholders=r"%\d", **{"data.source_locale": "zh"})
    [found] = chinese.find(["请按%1键 x%2y"], None, first_line=1)
    assert [(each.text, each.starts_word, each.ends_word) for each in found] == [
        ("%1", True, True),
        ("%2", False, False),
    ]


def test_the_spaces_around_a_placeholder_do_not_count() -> None:
    [found] = finder(placeholders=r"\s*\{\w\}(\s*\{\w\})?").find(
        ["x  {a}   {b} y"], None, first_line=1
    )
    assert [(each.text, each.starts_word) for each in found] == [("{a} {b}", True)]
    assert found[0].ids


def test_a_term_and_a_placeholder_of_one_text_are_both_needed() -> None:
    needed = [Phrase("5"), Phrase("5", starts_word=False, ends_word=False)]
    assert phrases.find_missing("55 5", needed) == ()
    assert phrases.find_missing("55", needed) == ("5",)
    assert phrases.find_missing("5", needed) == ("5",)


def test_a_tag_is_no_placeholder() -> None:
    tagged = finder(placeholders="<[^>]*>", **settings.TAGGED)
    [found] = tagged.find(["<x> <a>"], None, first_line=1)
    assert [each.text for each in found] == ["<a>"]
    tagged = finder(placeholders="<[^>]*>", **settings.TWO_TARGETS)
    [found] = tagged.find(["<2de><a> <b>"], None, first_line=1)
    assert [(each.text, each.starts_word) for each in found] == [
        ("<a>", True),
        ("<b>", True),
    ]


def test_the_terms_of_a_glossary_are_written_as_often_as_the_source_has_them(
    translator: Translator, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["a b, A b", "b", "ab c", "c"]
    found = translator.hypotheses(
        lines,
        glossary={"a b": "hello", "c": "b c"},
        constraints=[["again", "hello"], [], [], ["b c", "b c"]],
    )
    texts = [n_best[0].text for n_best in found]
    assert [whole_words(text, "hello") for text in texts][::2] == [2, 0]
    assert whole_words(texts[0], "again") == 1
    assert texts[1] == translator.translate(["b"])[0]
    assert whole_words(texts[2], "b c") == 1 and whole_words(texts[3], "b c") == 2
    assert not phrase_warnings(caplog)
    # A line's terms count as listed ones do.
    assert texts[2] == translator.translate(["ab c"], constraints=[["b c"]])[0]


def test_what_is_listed_and_in_the_glossary_is_needed_once() -> None:
    both = finder(glossary=Glossary({"a": "x y", "b": "1"}), placeholders=r"\d")
    [listed, free] = both.find(["a b 1", "a a b 1"], [["x y"], []], first_line=1)
    assert [phrase.text for phrase in listed] == ["x y", "1"]
    assert [phrase.text for phrase in free] == ["x y", "x y", "1"]


def test_terms_that_do_not_fit_are_checked_but_not_searched() -> None:
    glossary = Glossary({"a": "a b c d", "b": "c"})
    short = {"search.max_extra_tokens": 2, "glossary": glossary}
    [long, fitting] = finder(**short).find(["a", "b"], None, first_line=1)
    assert [phrase.text for phrase in long] == ["a b c d"] and not long[0].ids
    assert fitting[0].ids
    pieces = {"search.max_source_tokens": 4, "glossary": glossary}
    [found] = finder(**pieces).find(["a b c d"], None, first_line=1)
    assert [phrase.text for phrase in found] == ["a b c d", "c"]
    assert not any(phrase.ids for phrase in found)


def test_a_term_that_a_line_has_thousands_of_times_takes_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal phrases are encoded once, and counted once."""
    many = finder(glossary=Glossary({",": ",", "b": "c"}))
    [listed] = many.find([", b " * 4000], None, first_line=1)
    assert len(listed) == 8000
    counted = []
    count = Phrase.count
    monkeypatch.setattr(
        Phrase, "count", lambda self, text: counted.append(self) or count(self, text)
    )
    assert phrases.find_missing(", c", listed) == (",", "c")
    assert len(counted) == 2


def test_the_tag_of_a_language_is_no_term() -> None:
    glossary = Glossary({"de": "a", "b": "c"})
    tagged = finder(glossary=glossary, **settings.TWO_TARGETS)
    [found] = tagged.find(["<2de> b"], None, first_line=1)
    assert [phrase.text for phrase in found] == ["c"]
    # So is the code of a MarianMT model.
    [found] = finder(glossary=glossary).find([">>de<< b"], None, first_line=1)
    assert [phrase.text for phrase in found] == ["c"]


def test_terms_of_a_source_without_spaces_are_anywhere() -> None:
    glossary = Glossary({"b": "c"})
    [found] = finder(glossary=glossary).find(["abba"], None, first_line=1)
    assert found == ()
    unspaced = finder(glossary=glossary, **{"data.source_locale": "ja"})
    [found] = unspaced.find(["abba"], None, first_line=1)
    assert [phrase.text for phrase in found] == ["c", "c"]


def test_a_language_without_spaces_has_phrases_anywhere() -> None:
    [found] = finder(**{"data.target_locale": "ja"}).find(["a"], [["b"]], first_line=1)
    assert found == (Phrase("b", False, False, found[0].ids),)
    assert not settings.letters_vocabulary().target.starts_word(found[0].ids[0])
    assert found[0].count("abba") == 2


@pytest.mark.parametrize(
    ("text", "phrase", "expected"),
    [
        ("cats cat", Phrase("cat"), 1),
        ("cat.", Phrase("cat"), 1),
        ("bobcat cat-like", Phrase("cat"), 1),
        ("cats", Phrase("cat", ends_word=False), 1),
        ("bobcat", Phrase("cat", starts_word=False), 1),
        ("a a a", Phrase("a a"), 2),
        ("C++ C+++", Phrase("C++"), 2),
        ("a\u0301", Phrase("a"), 0),
        ("", Phrase("a"), 0),
    ],
)
def test_occurrences_are_whole_words(text: str, phrase: Phrase, expected: int) -> None:
    assert phrase.count(text) == expected


def test_a_missing_phrase_is_named_with_its_line(
    translator: Translator,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model whose search finds none of them."""

    def ignore(hypotheses: Any, line_phrases: Any) -> list[list[Hypothesis]]:
        unlike = [[dataclasses.replace(n_best[0], text="a")] for n_best in hypotheses]
        return phrases.mark_missing(unlike, line_phrases)

    monkeypatch.setattr("vaswani_jax.inference.translator.mark_missing", ignore)
    translator.translate(["a", "b", "c"], constraints=[["h"], ["a"], ["h", "h", "a b"]])
    assert phrase_warnings(caplog) == [
        "line 1: the translation lacks 'h'",
        "line 3: the translation lacks 'h', 'a b'",
        "2 lines lack a phrase",
    ]


@pytest.mark.parametrize(
    ("changes", "line", "term", "message"),
    [
        ({"search.sampling": True}, "a", "b", "sampling=True draws outputs at random"),
        ({"search.max_source_tokens": 4}, "a b c d", "b", "line 7: .* 5 tokens, more"),
        (
            {"search.max_extra_tokens": 2},
            "a",
            "a b c d",
            "line 7: .* 2 tokens more than",
        ),
        ({"search.max_tokens": 3}, "a b c d", "a b c", "line 7: .* 2 tokens more"),
        ({"placeholders": "["}, "a", "b", r"placeholders=\[ is not a regular"),
    ],
)
def test_what_no_search_can_write_is_refused(
    changes: dict[str, Any], line: str, term: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        finder(**changes).find(["a", line], [[], [term]], first_line=6)


def test_an_empty_glossary_is_none() -> None:
    sampling = finder(glossary=Glossary({}), **{"search.sampling": True})
    assert sampling.find(["a"], None, first_line=1) == [()]


def test_a_term_that_the_vocabulary_spells_otherwise_is_refused() -> None:
    vocabulary = small_vocabularies.trained("bpe", True, normalization="nfkc")
    normalizing = dataclasses.replace(finder(), vocabulary=vocabulary)
    with pytest.raises(ValueError, match="spells 'ba\ufb01' as 'bafi': write it so"):
        normalizing.find(["a"], [["ba\ufb01"]], first_line=1)
    # Of the source, it is only looked for.
    placeholder = dataclasses.replace(normalizing, placeholders="\ufb01")
    [[found]] = placeholder.find(["ba \ufb01"], None, first_line=1)
    assert found.text == "\ufb01" and not found.ids


def test_a_character_that_no_subword_has_is_refused() -> None:
    data = settings.small_settings(**{"data.vocab_size": 20}).data
    vocabulary = settings.learn_vocabulary(["a b c d e f g h"] * 20, data)
    without_bytes = dataclasses.replace(finder(), vocabulary=vocabulary)
    with pytest.raises(ValueError, match=r"line 1: 'xa' has characters .* lacks: x;"):
        without_bytes.find(["a"], [["xa"]], first_line=1)
    with_glossary = dataclasses.replace(
        without_bytes, glossary=Glossary({"a": "b", "d": "xa"})
    )
    assert with_glossary.find(["a"], None, first_line=1)
    with pytest.raises(ValueError, match="line 3, glossary term 'd': 'xa' has"):
        with_glossary.find(["a", "a d"], None, first_line=2)
    with pytest.raises(ValueError, match=r"glossary, term 'd': 'xa' has .* x; leave"):
        with_glossary.check_glossary()
    # Of the source, it is only looked for.
    placeholder = dataclasses.replace(without_bytes, placeholders="x")
    [[found]] = placeholder.find(["a x"], None, first_line=1)
    assert found.text == "x" and not found.ids


def test_a_subword_that_the_list_of_a_marian_model_lacks_is_refused() -> None:
    whole = small_vocabularies.trained("bpe", False).source
    longest = max(map(whole.subword, *whole.encode(["ba"])), key=len)
    assert len(longest) > 1
    listed = [spelling for spelling in whole.spellings if spelling != longest]
    subwords = MarianSubwords(whole.model, listed)
    marian = dataclasses.replace(finder(), vocabulary=Vocabulary.shared(subwords))
    sentence = "line 1: 'ba' has subwords that the vocabulary lacks; leave it out$"
    with pytest.raises(ValueError, match=sentence):
        marian.find(["a"], [["ba"]], first_line=1)


# In a process of its own: here the annotations are checked first.
WRONG_FORMS = """
from vaswani_jax.inference import arguments, glossary
for wrong in ("a", ["a"], [[1]], [None], {0: ["a"]}):
    try:
        arguments.read_constraints(["a"], wrong)
    except TypeError as error:
        print(error)
for wrong in ("a", ["a"], {"a": 1}, {1: "a"}):
    try:
        glossary.Glossary(wrong)
    except TypeError as error:
        print(error)
"""


def test_an_argument_of_another_form_is_refused(translator: Translator) -> None:
    assert interpreter.output_of(WRONG_FORMS).splitlines() == [
        "constraints must have a list of phrases for each line, got the string 'a'",
        "constraints[0] must be a list of strings, got the string 'a': write [text] "
        "for one line",
        "constraints[0] must be strings, got 1",
        "constraints[0] must be a list of phrases, got None",
        "constraints[0] must be a list of phrases, got 0",
        "glossary must be a dictionary from terms to translations, got 'a'",
        "glossary must be a dictionary from terms to translations, got ['a']",
        "glossary must have strings, got 1",
        "glossary must have strings, got 1",
    ]
    with pytest.raises(ValueError, match="placeholders is an empty pattern"):
        translator.translate(["a"], placeholders="")
    with pytest.raises(ValueError, match="equal numbers of lines, got 1 and 2"):
        translator.translate(["a"], constraints=[[], []])
