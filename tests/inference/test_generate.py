"""A model's search, samples and scores, against one another and full passes."""

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import config, parallel, types
from vaswani_jax.inference import generate, scoring
from vaswani_jax.model import transformer

V, S = 30, 7
SENTENCES = [[5, 9, 4], [6], [7, 8, 9, 10, 11, 12], [4, 4], [20, 3, 5, 6], [29]]


def small(**search: Any) -> config.Config:
    changes = {f"search.{key}": value for key, value in search.items()}
    return settings.small_settings(**{"model.num_layers": 2, **changes})


def model_of(seed: int) -> config.ModelConfig:
    """Return the architecture with a seed: depths may differ in an ensemble."""
    layers = {2: (3, 1), 4: (1, 1), 5: (1, 2)}
    encoder, decoder = layers.get(seed, (2, 2))
    depths = {"num_encoder_layers": encoder, "num_decoder_layers": decoder}
    return dataclasses.replace(small().model, **depths)


@functools.cache
def params(seed: int) -> Any:
    tree = settings.random_params(model_of(seed), vocab_size=V, seed=seed)
    # What was said before must matter, or a wrong cache would not show.
    for layer in tree["decoder"].values():
        layer["self_attention"]["output"]["kernel"] *= 4
    return tree


def rows(
    sentences: list[list[int]],
    *,
    width: int = S,
    prefixes: list[list[int]] | None = None,
) -> generate.Rows:
    source = np.zeros((len(sentences), width), np.int32)
    for row, ids in zip(source, sentences, strict=True):
        row[: len(ids) + 1] = [*ids, types.EOS_ID]
    prefix = np.zeros((len(sentences), 3 if prefixes else 0), np.int32)
    for row, ids in zip(prefix, prefixes or [], strict=False):
        row[: len(ids)] = ids
    numbers = np.stack([np.arange(len(sentences)), np.zeros(len(sentences))], axis=1)
    return jax.tree.map(
        jnp.asarray, generate.Rows(source, prefix, numbers.astype(np.int32))
    )


@functools.cache
def _generator(
    platform: str, seeds: tuple[int, ...], n_best: int, search: tuple[Any, ...]
) -> Any:
    """Return the jitted search; the cache keeps one for each platform and options."""
    del platform
    models = [model_of(seed) for seed in seeds]
    run = generate.make_generator(
        small(**dict(search)), models, vocab_size=V, n_best=n_best
    )
    return jax.jit(run)


def search_rows(
    batch: generate.Rows,
    *seeds: int,
    n_best: int = 1,
    **search: Any,
) -> tuple[list[list[list[int]]], np.ndarray]:
    """Return the outputs of each row, with their end marks, and their scores."""
    defaults = small().search
    # An option with its default value gives the same search, traced once.
    changes = {
        name: value
        for name, value in search.items()
        if getattr(defaults, name) != value
    }
    run = _generator(
        parallel.platform(), seeds or (1,), n_best, tuple(sorted(changes.items()))
    )
    hypotheses = run(tuple(params(seed) for seed in seeds or (1,)), batch)
    tokens = [
        [[i for i in ids if i] for ids in row] for row in hypotheses.tokens.tolist()
    ]
    return tokens, np.asarray(hypotheses.scores)


def forced_scores(
    outputs: list[list[list[int]]], *seeds: int, alpha: float
) -> np.ndarray:
    """Return log P / lp of each output, by one pass over it."""
    models = [model_of(seed) for seed in seeds]
    pairs = [
        (source, ids)
        for source, n_best in zip(SENTENCES, outputs, strict=True)
        for ids in n_best
    ]
    shared = [parallel.replicate(params(seed)) for seed in seeds]
    all_scored = scoring.score_pairs(pairs, models=models, params=shared, vocab_size=V)
    totals = [
        float(scored.log_probs.sum()) / ((5 + len(ids)) / 6) ** alpha
        for scored, (_, ids) in zip(all_scored, pairs, strict=True)
    ]
    return np.array(totals).reshape(len(SENTENCES), -1)


def test_a_row_may_have_its_own_length_penalty_and_number_of_hypotheses() -> None:
    searches = [(0.0, 3), (2.0, 1)]
    places = np.arange(len(SENTENCES)) % 2
    batch = rows(SENTENCES)._replace(
        alpha=jnp.array([searches[place][0] for place in places], jnp.float32),
        n_best=jnp.array([searches[place][1] for place in places]),
    )
    outputs, scores = search_rows(batch, beam_size=4)
    for place, (alpha, n_best) in enumerate(searches):
        expected, expected_scores = search_rows(
            rows(SENTENCES), n_best=n_best, beam_size=4, length_penalty=alpha
        )
        for row in np.flatnonzero(places == place):
            assert outputs[row] == expected[row]
            np.testing.assert_allclose(scores[row], expected_scores[row], rtol=1e-6)


# Three hypotheses of each row, found and drawn.
THREE_BEST = [
    {"n_best": 3, "beam_size": 4, "sampling": False, "temperature": 1.0},
    {"n_best": 3, "beam_size": 4, "sampling": True, "temperature": 0.7},
]


@pytest.mark.parametrize("search", THREE_BEST, ids=["beam", "sampling"])
@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_scores_are_those_of_forced_decoding(
    seeds: tuple[int, ...], search: dict[str, Any]
) -> None:
    outputs, scores = search_rows(rows(SENTENCES), *seeds, **search)
    outputs = [n_best[:3] for n_best in outputs]
    expected = forced_scores(outputs, *seeds, alpha=0.6)
    scores = scores[:, :3]
    # A search may end with fewer, the rest being no hypotheses.
    is_real = scores > -np.inf
    assert is_real[:, :2].all()
    np.testing.assert_allclose(scores[is_real], expected[is_real], rtol=1e-4, atol=1e-5)
    assert len({tuple(ids) for n_best in outputs for ids in n_best}) > len(SENTENCES)


def test_one_model_twice_is_that_model() -> None:
    single, scores = search_rows(rows(SENTENCES), 1)
    double, doubled = search_rows(rows(SENTENCES), 1, 1)
    assert single == double
    np.testing.assert_allclose(scores[:, 0], doubled[:, 0], rtol=1e-5)


@pytest.mark.parametrize("search", THREE_BEST, ids=["beam", "sampling"])
def test_a_row_depends_neither_on_its_batch_nor_on_its_padding(
    search: dict[str, Any],
) -> None:
    together, scores = search_rows(rows(SENTENCES), **search)
    wide, _ = search_rows(rows(SENTENCES, width=19), **search)
    assert wide == together
    # The shortest has padding in the batch, too; the longest has none there.
    for index in (1, 2):
        alone = rows([SENTENCES[index]], width=9)
        alone = alone._replace(numbers=jnp.array([[index, 0]]))
        tokens, score = search_rows(alone, **search)
        assert tokens[0] == together[index]
        np.testing.assert_allclose(score[0], scores[index], rtol=1e-4)


def test_eight_devices_find_what_one_finds() -> None:
    changed = small()
    run = generate.make_generator(changed, (changed.model,), vocab_size=V, n_best=1)
    split = parallel.split_rows(
        jax.tree.map(np.asarray, rows(SENTENCES)), num_microbatches=1
    )
    assert split.source.shape[0] == 8
    spread = parallel.over_rows(run)((parallel.replicate(params(1)),), split)
    tokens = parallel.join_rows(spread.tokens)[: len(SENTENCES)]
    expected, _ = search_rows(rows(SENTENCES))
    assert [[i for i in ids if i] for ids in tokens[:, 0].tolist()] == [
        n_best[0] for n_best in expected
    ]


def test_outputs_begin_with_their_prefixes_and_search_on() -> None:
    free, _ = search_rows(rows(SENTENCES))
    prefixes = [[9, 9], [4], [], [5, 6, 7], [8], [3, 3]]
    outputs, scores = search_rows(rows(SENTENCES, prefixes=prefixes))
    for n_best, prefix in zip(outputs, prefixes, strict=True):
        assert n_best[0][: len(prefix)] == prefix
        assert len(n_best[0]) > len(prefix)
    assert outputs[2][0] == free[2][0]
    best = [n_best[:1] for n_best in outputs]
    expected = forced_scores(best, 1, alpha=0.6)
    np.testing.assert_allclose(scores[:, :1], expected, rtol=1e-4, atol=1e-5)
    # What the search finds anyway, it finds when it is forced to.
    starts = [n_best[0][:2] for n_best in free]
    forced, _ = search_rows(rows(SENTENCES, prefixes=starts))
    ended = [row for row in range(6) if free[row][0][-1] == types.EOS_ID]
    assert len(ended) > 3
    assert all(forced[row][0] == free[row][0] for row in ended)


@pytest.mark.parametrize("sampling", [False, True])
def test_lengths_keep_to_the_least_and_the_most(sampling: bool) -> None:
    usual, _ = search_rows(rows(SENTENCES), sampling=sampling)
    lengths = [len(n_best[0]) for n_best in usual]
    assert min(lengths) < 4 and max(lengths) > 5
    outputs, _ = search_rows(
        rows(SENTENCES), sampling=sampling, min_tokens=4, max_tokens=5
    )
    for n_best in outputs:
        assert 4 <= len(n_best[0]) <= 5


def test_no_output_repeats_what_it_must_not() -> None:
    def repeats(ids: list[int]) -> bool:
        pairs = list(itertools.pairwise(ids))
        return len(pairs) > len(set(pairs))

    usual, _ = search_rows(rows(SENTENCES), max_extra_tokens=12)
    assert any(repeats(n_best[0]) for n_best in usual)
    outputs, _ = search_rows(rows(SENTENCES), max_extra_tokens=12, no_repeat_ngram=2)
    assert not any(repeats(ids) for n_best in outputs for ids in n_best)


def test_drawing_the_likeliest_alone_is_greedy() -> None:
    greedy, scores = search_rows(rows(SENTENCES), beam_size=1)
    drawn, drawn_scores = search_rows(rows(SENTENCES), sampling=True, top_k=1)
    assert drawn == greedy
    np.testing.assert_allclose(drawn_scores, scores, rtol=1e-4)


def largest_array(program: Any) -> int:
    """Return the size of the largest array that a traced program computes."""
    sizes = [0]
    for equation in program.eqns:
        sizes += [variable.aval.size for variable in equation.outvars]
        for parameter in jax.tree.leaves(list(equation.params.values())):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                sizes.append(largest_array(inner))
    return max(sizes)


def test_samples_compute_no_attention_to_each_other() -> None:
    def largest(num_samples: int) -> int:
        run = generate.make_generator(
            small(sampling=True), [model_of(1)], vocab_size=V, n_best=num_samples
        )
        program = jax.make_jaxpr(run)((params(1),), rows(SENTENCES))
        return largest_array(program.jaxpr)

    # Weights of a beam's hypotheses on the keys of all would grow 16 times.
    assert largest(64) == pytest.approx(4 * largest(16), rel=0.1)


def test_learned_positions_end_where_their_table_ends() -> None:
    changed = settings.small_settings(
        **{"model.positional_encoding": "learned", "model.max_positions": 21}
    )
    run = generate.make_generator(changed, (changed.model,), vocab_size=V, n_best=1)
    table_params = settings.random_params(changed.model, vocab_size=V, seed=1)
    batch = rows([list(range(3, 21))], width=19, prefixes=[[4, 5, 6]])
    tokens = np.asarray(jax.jit(run)((table_params,), batch).tokens)
    assert tokens.shape[-1] == 21


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize(
    "search",
    [{}, {"no_repeat_ngram": 2}, {"sampling": True, "temperature": 0.7}],
    ids=["beam", "no_repeat_ngram", "sampling"],
)
def test_each_platforms_form_finds_what_the_cpus_finds(
    platform: str, search: dict[str, Any]
) -> None:
    batch = rows(SENTENCES, prefixes=[[], [9], [], [4, 5], [], []])
    # Two shallow models, one of which has two decoder layers.
    expected, expected_scores = search_rows(batch, 4, 5, n_best=3, **search)
    with parallel.targeting(platform):
        outputs, scores = search_rows(batch, 4, 5, n_best=3, **search)
    assert outputs == expected
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5)


def test_each_platforms_form_adds_the_biases_of_one_model() -> None:
    changed = settings.small_settings(
        **{"model.attention_bias": True, "model.logits_bias": True}
    )
    run = generate.make_generator(changed, (changed.model,), vocab_size=V, n_best=4)
    biased_params = settings.random_params(changed.model, vocab_size=V, seed=3)

    def search() -> types.Hypotheses:
        # Another function each time: a trace of one is not that of another platform.
        compiled = jax.jit(lambda params, batch: run(params, batch))
        return compiled((biased_params,), rows(SENTENCES))

    expected = search()
    for platform in ("gpu", "tpu"):
        with parallel.targeting(platform):
            hypotheses = search()
        np.testing.assert_array_equal(hypotheses.tokens, expected.tokens)
        np.testing.assert_allclose(hypotheses.scores, expected.scores, rtol=1e-5)


def test_no_search_uses_cudnns_fused_attention() -> None:
    """The kernel computes no odd lengths, which a source may have."""
    fused = settings.small_settings(
        **{
            "model.attention": "cudnn",
            "model.dtype": "bfloat16",
            "model.d_k": 8,
            "model.d_v": 8,
        }
    )
    run = generate.make_generator(fused, (fused.model,), vocab_size=V, n_best=1)
    fused_params = settings.random_params(fused.model, vocab_size=V, seed=1)
    with parallel.targeting("gpu"):
        lowered = jax.jit(run).lower((fused_params,), rows(SENTENCES, width=7))
    assert "cudnn" not in lowered.as_text()


def test_products_alone_are_converted_before_a_search() -> None:
    model = settings.small_settings(**{"model.dtype": "bfloat16"}).model
    with parallel.targeting("gpu"):
        variables = transformer.variables_for_decoding(model, params(1))
    layer = variables["params"]["decoder"]["layers_0"]
    for leaf in jax.tree.leaves(layer["feed_forward"]):
        assert leaf.dtype == jnp.bfloat16
    for leaf in jax.tree.leaves(layer["feed_forward_residual"]):
        assert leaf.dtype == jnp.float32
    assert variables["params"]["embedding"]["embedding"].dtype == jnp.float32


def test_logits_after_the_vocabularys_are_impossible() -> None:
    model = small().model
    network = transformer.Transformer(model, V)
    source = rows(SENTENCES).source
    with parallel.targeting("tpu"):
        variables = transformer.variables_for_decoding(model, params(1))
        assert transformer.num_logits(V) == 128
        cache = network.apply(
            variables, source, beam_size=1, max_length=4, method="start_cache"
        )
        logits, _ = network.apply(
            variables,
            source[:, :1],
            cache,
            position=jnp.int32(0),
            method="decode_step",
        )
    assert logits.shape == (len(SENTENCES), 1, 128)
    assert np.isfinite(logits[:, :, :V]).all()
    assert (np.asarray(logits)[:, :, V:] == -np.inf).all()
