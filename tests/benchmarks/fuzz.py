"""Any bytes in: a clear error, or exactly one line out for each line in.

python -m tests.benchmarks.fuzz --inputs=20000 [--seed=1]

Random and damaged files go through what decode, evaluate and prepare_data do with
theirs, random values through a configuration. Whatever is raised must be one of the
errors that a program prints in one line, and must name the file or the key.
"""

import argparse
import collections
import gzip
import pathlib
import random
import tempfile
from collections.abc import Callable
from typing import Any

import ml_collections

from configs import own_text
from tests import settings
from vaswani_jax.core import config, parallel, parsing
from vaswani_jax.data import corpus, manifest
from vaswani_jax.inference import evaluators, streams, translate
from vaswani_jax.training import step

SNIPPETS = [
    *(
        b"a b c",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\t",
        b" ",
        b"\xff",
        b"\xc3",
        b"\xe2\x80",
    ),
    *(
        "ä".encode(),
        "\u2028\u0085\u3000".encode(),
        "漢字".encode(),
        "\U0001f469".encode(),
    ),
    *(b"<s>", b"</s>", b"<pad>", b"<unk>", b"<0x0A>", "\u2581".encode(), b"x" * 200),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x1f\x8b", b"PK\x03\x04", b"\x80\x04."),
]
EXPECTED = (ValueError, OSError)


def some_bytes(generator: random.Random) -> bytes:
    """Text of all kinds, or none at all."""
    count = generator.choice([0, 1, 2, 5, 20, 80])
    if generator.random() < 0.6:  # mostly readable
        readable = [one for one in SNIPPETS if _decodes(one)]
        return b"".join(generator.choices(readable, k=count))
    if generator.random() < 0.5:
        return b"".join(generator.choices(SNIPPETS, k=count))
    return generator.randbytes(count)


def _decodes(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def a_file(generator: random.Random, path: pathlib.Path) -> pathlib.Path:
    """Such bytes in a file, at times compressed, at times cut off."""
    data = some_bytes(generator)
    if generator.random() < 0.2:
        path = path.with_suffix(".gz")
        data = gzip.compress(data)
        if generator.random() < 0.5:
            data = data[: generator.randrange(len(data) + 1)]
    path.write_bytes(data)
    return path


class Fuzz:
    """What inputs go through; a toy that has learned nothing translates."""

    def __init__(self, directory: pathlib.Path, generator: random.Random) -> None:
        self.directory, self.generator = directory, generator
        self.settings = settings.small_settings(
            **{"search.max_extra_tokens": 2, "search.max_tokens": 6}
        )
        self.data = corpus.open_or_prepare(
            self.settings,
            directory / "toy",
            rebuild=False,
            trained_with=None,
            log=lambda text: None,
        )
        self.translator = translate.Translator(self.settings, self.data.vocabulary)
        state = step.create_state(self.settings, vocab_size=self.data.vocabulary.size)
        self.params = parallel.replicate(state.params)

    def decode(self) -> None:
        """Lines of a file, in blocks, to as many lines."""
        path = a_file(self.generator, self.directory / "input")
        total = self._named(path, lambda: streams.count("--input", str(path)))
        if total is None:
            return
        found = [
            line
            for block in streams.blocks(str(path))
            for line in self.translator.translate(self.params, block, warn=str)
        ]
        assert len(found) == total, (path.read_bytes(), found)
        assert not any("\n" in line for line in found)
        output = self.directory / "output"
        written = streams.write(iter([found]), str(output), total=None)
        assert written == total == output.read_bytes().count(b"\n")

    def evaluate(self) -> None:
        """Any outputs and references to scores."""
        count = self.generator.randrange(1, 6)

        def lines() -> list[str]:
            raw = (some_bytes(self.generator) for _ in range(count))
            texts = (one.decode(errors="replace") for one in raw)
            return [text.replace("\n", " ").replace("\r", " ") for text in texts]

        outputs, references = lines(), lines()
        for score in evaluators.score(self.settings.data, outputs, references):
            assert 0 <= score.value <= 100.0001, (score, outputs, references)

    def prepare(self) -> None:
        """Files of text to a vocabulary and token files."""
        names = {}
        for split in ("train", "valid"):
            for side in ("source", "target"):
                path = a_file(self.generator, self.directory / f"{split}.{side}")
                if self.generator.random() < 0.05:
                    path.unlink()
                names[f"data.{split}_{side}"] = path.name
        wanted = settings.small_settings(
            **names,
            **{
                "data.source": "text",
                "data.text_directory": str(self.directory),
                "data.byte_fallback": True,
                "data.vocab_size": 270,
            },
        )
        place = self.directory / "prepared"
        try:
            found = corpus.open_or_prepare(
                wanted, place, rebuild=True, trained_with=None, log=lambda text: None
            )
        except EXPECTED as error:
            told = str(error)
            assert any(
                word in told for word in (*names.values(), "config.data", "split")
            ), told
            return
        for split, counts in found.counts.items():
            assert (
                sum(counts.values()) == len(found.text("valid")[0]) or split == "train"
            )
        manifest.refuse_difference(wanted, place, text=True, log=str)

    def configure(self) -> None:
        """A value that a key should not have."""
        values = own_text.get_config().to_dict()
        values["data"]["source_locale"] = values["data"]["target_locale"] = "en"
        section = self.generator.choice(
            [k for k in values if isinstance(values[k], dict)]
        )
        key = self.generator.choice(sorted(values[section]))
        strange = [-1, 0, 1, 2**40, 0.5, -0.5, 1e300, float("nan"), float("inf")]
        strange += [True, "", "x", "\0", None, (1,), {}]
        values[section][key] = self.generator.choice(strange)
        if self.generator.random() < 0.1:
            values[section][f"{key}_"] = 1
        try:
            found = parsing.parse(ml_collections.ConfigDict(values))
        except ValueError as error:
            assert "config." in str(error), error
        else:
            assert isinstance(found, config.Config)

    def _named(self, path: pathlib.Path, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except EXPECTED as error:
            assert path.name in str(error), error
            return None


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
        kinds = [fuzz.decode, fuzz.evaluate, fuzz.prepare, fuzz.configure]
        for _ in range(arguments.inputs):
            kind = generator.choices(kinds, weights=[3, 2, 3, 2])[0]
            kind()
            done[kind.__name__] += 1
    print(dict(done))


if __name__ == "__main__":
    main()
