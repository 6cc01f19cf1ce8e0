"""Section 5.1's subword vocabulary: one for both languages, or one for each."""

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from vaswani_jax.core import types
from vaswani_jax.data.marian_subwords import MarianSubwords
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.tokenizer import Tokenizer
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.word_subwords import WordSubwords

SHARED = "vocabulary"
ENDINGS = ("model", "json")
SYMBOLS = "target.symbols.json"
# The files of all kinds of vocabularies.
FILES = (
    *(f"{stem}.{end}" for stem in (SHARED, *types.SIDES) for end in (*ENDINGS, "spm")),
    SYMBOLS,
)


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The subwords of both languages; a `Translator` has its run's.

    Attributes:
        source: The subwords of the source.
        target: The subwords of the target, or the symbols of its trees; the same
            object if one model segments both sides.
        is_shared: Whether both have the same ids, hence one embedding (section 3.4).
    """

    source: Subwords
    target: Tokenizer
    is_shared: bool

    @classmethod
    def shared(cls, subwords: Subwords) -> "Vocabulary":
        """Return the vocabulary of subwords that serve both languages."""
        return cls(subwords, subwords, is_shared=True)

    def to_files(self) -> dict[str, bytes]:
        """Return the files that keep the vocabulary, by their names."""
        if self.source is self.target:
            return self.source.to_files(SHARED)
        files = self.source.to_files("source") | self.target.to_files("target")
        if self.is_shared:  # Two models segment, into ids of one list.
            del files["target.json"]
            files[f"{SHARED}.json"] = files.pop("source.json")
        return files

    def save(self, directory: pathlib.Path) -> None:
        """Write the vocabulary's files into a directory."""
        for name, content in self.to_files().items():
            (directory / name).write_bytes(content)

    @property
    def size(self) -> types.VocabSize:
        """V of the embedding, special ids included; of each one if there are two."""
        if self.is_shared:
            return self.source.size
        trees = None
        if isinstance(self.target, TreeSymbols) and isinstance(
            self.source, WordSubwords
        ):
            starts = np.packbits(self.source.word_starts).tobytes()
            trees = types.TreeIds(len(self.target.labels), starts)
        return types.VocabSizes(self.source.size, self.target.size, trees)

    @property
    def is_trees(self) -> bool:
        """True if the target is trees over the words of the source (section 6.3)."""
        return isinstance(self.target, TreeSymbols)

    def describe(self) -> str:
        """Return in words the number of subwords."""
        if self.is_shared:
            return f"vocabulary of {self.source.size:,} subwords"
        kind = "symbols" if self.is_trees else "subwords"
        return f"vocabularies of {self.source.size:,} and {self.target.size:,} {kind}"

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with any subword."""
        if self.source is self.target:
            return self.source.fingerprint
        sides = (self.source, self.target)
        if self.is_shared:
            digest = hashlib.sha256(json.dumps(self.source.spellings).encode())
        else:
            digest = hashlib.sha256(
                "".join(subwords.fingerprint for subwords in sides).encode()
            )
        for subwords in sides:
            digest.update(hashlib.sha256(subwords.model).digest())
        return digest.hexdigest()[:16]

    @property
    def accepts_dropout(self) -> bool:
        """True if all subwords come from merges (byte-pair encoding)."""
        return self.source.accepts_dropout and self.target.accepts_dropout

    def encode(
        self,
        lines: Sequence[str],
        *,
        target: bool = False,
        verbatim: bool = False,
        dropout: float = 0.0,
        seed: Sequence[int] = (0,),
    ) -> list[list[int]]:
        """Return the ids of each line, without begin and end marks.

        A line of white space alone is empty. A NUL character, which SentencePiece
        would take for the end of its input, is read as a space. In the source,
        characters that no subword has are read as others that look the same; see
        `readings`.

        Args:
            lines: Lines of one language.
            target: Whether this is the target language.
            verbatim: Whether this is text of a corpus, all of whose characters stay.
            dropout: Probability to leave out each merge of BPE (Provilkov et al.,
                2020, "BPE-dropout").
            seed: Decides which merges are left out, within one process.
        """
        subwords = self.target if target else self.source
        return subwords.encode(
            clean_lines(lines),
            replace_unknown=not (target or verbatim),
            dropout=dropout,
            seed=seed,
        )

    def find_spans(self, line: str) -> list[tuple[int, int]]:
        """Return where each subword of a source line lies in it; see `Subwords`."""
        return self.source.find_spans(*clean_lines([line]))

    def unknown_characters(
        self, line: str, *, target: bool = False, verbatim: bool = False
    ) -> list[str]:
        """Return the characters of a line that no subword has, as `encode` reads it."""
        [text] = clean_lines([line])
        subwords = self.target if target else self.source
        return subwords.unknown_characters(
            text, replace_unknown=not (target or verbatim)
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of target ids up to the end mark, without special ids.

        It is one line: line ends, which byte subwords can spell, become spaces.
        """
        tokens = []
        for token in ids:
            if token == types.EOS_ID:
                break
            if token not in (types.PAD_ID, types.BOS_ID):
                tokens.append(int(token))
        return self.target.decode(tokens).replace("\r", " ").replace("\n", " ")

    def subword(self, token: int) -> str:
        """Return the spelling of a target id."""
        return self.target.subword(token)

    def subword_id(self, subword: str) -> int:
        """Return the id of a target subword, or that of the unknown one."""
        return self.target.subword_id(subword)

    def extend(self, symbols: Sequence[str]) -> "Vocabulary":
        """Return a vocabulary that keeps these symbols whole, too.

        Ids stay; those of new subwords come last.
        """
        source = self.source.extend(symbols)
        if self.source is self.target:
            return Vocabulary.shared(source)
        return Vocabulary(source, self.target.extend(symbols), self.is_shared)


def load(directory: pathlib.Path) -> Vocabulary:
    """Load the vocabulary that `Vocabulary.save` has written.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged.
    """
    paths = (directory / name for name in FILES)
    files = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return from_files(files, directory=directory)


def from_files(files: Mapping[str, bytes], *, directory: pathlib.Path) -> Vocabulary:
    """Return the vocabulary that `Vocabulary.to_files` has given.

    Args:
        files: By their names.
        directory: Where they lie, for messages.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged.
    """

    def read(name: str) -> tuple[bytes, pathlib.Path]:
        if name not in files:
            raise FileNotFoundError(
                f"{directory / name} is missing; restore it or pass --rebuild_data to "
                "prepare again"
            )
        return files[name], directory / name

    def read_listed(side: str, spellings: str) -> MarianSubwords:
        return MarianSubwords.parse_listed(*read(f"{side}.spm"), *read(spellings))

    def read_side(side: str) -> Subwords:
        if f"{side}.json" in files:
            return read_listed(side, f"{side}.json")
        return Subwords.from_bytes(*read(f"{side}.model"))

    if f"{SHARED}.json" in files:
        sides = [read_listed(side, f"{SHARED}.json") for side in types.SIDES]
        return Vocabulary(sides[0], sides[1], is_shared=True)
    if SYMBOLS in files:
        return Vocabulary(
            WordSubwords.from_bytes(*read("source.model")),
            TreeSymbols.from_bytes(*read(SYMBOLS)),
            is_shared=False,
        )
    if files.keys() & {f"{side}.{end}" for side in types.SIDES for end in ENDINGS}:
        source, target = map(read_side, types.SIDES)
        return Vocabulary(source, target, is_shared=False)
    return Vocabulary.shared(Subwords.from_bytes(*read(f"{SHARED}.model")))


def clean_lines(lines: Iterable[str]) -> list[str]:
    """Replace NUL by a space and white space alone by "", as SentencePiece needs it."""
    texts = (line.replace("\0", " ") for line in lines)
    return [text if text.strip() else "" for text in texts]
