"""Noise changes as many pairs as it should, in the ways that it names."""

import itertools
import random
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.data import small_text
from vaswani_jax.core import config
from vaswani_jax.core.corpora import Corpus
from vaswani_jax.data import noise

KINDS = ("upper", "title", "typos", "punctuation")
SYMBOLS = ["<2de>", "<name>"]
PAIRS = [
    (f"a dog no. {n} is running over there.", f"ein Hund nr. {n} läuft dort.")
    for n in range(2000)
]
TEXTS = st.text(st.sampled_from("abßİиЖ漢. -'\"1é"), max_size=25)


def data_of(**overrides: object) -> config.DataConfig:
    return small_text.settings_of(".", **overrides).data


def noisy(
    pairs: list[tuple[str, str]],
    *,
    key: tuple[int, str, int] = (1, "news", 0),
    data: config.DataConfig | None = None,
    **probabilities: float,
) -> list[tuple[str, str]]:
    fields: dict[str, Any] = {f"noise_{kind}": p for kind, p in probabilities.items()}
    corpus = Corpus(name="news", source="news.en", target="news.de", **fields)
    return list(noise.add_noise(pairs, corpus, data or data_of(), key=key))


def num_changed(pairs: list[tuple[str, str]], changed: list[tuple[str, str]]) -> int:
    return sum(a != b for a, b in zip(pairs, changed, strict=True))


def edits(source: str, target: str) -> int:
    """Damerau's distance, of adjacent transpositions, by its recursion."""
    distances = {}
    for i, j in itertools.product(range(len(source) + 1), range(len(target) + 1)):
        if not i or not j:
            distances[i, j] = i + j
            continue
        best = distances[i - 1, j - 1] + (source[i - 1] != target[j - 1])
        best = min(best, distances[i - 1, j] + 1, distances[i, j - 1] + 1)
        is_swap = source[i - 2 : i] == target[j - 2 : j][::-1]
        if min(i, j) > 1 and is_swap:
            best = min(best, distances[i - 2, j - 2] + 1)
        distances[i, j] = best
    return distances[len(source), len(target)]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("probability", [0.1, 0.6])
def test_a_change_comes_with_its_probability(name: str, probability: float) -> None:
    changed = noisy(PAIRS, **{name: probability})
    deviation = (len(PAIRS) * probability * (1 - probability)) ** 0.5
    # Beyond five standard deviations once in a million.
    expected = len(PAIRS) * probability
    assert abs(num_changed(PAIRS, changed) - expected) < 5 * deviation


@pytest.mark.parametrize("name", KINDS)
def test_nothing_changes_without_noise_and_everything_with_all(name: str) -> None:
    assert noisy(PAIRS[:50], **{name: 0.0}) == PAIRS[:50]
    assert num_changed(PAIRS[:50], noisy(PAIRS[:50], **{name: 1.0})) == 50


def test_noise_depends_on_seed_corpus_pair_and_copy_alone() -> None:
    half = {"upper": 0.3, "typos": 0.5}
    changed = noisy(PAIRS, **half)
    assert noisy(PAIRS, **half) == changed
    assert noisy(PAIRS[:70], **half) == changed[:70]
    for key in ((2, "news", 0), (1, "crawl", 0), (1, "news", 1)):
        other = noisy(PAIRS, key=key, **half)
        num_different = num_changed(changed, other) / len(PAIRS)
        # Both are as they were, or both in capitals without an error.
        assert abs(num_different - (1 - 0.35**2 - 0.15**2)) < 0.05
    # Changes of one kind do not move those of another.
    typos = noisy(PAIRS, typos=0.5)
    for both, alone in zip(changed, typos, strict=True):
        assert both[0] in (alone[0], alone[0].upper())


def test_capitals_are_of_both_sides() -> None:
    [(source, target)] = noisy([("it's a dog", "ein Straßenhund")], upper=1.0)
    assert (source, target) == ("IT'S A DOG", "EIN STRASSENHUND")
    [(source, target)] = noisy([('"it\'s" a dog', "ein 'Hund' é-x")], title=1.0)
    assert (source, target) == ('"It\'s" A Dog', "Ein 'Hund' É-x")
    [pair] = noisy([("a dog", "ein Hund")], upper=1.0, title=1.0)
    assert pair == ("A DOG", "EIN HUND")


def test_title_case_has_its_probability_among_pairs_not_in_capitals() -> None:
    changed = [source for source, _ in noisy(PAIRS, upper=0.2, title=0.5)]
    for count, share in (
        (sum(map(str.isupper, changed)), 0.2),
        (sum(map(str.istitle, changed)), 0.5 * (1 - 0.2)),
    ):
        deviation = (len(PAIRS) * share * (1 - share)) ** 0.5
        assert abs(count - len(PAIRS) * share) < 5 * deviation


def test_a_turkish_i_keeps_its_dot() -> None:
    data = data_of(**{"data.target_locale": "tr"})
    [pair] = noisy([("iki", "iki ılık")], upper=1.0, data=data)
    assert pair == ("IKI", "İKİ ILIK")
    [pair] = noisy([("iki", "iki ılık")], title=1.0, data=data)
    assert pair == ("Iki", "İki Ilık")


@pytest.mark.parametrize("name", ["upper", "title", "typos"])
def test_the_code_of_a_language_stays_as_it_is(name: str) -> None:
    [(source, _)] = noisy([(">>fra<< a dog", "un chien")], **{name: 1.0})
    code, text = source[:8], source[8:]
    assert code == ">>fra<< " and text != "a dog"


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("How are you?", "Wie geht es?"), ("How are you", "Wie geht es")),
        (("He comes. ", "他来了。"), ("He comes", "他来了")),
        (("Oui !", "Ja!"), ("Oui", "Ja")),
        (("Go!", "Geh."), None),
        (("Well ...", "Nun ..."), None),
        (("What?!", "Was?!"), None),
        ((".", "."), None),
        (("a", "b"), None),
        (("", ""), None),
    ],
)
def test_the_last_mark_goes_if_both_sides_end_in_one_of_a_kind(
    pair: tuple[str, str], expected: tuple[str, str] | None
) -> None:
    assert noisy([pair], punctuation=1.0) == [expected or pair]


@hypothesis.settings(max_examples=150)
@hypothesis.given(text=TEXTS, seed=st.integers(0, 1000))
def test_a_typing_error_is_one_edit(text: str, seed: int) -> None:
    changed = noise.add_typo(text, random.Random(seed), symbols=[])
    assert edits(text, changed) == (changed != text)
    assert changed.strip() or not text.strip()
    if any(character.isalpha() for character in text):
        assert changed != text


@hypothesis.settings(max_examples=50)
@hypothesis.given(
    parts=st.lists(
        st.sampled_from(["<2de>", "<name>", "der", "Hund", "x"]), max_size=8
    ),
    probabilities=st.tuples(*[st.sampled_from([0.0, 1.0])] * 4),
)
def test_user_symbols_stay_as_they_are(
    parts: list[str], probabilities: tuple[float, ...]
) -> None:
    pair = (" ".join(parts) + ".", "".join(parts) + ".")
    data = data_of(**{"data.user_symbols": ",".join(SYMBOLS)})
    changes = dict(zip(KINDS, probabilities, strict=True))
    [changed] = noisy([pair], data=data, **changes)
    for before, after in zip(pair, changed, strict=True):
        for symbol in SYMBOLS:
            assert after.count(symbol) == before.count(symbol)


def test_a_long_line_has_an_error_for_ten_words_begun() -> None:
    line = "the quick brown fox jumps over the lazy dog " * 3
    for seed in range(20):
        changed = noise.add_typos(line, random.Random(seed), symbols=[])
        assert 1 <= edits(line, changed) <= 3  # 27 words


def test_a_line_that_is_too_long_to_train_on_gets_no_typos() -> None:
    line = "dog " * 200_000
    assert noise.add_typos(line, random.Random(0), symbols=[]) == line


def test_every_kind_of_error_happens_and_the_keys_are_neighbours() -> None:
    changed = {
        noise.add_typo("hello x", random.Random(n), symbols=[]) for n in range(400)
    }
    for expected in ("ehllo x", "hllo x", "hhello x", "gello x", "hgello x", "helo x"):
        assert expected in changed
    assert "hellox" in changed and "he llo x" in changed
    assert "qello x" not in changed and "hello " not in changed
    russian = {noise.add_typo("МИ", random.Random(n), symbols=[]) for n in range(400)}
    assert {"СИ", "ИИ", "ММИ", "ИМ", "М И"} <= russian


@pytest.mark.parametrize(
    ("field", "count_of"),
    [
        ("noise_upper", lambda lines: sum(line.isupper() for line in lines)),
        ("noise_title", lambda lines: sum(line.istitle() for line in lines)),
        ("noise_punctuation", lambda lines: sum(line[-1] != "." for line in lines)),
        (
            "noise_typos",
            lambda lines: sum(not set(line.split()) <= CORRECT for line in lines),
        ),
    ],
)
def test_each_field_of_a_corpus_changes_what_is_prepared(text, field, count_of):
    generator = random.Random(1)
    lines = [f"{small_text.random_line(generator, 6)}." for _ in range(60)]
    for ending in ("en", "de"):
        small_text.write_lines(text / f"train.{ending}", lines)
    corpus = {"name": "a", "source": "train.en", "target": "train.de"}
    changes = {"data.vocab_size": 300, "data.byte_fallback": True}
    changes["data.max_length"] = 100
    counts = {}
    for value in (0.0, 0.5, 1.0):
        copies = 3 if value == 0.5 else 1
        fields = {field: value, "noise_copies": copies} if value else {}
        data = small_text.prepare(
            text, rebuild=True, **changes, **{"data.corpora": [corpus | fields]}
        )
        source, target = (
            [data.vocabulary.decode(ids) for ids in small_text.sentences(side)]
            for side in data.token_pairs("train")
        )
        assert len(source) == len(target) == 60 * copies
        counts[value] = count_of(source)
        if field == "noise_typos":
            assert target == lines * copies
        else:
            assert target == source
        # Each copy has noise of its own.
        if copies > 1:
            assert len({tuple(source[n : n + 60]) for n in (0, 60, 120)}) == 3
    assert counts[0.0] == 0 < 60 < counts[0.5] < 120
    # Some errors make another word of the text.
    assert counts[1.0] == 60 if field != "noise_typos" else counts[1.0] > 50
    # Held-out text has no noise.
    assert data.text("valid")[0] == small_text.read_lines(text / "valid.en")


CORRECT = {f"{word}{mark}" for word in small_text.WORDS for mark in (".", "")}
