"""Patterns that freeze parameters: what they match, and what they refuse."""

import jax
import numpy as np
import pytest

from tests import settings
from tests.training import updates
from vaswani_jax.training import frozen, optimizer

ENCODER = {"optimizer.frozen": "encoder/*, */norm/bias"}


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        ("encodr/*", "; did you mean encoder/*?"),
        ("decoder/layers_1/*", "; did you mean decoder/layers_0/*?"),
        ("embedding", "; did you mean embedding/*?"),
        ("xyz", ""),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused_with_the_nearest(
    pattern: str, suggestion: str
) -> None:
    small = settings.small_settings(**{"optimizer.frozen": f"encoder/*,{pattern}"})
    with pytest.raises(ValueError) as refused:
        frozen.check(small)
    text = f"config.optimizer.frozen: no parameter's path matches {pattern!r}"
    assert str(refused.value) == text + suggestion


def test_patterns_of_commas_alone_are_refused() -> None:
    with pytest.raises(ValueError, match=r"config\.optimizer\.frozen=',' has no"):
        frozen.match_paths(["a/b"], ",")


def test_frozen_embeddings_are_named() -> None:
    def named(frozen_: str, sharing: str = "shared") -> list[str]:
        changes = {"optimizer.frozen": frozen_, "data.vocabulary_sharing": sharing}
        return frozen.frozen_embeddings(settings.small_settings(**changes))

    assert named("embedding/*") == ["embedding/embedding"]
    assert named("encoder/*") == named("") == []
    assert named("source*", "separate") == ["source_embedding/embedding"]


def test_freezing_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="frozen=\\* freezes all parameters"):
        frozen.check(settings.small_settings(**{"optimizer.frozen": "*"}))


def test_frozen_parameters_are_counted() -> None:
    small = settings.small_settings(**{"optimizer.frozen": "embedding/*"})
    params = settings.random_params(small.model, vocab_size=updates.V, seed=1)
    total = sum(leaf.size for leaf in jax.tree.leaves(params))
    arrays = len(jax.tree.leaves(params))
    assert frozen.describe(small, vocab_size=updates.V) == (
        f"frozen: {11 * 8} of {total:,} parameters, in 1 of {arrays} arrays"
    )
    assert frozen.describe(settings.small_settings(), vocab_size=updates.V) == ""


def test_what_is_frozen_has_no_update_no_moments_and_no_decay() -> None:
    changes = {**ENCODER, "optimizer.weight_decay": 0.5}
    small = settings.small_settings(**changes)
    params = settings.random_params(small.model, vocab_size=updates.V, seed=1)
    transformation = optimizer.make_optimizer(small)
    state = jax.jit(transformation.init)(params)
    gradients = jax.tree.map(np.ones_like, params)
    changed, _ = jax.jit(transformation.update)(gradients, state, params)
    num_learning = 0
    for path, update in jax.tree_util.tree_leaves_with_path(changed):
        names = [entry.key for entry in path]
        is_frozen = names[0] == "encoder" or names[-2:] == ["norm", "bias"]
        assert (np.asarray(update) == 0).all() == is_frozen, names
        num_learning += 0 if is_frozen else update.size
    moments = [leaf.size for leaf in jax.tree.leaves(state) if leaf.ndim]
    assert sum(moments) == 2 * num_learning
