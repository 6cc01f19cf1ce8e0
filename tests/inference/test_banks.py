"""Searches for outputs with phrases, against all outputs and a search with lists."""

import collections
import functools
from collections.abc import Sequence
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.inference import prefixes
from vaswani_jax.core import types
from vaswani_jax.inference import banks, beam_search, logit_biases

C, L = 4, 3
# The tokens that can only follow a whole word; the word 3 goes on with what is before.
BREAKS = (types.EOS_ID, 4, 5)
# Ids, and whether a new word must follow.
Phrase = tuple[tuple[int, ...], bool]


def pack(
    sentences: Sequence[Sequence[Phrase]],
    *,
    breaks: Sequence[int] = BREAKS,
    num_tokens: int = prefixes.V,
) -> banks.PhraseRows:
    """Return the phrases of each sentence; a repeated one must occur as often."""
    B = len(sentences)
    tokens = np.zeros((B, C, L), np.int32)
    counts, are_words = np.zeros((B, C), np.int32), np.zeros((B, C), bool)
    for b, phrases in enumerate(sentences):
        for c, ((ids, is_word), n) in enumerate(collections.Counter(phrases).items()):
            tokens[b, c, : len(ids)], counts[b, c], are_words[b, c] = ids, n, is_word
    bits = np.packbits(np.isin(np.arange(num_tokens), breaks))
    return banks.PhraseRows(tokens, counts, are_words, np.tile(bits, (B, 1)))


@functools.partial(jax.jit, static_argnames=("W", "n_best"))
def search(
    logits: Any,
    max_lengths: Any,
    rows: banks.PhraseRows,
    *,
    W: int,
    n_best: int = 1,
) -> types.Hypotheses:
    """Search with an alpha of 1."""
    B = logits.shape[0]
    return beam_search.beam_search(
        prefixes.STEPPER,
        prefixes.initial_state(logits, W=W),
        max_lengths=max_lengths,
        options=prefixes.options(W=W, alpha=0.0, n_best=n_best),
        alpha=jnp.ones(B),
        phrases=banks.RequiredPhrases(rows, np.zeros(B, np.int32)),
    )


def occurrences(
    words: prefixes.Prefix,
    phrase: Phrase,
    *,
    ends: bool,
    breaks: Sequence[int] = BREAKS,
) -> int:
    """How often words have a phrase; if they do not end, its last one may go on."""
    ids, is_word = phrase
    followed = [*words, types.EOS_ID if ends else types.PAD_ID]
    return sum(
        words[i : i + len(ids)] == ids
        and not (is_word and followed[i + len(ids)] not in breaks)
        for i in range(len(words) - len(ids) + 1)
    )


def lacking(
    words: prefixes.Prefix,
    phrases: Sequence[Phrase],
    *,
    ends: bool = True,
    breaks: Sequence[int] = BREAKS,
) -> dict[Phrase, int]:
    return {
        phrase: n
        for phrase, n in collections.Counter(phrases).items()
        if occurrences(words, phrase, ends=ends, breaks=breaks) < n
    }


def num_begun(words: prefixes.Prefix, phrase: Phrase) -> int:
    ids, _ = phrase
    return max(n for n in range(len(ids)) if words[len(words) - n :] == ids[:n])


def bank(tokens: prefixes.Prefix, phrases: Sequence[Phrase]) -> int:
    """The tokens of phrases, what follows one of words included."""
    ends = tokens[-1] == types.EOS_ID
    words = tokens[:-1] if ends else tokens
    in_phrases = 0
    for (ids, is_word), n in collections.Counter(phrases).items():
        phrase = ids, is_word
        in_phrases += len(ids) * min(n, occurrences(words, phrase, ends=True))
        in_phrases += is_word * min(n, occurrences(words, phrase, ends=ends))
    begun = [num_begun(words, phrase) for phrase in lacking(words, phrases)]
    return in_phrases + max(begun, default=0)


def plain_search(
    table: np.ndarray, phrases: Sequence[Phrase], max_length: int, *, W: int
) -> list[tuple[float, prefixes.Prefix]]:
    """Search with lists, always to the end; return the finished, or the live."""
    live: list[tuple[float, prefixes.Prefix]] = [(0.0, ())]
    finished = []
    for position in range(max_length):
        considered = set()
        all_extensions = []
        for total, words in live:
            log_probs = table[prefixes.number(words)]
            own = [
                (total + log_probs[token], (*words, token))
                for token in (types.EOS_ID, *prefixes.WORDS)
                if token != types.EOS_ID or not lacking(words, phrases)
            ]
            all_extensions += own
            if not phrases:
                continue
            if lacking(words, phrases, ends=False) != lacking(words, phrases):
                own = [each for each in own if each[1][-1] in BREAKS]
            considered |= {*sorted(own, reverse=True)[:2]}
            for phrase in lacking(words, phrases):
                token = phrase[0][num_begun(words, phrase)]
                considered.add((total + log_probs[token], (*words, token)))
        considered |= {*sorted(all_extensions, reverse=True)[: 2 * W]}
        by_bank = collections.defaultdict(list)
        for total, tokens in sorted(considered, reverse=True):
            by_bank[bank(tokens, phrases)].append((total, tokens))
        shared = sorted(
            (rank, -bank, extension)
            for bank, extensions in by_bank.items()
            for rank, extension in enumerate(extensions)
        )
        ordered = [extension for _, _, extension in shared][: 2 * W]
        for total, tokens in ordered[:W]:
            if tokens[-1] == types.EOS_ID:
                finished.append((total / prefixes.penalty(position + 1, 1.0), tokens))
        live = [each for each in ordered if each[1][-1] != types.EOS_ID][:W]
    return finished or [
        (total / prefixes.penalty(max_length, 1.0), words)
        for total, words in live
        if not lacking(words, phrases)
    ]


def random_phrases(seed: int, *, B: int, room: int) -> list[list[Phrase]]:
    """Up to four phrases that fit into so many tokens; every third sentence has none.

    A phrase of words may have to be followed by one token more.
    """
    generator = np.random.default_rng(seed)
    sentences = []
    for b in range(B):
        phrases: list[Phrase] = []
        while b % 3 and len(phrases) < C:
            is_word = bool(generator.integers(2))
            length = int(generator.integers(1, L + 1))
            ids = tuple(generator.choice(prefixes.WORDS, length).tolist())
            phrases.append((ids, is_word))
            if sum(len(ids) + is_word for ids, is_word in phrases) > room:
                phrases.pop()
                break
        sentences.append(phrases)
    return sentences


def best_of(
    outputs: Sequence[prefixes.Prefix], table: np.ndarray
) -> tuple[float, prefixes.Prefix]:
    """Return the output with the highest score, and the score."""
    scores = (
        prefixes.log_probability(table, tokens) / prefixes.penalty(len(tokens), 1.0)
        for tokens in outputs
    )
    return max(zip(scores, outputs, strict=True))


def test_a_wide_beam_finds_the_best_of_all_outputs_with_the_phrases() -> None:
    B = 18
    logits = prefixes.random_logits(0, B=B)
    sentences = random_phrases(1, B=B, room=prefixes.LONGEST - 1)
    max_lengths = np.full(B, prefixes.LONGEST)
    found = search(logits, max_lengths, pack(sentences), W=prefixes.WIDE)
    tables = prefixes.log_probabilities(logits)
    expected = []
    for table, phrases in zip(tables, sentences, strict=True):
        finished = prefixes.all_finished(prefixes.LONGEST)
        outputs = [each for each in finished if not lacking(each[:-1], phrases)]
        expected.append(best_of(outputs, table))
    prefixes.assert_finds(found, expected)
    free = prefixes.search(logits, max_lengths, W=prefixes.WIDE, alpha=1.0)
    changed = (found.tokens[:, 0] != free.tokens[:, 0]).any(axis=1)
    assert changed[1::3].any() and changed[2::3].any() and not changed[::3].any()


@pytest.mark.parametrize("W", [1, 3])
def test_a_narrow_beam_finds_what_a_plain_search_with_banks_finds(W: int) -> None:
    B = 90
    logits = prefixes.random_logits(W, B=B)
    sentences = random_phrases(W, B=B, room=prefixes.LONGEST - 1)
    max_lengths = np.full(B, prefixes.LONGEST)
    found = search(logits, max_lengths, pack(sentences), W=W, n_best=W)
    tables = prefixes.log_probabilities(logits)
    expected = [
        max(plain_search(tables[b], sentences[b], prefixes.LONGEST, W=W))
        for b in range(B)
    ]
    prefixes.assert_finds(found, expected)


def test_a_sentence_without_phrases_is_found_as_by_a_search_without_banks() -> None:
    """To the last digit, whatever its neighbours have."""
    B, W = 90, 3
    logits = prefixes.random_logits(4, B=B)
    sentences = random_phrases(5, B=B, room=prefixes.LONGEST - 1)
    max_lengths = np.arange(B) % prefixes.LONGEST + 1
    found = search(logits, max_lengths, pack(sentences), W=W, n_best=W)
    free = prefixes.search(logits, max_lengths, W=W, alpha=1.0, n_best=W)
    for b in range(0, B, 3):
        np.testing.assert_array_equal(found.tokens[b], free.tokens[b])
        np.testing.assert_array_equal(found.scores[b], free.scores[b])


def test_a_sentence_with_phrases_does_not_depend_on_its_neighbours() -> None:
    B, W = 90, 3
    logits = prefixes.random_logits(6, B=B)
    sentences = random_phrases(7, B=B, room=prefixes.LONGEST - 1)
    max_lengths = np.full(B, prefixes.LONGEST)
    together = search(logits, max_lengths, pack(sentences), W=W, n_best=W)
    for b in range(0, B, 8):
        alone = search(
            logits[b : b + 1],
            max_lengths[b : b + 1],
            pack(sentences[b : b + 1]),
            W=W,
            n_best=W,
        )
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[b])
        np.testing.assert_allclose(alone.scores[0], together.scores[b], rtol=1e-6)


# A model of more words and longer outputs: its logits depend on all tokens.
NUM_WORDS, ROOM, NUM_CODES, SENTENCES = 6, 16, 997, 6
LONG_BREAKS = (types.EOS_ID, 3, 4, 5)
long_phrases = st.lists(
    st.tuples(
        st.lists(st.integers(3, 2 + NUM_WORDS), min_size=1, max_size=L).map(tuple),
        st.booleans(),
    ),
    max_size=C,
)


def next_code(code: Any, token: Any) -> Any:
    return (code * 31 + token) % NUM_CODES


@functools.partial(jax.jit, static_argnames="W")
def search_long(
    table: Any, rows: banks.PhraseRows, prefix: Any, *, W: int
) -> types.Hypotheses:
    """Search with prefixes, and without a repeated token."""
    B = prefix.shape[0]

    def step(tokens: Any, codes: Any, position: Any) -> tuple[Any, Any]:
        codes = jnp.where(position == 0, 0, next_code(codes, tokens))
        return table[codes], codes

    no_repeat = settings.small_settings(**{"search.no_repeat_ngram": 1}).search
    return beam_search.beam_search(
        beam_search.Stepper(
            step, lambda codes, origin: jnp.take_along_axis(codes, origin, axis=1)
        ),
        jnp.zeros((B, W), jnp.int32),
        max_lengths=jnp.full(B, ROOM),
        options=beam_search.SearchOptions(
            beam_size=W, n_best=W, alpha=0.6, buffer_lengths=(4, 8), max_length=ROOM
        ),
        logit_bias=logit_biases.make_logit_bias(
            no_repeat, prefix, vocab_size=3 + NUM_WORDS
        ),
        phrases=banks.RequiredPhrases(rows, jnp.sum(prefix != 0, axis=1)),
    )


# No new word is left that would repeat nothing.
@hypothesis.example(
    0,
    [[((8,), True), ((3, 4), True), ((8,), True)]] * SENTENCES,
    [[]] * SENTENCES,
    1,
)
@hypothesis.settings(max_examples=25)
@hypothesis.given(
    st.integers(0, 2**32 - 1),
    st.lists(long_phrases, min_size=SENTENCES, max_size=SENTENCES),
    st.lists(
        st.lists(st.integers(3, 2 + NUM_WORDS), max_size=2),
        min_size=SENTENCES,
        max_size=SENTENCES,
    ),
    st.sampled_from([1, 4]),
)
def test_every_output_begins_with_its_prefix_and_has_all_its_phrases(
    seed: int,
    sentences: list[list[Phrase]],
    prefixes_: list[list[int]],
    W: int,
) -> None:
    """Although the phrases repeat tokens, which nothing else may."""
    fitting = []
    for phrases in sentences:
        needed: list[Phrase] = []
        for ids, is_word in phrases:
            if sum(len(ids) + 1 for ids, _ in needed) + len(ids) + 1 <= ROOM - 3:
                needed.append((ids, is_word))
        fitting.append(needed)
    logits = 2 * np.random.default_rng(seed).standard_normal((NUM_CODES, 3 + NUM_WORDS))
    # Endings are likely: what lacks a phrase would end without it.
    logits[:, types.EOS_ID] += 3
    prefix = np.zeros((SENTENCES, 2), np.int32)
    for row, ids in zip(prefix, prefixes_, strict=True):
        row[: len(ids)] = ids
    rows = pack(fitting, breaks=LONG_BREAKS, num_tokens=3 + NUM_WORDS)
    found = search_long(logits.astype(np.float32), rows, prefix, W=W)
    for b in range(SENTENCES):
        for tokens, score in zip(
            found.tokens[b].tolist(), found.scores[b], strict=True
        ):
            if score == -np.inf:
                continue
            words = tuple(token for token in tokens if token > types.EOS_ID)
            assert list(words[: len(prefixes_[b])]) == prefixes_[b]
            assert not lacking(words, fitting[b], breaks=LONG_BREAKS)
        assert found.scores[b, 0] > -np.inf


# The ids of a phrase, those without a space before it, whether a new word must follow.
Spelled = tuple[prefixes.Prefix, prefixes.Prefix, bool]
OPENERS = (5,)


def pack_spellings(
    sentences: Sequence[Sequence[Spelled]],
    *,
    breaks: Sequence[int] = BREAKS,
    num_tokens: int = prefixes.V,
) -> banks.PhraseRows:
    """Return phrases with two spellings; the phrases of a sentence differ."""
    rows = pack(
        [[(ids, is_word) for ids, _, is_word in phrases] for phrases in sentences],
        breaks=breaks,
        num_tokens=num_tokens,
    )
    joined_tokens = np.zeros_like(rows.tokens)
    for b, phrases in enumerate(sentences):
        for c, (_, joined, _) in enumerate(phrases):
            joined_tokens[b, c, : len(joined)] = joined
    bits = np.packbits(np.isin(np.arange(num_tokens), OPENERS))
    openers = np.tile(bits, (len(sentences), 1))
    return rows._replace(joined_tokens=joined_tokens, openers=openers)


def has_spelling(
    words: prefixes.Prefix, phrase: Spelled, *, breaks: Sequence[int] = BREAKS
) -> bool:
    """Return whether an output has a phrase; without its space, after an opener."""
    ids, joined, is_word = phrase
    followed = [*words, types.EOS_ID]
    for end in range(1, len(words) + 1):
        if is_word and followed[end] not in breaks:
            continue
        if end >= len(ids) and words[end - len(ids) : end] == ids:
            return True
        begin = end - len(joined)
        is_joined = joined and begin > 0 and words[begin:end] == joined
        if is_joined and words[begin - 1] in OPENERS:
            return True
    return False


def random_spellings(seed: int, *, B: int, room: int) -> list[list[Spelled]]:
    generator = np.random.default_rng(seed)
    sentences = []
    for _ in range(B):
        phrases: dict[prefixes.Prefix, Spelled] = {}
        while len(phrases) < 2:
            ids, joined = (
                tuple(generator.choice(prefixes.WORDS, length).tolist())
                for length in generator.integers((1, 0), 3)
            )
            phrases[ids] = (ids, joined, bool(generator.integers(2)))
            if sum(max(len(i), len(j)) + w for i, j, w in phrases.values()) > room:
                del phrases[ids]
                break
        sentences.append(list(phrases.values()))
    return sentences


def test_a_phrase_may_follow_an_opener_without_its_space() -> None:
    B = 30
    logits = prefixes.random_logits(8, B=B)
    sentences = random_spellings(9, B=B, room=prefixes.LONGEST - 1)
    max_lengths = np.full(B, prefixes.LONGEST)
    found = search(logits, max_lengths, pack_spellings(sentences), W=prefixes.WIDE)
    tables = prefixes.log_probabilities(logits)
    expected = []
    for table, phrases in zip(tables, sentences, strict=True):
        outputs = [
            each
            for each in prefixes.all_finished(prefixes.LONGEST)
            if all(has_spelling(each[:-1], phrase) for phrase in phrases)
        ]
        expected.append(best_of(outputs, table))
    prefixes.assert_finds(found, expected)
    spaced = [[(i, (), w) for i, _, w in phrases] for phrases in sentences]
    without = search(logits, max_lengths, pack_spellings(spaced), W=prefixes.WIDE)
    assert (found.tokens[:, 0] != without.tokens[:, 0]).any()


@hypothesis.settings(max_examples=12)
@hypothesis.given(
    st.integers(0, 2**32 - 1),
    st.lists(
        st.lists(
            st.tuples(
                st.lists(st.integers(3, 2 + NUM_WORDS), min_size=1, max_size=2),
                st.lists(st.integers(3, 2 + NUM_WORDS), max_size=3),
                st.booleans(),
            ),
            max_size=C,
            unique_by=lambda phrase: tuple(phrase[0]),
        ),
        min_size=SENTENCES,
        max_size=SENTENCES,
    ),
    st.sampled_from([1, 4]),
)
def test_every_output_has_a_spelling_of_each_phrase(
    seed: int, sentences: list[list[tuple[list[int], list[int], bool]]], W: int
) -> None:
    phrases_that_fit: list[list[Spelled]] = []
    for phrases in sentences:
        sentence_phrases: list[Spelled] = []
        room = ROOM - 1
        for ids, joined, is_word in phrases:
            joined = joined[: len(ids) + 1]
            room -= max(len(ids), len(joined)) + 1
            if room >= 0:
                sentence_phrases.append((tuple(ids), tuple(joined), is_word))
        phrases_that_fit.append(sentence_phrases)
    logits = 2 * np.random.default_rng(seed).standard_normal((NUM_CODES, 3 + NUM_WORDS))
    logits[:, types.EOS_ID] += 3
    logits[:, OPENERS] += 3
    rows = pack_spellings(
        phrases_that_fit, breaks=LONG_BREAKS, num_tokens=3 + NUM_WORDS
    )
    prefix = np.zeros((SENTENCES, 2), np.int32)
    found = search_long(logits.astype(np.float32), rows, prefix, W=W)
    for b in range(SENTENCES):
        words = tuple(n for n in found.tokens[b, 0].tolist() if n > types.EOS_ID)
        for phrase in phrases_that_fit[b]:
            assert has_spelling(words, phrase, breaks=LONG_BREAKS)
        assert found.scores[b, 0] > -np.inf
