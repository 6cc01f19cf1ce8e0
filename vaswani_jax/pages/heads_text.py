"""Prepare a text over which heads are measured: its subwords, words and trees."""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from vaswani_jax.analysis import views
from vaswani_jax.core import languages, types
from vaswani_jax.data.tokenizer import Tokenizer
from vaswani_jax.data.treebank import Tree
from vaswani_jax.data.word_subwords import split_words
from vaswani_jax.inference import scoring
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import words

# Lines of a longer text that are read, evenly spread.
MAX_LINES = 500
# Sentences in which either side has more subwords, with its end mark, are left out.
MAX_TOKENS = 128


class Counts(NamedTuple):
    """The counts of each subword in the training text, by its id."""

    source: Int[np.ndarray, "V"]
    target: Int[np.ndarray, "V"]


class Text(NamedTuple):
    """A text over which heads are measured.

    Attributes:
        name: What text it is, in words.
        sources: Source lines.
        targets: A translation of each.
        trees: A cleaned tree of each source line; None without trees.
        alignments: For each line the pairs (source word, target word), from 0, that
            are aligned; None if unknown.
        counts: Of the training text; None if unknown.
    """

    name: str
    sources: Sequence[str]
    targets: Sequence[str]
    trees: Sequence[Tree | None] | None = None
    alignments: Sequence[Sequence[tuple[int, int]]] | None = None
    counts: Counts | None = None


class SelectedLine(NamedTuple):
    """A line of the text that is read."""

    ids: scoring.Pair
    source_words: tuple[int, ...]
    target_words: tuple[int, ...]
    constituents: Int[np.ndarray, "words 2"] | None
    links: Bool[np.ndarray, "target_words source_words"] | None


def select(translator: Translator, text: Text) -> list[SelectedLine]:
    """Return the lines that are read.

    Raises:
        ValueError: The numbers of lines differ, no line is left, or a tree or an
            alignment does not fit its line.
    """
    vocabulary, data = translator.vocabulary, translator.config.data
    total = len(text.sources)
    for name in ("targets", "trees", "alignments"):
        lines = getattr(text, name)
        if lines is not None and len(lines) != total:
            raise ValueError(
                f"{text.name} has {total:,} source lines, but {len(lines):,} {name}: "
                "each line needs one"
            )
    numbers = np.unique(
        np.linspace(0, max(0, total - 1), min(total, MAX_LINES)).astype(int)
    )
    try:
        languages.check_tags(text.sources, data, first_line=1)
    except ValueError as error:
        raise ValueError(f"{text.name}: {error}") from None
    sources = [text.sources[number] for number in numbers]
    source_ids = vocabulary.encode(sources)
    target_ids = vocabulary.encode(
        [text.targets[number] for number in numbers], target=True
    )
    selection = []
    for number, source, target in zip(numbers, source_ids, target_ids, strict=True):
        longest = max(len(source), len(target))
        if not (source and target) or longest >= MAX_TOKENS:
            continue
        ids = [*target, types.EOS_ID]
        line = text.sources[number]
        source_words = words.of_source(line, source, vocabulary=vocabulary, data=data)
        target_words = words.of_target(line, ids, vocabulary=vocabulary, data=data)
        num_words = max(source_words) + 1
        tree = text.trees[number] if text.trees else None
        selection.append(
            SelectedLine(
                ids=(source, ids),
                source_words=source_words,
                target_words=target_words,
                constituents=_constituents(
                    tree, line, num_words=num_words, number=int(number) + 1
                ),
                links=_links(
                    text.alignments[number],
                    shape=(max(target_words) + 1, num_words),
                    number=int(number) + 1,
                )
                if text.alignments
                else None,
            )
        )
    if not selection:
        raise ValueError(
            f"{text.name} has no pair of lines with text of fewer than {MAX_TOKENS} "
            "tokens"
        )
    return selection


def _constituents(
    tree: Tree | None, line: str, *, num_words: int, number: int
) -> Int[np.ndarray, "words 2"] | None:
    if tree is None:
        return None
    of_tree, of_line = [leaf.word for leaf in tree.leaves()], split_words(line)
    if of_tree != of_line or len(of_tree) != num_words:
        raise ValueError(
            f"tree {number} has the words {' '.join(of_tree)[:80]!r}, but its line is "
            f"{line[:80]!r}: a tree must have the words of its line"
        )
    return views.smallest_constituents(tree)


def _links(
    pairs: Sequence[tuple[int, int]], *, shape: tuple[int, int], number: int
) -> Bool[np.ndarray, "target_words source_words"]:
    links = np.zeros(shape, bool)
    for source, target in pairs:
        if source >= shape[1] or target >= shape[0]:
            raise ValueError(
                f"alignment, line {number}: {source}-{target} is out of range: the "
                f"line has {shape[1]} source words and {shape[0]} target words"
            )
        links[target, source] = True
    return links


class _Table(NamedTuple):
    """The properties of each subword of a side, by its id."""

    is_punctuation: Bool[np.ndarray, "V"]
    counts: Int[np.ndarray, "V"] | None
    embeddings: Float[np.ndarray, "V d_model"]


class Tables(NamedTuple):
    """The tables of both sides, and whether these share their ids and embeddings."""

    source: _Table
    target: _Table
    is_shared: bool


def make_tables(translator: Translator, counts: Counts | None) -> Tables:
    """Return what is known of the subwords of a model's vocabulary."""
    vocabulary, params = translator.vocabulary, translator.params
    sides = []
    for side in ("source", "target"):
        name = "embedding" if vocabulary.is_shared else f"{side}_embedding"
        embeddings = np.asarray(params[name]["embedding"], np.float64)
        norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
        subwords = getattr(vocabulary, side)
        sides.append(
            _Table(
                is_punctuation=np.array(
                    [_is_punctuation(subwords, n) for n in range(len(embeddings))]
                ),
                counts=None if counts is None else getattr(counts, side),
                embeddings=embeddings / np.maximum(norms, 1e-12),
            )
        )
    source, target = sides
    return Tables(source, target, is_shared=vocabulary.is_shared)


def _is_punctuation(subwords: Tokenizer, token: int) -> bool:
    text = subwords.surface(token).strip()
    return bool(text) and all(
        unicodedata.category(character).startswith("P") for character in text
    )


def to_pair(pair: SelectedLine, tables: Tables) -> views.Pair:
    """Return a line in the form of the measures."""
    source, target = pair.ids
    target_in = [types.BOS_ID, *target[:-1]]
    return views.Pair(
        source=_tokens([*source, types.EOS_ID], pair.source_words, tables.source),
        target_in=_tokens(target_in, (-1, *pair.target_words[:-1]), tables.target),
        target_out=_tokens(target, pair.target_words, tables.target),
        is_shared=tables.is_shared,
        constituents=pair.constituents,
        links=pair.links,
    )


def _tokens(
    ids: Sequence[int], word_numbers: Sequence[int], table: _Table
) -> views.Tokens:
    index = np.array(ids)
    return views.Tokens(
        ids=index,
        words=np.array(word_numbers),
        is_punctuation=table.is_punctuation[index],
        counts=None if table.counts is None else table.counts[index],
        embeddings=table.embeddings[index],
    )
