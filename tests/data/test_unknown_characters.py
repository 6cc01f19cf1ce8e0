"""Lines with characters that no subword has, counted and named."""

from tests import settings
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.unknown_characters import UnknownCharacters
from vaswani_jax.data.vocabulary import Vocabulary


def test_lines_and_their_characters_are_counted_over_blocks() -> None:
    unknown = UnknownCharacters(settings.letters_vocabulary())
    unknown.count(["a b", "", "hello\u00a0world", "\ufeffc"])
    assert unknown.describe() == ""
    unknown.count(["a \U0001f600 b"])
    unknown.count(["\u200d\u2603\U0001f600", "z\0zz"])
    assert unknown.num_lines == 3
    assert unknown.lines_by_character["z"] == 1
    assert unknown.describe() == (
        "3 lines have characters that the vocabulary lacks: \U0001f600 (U+1F600), "
        "z (U+007A), U+200D, \u2603 (U+2603)"
    )
    unknown.count(["ß", "ß", "x ß", "k", "ж漢"])
    assert unknown.describe() == (
        "8 lines have characters that the vocabulary lacks: ß (U+00DF), "
        "\U0001f600 (U+1F600), k (U+006B), x (U+0078), z (U+007A), and 4 others"
    )


def test_trees_have_symbols_and_their_lines_characters():
    letters = settings.letters_vocabulary().source
    vocabulary = Vocabulary(letters, TreeSymbols(["S"], ["NN"]), is_shared=False)
    unknown = UnknownCharacters(vocabulary)
    unknown.count(["z"])
    unknown.count([], target=True)
    assert "1 line has characters that" in unknown.describe()
    unknown.count(["(S (VB z))"], target=True)
    assert "2 lines have characters or symbols that" in unknown.describe()
