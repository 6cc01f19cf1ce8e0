"""Any input, as hypothesis finds it, through `tests.bad_input`."""

import gzip
import string

import hypothesis
import pytest
from hypothesis import strategies

from configs import raw_text
from tests import bad_input
from vaswani_jax.core import corpora

LINES = strategies.one_of(
    strategies.binary(max_size=40),
    strategies.text(max_size=40).map(lambda text: text.encode(errors="surrogatepass")),
    strategies.text(string.ascii_lowercase + " \n\r\t\u2028\ufeff", max_size=60).map(
        str.encode
    ),
)
PLAIN = strategies.tuples(strategies.just(""), LINES)
COMPRESSED = strategies.tuples(
    strategies.just(".gz"),
    strategies.one_of(
        LINES,
        LINES.map(gzip.compress),
        LINES.map(gzip.compress).flatmap(
            lambda data: strategies.integers(0, len(data)).map(lambda end: data[:end])
        ),
    ),
)
FILES = strategies.one_of(PLAIN, PLAIN, COMPRESSED)
SENTENCES = strategies.text(
    strategies.characters(exclude_characters="\n", exclude_categories=["Cs"]),
    max_size=20,
)
VALUES = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(),
    strategies.floats(),
    strategies.text(max_size=5),
    strategies.tuples(strategies.integers()),
)


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> bad_input.Checks:
    """Inputs of all tests go through one toy."""
    return bad_input.Checks(tmp_path_factory.mktemp("checks"))


@hypothesis.given(file=FILES)
def test_a_line_comes_out_for_each_line_in(
    checks: bad_input.Checks, file: tuple[str, bytes]
) -> None:
    checks.decode(f"input{file[0]}", file[1])


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    texts=strategies.lists(SENTENCES, min_size=1, max_size=5),
    gain=strategies.sampled_from(["chrf", "bleu", "ter"]),
    length_reward=strategies.floats(),
)
def test_any_candidates_have_an_order(
    checks: bad_input.Checks, texts: list[str], gain: str, length_reward: float
) -> None:
    checks.choose(texts, gain=gain, weights={"length_reward": length_reward})


@hypothesis.given(
    pairs=strategies.lists(strategies.tuples(SENTENCES, SENTENCES), min_size=1)
)
def test_any_outputs_have_scores(
    checks: bad_input.Checks, pairs: list[tuple[str, str]]
) -> None:
    checks.evaluate(*zip(*pairs, strict=True))


@hypothesis.given(
    files=strategies.fixed_dictionaries(
        {key: strategies.one_of(FILES, strategies.none()) for key in bad_input.TEXT}
    ),
    rules=strategies.sets(strategies.sampled_from(list(raw_text.CLEANING))),
    noise=strategies.sets(strategies.sampled_from(corpora.PROBABILITIES)),
)
@hypothesis.settings(max_examples=50)
def test_any_files_are_prepared_or_named(
    checks: bad_input.Checks,
    files: dict[str, tuple[str, bytes] | None],
    rules: set[str],
    noise: set[str],
) -> None:
    checks.prepare(
        {key: file and (f"{key}{file[0]}", file[1]) for key, file in files.items()},
        rules={key: raw_text.CLEANING[key] for key in rules},
        noise=dict.fromkeys(noise, 0.7),
    )


@hypothesis.given(
    pairs=strategies.lists(
        strategies.tuples(SENTENCES, SENTENCES), min_size=1, max_size=10
    ),
    repeats=strategies.sampled_from([1, 50]),
)
@hypothesis.settings(max_examples=10)
def test_any_text_is_checked(
    checks: bad_input.Checks, pairs: list[tuple[str, str]], repeats: int
) -> None:
    sides = [
        "".join(f"{line}\n" for line in side * repeats).encode()
        for side in zip(*pairs, strict=True)
    ]
    checks.check(
        {
            f"{split}_{side}": (f"{split}.{side}", data)
            for split in ("train", "valid")
            for side, data in zip(("source", "target"), sides, strict=True)
        }
    )


@hypothesis.given(
    kind=strategies.sampled_from(["tsv", "jsonl", "json.xz", "tsv.zst", "parquet"]),
    data=strategies.one_of(
        LINES, strategies.text('{}":ab\t\n\\\\ud8', max_size=30).map(str.encode)
    ),
    column=strategies.sampled_from(["1", "2", "0", "a", "a.b", "", "#"]),
)
@hypothesis.settings(max_examples=60)
def test_any_bytes_are_columns_or_named(
    checks: bad_input.Checks, kind: str, data: bytes, column: str
) -> None:
    checks.columns(f"columns.{kind}", data, column=column)


@hypothesis.given(name=strategies.text("-#*?[].a1\x00ä", max_size=6))
@hypothesis.settings(max_examples=60)
def test_any_name_is_that_of_a_text_or_named(
    checks: bad_input.Checks, name: str
) -> None:
    checks.name(name)


@hypothesis.given(
    data=strategies.one_of(
        strategies.binary(max_size=80),
        strategies.text("() \n\tNPab-=\u00a0\x00", max_size=80).map(str.encode),
    )
)
def test_any_bytes_are_trees_or_named(checks: bad_input.Checks, data: bytes) -> None:
    checks.trees(data)


@hypothesis.given(where=strategies.sampled_from(bad_input.keys()), value=VALUES)
@hypothesis.settings(max_examples=300)
def test_any_value_is_a_setting_or_named(
    checks: bad_input.Checks, where: tuple[str, str], value: object
) -> None:
    checks.configure(*where, value)
