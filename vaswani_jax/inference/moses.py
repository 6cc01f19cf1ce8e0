"""Section 6.1: the text that the paper's BLEU is computed of, as Moses makes it."""

import re
from collections.abc import Sequence

import sacremoses

# Perl reads bytes.
COMPOUND = re.compile(rb"(\S)-(\S)")
# What replace-unicode-punctuation.perl of Moses leaves as it is.
QUOTES = str.maketrans(dict.fromkeys("„‟«»", '"') | dict.fromkeys("‚‘‛‹›", "'"))


def ascii_punctuation(lines: Sequence[str]) -> list[str]:
    """Lines whose quotes, apostrophes and three dots are those of ASCII.

    get_ende_bleu.sh replaces them in the outputs with Moses's
    replace-unicode-punctuation.perl, and the authors' newstest2014 reference has
    straight quotes throughout (tensor2tensor#317); that script leaves some quotes,
    which are replaced, too.

    >>> ascii_punctuation(["„Ja“, sagte er …"])
    ['"Ja", sagte er ...']
    """
    normalizer = sacremoses.MosesPunctNormalizer(pre_replace_unicode_punct=True)
    return [normalizer.replace_unicode_punct(line).translate(QUOTES) for line in lines]


def tokenize(lines: Sequence[str], language: str) -> list[str]:
    """Lines with one space between tokens, as tokenizer.perl writes them.

    Quotes and brackets are escaped (`&quot;`), because get_ende_bleu.sh calls the
    script without -no-escape. A language that Moses lacks gets the English list of
    abbreviations, as it does in Moses.

    >>> tokenize(['Er sagte: "Ja."'], "de")
    ['Er sagte : &quot; Ja . &quot;']
    """
    tokenizer = sacremoses.MosesTokenizer(lang=language)
    return [" ".join(tokenizer.tokenize(line, escape=True)) for line in lines]


def split_compounds(line: str) -> str:
    r"""A tokenised line whose hyphens inside words are tokens of their own.

    Equals `perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'` byte for byte. Its matches
    do not overlap, so of the two hyphens around a single letter only the first is
    split. Perl sees bytes, so around a letter of two bytes (an umlaut) both are.

    >>> split_compounds("ein Nord-Süd-Weg")
    'ein Nord ##AT##-##AT## Süd ##AT##-##AT## Weg'
    >>> split_compounds("a-b-c"), split_compounds("a-ü-c")
    ('a ##AT##-##AT## b-c', 'a ##AT##-##AT## ü ##AT##-##AT## c')
    """
    return COMPOUND.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()
