"""What the vocabulary of a run learns from, and which given ones are refused."""

import pytest

from tests import settings
from tests.data import small_text, small_vocabularies
from vaswani_jax.data import prepare, prepared, run_vocabulary
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords


@pytest.mark.parametrize(
    ("num_pairs", "sample_size"), [(120, 40), (103, 40), (120, 39), (97, 96), (50, 2)]
)
def test_the_vocabulary_learns_from_lines_spread_over_the_text(
    text, num_pairs, sample_size, monkeypatch
):
    lines_read = []

    def learn_and_note(lines, data, **options):
        lines_read.extend(lines)
        return learn_subwords(
            small_text.read_lines(text / "valid.en") + small_text.WORDS, data
        )

    for ending in ("en", "de"):
        lines = [f"{ending} {number}" for number in range(num_pairs)]
        small_text.write_lines(text / f"train.{ending}", lines)
    monkeypatch.setattr(run_vocabulary, "learn_subwords", learn_and_note)
    small_text.prepare(text, **{"data.sentencepiece_sample_size": sample_size})
    numbers = [int(line.split(" ")[1]) for line in lines_read[::2]]
    assert lines_read[::2] == [f"en {number}" for number in numbers]
    assert lines_read[1::2] == [f"de {number}" for number in numbers]
    assert len(numbers) == sample_size // 2
    # As even as whole numbers can be, from the first pair to the end.
    every = num_pairs / len(numbers)
    gaps = [b - a for a, b in zip([*numbers, num_pairs], numbers[1:], strict=False)]
    assert numbers[0] == 0
    assert num_pairs - numbers[-1] <= every + 1
    assert all(every - 1 < gap < every + 1 for gap in gaps)


def test_the_vocabulary_learns_from_all_pairs_that_training_keeps(text, monkeypatch):
    lines_read = []
    monkeypatch.setattr(
        run_vocabulary,
        "learn_subwords",
        lambda lines, data, **options: learn_subwords(spy(lines, lines_read), data),
    )
    sides = [small_text.read_lines(text / f"train.{ending}") for ending in ("en", "de")]
    # SentencePiece reads many spaces as one.
    sides[0][0] = f"ba{' ' * 600}ko"
    small_text.write_lines(text / "train.en", sides[0])
    small_text.prepare(text, **{"data.sentencepiece_sample_size": 300})
    # Training leaves out empty sides, and what 29 subwords cannot spell.
    pairs = [
        pair
        for pair in zip(*sides, strict=True)
        if all(line.strip(" \t\0\x0c\u2028\x85") for line in pair)
    ]
    usable = [
        pair
        for pair in pairs
        if max(len(" ".join(line.split())) for line in pair) <= 29 * 16
    ]
    assert usable[0][0] == sides[0][0]
    assert lines_read == [line for pair in usable for line in pair]
    assert len(usable) < len(pairs) < len(sides[0])


def spy(lines, lines_read):
    for line in lines:
        lines_read.append(line)
        yield line


@pytest.mark.parametrize(
    ("terminals", "source", "reason"),
    [
        ("word", "treebank", "tree_terminals=word, but .* data.tree_terminals=tag"),
        ("tag", "copy", "for trees with .*, but these settings are for text"),
        ("", "treebank", "is for text, but .* for trees"),
    ],
)
def test_a_given_vocabulary_of_another_kind_is_refused(
    tmp_path, terminals, source, reason
):
    given = small_vocabularies.trained("bpe", False)
    if terminals:
        trees = TreeSymbols.learn(["(S (UH Oh))"], terminals=terminals)
        given = Vocabulary(WordSubwords(given.source.model), trees, is_shared=False)
    changes = {"data.vocabulary_sharing": "separate", "data.source": source}
    if source == "treebank":
        changes |= settings.TREEBANK
    data = settings.small_settings(**changes).data
    with pytest.raises(ValueError, match=reason):
        prepare.prepare(data, tmp_path, seed=1, vocabulary=given)


def test_a_given_vocabulary_without_merges_takes_no_dropout(text):
    unigram = {"data.subword_model": "unigram", "data.vocab_size": 35}
    initial = small_text.prepare(text, **unigram).vocabulary
    sampled = small_text.settings_of(
        text, **{"data.subword_dropout": 0.3, "data.subword_samples": 3}
    )
    with pytest.raises(ValueError, match=r"subword_dropout=0\.3 needs BPE"):
        prepared.open_or_prepare(
            sampled,
            text.with_name("other"),
            rebuild=False,
            initial_vocabulary=initial,
        )


def test_the_given_vocabulary_that_takes_no_dropout_is_named(text, tmp_path):
    unigram = {"data.subword_model": "unigram", "data.vocab_size": 35}
    given = small_text.prepare(text, **unigram).vocabulary
    (tmp_path / "own.model").write_bytes(given.source.model)
    changes = {
        "data.subword_dropout": 0.3,
        "data.subword_samples": 3,
        "data.vocabulary_sharing": "separate",
        "data.target_vocabulary": str(tmp_path / "own.model"),
    }
    data = small_text.settings_of(text, **changes).data
    with pytest.raises(
        ValueError, match=r"of config\.data\.target_vocabulary is of an"
    ):
        prepare.prepare(data, tmp_path / "data", seed=1, vocabulary=None)
