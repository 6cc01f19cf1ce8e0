"""Pairs that break no rule are prepared; the others are counted and shown."""

import csv
import json
import pathlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from configs import raw_text
from tests import settings
from tests.data import small_text
from tests.data.unclean_pairs import GOOD, PLANTED, TEXTS, all_rules, cleaned, data_of
from vaswani_jax.core import parsing
from vaswani_jax.data import cleaning, manifest, run_vocabulary


@hypothesis.settings(max_examples=30)
@hypothesis.given(
    pairs=st.lists(st.tuples(*[st.sampled_from(["a", "b", " a", "a  b", "a b"])] * 2)),
    size=st.integers(1, 5),
)
def test_of_duplicates_the_first_is_kept(
    pairs: list[tuple[str, str]], size: int
) -> None:
    first = {}
    for pair in pairs:
        first.setdefault(tuple(" ".join(side.split()) for side in pair), pair)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "CHUNK_PAIRS", size)
        cleaner = cleaned(pairs, data_of(duplicates=True))
    assert list(cleaner.keep(iter(pairs))) == list(first.values())


@hypothesis.settings(max_examples=20)
@hypothesis.given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), max_size=12),
    names=st.sets(st.sampled_from(list(PLANTED))),
    name=st.sampled_from(list(PLANTED)),
)
def test_a_further_rule_keeps_no_pair_that_was_left_out(
    pairs: list[tuple[str, str]], names: set[str], name: str
) -> None:
    values = all_rules()
    few = cleaned(pairs, data_of(**{key: values[key] for key in names}))
    more = cleaned(pairs, data_of(**{key: values[key] for key in names | {name}}))
    kept = list(few.keep(iter(pairs)))
    alone = cleaned(kept, data_of(**{name: values[name]}))
    assert list(more.keep(iter(pairs))) == list(alone.keep(iter(kept)))


def test_each_corpus_is_examined_and_keeps_what_no_corpus_before_has() -> None:
    corpora = {"news": [GOOD[0], ("", "x")], "crawl": [GOOD[1], GOOD[0], ("y", "")]}
    cleaner = cleaning.Cleaner(data_of(empty=True, duplicates=True))
    cleaner.examine(corpora)
    assert cleaner.num_pairs == 5
    assert cleaner.counts == {"empty": 2, "duplicates": 1}
    for name, pair in (("news", GOOD[0]), ("crawl", GOOD[1])):
        assert list(cleaner.keep(corpora[name], corpus=name)) == [pair]
        assert cleaner.num_kept(name) == 1
    [example] = cleaner.removals[-1].examples
    assert (example.corpus, example.number) == ("crawl", 2)


def test_progress_is_logged_whatever_the_sizes_of_corpora(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cleaning, "CHUNK_PAIRS", 2)
    monkeypatch.setattr(cleaning, "PAIRS_PER_LOG_LINE", 4)
    caplog.set_level("INFO", "vaswani_jax")
    corpora = {"a": [GOOD[0]] * 3, "b": [GOOD[0]] * 10}
    cleaning.Cleaner(data_of(empty=True)).examine(corpora)
    expected = [f"examined {number} pairs" for number in (5, 9, 13)]
    assert [m for m in caplog.messages if m.startswith("examined")] == expected


def test_many_pairs_are_compared_in_sorted_runs() -> None:
    generator = np.random.default_rng(1)
    numbers = generator.integers(0, 3000, 5000).tolist()
    pair_set = cleaning.PairSet()
    seen: set[int] = set()
    for start in range(0, len(numbers), 70):
        chunk = numbers[start : start + 70]
        is_first = pair_set.add([(str(number), "x") for number in chunk])
        for number, first in zip(chunk, is_first, strict=True):
            assert first == (number not in seen)
            seen.add(number)


def test_all_rules_together_count_each_pair_once() -> None:
    pairs = [*GOOD, *(pair for _, planted in PLANTED.values() for pair in planted)]
    cleaner = cleaned(pairs, data_of(**all_rules()))
    assert list(cleaner.keep(iter(pairs))) == GOOD
    assert cleaner.counts == {name: len(pairs) for name, (_, pairs) in PLANTED.items()}


def prepared_text(text, **rules):
    """The prepared data of text that is the good and the planted pairs."""
    pairs = [*GOOD, *(pair for _, planted in PLANTED.values() for pair in planted)]
    for side, ending in enumerate(("en", "de")):
        lines = [pair[side] for pair in pairs]
        for split in ("train", "valid", "test"):
            small_text.write_lines(text / f"{split}.{ending}", lines)
    values = {f"data.clean_{name}": value for name, value in rules.items()}
    sizes = {"data.vocab_size": 345, "data.byte_fallback": True, "data.max_length": 400}
    data = small_text.prepare(text, rebuild=True, **values, **sizes)
    return data, pairs


def test_prepared_data_has_the_kept_pairs_their_counts_and_examples(text, caplog):
    everything, pairs = prepared_text(text)
    assert everything.counts["train"]["kept"] > len(GOOD)
    assert everything.manifest.cleaning == {}
    assert not any("cleaning" in line for line in caplog.messages)
    directory = text.with_name("data")
    assert not (directory / cleaning.EXAMPLES).exists()
    caplog.clear()
    data, _ = prepared_text(text, **all_rules())
    assert data.counts["train"] == {"kept": len(GOOD), "empty": 0, "too_long": 0}
    counts = {name: len(planted) for name, (_, planted) in PLANTED.items()}
    assert data.manifest.cleaning == counts
    recorded = json.loads((directory / manifest.NAME).read_text())
    assert recorded["cleaning"] == counts
    assert f"train: {len(GOOD)} pairs ({len(pairs) - len(GOOD)} left out)" in (
        data.describe()
    )
    [line] = [line for line in caplog.messages if line.startswith("cleaning kept")]
    assert f"kept {len(GOOD)} of {len(pairs)} training pairs" in line
    assert all(f"{count} {name}" in line for name, count in counts.items())
    rows = read_examples(directory)
    for name, (_, planted) in PLANTED.items():
        of_rule = [row for row in rows if row["rule"] == name]
        assert len(of_rule) == len(planted)
        for row, (source, target) in zip(of_rule, planted, strict=True):
            assert pairs[int(row["pair"]) - 1] == (source, target)
            assert row["reason"]
    # Held-out text is not cleaned.
    for split in ("valid", "test"):
        assert list(zip(*data.text(split), strict=True)) == pairs
        assert data.counts[split] == everything.counts[split]


def read_examples(directory):
    """The rows of the table of examples."""
    with open(directory / cleaning.EXAMPLES, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_the_tokens_are_those_of_the_kept_pairs_in_each_sample(text):
    sampled = {"data.subword_dropout": 0.2, "data.subword_samples": 3}
    values = {"data.clean_empty": True, "data.clean_max_characters": 30}
    lines = [small_text.read_lines(text / f"train.{ending}") for ending in ("en", "de")]
    fitting = [
        pair
        for pair in zip(*lines, strict=True)
        if all(line.strip() and len(line) <= 30 for line in pair)
    ]
    assert 20 < len(fitting) < len(lines[0]) - 3
    data = small_text.prepare(text, **values, **sampled, **{"data.max_length": 200})
    assert data.counts["train"] == {
        "kept": 3 * len(fitting),
        "empty": 0,
        "too_long": 0,
    }
    ids = small_text.sentences(data.token_pairs("train").target)
    decoded = [data.vocabulary.decode(sentence) for sentence in ids]
    assert decoded == 3 * [target for _, target in fitting]


def test_the_vocabulary_learns_from_kept_pairs_alone(text, monkeypatch):
    lines_read = []
    learn = run_vocabulary.learn_subwords

    def learn_and_note(lines, data, **options):
        lines_read.extend(lines)
        return learn(lines_read, data, **options)

    monkeypatch.setattr(run_vocabulary, "learn_subwords", learn_and_note)
    values = {"data.clean_max_characters": 20, "data.clean_empty": True}
    small_text.prepare(text, **values, **{"data.sentencepiece_sample_size": 40})
    assert len(lines_read) == 2 * (40 // 2)
    assert max(map(len, lines_read)) <= 20


def test_text_of_which_nothing_is_left_is_refused(text):
    rules = {"data.clean_min_script": 0.5, "data.clean_empty": True}
    with pytest.raises(ValueError) as caught:
        small_text.prepare(text, **rules, **{"data.source_locale": "ru"})
    message = "config.data.clean_* left out every training pair: "
    assert str(caught.value) == message + '{"empty": 3, "min_script": 117}'


def test_data_with_other_rules_are_other_data(text):
    small_text.prepare(text)
    message = small_text.refusal(text, **{"data.clean_empty": True})
    assert "config.data.clean_empty is True, was False" in message


def test_examples_in_several_files_name_their_file_and_line_there(text):
    for ending in ("en", "de"):
        lines = small_text.read_lines(text / f"train.{ending}")
        for number, first in enumerate((0, 70)):
            shard = text / f"shard{number}.{ending}"
            small_text.write_lines(shard, lines[first : first + 70])
    values = {"data.clean_max_characters": 20, "data.clean_empty": True}
    values |= {"data.train_source": "shard*.en", "data.train_target": "shard*.de"}
    rows = read_examples(small_text.prepare(text, **values).directory)
    assert {row["file"] for row in rows} == {
        str(text / f"shard{number}.en") for number in (0, 1)
    }
    for row in rows:
        line = small_text.read_lines(pathlib.Path(row["file"]))[int(row["pair"]) - 1]
        assert line.split() == row["source"].split()


def test_examples_are_ten_of_all_the_text_in_one_printable_line_each(tmp_path):
    pairs = [(f"a{number}\x07\t{'b' * 400}", "b") for number in range(1, 2001)]
    cleaner = cleaned(pairs, data_of(control_characters=True))
    cleaner.write_examples(tmp_path, {})
    rows = read_examples(tmp_path)
    numbers = [int(row["pair"]) for row in rows]
    assert len(set(numbers)) == 10 and numbers == sorted(numbers)
    assert numbers[0] < 700 and numbers[-1] > 1300
    for row in rows:
        assert row["source"].startswith(f"a{row['pair']}\\x07\\tb")
        assert row["source"].endswith("b…") and len(row["source"]) < 320
        assert row["reason"] == "source: U+0007"
    again = cleaned(pairs, data_of(control_characters=True))
    assert [rule.examples for rule in again.removals] == [
        rule.examples for rule in cleaner.removals
    ]


@pytest.mark.parametrize("name", ["max_ratio", "language_odds"])
def test_limits_that_no_pair_keeps_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"clean_{name} must be 0, or at least 1"):
        data_of(**{name: 0.5})


def test_trees_are_not_cleaned() -> None:
    values = {**settings.TREEBANK, "data.clean_empty": True}
    with pytest.raises(ValueError, match=r"treebank needs config.data.clean_empty=F"):
        settings.small_settings(**values)


SHARED_DATA = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"
# Texts without extension, their languages, and the pairs that the preset leaves out.
CORPORA = {
    "multi30k_ende/raw/train": ("de", 29_000, 5),
    "tatoeba_enfr/train": ("fr", 161_865, 7),
    # Visibly misaligned, with many lines in the wrong language.
    "wmt_samples/stanford_10k_tok_ende": ("de", 10_000, 984),
}


def left_out_of(name: str, *, every: int) -> int:
    """Return the pairs of every so many that the preset for raw text leaves out."""
    language, total, _ = CORPORA[name]
    sides = [
        small_text.read_lines(SHARED_DATA / f"{name}.{ending}")
        for ending in ("en", language)
    ]
    pairs = list(zip(*sides, strict=True))
    assert len(pairs) == total
    values = raw_text.get_config()
    values.data.source_locale, values.data.target_locale = "en", language
    pairs = pairs[::every]
    cleaner = cleaned(pairs, parsing.parse(values).data)
    assert cleaner.counts["language_odds"] == 0 or name.startswith("wmt")
    return len(pairs) - cleaner.num_kept()


@pytest.mark.shared
@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="needs ../shared")
@pytest.mark.parametrize("name", CORPORA)
def test_clean_text_is_kept_and_crawled_text_is_cleaned(name: str) -> None:
    # Some 300 pairs of each.
    count = left_out_of(name, every=CORPORA[name][1] // 300)
    assert 15 < count < 50 if name.startswith("wmt") else count <= 1


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not SHARED_DATA.is_dir(), reason="needs ../shared")
@pytest.mark.parametrize("name", CORPORA)
def test_of_the_whole_text_the_preset_leaves_out_so_many(name: str) -> None:
    assert left_out_of(name, every=1) == CORPORA[name][2]
