"""Split plain text into the tokens that treebanks have (section 6.3)."""

import importlib.util
from collections.abc import Sequence

from vaswani_jax.core import config, extras

# Quotes and apostrophes of typography, as NLTK's rules of clitics and quotes read them.
QUOTES = str.maketrans({"“": '"', "”": '"', "’": "'"})


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
    if importlib.util.find_spec("nltk") is None:
        how = extras.how_to_install("parsing")
        raise ImportError(f"plain text becomes tokens by NLTK: {how}")


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
