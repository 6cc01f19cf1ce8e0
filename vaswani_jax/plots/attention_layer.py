"""One encoder layer over the words of a sentence, and the heads of figures 3 to 5."""

import dataclasses
import itertools
import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from vaswani_jax.core import config, languages, locales
from vaswani_jax.data.tokenizer import WORD_START
from vaswani_jax.inference.results import Attention
from vaswani_jax.inference.translator import Translator

# The paper's sentences, tokenised, and the words whose attention it shows.
SPIRIT = (
    "It is in this spirit that a majority of American governments have passed new laws "
    "since 2009 making the registration or voting process more difficult ."
)
LAW = (
    "The Law will never be perfect , but its application should be just - this is what "
    "we are missing , in my opinion ."
)
SENTENCES = {3: SPIRIT, 4: LAW, 5: LAW}
WORDS = {3: "making", 4: "its"}
BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


@dataclasses.dataclass(frozen=True)
class Layer:
    """The self-attention of one encoder layer over the tokens of a sentence.

    Attributes:
        tokens: Words or subwords, then the end mark.
        weights: How much each token looks at each, by head. Rows sum to 1.
        uniform: The weight of each token under uniform attention over subwords; a
            word's is the sum of its subwords'.
        number: The layer's, from 1.
        depth: How many layers the encoder has.
    """

    tokens: tuple[str, ...]
    weights: Float[np.ndarray, "H S S"]
    uniform: Float[np.ndarray, "S"]
    number: int
    depth: int

    @property
    def name(self) -> str:
        """The layer as the paper's captions call it."""
        return f"layer {self.number} of {self.depth}"


def read_layer(attention: Attention, layer: int, *, by_word: bool) -> Layer:
    """Return one layer of the encoder, over words or subwords.

    The weight to a word is the sum over its subwords, the weight from a word the mean
    over them (Clark et al., 2019, section 4.1). So rows still sum to 1.

    Args:
        attention: The weights of a sentence.
        layer: The layer, the lowest being 0.
        by_word: Whether tokens are words.
    """
    weights, tokens = np.asarray(attention.encoder[layer]), attention.source
    uniform = np.full(len(tokens), 1 / len(tokens))
    if by_word:
        numbers = np.array(number_words(attention.source))
        tokens = spell_words(attention.source)
        is_part = numbers == np.arange(len(tokens))[:, None]
        share = is_part / is_part.sum(axis=1, keepdims=True)
        weights, uniform = share @ weights @ is_part.T, is_part @ uniform
    depth = len(attention.encoder)
    return Layer(tokens, weights, uniform, number=layer + 1, depth=depth)


def has_words(data: config.DataConfig) -> bool:
    """Return whether spaces separate the words of source sentences.

    If not, `read_layer` by words would take a whole sentence for one. A parser reads
    words with spaces between them, whatever the language.
    """
    is_treebank = data.source == "treebank"
    return is_treebank or languages.has_spaces(data.source_locale, data)


def number_words(source: Sequence[str]) -> list[int]:
    """Return the number of the word that each subword belongs to, from 0.

    White space divides words. Punctuation marks at the ends of a word are words, if
    they are subwords, and so is the end mark.

    >>> number_words(["▁(", "it", "▁is", "n", "'", "t", ")", ".", "</s>"])
    [0, 1, 2, 2, 2, 2, 3, 4, 5]

    Args:
        source: The subwords of a sentence with the end mark, as `Attention` has them.
    """
    *subwords, _ = source
    starts = [n for n, text in enumerate(subwords) if text.startswith(WORD_START)]
    bounds = sorted({0, *starts, len(subwords)})
    numbers: list[int] = []
    for first, end in itertools.pairwise(bounds):
        letters = [n for n in range(first, end) if any(map(str.isalnum, subwords[n]))]
        first_letter, last_letter = letters[:1] or [end], letters[-1:] or [end]
        for n in range(first, end):
            is_outside = n <= first_letter[0] or n > last_letter[0]
            starts_word = n == first or (is_outside and subwords[n - 1] != WORD_START)
            numbers.append((numbers[-1] if numbers else -1) + starts_word)
    return [*numbers, (numbers[-1] if numbers else -1) + 1]


def spell_words(source: Sequence[str]) -> tuple[str, ...]:
    """Return the text of each word of `number_words`.

    >>> spell_words(["▁Caf", "<0xC3>", "<0xA9>", ".", "</s>"])
    ('Café', '.', '</s>')
    """
    words: dict[int, str] = {}
    for number, subword in zip(number_words(source), source, strict=True):
        words[number] = words.get(number, "") + subword
    return tuple(
        BYTES.sub(_decode_bytes, word).replace(WORD_START, " ").strip()
        for word in words.values()
    )


def _decode_bytes(match: re.Match[str]) -> str:
    digits = match[0].replace("<0x", "").replace(">", "")
    return bytes.fromhex(digits).decode(errors="replace")


def find_token(layer: Layer, word: str) -> int:
    """Return the first position of a word, whatever its case if it has no exact one.

    Raises:
        ValueError: The sentence does not have it.
    """
    tokens = [token.removeprefix(WORD_START) for token in layer.tokens]
    if word in tokens:
        return tokens.index(word)
    lower = [token.casefold() for token in tokens]
    if word.casefold() in lower:
        return lower.index(word.casefold())
    raise ValueError(
        f"the sentence has no --word={word}: it has "
        f"{', '.join(dict.fromkeys(layer.tokens))}"
    )


def sharpest_heads(layer: Layer, token: int) -> tuple[int, int]:
    """Return the two heads with the largest weights from a token on another word.

    Neither the token itself nor the end mark counts.

    Returns:
        The heads' numbers, from 1, the sharper one first.
    """
    largest = largest_weights(layer, token)
    first, second = np.argsort(-largest, kind="stable")[:2] + 1
    return int(first), int(second)


def largest_weights(layer: Layer, token: int) -> Float[np.ndarray, "H"]:
    """Return each head's largest weight from a token on another, end mark left out."""
    weights = np.delete(layer.weights[:, token], [token, len(layer.tokens) - 1], axis=1)
    return np.asarray(weights.max(axis=1, initial=0.0))


def most_different_heads(layer: Layer) -> tuple[int, int]:
    """Return the two heads that differ most over the sentence; see `differences`.

    Returns:
        The heads' numbers, from 1, the lower one first.
    """
    distances = differences(layer)
    first, second = np.unravel_index(np.argmax(distances), distances.shape)
    return int(first) + 1, int(second) + 1


def differences(layer: Layer) -> Float[np.ndarray, "H H"]:
    """Return how much each two heads differ: 0 for equal heads, at most 1.

    That is half the sum of the absolute differences of weights, the mean over tokens.
    The end mark is left out on both sides: many heads rest on it.
    """
    weights = layer.weights[:, :-1, :-1]
    by_pair = np.abs(weights[:, None] - weights[None, :]).sum(axis=-1) / 2
    if not weights.shape[1]:
        return np.zeros((len(weights),) * 2)
    return np.asarray(by_pair.mean(axis=-1))


def check_heads(num_heads: int, *, figure: int, heads: Sequence[int] | None) -> None:
    """Refuse heads that a model does not have, or another number than a figure shows.

    Args:
        num_heads: How many a layer of the model has.
        figure: 3, 4 or 5.
        heads: Their numbers, from 1; None for the figure's choice.

    Raises:
        ValueError: A head is out of range or named twice, or there are more or fewer.
    """
    count = None if figure == 3 else 2
    if heads is None:
        if count and num_heads < count:
            raise ValueError(f"figure {figure} shows two heads, the model has one")
        return
    shown_heads = ",".join(map(str, heads))
    in_range = all(1 <= head <= num_heads for head in heads)
    if not (heads and in_range and len(set(heads)) == len(heads)):
        raise ValueError(
            f"--heads={shown_heads} must be different numbers from 1 to {num_heads}"
        )
    if count and len(heads) != count:
        raise ValueError(f"--heads={shown_heads} must be two heads for figure {figure}")


def check_reads_english(data: config.DataConfig) -> None:
    """Refuse the paper's sentences for a model of another source language.

    Raises:
        ValueError: Says to name a sentence.
    """
    if locales.language_code(data.source_locale) != "en":
        raise ValueError(
            "--sentence is missing: the paper's sentences are English, the run reads "
            f"config.data.source_locale={data.source_locale}"
        )


def paper_sentence(figure: int, translator: Translator) -> str:
    """Return the sentence of a figure in the form of the text that a model reads.

    That is with a tag if there are several target languages, without spaces before
    punctuation marks unless text is tokenised, and in lower case if the vocabulary has
    no capitals.
    """
    data, text = translator.config.data, SENTENCES[figure]
    if data.text_form != "tokenized":
        text = re.sub(r" (?=[.,])", "", text)
    unknown, unknown_lower = (
        translator.vocabulary.unknown_characters(form) for form in (text, text.lower())
    )
    if len(unknown_lower) < len(unknown):
        text = text.lower()
    tags = list(languages.locales_by_tag(data))
    return " ".join([*tags[:1], text])


def attend(translator: Translator, sentence: str) -> Attention:
    """Return the encoder's attention over a sentence.

    Raises:
        ValueError: As `Translator.attention`.
    """
    # The encoder sees no translation: an empty one spares the search. A tree cannot be
    # empty.
    target = None if translator.vocabulary.is_trees else ""
    return translator.attention(sentence, target)
