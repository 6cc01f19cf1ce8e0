"""Any bytes in: a clear error, or exactly one line out for each line in.

python -m tests.benchmarks.fuzz --inputs=20000 [--seed=1]

Random and damaged files, and random values of settings, through `tests.bad_input` and
`tests.bad_text`.
"""

import argparse
import collections
import json
import pathlib
import random
import tempfile
from collections.abc import Mapping
from typing import Any

from configs import raw_text
from tests import bad_input, bad_text
from vaswani_jax.core import corpora

SNIPPETS = [
    *(b"a b c", b"\n", b"\r\n", b"\r", b"\0", b"\t", b" ", b"\xff", b"\xc3"),
    *(b"\xe2\x80", "ä".encode(), "\u2028\u0085\u3000".encode(), "漢字".encode()),
    *("\U0001f469".encode(), "\u2581".encode(), b"x" * 200, b"<0x0A>"),
    *(b"<s>", b"</s>", b"<pad>", b"<unk>"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1f\x8b", b"PK\x03\x04", b"\x80\x04."),
]
TREES = [b"(", b"(", b")", b")", b" ", b"\n", b"NP", b"-NONE-", b"NP-SBJ-1", b"ROOT"]
NAME_PARTS = ["-", "#", "*", "?", "[", "]", "**", "a/", ".", "a", "1", "\0", "ä"]
# The rules of cleaning, as the preset for raw text has them.
RULES = raw_text.CLEANING
STRANGE = [-1, 0, 1, 2**40, 0.5, -0.5, 1e300, float("nan"), float("inf")]
STRANGE += [True, "", "x", "\0", None, (1,), {}]
# JSON's words for the numbers and texts of TOML.
TOML_VALUES = [
    -1,
    0,
    1,
    3,
    0.5,
    1e300,
    True,
    "",
    "x",
    "c0",
    "~",
    "-#1",
    "<t>",
    "\0",
    [],
]
STAGE_PARTS = ["0:", "5", ":", ";", " c0=1", " c1=2.5", "c0=0", "=", "-1", "nan", "\0"]


class Fuzz:
    """Draws inputs."""

    def __init__(self, directory: pathlib.Path, generator: random.Random) -> None:
        self.checks, self.generator = bad_input.Checks(directory), generator
        self.text_checks = bad_text.TextChecks(directory / "text")

    def some_bytes(self) -> bytes:
        """Text of all kinds, or none at all."""
        generator = self.generator
        count = generator.choice([0, 1, 2, 5, 20, 80])
        if generator.random() < 0.6:  # mostly readable
            readable = [snippet for snippet in SNIPPETS if _decodes(snippet)]
            return b"".join(generator.choices(readable, k=count))
        if generator.random() < 0.5:
            return b"".join(generator.choices(SNIPPETS, k=count))
        return generator.randbytes(count)

    def a_file(self, name: str) -> tuple[str, bytes]:
        """Such bytes, at times compressed, at times cut off."""
        return self._maybe_compressed(name, self.some_bytes())

    def _maybe_compressed(self, name: str, data: bytes) -> tuple[str, bytes]:
        if self.generator.random() < 0.8:
            return name, data
        ending = self.generator.choice(list(bad_text.COMPRESSORS))
        data = bad_text.COMPRESSORS[ending](data)
        return name + ending, self._maybe_damaged(data)

    def _maybe_damaged(self, data: bytes) -> bytes:
        return self._damaged(data) if self.generator.random() < 0.5 else data

    def _damaged(self, data: bytes) -> bytes:
        """Cut off, or with other bytes at a place."""
        position = self.generator.randrange(len(data) + 1)
        if self.generator.random() < 0.3:
            return data[:position]
        other = self.generator.randbytes(self.generator.choice([1, 1, 4]))
        return data[:position] + other + data[position + len(other) :]

    def columns(self) -> None:
        """Files with columns, at times damaged, and a name of a column."""
        kind = self.generator.choice(list(bad_text.TABLE_COLUMNS))
        names = bad_text.COLUMNS
        if self.generator.random() < 0.7:
            names = list(bad_text.TABLE_COLUMNS[kind])
        shards = [self.table(kind) for _ in range(self.generator.choice([1, 1, 2, 3]))]
        ending = self.generator.choice(["", "", *bad_text.COMPRESSORS])
        if ending and kind in ("tsv", "jsonl"):
            compress = bad_text.COMPRESSORS[ending]
            shards = [compress(shard) for shard in shards]
            shards[-1] = self._maybe_damaged(shards[-1])
            kind += ending
        column = self.generator.choice(names)
        self.text_checks.columns(f"text.{kind}", shards, column=column)

    def table(self, kind: str) -> bytes:
        """A file with columns, at times damaged."""
        texts = [
            self.some_bytes().decode(errors="replace")
            for _ in range(self.generator.randrange(4))
        ]
        data = bad_text.table_bytes(texts, kind)
        return self._damaged(data) if self.generator.random() < 0.2 else data

    def standard_input(self) -> None:
        """Lines of a pipe, or columns."""
        kind = self.generator.choice(["tsv", "jsonl", ""])
        data = self.table(kind) if kind else self.some_bytes()
        names = bad_text.TABLE_COLUMNS.get(kind, ("", ""))
        if self.generator.random() < 0.3:
            columns = filter(str.isprintable, bad_text.COLUMNS)
            names = tuple(self.generator.choices(["", *columns], k=2))
        self.text_checks.standard_input(data, columns_of_sides=names)

    def mix(self) -> None:
        """Corpora of shards with columns, most of them whole, and stages."""
        generator = self.generator
        kind = generator.choice(["tsv", "jsonl", "parquet", "arrow"])
        words = "a b c d e".split()
        corpora = {
            name: [
                self.table(kind)
                if generator.random() < 0.1
                else bad_text.table_bytes(generator.choices(words, k=9), kind)
                for _ in range(generator.choice([1, 2, 3]))
            ]
            for name in ("one", "two")
        }
        stages = generator.choice(["", "0: one=1; 5: one=1 two=2", "3: two=1"])
        self.text_checks.mix(corpora, ending=kind, stages=stages)

    def names(self) -> None:
        """A name of text."""
        count = self.generator.randrange(1, 6)
        self.text_checks.name("".join(self.generator.choices(NAME_PARTS, k=count)))

    def decode(self) -> None:
        """Lines to be translated."""
        self.checks.decode(*self.a_file("input"))

    def back_translate(self) -> None:
        """Lines to be translated in shards."""
        shard_lines = self.generator.choice([1, 3, 100])
        self.checks.back_translate(*self.a_file("mono"), shard_lines=shard_lines)

    def choose(self) -> None:
        """Candidates, a utility and weights, at times no utility and no weights."""
        generator = self.generator
        texts = [
            self.some_bytes().decode(errors="replace").replace("\n", " ")
            for _ in range(generator.randrange(1, 6))
        ]
        values = [0.0, 1.0, -0.5, 1e300, -1e300, float("inf"), float("nan")]
        self.checks.choose(
            texts,
            utility=generator.choice(["chrf", "bleu", "chrf", "bleu", "ter", ""]),
            weights={
                name: generator.choice(values)
                for name in ("length_reward", "forward_weight", "reverse_weight")
                if generator.random() < 0.3
            },
        )

    def evaluate(self) -> None:
        """Outputs and references."""
        count = self.generator.randrange(1, 6)
        outputs, references = (
            [
                self.some_bytes().decode(errors="replace").replace("\n", " ")
                for _ in range(count)
            ]
            for _ in range(2)
        )
        self.checks.evaluate(outputs, references)

    def compare(self) -> None:
        """A text and the outputs of two systems, at times the same."""
        count = self.generator.randrange(1, 6)
        source, references, *systems = (
            [
                self.some_bytes().decode(errors="replace").replace("\n", " ")
                for _ in range(count)
            ]
            for _ in range(4)
        )
        if self.generator.random() < 0.3:
            systems = [systems[0], list(systems[0])]
        form = self.generator.choice(["tokenized", "detokenized"])
        self.checks.compare(source, references, systems, text_form=form)

    def prepare(self) -> None:
        """Files of text."""
        self.checks.prepare(
            {
                key: None if self.generator.random() < 0.05 else self.a_file(key)
                for key in bad_input.TEXT
            },
            rules=self.some_of(RULES),
            noise=self.some_of(dict.fromkeys(corpora.PROBABILITIES, 0.7)),
        )

    def check(self) -> None:
        """Files of text, at times with as many lines on both sides, often repeated."""
        if self.generator.random() < 0.3:
            self.checks.check({key: self.a_file(key) for key in bad_input.TEXT})
            return
        count = self.generator.choice([1, 3, 10])
        repeats = self.generator.choice([1, 2, 400 // count])
        lines = [
            [self.some_bytes().replace(b"\n", b" ") for _ in range(count)]
            for _ in bad_input.TEXT
        ]
        if self.generator.random() < 0.2:
            lines[1] = lines[0]
        self.checks.check(
            {
                key: (key, b"".join(line + b"\n" for line in side * repeats))
                for key, side in zip(bad_input.TEXT, lines, strict=True)
            }
        )

    def some_of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Half of the values, or none."""
        if self.generator.random() < 0.5:
            return {}
        return {
            key: value for key, value in values.items() if self.generator.random() < 0.5
        }

    def trees(self) -> None:
        """A file of trees."""
        count = self.generator.choice([1, 5, 20, 80])
        parts = self.generator.choices(TREES, k=count)
        if self.generator.random() < 0.3:
            parts.insert(self.generator.randrange(count), self.some_bytes())
        self.checks.trees(b" ".join(parts))

    def corpora(self) -> None:
        """A file of corpora with fields of all kinds, and stages of them."""
        generator = self.generator
        tables = []
        for number in range(generator.choice([0, 1, 2, 3])):
            fields = {"name": f"c{number}", "source": "a", "target": "b"}
            if generator.random() < 0.3:
                fields["weight"] = generator.choice([1, 2.5, 1e-6])
            if generator.random() < 0.5:
                field = generator.choice([*corpora.FIELDS, "x"])
                fields[field] = generator.choice(TOML_VALUES)
            lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
            tables.append("\n".join(["[[corpora]]", *lines]))
        text = "\n".join(tables).encode()
        if generator.random() < 0.1:
            text += self.some_bytes()
        parts = generator.choices(STAGE_PARTS, k=generator.randrange(5))
        self.checks.corpora(text, generator.choice(["", "0: c0=1", "".join(parts)]))

    def configure(self) -> None:
        """A value that a key should not have, or a key that there is not."""
        section, key = self.generator.choice(bad_input.keys())
        if self.generator.random() < 0.1:
            key += "_"
        value: Any = self.generator.choice(STRANGE)
        self.checks.configure(section, key, value)


def _decodes(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def main() -> None:
    """Put inputs through, and say how many of each kind there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    done: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        fuzz = Fuzz(pathlib.Path(directory), generator)
        kinds = {
            fuzz.decode: 3,
            fuzz.back_translate: 1,
            fuzz.choose: 1,
            fuzz.evaluate: 2,
            fuzz.compare: 1,
            fuzz.prepare: 3,
            fuzz.check: 2,
            fuzz.columns: 3,
            fuzz.standard_input: 2,
            fuzz.mix: 1,
            fuzz.names: 1,
            fuzz.trees: 2,
            fuzz.configure: 2,
            fuzz.corpora: 1,
        }
        for _ in range(arguments.inputs):
            [kind] = generator.choices(list(kinds), weights=list(kinds.values()))
            kind()
            done[kind.__name__] += 1
    print(dict(done))


if __name__ == "__main__":
    main()
