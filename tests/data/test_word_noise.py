"""Noise of words, against what Edunov et al. (2018) say of it."""

import itertools

import numpy as np
import pytest

from vaswani_jax.data.word_noise import WordNoise

LINE = " ".join(f"w{number}" for number in range(20))


def noised(noise: WordNoise, count: int, line: str = LINE) -> list[list[str]]:
    return [
        noise.apply(line, np.random.default_rng(seed), has_spaces=True).split()
        for seed in range(count)
    ]


def test_no_word_moves_further_than_three_places() -> None:
    noise = WordNoise(word_dropout=0.0, word_blank=0.0)
    distances = {
        position - int(word[1:])
        for words in noised(noise, 500)
        for position, word in enumerate(words)
    }
    assert distances == set(range(-3, 4))
    assert all(sorted(words) == sorted(LINE.split()) for words in noised(noise, 50))


def test_every_order_within_the_limit_comes_up() -> None:
    noise = WordNoise(word_dropout=0.0, word_blank=0.0)
    orders = {tuple(words) for words in noised(noise, 2000, "a b c")}
    assert orders == set(itertools.permutations("abc"))


def test_a_tenth_of_the_words_is_deleted_and_a_tenth_of_the_rest_blank() -> None:
    lines = noised(WordNoise(), 2000)
    total, kept = 2000 * 20, sum(map(len, lines))
    blank = sum(words.count("<BLANK>") for words in lines)
    # Four standard deviations of a binomial: 4 sqrt(n 0.09).
    assert abs(kept - 0.9 * total) < 4 * (0.09 * total) ** 0.5
    assert abs(blank - 0.1 * kept) < 4 * (0.09 * kept) ** 0.5


def test_a_line_keeps_a_word_and_an_empty_line_stays_empty() -> None:
    noise = WordNoise(word_dropout=0.999, word_blank=0.0, word_shuffle=0)
    lines = noised(noise, 50)
    assert all(len(words) == 1 for words in lines)
    assert len({words[0] for words in lines}) > 5
    assert noised(noise, 1, "") == [[]]


def test_no_noise_changes_nothing() -> None:
    assert (
        noised(WordNoise(word_dropout=0.0, word_blank=0.0, word_shuffle=0), 3)
        == [LINE.split()] * 3
    )


def test_characters_are_the_words_where_no_spaces_are() -> None:
    noise = WordNoise(word_dropout=0.0, word_blank=0.3, blank_token="*")
    text = noise.apply("漢字とかな", np.random.default_rng(1), has_spaces=False)
    assert len(text) == 5 and "*" in text and set(text) <= set("漢字とかな*")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_dropout": 1.0}, r"word_dropout must be in \[0, 1\), got 1.0"),
        ({"word_blank": -0.1}, r"word_blank must be in \[0, 1\), got -0.1"),
        ({"word_shuffle": -1}, "word_shuffle must be at least 0, got -1"),
        ({"blank_token": "a b"}, "blank_token must be a word without spaces"),
        ({"blank_token": ""}, "blank_token must be a word without spaces"),
    ],
)
def test_values_out_of_range_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        WordNoise(**options).check()  # type: ignore[arg-type]
