"""The target's vocabulary in parsing (section 6.3): the symbols of trees."""

import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Self

from vaswani_jax.data import linearization, treebank
from vaswani_jax.data.tokenizer import SPECIAL_SPELLINGS, Tokenizer


class TreeSymbols(Tokenizer):
    """Symbols of trees as ids: they open a constituent, close one, or stand for a word.

    A text is a tree in brackets, its ids are the symbols that `linearization` writes
    for it. A symbol that the training trees lack is unknown.

    Attributes:
        labels: The labels of constituents.
        word_symbols: Those that stand for one word: tags, or `linearization.WORD`.
    """

    def __init__(self, labels: Sequence[str], word_symbols: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.word_symbols = tuple(word_symbols)
        symbols = {"labels": self.labels, "words": self.word_symbols}
        super().__init__(
            json.dumps(symbols, ensure_ascii=False, indent=0).encode(),
            [
                *SPECIAL_SPELLINGS,
                *(f"({label}" for label in self.labels),
                *(f"){label}" for label in self.labels),
                *self.word_symbols,
            ],
        )

    @classmethod
    def learn(cls, lines: Iterable[str], *, terminals: str) -> Self:
        """Return the symbols of trees, one a line, in the order of their names.

        Args:
            lines: Trees in brackets.
            terminals: What stands for a word, of `linearization.TERMINALS`.

        Raises:
            ValueError: A line is not a tree, or a tree has no word.
        """
        symbols = {
            symbol
            for tree in treebank.parse(lines, name="training trees")
            for symbol in linearization.linearize(_clean(tree), terminals)
        }
        return cls(
            sorted(symbol[1:] for symbol in symbols if symbol.startswith("(")),
            sorted(symbol for symbol in symbols if symbol[0] not in "()"),
        )

    @classmethod
    def from_bytes(cls, model: bytes, path: pathlib.Path) -> Self:
        """Load the symbols, the bytes of the file at a path.

        Raises:
            ValueError: They are damaged.
        """
        try:
            symbols = json.loads(model)
            return cls(*(list(map(str, symbols[key])) for key in ("labels", "words")))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None

    def to_files(self, stem: str) -> dict[str, bytes]:
        """Return the file that keeps the symbols, by its name."""
        return {f"{stem}.symbols.json": self.model}

    @property
    def accepts_dropout(self) -> bool:
        """True, but without effect: symbols have no merges to leave out."""
        return True

    def encode(
        self,
        texts: Sequence[str],
        *,
        replace_unknown: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each tree; there is nothing to sample.

        Raises:
            ValueError: A text is no tree. The message has its number and the rule.
        """
        return [
            [self.subword_id(symbol) for symbol in self._symbols_of(text, number)]
            for number, text in enumerate(texts, start=1)
        ]

    def _symbols_of(self, text: str, number: int = 1) -> list[str]:
        if not text:
            return []
        trees = list(treebank.parse([text], name=f"tree {number}"))
        if len(trees) != 1:
            raise ValueError(f"tree {number}: a line has one tree, got {len(trees)}")
        return linearization.linearize(_clean(trees[0]), self.terminals)

    @property
    def terminals(self) -> str:
        """The symbol of a word: one of `linearization.TERMINALS`."""
        return "word" if self.word_symbols == (linearization.WORD,) else "tag"

    def unknown_characters(self, text: str, *, replace_unknown: bool) -> list[str]:
        """Return the symbols of a tree that are unknown.

        Raises:
            ValueError: The text is not one tree, or the tree has no word.
        """
        symbols = dict.fromkeys(self._symbols_of(text))
        return [symbol for symbol in symbols if symbol not in self._tokens]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the symbols of ids, with spaces between them."""
        return " ".join(self.spellings[token] for token in ids)

    def starts_word(self, token: int) -> bool:
        """Return True: each symbol is one by itself."""
        return True

    def is_byte(self, token: int) -> bool:
        return False


def _clean(tree: treebank.Tree) -> treebank.Tree:
    """Return a tree for parsing.

    Raises:
        ValueError: It has no word.
    """
    clean_tree = treebank.clean(tree)
    if clean_tree is None:
        raise ValueError(f"{str(tree)[:80]} has no word")
    return clean_tree
