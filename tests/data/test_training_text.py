"""Several corpora are prepared one after the other, each as its settings say."""

import json

import pytest

from tests.data import small_text
from vaswani_jax.core import languages
from vaswani_jax.data import prepare, prepared, run_vocabulary, training_text

WEIGHTS = {"a": 1, "b": 3}


def corpus(name, **fields):
    return {"name": name, "source": f"{name}.en", "target": f"{name}.de", **fields}


@pytest.fixture
def two_texts(text):
    """The small text's directory, with its training lines as the corpora a and b."""
    for ending in ("en", "de"):
        lines = small_text.read_lines(text / f"train.{ending}")
        small_text.write_lines(text / f"a.{ending}", lines[:50])
        small_text.write_lines(text / f"b.{ending}", lines[50:])
    return text


def test_one_corpus_is_prepared_as_the_same_text_without_a_name(text):
    files = {}
    for name, changes in (
        ("text", {}),
        ("corpus", {"data.corpora": [corpus("train", weight=3)]}),
    ):
        data = small_text.prepare(text, rebuild=True, **changes)
        files[name] = {
            path.name: path.read_bytes()
            for path in data.directory.iterdir()
            if path.name != "manifest.json"
        }
    assert files["text"] == files["corpus"]
    assert data.manifest.corpora == {"train": data.counts["train"]}


def test_corpora_follow_one_another_and_are_counted_apart(two_texts, caplog):
    joined = small_text.prepare(two_texts)
    expected = [small_text.sentences(side) for side in joined.token_pairs("train")]
    (two_texts.parent / "kept").mkdir()
    for file in joined.directory.glob("vocabulary.*"):
        (two_texts.parent / "kept" / file.name).write_bytes(file.read_bytes())
    data = small_text.prepare(
        two_texts,
        rebuild=True,
        **{
            "data.corpora": [corpus("a"), corpus("b")],
            "data.vocabulary": str(two_texts.parent / "kept" / "vocabulary.model"),
        },
    )
    assert [
        small_text.sentences(side) for side in data.token_pairs("train")
    ] == expected
    # The useless pairs are among the first; see the fixture of the small text.
    assert data.manifest.corpora == {
        "a": {"kept": 45, "empty": 3, "too_long": 2},
        "b": {"kept": 70, "empty": 0, "too_long": 0},
    }
    assert data.manifest.corpus_sizes == {"a": 45, "b": 70}
    assert data.counts["train"] == {"kept": 115, "empty": 3, "too_long": 2}
    assert "read corpus 'b': 70 pairs" in caplog.messages
    assert any(line.startswith("tokenised corpus 'a': 45") for line in caplog.messages)
    assert prepared.open_prepared(data.directory).manifest == data.manifest


def test_each_source_line_of_a_corpus_begins_with_its_tag(two_texts):
    changes = {"data.user_symbols": "<b>", "data.vocab_size": 42}
    corpora = [corpus("a"), corpus("b", tag="<b>")]
    data = small_text.prepare(two_texts, **changes, **{"data.corpora": corpora})
    sizes = data.manifest.corpus_sizes
    source = small_text.sentences(data.token_pairs("train").source)
    lines = [data.vocabulary.decode(ids) for ids in source]
    assert not any("<b>" in line for line in lines[: sizes["a"]])
    assert all(line.startswith("<b> ") for line in lines[sizes["a"] :])
    target = small_text.sentences(data.token_pairs("train").target)
    assert not any("<b>" in data.vocabulary.decode(ids) for ids in target)


def test_held_out_lines_with_the_tag_of_a_corpus_are_known_as_trained_on(
    two_texts, caplog
):
    for ending, tag in (("en", "<b> "), ("de", "")):
        lines = small_text.read_lines(two_texts / f"b.{ending}")[:10]
        lines = [tag + line for line in lines]
        small_text.write_lines(two_texts / f"valid.{ending}", lines)
    changes = {"data.user_symbols": "<b>", "data.vocab_size": 42}
    corpora = [corpus("a"), corpus("b", tag="<b>")]
    small_text.prepare(two_texts, **changes, **{"data.corpora": corpora})
    assert "10 of 10 validation pairs are also training pairs" in caplog.text


def test_an_empty_source_line_stays_empty_in_spite_of_a_tag(two_texts):
    data = small_text.prepare(
        two_texts,
        **{
            "data.corpora": [corpus("a", tag="<a>"), corpus("b")],
            "data.user_symbols": "<a>",
            "data.vocab_size": 42,
        },
    )
    assert data.manifest.corpora["a"]["empty"] == 3


def test_the_tag_of_a_corpus_follows_that_of_the_language():
    data = small_text.settings_of(
        ".", **{"data.target_locale": "de,fr", "data.user_symbols": "<2de>,<2fr>"}
    ).data
    for line, tagged in (
        ("<2de> a b", "<2de> <x> a b"),
        ("\u200b <2fr>a", "<2fr> <x> a"),
        ("<2es> a", "<x> <2es> a"),
    ):
        assert languages.add_tag(line, "<x>", data) == tagged
    data = small_text.settings_of(".").data
    assert languages.add_tag("<2de> a", "<x>", data) == "<x> <2de> a"


def test_the_sample_of_a_vocabulary_is_spread_over_each_corpus(text, monkeypatch):
    lines_read = []

    def learn(lines, data, **options):
        lines_read.extend(lines)
        return small_text_vocabulary(text)

    for name in WEIGHTS:
        for ending in ("en", "de"):
            lines = [f"{name} {number}" for number in range(60)]
            small_text.write_lines(text / f"{name}.{ending}", lines)
    monkeypatch.setattr(run_vocabulary, "learn_subwords", learn)
    corpora = [corpus(name, weight=weight) for name, weight in WEIGHTS.items()]
    small_text.prepare(
        text, **{"data.corpora": corpora, "data.sentencepiece_sample_size": 80}
    )
    expected = [f"{name} {n}" for name in WEIGHTS for n in range(0, 60, 3)]
    assert lines_read[::2] == lines_read[1::2] == expected


def small_text_vocabulary(text):
    from vaswani_jax.data.vocabulary_training import learn_subwords

    lines = small_text.read_lines(text / "valid.en") + small_text.WORDS
    return learn_subwords(lines, small_text.settings_of(text).data)


@pytest.mark.parametrize(
    ("weights", "changes"),
    [
        ([1, 3], {}),
        ([1, 0], {}),
        ([None, None], {"data.corpora_temperature": 5.0}),
        ([None, None], {"data.epoch_pairs": 7}),
        ([None, None], {"data.stages": "0: b=1; 5: a=1"}),
    ],
)
def test_no_share_changes_the_vocabulary(two_texts, weights, changes):
    """Prepared data is for any shares, so that they may change without it."""
    vocabularies = [
        small_text.prepare(
            two_texts,
            rebuild=True,
            **{"data.sentencepiece_sample_size": 150, "data.corpora": corpora},
            **shares,
        ).vocabulary.fingerprint
        for corpora, shares in (
            ([corpus("a"), corpus("b")], {}),
            (
                [
                    corpus("a", weight=weights[0]),
                    corpus("b", weight=weights[1]),
                ],
                changes,
            ),
        )
    ]
    assert len(set(vocabularies)) == 1


def test_sizes_decide_what_a_vocabulary_learns_from_whatever_the_copies(two_texts):
    corpora = [corpus("a", noise_typos=0.1, noise_copies=4), corpus("b")]
    data = small_text.settings_of(two_texts, **{"data.corpora": corpora}).data
    text = training_text.TrainingText(data, seed=1)
    text.count()
    text.clean()
    b_lines = set(small_text.read_lines(two_texts / "b.de"))
    targets = [target for _, target in text.sample(24)]
    assert len(targets) == 24
    assert [target in b_lines for target in targets[10:]] == [True] * 14


def test_a_share_of_no_pair_is_refused_before_the_text_is_prepared(
    two_texts, monkeypatch
):
    monkeypatch.setattr(run_vocabulary, "learn_subwords", small_text.forbidden)
    corpora = [corpus("a", weight=1), corpus("b", weight=9999)]
    with pytest.raises(ValueError, match="corpus 'a' gets none of the 120 pairs of"):
        small_text.prepare(two_texts, **{"data.corpora": corpora})


def test_a_corpus_without_a_share_is_prepared_for_a_later_stage(two_texts):
    corpora = [corpus("a", weight=1), corpus("b", weight=0)]
    data = small_text.prepare(two_texts, **{"data.corpora": corpora})
    assert data.manifest.corpus_sizes == {"a": 45, "b": 70}


def test_a_changed_text_is_named_by_its_corpus(two_texts):
    changes = {"data.corpora": [corpus("a"), corpus("b")]}
    small_text.prepare(two_texts, **changes)
    small_text.write_lines(two_texts / "b.de", ["other"] * 70)
    message = small_text.refusal(two_texts, **changes)
    assert "the text of corpus 'b' has changed" in message


def test_other_weights_and_names_of_files_need_no_other_data(two_texts, monkeypatch):
    small_text.prepare(two_texts, **{"data.corpora": [corpus("a"), corpus("b")]})
    (two_texts / "b.en").rename(two_texts / "moved.en")
    moved = corpus("b", weight=7) | {"source": "moved.en"}
    monkeypatch.setattr(prepare, "prepare", small_text.forbidden)
    small_text.prepare(two_texts, **{"data.corpora": [corpus("a", weight=1), moved]})


@pytest.mark.parametrize(
    "changes",
    [
        {"data.corpora": [corpus("b"), corpus("a")]},
        {"data.corpora": [corpus("a")]},
        {"data.corpora": []},
        {"data.corpora": [corpus("a"), corpus("b", noise_upper=0.5)]},
    ],
)
def test_other_corpora_need_other_data(two_texts, changes):
    small_text.prepare(two_texts, **{"data.corpora": [corpus("a"), corpus("b")]})
    assert "config.data.corpora is" in small_text.refusal(two_texts, **changes)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"source": "none.en"},
            r"^config\.data\.corpora, corpus 'b': source: no file .*none\.en "
            r".*correct the source of the corpus$",
        ),
        ({"target": "a.de"}, r"corpus 'b': the two sides must have the same number"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_named(two_texts, fields, message):
    corpora = [corpus("a"), corpus("b") | fields]
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        small_text.prepare(two_texts, **{"data.corpora": corpora})


def test_a_corpus_of_no_use_is_named(two_texts):
    for ending in ("en", "de"):
        small_text.write_lines(two_texts / f"b.{ending}", ["", " "])
    with pytest.raises(ValueError, match="no pair of corpus 'b' can be used"):
        small_text.prepare(two_texts, **{"data.corpora": [corpus("a"), corpus("b")]})


def test_copies_of_a_corpus_stay_together(two_texts):
    changes = {"data.subword_dropout": 0.3, "data.subword_samples": 3}
    changes |= {"data.vocab_size": 60}  # with the capitals
    corpora = [corpus("a"), corpus("b", noise_upper=0.5, noise_copies=5)]
    data = small_text.prepare(two_texts, **changes, **{"data.corpora": corpora})
    kept = {
        name: sum(counts.values()) for name, counts in data.manifest.corpora.items()
    }
    assert kept == {"a": 3 * 50, "b": 5 * 70}


def test_a_manifest_without_corpora_is_read_as_before(text):
    path = small_text.prepare(text).directory / "manifest.json"
    assert "corpora" not in json.loads(path.read_text())


def test_a_sample_of_one_pair_leaves_corpora_out(two_texts):
    data = small_text.settings_of(
        two_texts, **{"data.corpora": [corpus("a"), corpus("b")]}
    ).data
    text = training_text.TrainingText(data, seed=1)
    text.count()
    text.clean()
    for size in (1, 2, 119, 120):
        assert len(list(text.sample(size))) == size


def test_cleaning_counts_duplicates_of_all_corpora(two_texts, caplog):
    for ending in ("en", "de"):
        lines = small_text.read_lines(two_texts / f"a.{ending}")
        small_text.write_lines(two_texts / f"b.{ending}", [*lines[20:40], "new one"])
    changes = {"data.clean_duplicates": True, "data.clean_empty": True}
    corpora = [corpus("a"), corpus("b", tag="<b>")]
    symbols = {"data.user_symbols": "<b>", "data.vocab_size": 43}
    data = small_text.prepare(
        two_texts, **changes, **symbols, **{"data.corpora": corpora}
    )
    assert sum(data.manifest.corpora["a"].values()) == 47
    assert data.manifest.corpora["b"] == {"kept": 1, "empty": 0, "too_long": 0}
    assert data.manifest.cleaning == {"empty": 3, "duplicates": 20}
    last = small_text.sentences(data.token_pairs("train").source)[-1]
    assert data.vocabulary.decode(last).startswith("<b> ")


def test_cleaning_is_counted_for_each_corpus(two_texts, caplog):
    for ending in ("en", "de"):
        lines = small_text.read_lines(two_texts / f"a.{ending}")
        small_text.write_lines(two_texts / f"b.{ending}", [*lines[20:40], "new one"])
    changes = {"data.clean_duplicates": True, "data.clean_empty": True}
    changes |= {"data.vocab_size": 43}
    for names, expected in (
        ("ab", {"a": (3, 0), "b": (0, 20)}),
        ("ba", {"b": (0, 0), "a": (3, 20)}),
    ):
        caplog.clear()
        corpora = [corpus(name) for name in names]
        data = small_text.prepare(
            two_texts, rebuild=True, **changes, **{"data.corpora": corpora}
        )
        assert data.manifest.cleaning_by_corpus == {
            name: {"empty": empty, "duplicates": duplicates}
            for name, (empty, duplicates) in expected.items()
        }
        assert (
            f"corpus 'a': kept {47 - expected['a'][1]} of 50 pairs; left out: 3 "
            f"empty, {expected['a'][1]} duplicates" in caplog.text
        )


def test_cleaning_does_not_change_the_noise_of_other_pairs(two_texts):
    changes = {"data.corpora": [corpus("a", noise_typos=0.5)]}
    noisy = []
    for is_clean in (False, True):
        data = small_text.settings_of(
            two_texts, **changes, **{"data.clean_empty": is_clean}
        ).data
        text = training_text.TrainingText(data, seed=1)
        text.count()
        text.clean()
        noisy.append(list(text.pairs(0, copy=0)))
    assert len(noisy[1]) < len(noisy[0])
    assert noisy[1] == [pair for pair in noisy[0] if all(map(str.strip, pair))]


def test_a_corpus_of_which_cleaning_keeps_nothing_is_named(two_texts):
    for ending in ("en", "de"):
        (two_texts / f"b.{ending}").write_bytes(
            (two_texts / f"a.{ending}").read_bytes()
        )
    changes = {"data.clean_duplicates": True}
    message = r"data\.clean_\* left out every training pair of corpus 'b'"
    with pytest.raises(ValueError, match=message):
        small_text.prepare(
            two_texts, **changes, **{"data.corpora": [corpus("a"), corpus("b")]}
        )
