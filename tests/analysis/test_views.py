"""What the measures see of a pair: which tokens look at which."""

import numpy as np

from tests.analysis import planted


def test_each_kind_has_its_queries_and_keys():
    rng = np.random.default_rng(2)
    pair = planted.pair(rng, constituents=np.zeros((3, 2), int), links=np.eye(2) > 0)
    attention = planted.attention_of(rng, pair, heads=3)
    by_kind = {view.kind: view for view in pair.views(attention)}
    S, T = len(pair.source), len(pair.target_in)
    encoder, decoder, memory = (
        by_kind[kind] for kind in ("encoder", "decoder", "memory")
    )
    assert encoder.weights.shape == (3, S, S)
    assert encoder.queries is encoder.keys is pair.source
    assert decoder.queries is decoder.keys is pair.target_in
    # A row of memory attention belongs to what it predicts.
    assert memory.queries is pair.target_out and memory.keys is pair.source
    assert decoder.may_look[1].tolist() == [True, True, *[False] * (T - 2)]
    assert encoder.may_look.all() and memory.may_look.shape == (T, S)
    assert encoder.links is decoder.links is None and memory.links is not None
    assert memory.constituents is None and encoder.constituents is not None
    assert encoder.keys.is_mark.tolist() == [*[False] * (S - 1), True]
    assert decoder.keys.is_mark.tolist() == [True, *[False] * (T - 1)]
