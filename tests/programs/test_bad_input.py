"""Any input, as hypothesis finds it, through `tests.bad_input` and `tests.bad_text`."""

import json
import string

import hypothesis
import pytest
from hypothesis import strategies

from configs import raw_text
from tests import bad_input, bad_text
from vaswani_jax.core import corpora

LINES = strategies.one_of(
    strategies.binary(max_size=40),
    strategies.text(max_size=40).map(lambda text: text.encode(errors="surrogatepass")),
    strategies.text(string.ascii_lowercase + " \n\r\t\u2028\ufeff", max_size=60).map(
        str.encode
    ),
)
PLAIN = strategies.tuples(strategies.just(""), LINES)


def cut(data: bytes) -> strategies.SearchStrategy[bytes]:
    """A file, and what is left of it after a part of a copy."""
    return strategies.integers(0, len(data)).map(lambda end: data[:end])


def compressed(ending: str) -> strategies.SearchStrategy[tuple[str, bytes]]:
    """Lines in a file that is compressed, cut, or only claims to be compressed."""
    complete = LINES.map(bad_text.COMPRESSORS[ending])
    return strategies.tuples(
        strategies.just(ending),
        strategies.one_of(LINES, complete, complete.flatmap(cut)),
    )


COMPRESSED = strategies.sampled_from(list(bad_text.COMPRESSORS)).flatmap(compressed)
FILES = strategies.one_of(PLAIN, PLAIN, COMPRESSED)
SENTENCES = strategies.text(
    strategies.characters(exclude_characters="\n", exclude_categories=["Cs"]),
    max_size=20,
)
# JSON objects with any keys and values, one a line.
RECORDS = strategies.lists(
    strategies.dictionaries(
        strategies.one_of(strategies.sampled_from("ab1"), strategies.text(max_size=3)),
        strategies.recursive(
            strategies.one_of(strategies.none(), SENTENCES, strategies.integers()),
            lambda inner: strategies.dictionaries(strategies.sampled_from("ab"), inner),
            max_leaves=2,
        ),
        max_size=3,
    ).map(json.dumps),
    max_size=3,
).map(lambda lines: "".join(f"{line}\n" for line in lines).encode())


def tables(kind: str) -> strategies.SearchStrategy[bytes]:
    """Files of a kind with columns, whole or cut."""
    texts = strategies.lists(SENTENCES, max_size=3)
    complete = texts.map(lambda texts: bad_text.table_bytes(texts, kind))
    return strategies.one_of(complete, complete, complete.flatmap(cut))


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


@pytest.fixture(scope="module")
def text_checks(tmp_path_factory: pytest.TempPathFactory) -> bad_text.TextChecks:
    return bad_text.TextChecks(tmp_path_factory.mktemp("text"))


@hypothesis.given(file=FILES)
def test_a_line_comes_out_for_each_line_in(
    checks: bad_input.Checks, file: tuple[str, bytes]
) -> None:
    checks.decode(f"input{file[0]}", file[1])


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    texts=strategies.lists(SENTENCES, min_size=1, max_size=5),
    utility=strategies.sampled_from(["chrf", "bleu", "ter"]),
    length_reward=strategies.floats(),
)
def test_any_candidates_have_an_order(
    checks: bad_input.Checks, texts: list[str], utility: str, length_reward: float
) -> None:
    checks.choose(texts, utility=utility, weights={"length_reward": length_reward})


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
    kind=strategies.sampled_from(
        ["tsv", "jsonl", "json.xz", "tsv.zst", "parquet", "arrow", "saved"]
    ),
    data=strategies.one_of(
        LINES,
        RECORDS,
        strategies.text('{}":ab\t\n\\\\ud8', max_size=30).map(str.encode),
    ),
    column=strategies.sampled_from(bad_text.COLUMNS),
)
@hypothesis.settings(max_examples=60)
def test_any_bytes_are_columns_or_named(
    text_checks: bad_text.TextChecks, kind: str, data: bytes, column: str
) -> None:
    text_checks.columns(f"text.{kind}", [data], column=column)


@hypothesis.given(
    shards=strategies.sampled_from(list(bad_text.TABLE_COLUMNS)).flatmap(
        lambda kind: strategies.tuples(
            strategies.just(kind),
            strategies.lists(tables(kind), min_size=1, max_size=3),
            strategies.sampled_from(bad_text.TABLE_COLUMNS[kind]),
        )
    )
)
@hypothesis.settings(max_examples=60)
def test_any_shards_are_one_text_or_one_is_named(
    text_checks: bad_text.TextChecks, shards: tuple[str, list[bytes], str]
) -> None:
    kind, contents, column = shards
    text_checks.columns(f"text.{kind}", contents, column=column)


@hypothesis.given(
    case=strategies.sampled_from(
        [("tsv", ["1", "2"]), ("jsonl", ["a.b", "d"]), ("", ["", ""])]
    ).flatmap(
        lambda case: strategies.tuples(
            strategies.one_of(tables(case[0]), RECORDS, LINES)
            if case[0]
            else strategies.one_of(RECORDS, LINES),
            strategies.just(case[1]),
        )
    )
)
@hypothesis.settings(max_examples=40)
def test_any_standard_input_is_a_text_or_named(
    text_checks: bad_text.TextChecks, case: tuple[bytes, list[str]]
) -> None:
    data, columns = case
    text_checks.standard_input(data, columns_of_sides=columns)


@hypothesis.given(
    shards=strategies.sampled_from(["tsv", "jsonl", "parquet", "arrow"]).flatmap(
        lambda kind: strategies.tuples(
            strategies.just(kind),
            strategies.lists(tables(kind), min_size=2, max_size=4),
        )
    ),
    words=strategies.lists(strategies.sampled_from("abc"), min_size=9, max_size=9),
    stages=strategies.sampled_from(["", "0: one=1; 5: one=1 two=2"]),
)
@hypothesis.settings(max_examples=15)
def test_any_corpora_are_prepared_or_named(
    text_checks: bad_text.TextChecks,
    shards: tuple[str, list[bytes]],
    words: list[str],
    stages: str,
) -> None:
    kind, contents = shards
    corpora = {
        name: [bad_text.table_bytes(words, kind), *part]
        for name, part in (("one", contents[:1]), ("two", contents[1:]))
    }
    text_checks.mix(corpora, ending=kind, stages=stages)


@hypothesis.given(file=FILES, shard_lines=strategies.sampled_from([1, 3]))
@hypothesis.settings(max_examples=15)
def test_any_lines_become_pairs_or_are_named(
    checks: bad_input.Checks, file: tuple[str, bytes], shard_lines: int
) -> None:
    checks.back_translate(f"mono{file[0]}", file[1], shard_lines=shard_lines)


@hypothesis.given(
    fields=strategies.lists(
        strategies.dictionaries(
            strategies.sampled_from([*corpora.FIELDS, "x"]),
            strategies.one_of(
                strategies.booleans(),
                strategies.integers(-1, 3),
                strategies.floats(-1, 3),
                strategies.sampled_from(["", "x", "~", "-#1", "<t>", []]),
            ),
            max_size=2,
        ),
        max_size=3,
    ),
    stages=strategies.one_of(
        strategies.sampled_from(["", "0: c0=1", "0: c0=1; 5: c0=1 c1=2"]),
        strategies.text("0:; c1=.5", max_size=12),
    ),
)
@hypothesis.settings(max_examples=60)
def test_any_fields_are_corpora_or_named(
    checks: bad_input.Checks, fields: list[dict[str, object]], stages: str
) -> None:
    tables = [
        {"name": f"c{number}", "source": "a", "target": "b", **each}
        for number, each in enumerate(fields)
    ]
    # JSON's words are those of TOML for such values.
    lines = [
        line
        for table in tables
        for line in (
            "[[corpora]]",
            *(f"{k} = {json.dumps(v)}" for k, v in table.items()),
        )
    ]
    checks.corpora("\n".join(lines).encode(), stages)


@hypothesis.given(name=strategies.text("-#*?[].a1\x00ä", max_size=6))
@hypothesis.settings(max_examples=60)
def test_any_name_is_that_of_a_text_or_named(
    text_checks: bad_text.TextChecks, name: str
) -> None:
    text_checks.name(name)


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
