"""Split plain text into the tokens that treebanks have, and notice it (section 6.3)."""

import re
from collections.abc import Iterable, Sequence

from vaswani_jax.core import config, extras, plurals

# Quotes and apostrophes of typography, as NLTK's rules of clitics and quotes read them.
QUOTES = str.maketrans({"“": '"', "”": '"', "’": "'"})

# A word of plain text that treebanks split, between spaces: with a clitic (can't), a
# mark or bracket after it (man, or yet), a bracket before it, or the last full stop.
UNSPLIT_WORD = re.compile(
    r"(?<!\S)(?:"
    r"\S*\w(?i:n['’]t|['’](?:s|re|ve|ll|d|m))|\S*\w[,;!?)]|[(]\w\S*"
    r"|[a-z]{2,}\.(?=\s*$))(?!\S)"
)
# A treebank has such words, too, in so few lines.
MAX_UNSPLIT_SHARE = 0.02


class PlainTextLines:
    """The lines of a parser's input that look like plain text, counted over blocks.

    A parser reads such words as ones that its treebank never has, and the tree has them
    as they are.

    Attributes:
        total: How many lines were counted.
        num_lines: How many of them have a word that treebanks split.
        example: The first of these words.
    """

    def __init__(self, data: config.DataConfig) -> None:
        """Start with no line; only lines of a parser are counted."""
        self._is_parser = data.source == "treebank"
        self.total = self.num_lines = 0
        self.example = ""

    def count(self, lines: Iterable[str]) -> None:
        """Count lines of words."""
        for line in lines if self._is_parser else ():
            self.total += 1
            if match := UNSPLIT_WORD.search(line):
                self.num_lines += 1
                self.example = self.example or match[0]

    def describe(self) -> str:
        """Return the number of lines, an example and what to do.

        It is "" for few lines: one in 600 of GUM's has a word such as "etc.".
        """
        if self.num_lines <= MAX_UNSPLIT_SHARE * self.total:
            return ""
        subject = plurals.format_count(
            self.num_lines, "line looks", plural="lines look"
        )
        return (
            f"{subject} like plain text, with words such as "
            f"{self.example[:40]!r}: parsers read the tokens of their treebank; "
            "--tokenize, or Translator.tokenize, splits plain text"
        )


def check_is_parser(data: config.DataConfig, *, name: str) -> None:
    """Refuse to tokenize text for a run that does not parse.

    Args:
        data: The run's.
        name: Of the flag or the method, for the error.

    Raises:
        ValueError: The data are of another source than a treebank.
    """
    if data.source != "treebank":
        raise ValueError(
            f"{name} needs a parsing run (config.data.source=treebank), got "
            f"config.data.source={data.source!r}: leave it out"
        )


def require_nltk() -> None:
    """Refuse to split text without NLTK, before any work.

    Raises:
        ImportError: Says how to install it.
    """
    purpose = "splitting plain text into tokens needs"
    extras.require(["nltk"], extra="parsing", purpose=purpose)


def tokenize(lines: Sequence[str]) -> list[str]:
    """Return each line's tokens, as treebanks have them, with spaces between them.

    NLTK's `NLTKWordTokenizer` splits off punctuation and clitics ("ca n't"), and writes
    quotes as `` and '', brackets as -LRB- and the like. A line is one sentence: only
    its last full stop is a token of its own.

    Raises:
        ImportError: NLTK is not installed.
    """
    require_nltk()
    # It takes seconds, and few runs parse plain text.
    from nltk.tokenize import NLTKWordTokenizer

    tokenizer = NLTKWordTokenizer()
    return [
        " ".join(tokenizer.tokenize(line.translate(QUOTES), convert_parentheses=True))
        for line in lines
    ]


def describe_tokenizer() -> str:
    """Return what `tokenize` splits text by, with its version.

    Raises:
        ImportError: NLTK is not installed.
    """
    require_nltk()
    import nltk

    return f"NLTK {nltk.__version__} (NLTKWordTokenizer)"
