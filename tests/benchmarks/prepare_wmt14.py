"""WMT14 En-De from archives to token files at its real size, timed.

    python -m tests.benchmarks.prepare_wmt14 --directory=runs/wmt14 --pairs=4500000

Writes archives of synthetic text in WMT14's layout once (words by Zipf's law from a
million spellings, as many pairs as asked for), serves them to tensorflow-datasets'
builder, and prepares configs/base_ende.py from them: download, extraction, records,
vocabulary, token files. Prints the seconds of each part and the most memory, and what
of it each part took.
"""

import argparse
import json
import logging
import pathlib
import shutil
import tarfile
import time

import numpy as np

from configs import base_ende
from tests import wmt14
from tests.benchmarks import anonymous_memory
from vaswani_jax.core import parsing
from vaswani_jax.data import prepared, tfds

# The shares of WMT14's three corpora of training text.
SHARES = {
    "training-parallel-europarl-v7.tgz": 0.43,
    "training-parallel-commoncrawl.tgz": 0.53,
    "training-parallel-nc-v9.tgz": 0.04,
    "dev.tgz": 0.0,
}
HELD_OUT, CHUNK, SPELLINGS = 3000, 20_000, 1_000_000


def spellings(generator: np.random.Generator) -> np.ndarray:
    """Made-up words, the frequent ones short."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    share = 1.0 / np.arange(2, 28)
    drawn = generator.choice(letters, (SPELLINGS, 12), p=share / share.sum())
    lengths = np.minimum(12, 2 + np.log2(1 + np.arange(SPELLINGS)) // 2).astype(int)
    return np.array(
        ["".join(row[:n]) for row, n in zip(drawn, lengths, strict=True)], object
    )


def lines(generator: np.random.Generator, words: np.ndarray, count: int) -> list[str]:
    """Sentences of log-normal length, 25 words in the mean."""
    lengths = np.clip(np.exp(generator.normal(3.07, 0.55, count)), 1, 120).astype(int)
    ids = generator.zipf(1.2, lengths.sum() * 2)
    ids = ids[ids < SPELLINGS][: lengths.sum()]
    text = words[ids]
    ends = np.cumsum(lengths)
    return [" ".join(text[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


def write(directory: pathlib.Path, pairs: int) -> None:
    """The archives, a file of each side at a time."""
    generator = np.random.default_rng(1)
    words = spellings(generator)
    directory.mkdir(parents=True)
    for name, share in SHARES.items():
        count = round(pairs * share) or HELD_OUT
        with tarfile.open(directory / name, "w:gz", compresslevel=1) as tar:
            for path, _ in wmt14.files(name, "de"):
                file = directory / "text"
                with file.open("w") as text:
                    for start in range(0, count, CHUNK):
                        sentences = lines(generator, words, min(CHUNK, count - start))
                        if path.endswith("sgm"):
                            sentences = [
                                f'<seg id="1">{line}</seg>' for line in sentences
                            ]
                        text.write("\n".join(sentences) + "\n")
                tar.add(file, path)
                file.unlink()


def measure(directory: pathlib.Path, pairs: int) -> dict[str, float]:
    """Seconds and bytes of a preparation that starts with the download."""
    values = base_ende.get_config()
    values.data.tfds_directory = str(directory / "tfds")
    settings = parsing.parse(values)
    for name in ("tfds", "data"):
        shutil.rmtree(directory / name, ignore_errors=True)
    memory = anonymous_memory.Watch()

    class PeakMemory(logging.Handler):
        """Print each line of the log with the memory that it took to come to it."""

        def emit(self, record: logging.LogRecord) -> None:
            megabytes = memory.since_last() / 2**20
            print(f"{megabytes:8,.0f} MiB until: {record.getMessage()}", flush=True)

    logger = logging.getLogger("vaswani_jax")
    logger.setLevel(logging.INFO)
    logger.addHandler(PeakMemory())
    start_time = time.perf_counter()
    archives = wmt14.found_in(directory / f"archives_{pairs}")
    with wmt14.without_checksums(), wmt14.serving(archives):
        tfds.prepare(settings.data)
    downloaded, records_peak = time.perf_counter() - start_time, memory.peak_bytes
    prepared.open_or_prepare(settings, directory / "data", rebuild=False)
    return {
        "pairs": pairs,
        "records_seconds": downloaded,
        "records_peak_bytes": records_peak,
        "all_seconds": time.perf_counter() - start_time,
        "all_peak_bytes": memory.peak_bytes,
    }


def main() -> None:
    """Write what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=4_500_000)
    arguments = parser.parse_args()
    archives = arguments.directory / f"archives_{arguments.pairs}"
    if not archives.exists():
        write(archives, arguments.pairs)
    print(json.dumps(measure(arguments.directory, arguments.pairs), indent=1))


if __name__ == "__main__":
    main()
