"""Outputs of searches that may write trees alone, against a checker with a stack."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import parallel, types
from vaswani_jax.inference import beam_search, brackets, generate, padding, sampling

# The labels 4 and 5 are closed by 6 and 7; the words' symbols are 8 and 9. Of source
# ids, 5, 7 and 11 begin words.
STARTS = np.isin(np.arange(12), [5, 7, 11])
TREES = types.TreeIds(2, np.packbits(STARTS).tobytes())
SIZES = types.VocabSizes(source=12, target=10, trees=TREES)
OPENINGS, CLOSING, WORDS = (4, 5), {4: 6, 5: 7}, (8, 9)
V, LONGEST, NUM_CODES = 10, 17, 997
Tokens = tuple[int, ...]


def next_code(code: Any, token: Any) -> Any:
    """The row of a table of logits for a prefix with one more token."""
    return (code * 31 + token) % NUM_CODES


def random_table(seed: int, *, openings_bonus: float = 0.0) -> np.ndarray:
    table = 2 * np.random.default_rng(seed).standard_normal((NUM_CODES, V))
    table[:, list(OPENINGS)] += openings_bonus
    return table.astype(np.float32)


@functools.partial(jax.jit, static_argnames=("W", "draws"))
def search(
    table: jax.Array,
    num_words: jax.Array,
    max_lengths: jax.Array,
    *,
    W: int,
    draws: bool = False,
) -> types.Hypotheses:
    """Search, or draw, trees over numbers of words."""
    B = num_words.shape[0]

    def step(tokens: Any, codes: Any, position: Any) -> tuple[Any, Any]:
        codes = jnp.where(position == 0, 0, next_code(codes, tokens))
        return table[codes], codes

    stepper = beam_search.Stepper(
        step, lambda codes, origin: jnp.take_along_axis(codes, origin, axis=1)
    )
    # Most of a batch is finished in parts, as few sentences are done by then.
    options = beam_search.SearchOptions(
        beam_size=W, n_best=W, alpha=0.6, buffer_lengths=(2, 4), max_length=LONGEST
    )
    logit_bias = brackets.TreeGrammar(
        trees=TREES, num_words=num_words, max_lengths=max_lengths, num_logits=V
    )
    common: dict[str, Any] = {
        "max_lengths": max_lengths,
        "options": options,
        "logit_bias": logit_bias,
    }
    codes = jnp.zeros((B, 1 if draws else W), jnp.int32)
    if not draws:
        return beam_search.beam_search(stepper, codes, **common)
    return sampling.sample(
        stepper,
        codes,
        keys=jax.random.split(jax.random.key(1), B),
        distribution=sampling.Distribution(temperature=2.0),
        **common,
    )


def outputs_of(hypotheses: Any, b: int) -> list[Tokens]:
    """Return the hypotheses of a sentence that have a probability."""
    lines = zip(hypotheses.tokens[b].tolist(), hypotheses.scores[b], strict=True)
    return [tuple(filter(None, ids)) for ids, score in lines if score > -np.inf]


def is_tree(tokens: Tokens, num_words: int) -> bool:
    """Read an output with a stack of [label, number of children]."""
    stack: list[list[int]] = []
    trees = words = 0
    if not tokens or tokens[-1] != types.EOS_ID:
        return False
    for token in tokens[:-1]:
        if token in OPENINGS:
            stack.append([token, 0])
            continue
        if token in WORDS and stack:
            words += 1
        elif stack and token == CLOSING[stack[-1][0]] and stack.pop()[1]:
            trees += not stack
        else:
            return False
        if stack:
            stack[-1][1] += 1
    return not stack and words == num_words and trees == (num_words > 0)


def test_the_checker_knows_a_tree() -> None:
    assert is_tree((4, 8, 5, 9, 7, 6, 2), 2) and is_tree((2,), 0)
    for tokens in [
        (4, 8, 5, 9, 7, 6),  # no end
        (4, 8, 5, 9, 6, 7, 2),  # crossing
        (4, 8, 6, 5, 9, 7, 2),  # two roots
        (4, 8, 9, 5, 7, 6, 2),  # an empty constituent
        (4, 8, 6, 9, 2),  # a word outside
        (4, 8, 9, 8, 6, 2),  # three words
        (4, 8, 9, 2),  # open
        (2,),
    ]:
        assert not is_tree(tokens, 2)


# Sentences without a word, too, and little room as well as much.
NUM_WORDS = np.arange(6).repeat(4)
MAX_LENGTHS = NUM_WORDS + 3 + np.tile([9, 2, 1, 0], 6)


@pytest.mark.parametrize("openings_bonus", [0.0, 4.0])
@pytest.mark.parametrize("draws", [False, True])
def test_every_output_is_a_tree_over_its_sentences_words(
    draws: bool, openings_bonus: float
) -> None:
    for seed in range(5):
        table = random_table(seed, openings_bonus=openings_bonus)
        hypotheses = search(table, NUM_WORDS, MAX_LENGTHS, W=5, draws=draws)
        for b, (n, longest) in enumerate(zip(NUM_WORDS, MAX_LENGTHS, strict=True)):
            outputs = outputs_of(hypotheses, b)
            # A beam may have room for more trees than there are.
            assert len(outputs) == 5 or (outputs and not draws)
            for tokens in outputs:
                assert is_tree(tokens, n) and len(tokens) <= longest


def forests(n: int, room: int) -> Iterator[Tokens]:
    """Yield all rows of constituents and words with n words, of that many symbols."""
    if n == 0:
        yield ()
    if n == 0 or room < n:
        return
    for word, rest in itertools.product(WORDS, forests(n - 1, room - 1)):
        yield (word, *rest)
    for inside in range(1, n + 1):
        for first in trees(inside, room):
            for rest in forests(n - inside, room - len(first)):
                yield (*first, *rest)


def trees(n: int, room: int) -> Iterator[Tokens]:
    for label, children in itertools.product(OPENINGS, forests(n, room - 2)):
        yield (label, *children, CLOSING[label])


def test_a_wide_beam_finds_all_trees() -> None:
    table = random_table(7)
    logits = np.float64(table)
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def score(tokens: Tokens) -> float:
        codes = itertools.accumulate(tokens, next_code, initial=0)
        total = sum(log_probs[c, t] for c, t in zip(codes, tokens, strict=False))
        return total / ((5 + len(tokens)) / 6) ** 0.6

    num_words, max_lengths = np.array([1, 2, 2, 3]), np.array([10, 8, 9, 8])
    hypotheses = search(table, num_words, max_lengths, W=256)
    for b, (n, longest) in enumerate(zip(num_words, max_lengths, strict=True)):
        outputs = outputs_of(hypotheses, b)
        expected = [(*tree, types.EOS_ID) for tree in trees(n, longest - 1)]
        expected.sort(key=score, reverse=True)
        assert outputs == expected
        np.testing.assert_allclose(
            hypotheses.scores[b, : len(outputs)], [*map(score, expected)], rtol=1e-5
        )


@jax.jit
def allowed(
    tokens: jax.Array, num_words: jax.Array, longest: jax.Array, position: jax.Array
) -> jax.Array:
    grammar = brackets.TreeGrammar(
        trees=TREES, num_words=num_words, max_lengths=longest, num_logits=V
    )
    return grammar(tokens, jnp.arange(1), position)


def legal_after(*prefix: int, longest: int = 99) -> set[int]:
    """Return the symbols that may follow, if the sentence has three words."""
    tokens = np.zeros((1, 1, 12), np.int32)
    tokens[0, 0, : len(prefix)] = prefix
    scores = allowed(tokens, np.array([3]), np.array([longest]), len(prefix))
    return set(np.flatnonzero(np.isfinite(scores)).tolist())


def test_ten_constituents_open_between_two_words() -> None:
    assert legal_after(*[4] * 9) == {*OPENINGS, *WORDS}
    assert legal_after(*[4] * 10) == {*WORDS}
    assert legal_after(*[4] * 10, 8) == {*OPENINGS, *WORDS, 6}


def test_an_opening_needs_room_for_all_that_the_tree_then_lacks() -> None:
    # (S XX (NP XX )NP XX )S and the end mark.
    assert legal_after(4, 8, longest=8) == {*OPENINGS, *WORDS}
    assert legal_after(4, 8, longest=7) == {*WORDS}
    # A search that leaves no room for a tree is not left without any symbol.
    assert legal_after(longest=2) == {*OPENINGS}


def test_models_write_trees_over_the_words_of_the_source() -> None:
    """Two models, on eight devices, after prefixes."""
    changed = settings.small_settings(**{"search.max_extra_tokens": 6})
    models = (changed.model, changed.model)
    run = generate.make_generator(changed, models, vocab_size=SIZES, n_best=2)
    sources = [[5, 6, 7], [11], [5, 5, 7, 6], [7, 3], [6], [4, 5, 6, 8], [7, 7], [11]]
    prefixes = [[4, 5], [], [5, 8, 9], [4, 8, 6], [], [4, 5, 9], [4, 6], [4, 8, 9]]
    rows = generate.Rows(
        padding.pad([[*ids, types.EOS_ID] for ids in sources], rows=8, length=6),
        padding.pad(prefixes, rows=8, length=3),
        np.zeros((8, 2), np.int32),
    )
    params = tuple(
        parallel.replicate(settings.random_params(model, vocab_size=SIZES, seed=seed))
        for seed, model in enumerate(models)
    )
    split = parallel.split_rows(rows, num_microbatches=1)
    assert split.source.shape[0] == 8
    hypotheses = parallel.join_rows(parallel.over_rows(run)(params, split))
    for b, (source, prefix) in enumerate(zip(sources, prefixes, strict=True)):
        outputs = outputs_of(hypotheses, b)
        # An empty constituent, and two words where there is one.
        is_possible = prefix not in ([4, 6], [4, 8, 9])
        assert bool(outputs) == is_possible
        for tokens in outputs:
            assert is_tree(tokens, int(STARTS[source].sum()))
            assert tokens[: len(prefix)] == tuple(prefix)


@pytest.mark.parametrize("sampling", [False, True])
def test_only_programs_that_write_trees_know_of_them(sampling: bool) -> None:
    model = settings.small_settings().model
    params = settings.random_params(model, vocab_size=SIZES, seed=1)

    def program(vocab_size: types.VocabSizes, *, legal_trees: bool) -> str:
        changed = settings.small_settings(
            **{"search.legal_trees": legal_trees, "search.sampling": sampling}
        )
        search = settings.search_of(changed, vocab_size=vocab_size)
        return str(jax.make_jaxpr(search)(params, np.ones((2, 3), np.int32)))

    free = program(SIZES, legal_trees=False)
    assert free == program(SIZES._replace(trees=None), legal_trees=True)
    assert free != program(SIZES, legal_trees=True)
