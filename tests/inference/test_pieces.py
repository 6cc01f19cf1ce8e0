"""Where long lines are cut, and how their pieces are joined."""

from typing import Any

import pytest

from tests import settings
from tests.inference import echo
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.inference.pieces import cut_lines


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return settings.letters_vocabulary()


def test_pieces_know_their_line_and_only_the_first_has_a_prefix(
    vocabulary: Vocabulary,
) -> None:
    small = settings.small_settings(**{"search.max_source_tokens": 4})
    lines, prefixes = ["a", "", "b c d e f g"], ["", "a", "h"]
    cut = cut_lines(
        lines, prefixes, vocabulary=vocabulary, settings=small, first_line=1
    )
    assert [(piece.line, piece.part) for piece in cut] == [(0, 0), (2, 0), (2, 1)]
    [first, second] = (vocabulary.decode(piece.ids) for piece in cut[1:])
    assert (first, second) == ("b c d", "e f g")
    assert [vocabulary.decode(piece.prefix) for piece in cut] == ["", "h", ""]
    free = cut_lines(lines, None, vocabulary=vocabulary, settings=small, first_line=1)
    assert [piece.ids for piece in free] == [piece.ids for piece in cut]
    assert not any(piece.prefix for piece in free)


def test_a_code_leaves_room_for_a_subword_or_is_refused(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary.source, "num_tags", lambda ids: 1)
    three = echo.echo_translator(vocabulary, monkeypatch, max_source_tokens=3)
    # The first subword, taken for a code, stands before every other.
    assert three.translate(None, ["a b c"]) == ["a b a c"]
    two = echo.echo_translator(vocabulary, monkeypatch, max_source_tokens=2)
    sentence = r"^line 2: config\.search\.max_source_tokens must be at least 3 for"
    with pytest.raises(ValueError, match=sentence):
        two.translate(None, ["", "a b c"])
    with pytest.raises(ValueError, match=r"^line 12: "):
        cut_lines(
            ["", "a b c"],
            None,
            vocabulary=vocabulary,
            settings=settings.small_settings(**{"search.max_source_tokens": 2}),
            first_line=11,
        )
    assert two.translate(None, ["a", ""]) == ["", ""]


def pieces_of(
    line: str, vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> tuple[str, list[str]]:
    """Return a line as it is repeated, and the text of its pieces."""
    changes = {"search.max_source_tokens": 9, "data.source_locale": "en"} | changes
    translator = echo.echoing(
        LineTranslator(settings.small_settings(**changes), vocabulary), monkeypatch
    )
    [[hypothesis]] = translator.hypotheses((None,), [line])
    pieces = [vocabulary.decode(output.ids) for output in hypothesis.outputs]
    return hypothesis.text, pieces


def test_a_long_line_is_cut_at_sentences_then_words(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The space before C is a subword of its own.
    line = "a bc. C de. e f g a b c d e f g abcdefgh a"
    pieces = ["a bc.", "C de.", "e f g a b c d e", "f g", "abcdefgh", "a"]
    cut = pieces_of(line, vocabulary, monkeypatch)
    assert cut == (line, pieces)
    # What a reader sees as the same is cut alike.
    other = line.replace(". C", ".\u2028\u200eC").replace("e f", "e\u3000\uff46")
    assert pieces_of(other, vocabulary, monkeypatch) == cut


def test_text_without_spaces_is_cut_at_sentences_and_joined_without_spaces(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each character that no subword has is three bytes.
    line = "漢字。漢！字abcdefghabcdefgh"
    pieces = ["漢字。", "漢！", "字abcdefgh", "abcdefgh"]
    locales = {
        "data.source_locale": "zh",
        "data.target_locale": "ja",
        "search.max_source_tokens": 12,
    }
    cut = pieces_of(line, vocabulary, monkeypatch, **locales)
    assert cut == (line, pieces)
    text, _ = pieces_of(
        line, vocabulary, monkeypatch, **{**locales, "data.target_locale": "zh_Latn"}
    )
    assert text == " ".join(pieces)
    # No character is divided.
    text, pieces = pieces_of("漢字" * 9, vocabulary, monkeypatch, **locales)
    assert text == "漢字" * 9 and set("".join(pieces)) == {"漢", "字"}


def test_tags_go_to_every_piece_and_name_the_language_that_joins_them(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagged = vocabulary.extend(["<2de>", "<2th>"])
    several = {
        "data.source": "cldr",
        "data.target_locale": "de,th",
        "data.user_symbols": "<2de>,<2th>",
    }
    text, pieces = pieces_of("<2th>a b c d e f g h a", tagged, monkeypatch, **several)
    assert pieces == ["<2th>a b c d e f g", "<2th> h a"]
    assert text == "".join(pieces)
    text, pieces = pieces_of("<2de> a b c d e f g h", tagged, monkeypatch, **several)
    assert pieces == ["<2de> a b c d e f g", "<2de> h"]
    assert text == " ".join(pieces)


def test_a_line_of_placeholders_alone_is_text() -> None:
    changes = {"data.user_symbols": "%1,%2", "data.vocab_size": 24}
    configured = settings.small_settings(**changes)
    vocabulary = settings.learn_vocabulary(["a b c d e f g h"] * 20, configured.data)
    [ids] = vocabulary.encode(["%1 %2"])
    assert vocabulary.source.num_tags(ids) == len(ids)
    [piece] = cut_lines(
        ["%1 %2"], None, vocabulary=vocabulary, settings=configured, first_line=1
    )
    assert piece.ids == ids


def test_placeholders_that_only_the_vocabulary_names_are_text(
    vocabulary: Vocabulary,
) -> None:
    extended = vocabulary.extend(["%1", "%2"])
    small = settings.small_settings()
    assert not small.data.user_symbols
    [ids] = extended.encode(["%1 %2"])
    assert extended.source.num_tags(ids) == len(ids)
    [piece] = cut_lines(
        ["%1 %2"], None, vocabulary=extended, settings=small, first_line=1
    )
    assert piece.ids == ids
