"""Measures of planted heads, of random ones, and against loops over tokens."""

import numpy as np
import pytest

from tests.analysis import planted
from vaswani_jax.analysis import measures, roles, views
from vaswani_jax.data import treebank

TREES = (
    "(S (NP (DT a) (NN b)) (VP (V c) (NP (DT d) (JJ e) (NN f))))",
    "(S (NP (DT a) (JJ b) (NN c)) (VP (V d) (ADV e)) (. f))",
    "(S (PP (P a) (NP (DT b) (NN c))) (NP (N d)) (VP (V e) (PP (P f) (NP (N g)))))",
    "(S (VP (V a) (NP (NP (DT b) (NN c)) (PP (P d) (NP (DT e) (NN f))))) (. g))",
)


def off_diagonal(Q, K, *, k):
    return np.eye(Q, K, k=k, dtype=bool)


def same_word(view):
    targets = (view.queries.ids[:, None] == view.keys.ids) & ~view.keys.is_mark
    if view.is_self:
        targets &= ~np.eye(len(view.keys), dtype=bool)
    return targets


def rarest(view):
    """Return the rarest visible key, found by a loop."""
    targets = np.zeros(view.may_look.shape, bool)
    for query, visible in enumerate(view.may_look):
        keys = [k for k in np.flatnonzero(visible) if view.keys.words[k] >= 0]
        if keys:
            rare = min(view.keys.counts[keys])
            targets[query, [k for k in keys if view.keys.counts[k] == rare]] = True
    return targets


def everywhere(keys, view):
    return np.broadcast_to(keys, view.may_look.shape)


PLANTS = {
    "positional: previous": lambda view: off_diagonal(*view.may_look.shape, k=-1),
    "positional: next": lambda view: off_diagonal(*view.may_look.shape, k=1),
    "positional: itself": lambda view: off_diagonal(*view.may_look.shape, k=0),
    "end mark": lambda view: everywhere(view.keys.is_mark, view),
    "begin mark": lambda view: everywhere(view.keys.is_mark, view),
    "punctuation": lambda view: everywhere(view.keys.is_punctuation, view),
    "rare words": rarest,
    "same word": same_word,
}
CASES = [
    *(("encoder", role) for role in PLANTS if role != "begin mark"),
    *(
        ("decoder", role)
        for role in PLANTS
        # The decoder looks at nothing that follows.
        if role not in ("positional: next", "end mark")
    ),
    *(
        ("memory", role)
        for role in ("end mark", "punctuation", "rare words", "same word")
    ),
]


def measured(view_of_pair, *, num_pairs=60, seed=0, **known):
    """Measure the views that a function makes of random pairs."""
    rng = np.random.default_rng(seed)
    pairs = [planted.pair(rng, **known) for _ in range(num_pairs)]
    return measures.measure(view for pair in pairs for view in view_of_pair(rng, pair))


def replaced(pair, kind, weights):
    """Return the view of a kind with other weights."""
    [view] = pair.views({kind: weights})
    return view


def blank(rng, pair, kind):
    """Return the view of random attention of one head."""
    return replaced(pair, kind, planted.attention_of(rng, pair, heads=1)[kind])


@pytest.mark.parametrize(("kind", "role"), CASES)
def test_a_planted_head_has_exactly_its_role(kind, role):
    def planted_views(rng, pair):
        view = blank(rng, pair, kind)
        targets = PLANTS[role](view)
        weights = planted.plant(rng, targets, is_causal=kind == "decoder")
        yield replaced(pair, kind, weights)

    [values] = measured(planted_views)[kind]
    assert roles.roles(values, kind=kind) == (role,)


def test_a_uniform_head_is_broad_and_has_chance_everywhere():
    def uniform(rng, pair):
        for view in pair.views(planted.attention_of(rng, pair, heads=1)):
            weights = view.may_look / view.may_look.sum(axis=1, keepdims=True)
            yield replaced(pair, view.kind, weights[None, None])

    for kind, [values] in measured(uniform).items():
        assert roles.roles(values, kind=kind) == ("broad",)
        for value, chance in values.values():
            if chance is not None:
                np.testing.assert_allclose(value, chance, rtol=1e-9)
        np.testing.assert_allclose(values["entropy"][0], 1.0)


def test_a_head_of_one_key_is_sharp_only_if_it_does_nothing_else():
    def one_hot(rng, pair):
        view = blank(rng, pair, "encoder")
        keys = rng.integers(0, len(view.keys), len(view.queries))
        yield replaced(pair, "encoder", np.eye(len(view.keys))[keys][None, None])

    [values] = measured(one_hot)["encoder"]
    assert roles.roles(values, kind="encoder") == ("sharp",)
    np.testing.assert_allclose(values["entropy"][0], 0.0, atol=1e-12)


def test_random_heads_have_no_role_and_the_mean_of_chance():
    H = 150

    def random(rng, pair):
        links = rng.random((max(pair.target_out.words) + 1, max(pair.source.words) + 1))
        known = views.Pair(
            pair.source, pair.target_in, pair.target_out, True, links=links < 0.25
        )
        yield from known.views(planted.attention_of(rng, known, heads=H))

    for kind, heads in measured(random).items():
        assert len(heads) == H
        assert not any(roles.roles(values, kind=kind) for values in heads)
        for name in heads[0]:
            values = [head[name][0] for head in heads]
            if heads[0][name][1] is None:
                assert name in ("entropy", "confidence", "constituent")
                continue
            chance = np.mean([head[name][1] for head in heads])
            error = np.std(values) / np.sqrt(H)
            assert abs(np.mean(values) - chance) < 4 * error, (kind, name)


def test_a_head_that_aligns_and_one_of_the_diagonal_are_told_apart():
    def aligned(rng, pair):
        T, S = max(pair.target_out.words) + 1, max(pair.source.words) + 1
        links = np.eye(S, dtype=bool)[rng.integers(0, S, T)]
        known = views.Pair(
            pair.source, pair.target_in, pair.target_out, True, links=links
        )
        view = blank(rng, known, "memory")
        diagonal = (np.arange(T) * 2 + 1) * S // (2 * T)
        heads = []
        for by_word in (links, np.eye(S, dtype=bool)[diagonal]):
            # All subwords of a word look at all subwords of the other.
            targets = np.zeros(view.may_look.shape, bool)
            for query, key in np.argwhere(by_word):
                targets |= (view.queries.words == query)[:, None] & (
                    view.keys.words == key
                )
            heads.append(planted.plant(rng, targets))
        yield replaced(known, "memory", np.concatenate(heads, axis=1))

    first, second = measured(aligned)["memory"]
    assert roles.roles(first, kind="memory") == ("alignment",)
    assert roles.roles(second, kind="memory") == ("diagonal",)
    assert first["alignment"][0] > 0.95 and second["diagonal"][0] > 0.95


def test_weights_between_words_are_sums_over_what_is_seen_and_means_over_what_looks():
    rng = np.random.default_rng(3)
    pair = planted.pair(rng)
    weights = planted.attention_of(rng, pair, heads=2)["memory"]
    by_word = measures.words_of(replaced(pair, "memory", weights))
    T, S = max(pair.target_out.words) + 1, max(pair.source.words) + 1
    assert by_word.shape == (2, T, S)
    for head in range(2):
        for query in range(T):
            rows = [t for t, w in enumerate(pair.target_out.words) if w == query]
            for key in range(S):
                columns = [s for s, w in enumerate(pair.source.words) if w == key]
                expected = np.mean(
                    [sum(weights[0, head, t, s] for s in columns) for t in rows]
                )
                np.testing.assert_allclose(by_word[head, query, key], expected)
    # What is missing to 1 is on the end mark.
    assert (by_word.sum(axis=2) < 1).all()


def sentence_of_words(rng, tree):
    """Return a pair whose source has a subword for each word of a tree."""
    pair = planted.pair(rng)
    num_words = len(tree.leaves())
    source = planted.tokens(rng, length=num_words, mark="last")
    source = views.Tokens(
        source.ids,
        np.array([*range(num_words), -1]),
        source.is_punctuation,
        source.counts,
        source.embeddings,
    )
    return views.Pair(
        source,
        pair.target_in,
        pair.target_out,
        True,
        constituents=views.smallest_constituents(tree),
    )


def syntax_views(rng, choose):
    trees = [next(treebank.parse([line], name="")) for line in TREES * 10]
    for tree in trees:
        pair = sentence_of_words(rng, tree)
        S = len(pair.source)
        targets = np.zeros((S, S), bool)
        for word in range(S - 1):
            targets[word, choose(pair.constituents[word], word)] = True
        targets[np.arange(S), np.arange(S)] = False
        yield replaced(pair, "encoder", planted.plant(rng, targets))


def test_a_head_that_follows_syntax_beats_every_place_nearby():
    rng = np.random.default_rng(5)
    # It looks at any other word of the smallest constituent.
    [inside] = measures.measure(syntax_views(rng, lambda span, word: slice(*span)))[
        "encoder"
    ]
    assert "syntax" in roles.roles(inside, kind="encoder")
    value, chance = inside["constituent"]
    assert value > 0.95
    # The best place is the one before, or the one after: by a loop.
    counted = {offset: [] for offset in measures.OFFSETS}
    for line in TREES:
        [tree] = treebank.parse([line], name="")
        spans = views.smallest_constituents(tree).tolist()
        for word, (begin, end) in enumerate(spans):
            if end - begin < len(spans):
                for offset, hits in counted.items():
                    hits.append(begin <= word + offset < end)
    np.testing.assert_allclose(chance, max(map(np.mean, counted.values())))
    # A head that always looks one word back follows no syntax.
    [back] = measures.measure(syntax_views(rng, lambda span, word: max(0, word - 1)))[
        "encoder"
    ]
    assert roles.roles(back, kind="encoder") == ("positional: previous",)


def test_similar_words_are_those_of_like_embeddings():
    def similar(rng, pair):
        view = blank(rng, pair, "encoder")
        cosines = view.queries.embeddings @ view.keys.embeddings.T
        is_other = view.queries.ids[:, None] != view.keys.ids
        cosines = np.where(is_other & ~view.keys.is_mark, cosines, -2)
        targets = cosines == cosines.max(axis=1, keepdims=True)
        yield replaced(pair, "encoder", planted.plant(rng, targets, share=0.7))

    [values] = measured(similar)["encoder"]
    assert "similar words" in roles.roles(values, kind="encoder")


def test_few_tokens_give_no_measure_and_other_ids_no_likeness():
    rng = np.random.default_rng(1)
    pair = planted.pair(rng)
    attention = planted.attention_of(rng, pair, heads=1)
    few = measures.measure(pair.views(attention))
    assert {value for [head] in few.values() for value in head.values()} == {
        (None, None)
    }
    apart = views.Pair(pair.source, pair.target_in, pair.target_out, is_shared=False)
    many = measures.measure(view for _ in range(30) for view in apart.views(attention))
    assert many["memory"][0]["same word"] == (None, None)
    assert many["memory"][0]["similar words"] == (None, None)
    assert many["encoder"][0]["similar words"] != (None, None)
