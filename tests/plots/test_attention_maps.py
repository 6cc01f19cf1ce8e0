"""The heat maps have the weights of the attention, and all of its subwords."""

import functools
from typing import Any

import numpy as np
import pytest

from tests import settings
from tests.plots import figures
from vaswani_jax.inference.results import Attention
from vaswani_jax.plots import attention_maps

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")

N, H, S, T = 2, 5, 4, 3
SOURCE = ("▁Donaudampfschifffahrtsgesellschaft", "$a$", "_b", "</s>")
TARGET = ("▁Wort", "\U0001d49c", "</s>")


def make_attention(*, source: tuple[str, ...] = SOURCE) -> Attention:
    """Return weights all of which differ."""
    generator = np.random.default_rng(0)
    length = len(source)

    def weights(Q: int, K: int) -> np.ndarray:
        return generator.dirichlet(np.ones(K), (N, H, Q)).astype(np.float32)

    return Attention(
        source=source,
        target_in=("<s>", *TARGET[:-1]),
        target_out=TARGET,
        encoder=weights(length, length),
        decoder=weights(T, T),
        memory=weights(T, length),
    )


def labels(ticks: Any) -> tuple[str, ...]:
    """Return the texts at the ticks; a map that is not an outer one has none."""
    return tuple(filter(None, (label.get_text() for label in ticks)))


def draw(attention: Attention, *kinds: str, layer: int = 1) -> Any:
    layers = dict.fromkeys(kinds, layer)
    return attention_maps.draw(attention, layers=layers, title="runs/a, layer 2 of 2")


@pytest.mark.parametrize("layer", range(N))
@pytest.mark.parametrize(
    ("kind", "queries", "keys"),
    [
        ("encoder", SOURCE, SOURCE),
        ("decoder", ("<s>", *TARGET[:-1]), ("<s>", *TARGET[:-1])),
        ("memory", TARGET, SOURCE),
    ],
)
def test_each_head_has_its_map_with_subwords_at_the_axes(
    kind: str, queries: tuple[str, ...], keys: tuple[str, ...], layer: int
) -> None:
    attention = make_attention()
    figure = draw(attention, kind, layer=layer)
    figures.check_nothing_is_clipped(figure)
    *heads, bar = figure.axes
    assert len(heads) == H
    for head, axes in enumerate(heads):
        assert axes.get_title() == f"head {head + 1}"
        [image] = axes.images
        weights = getattr(attention, kind)[layer, head]
        np.testing.assert_array_equal(image.get_array(), weights)
        # One scale for all: 0 to 1, from the first query down.
        assert image.get_clim() == (0, 1)
        left, right, bottom, top = image.get_extent()
        assert (left, right) == (-0.5, len(keys) - 0.5)
        assert (bottom, top) == (len(queries) - 0.5, -0.5)
        # Subwords stand at the outer maps: three columns, of which the last is short.
        expected = queries if head in (0, 3) else ()
        assert labels(axes.get_yticklabels()) == expected
        expected = keys if head >= 2 else ()
        assert labels(axes.get_xticklabels()) == expected
    assert bar.get_ylabel() == "attention weight"
    [area] = figure.subfigs
    names = attention_maps.KINDS[kind]
    shown = {text.get_text() for text in area.texts} | {area.get_suptitle()}
    assert {names.title, names.query_label, names.key_label} <= shown


def test_all_kinds_stand_in_one_picture() -> None:
    figure = draw(make_attention(), "encoder", "decoder", "memory")
    figures.check_nothing_is_clipped(figure)
    titles = [area.get_suptitle() for area in figure.subfigs]
    assert titles == [kind.title for kind in attention_maps.KINDS.values()]
    assert figure.get_suptitle() == "runs/a, layer 2 of 2"


def test_each_stack_has_its_own_layers() -> None:
    model = settings.small_settings(
        **{"model.num_layers": 6, "model.num_decoder_layers": 1}
    ).model
    choose = functools.partial(attention_maps.choose_layers, model)
    kinds = list(attention_maps.KINDS)
    layers = choose(kinds, number=None)
    assert layers == {"encoder": 4, "decoder": 0, "memory": 0}
    assert attention_maps.describe_layers(model, layers) == (
        "encoder layer 5 of 6, decoder layer 1 of 1"
    )
    assert choose(["encoder"], number=6) == {"encoder": 5}
    assert attention_maps.describe_layers(model, {"encoder": 5}) == "layer 6 of 6"
    with pytest.raises(
        ValueError,
        match=r"--layer=2 must be from 1 to 1 for both 6 encoder and 1 decoder layers",
    ):
        choose(kinds, number=2)
    with pytest.raises(ValueError, match=r"--layer=7 must be from 1 to 6$"):
        choose(["encoder"], number=7)


def test_the_longest_picture_is_readable_and_a_longer_one_refused() -> None:
    most = attention_maps.MOST_SUBWORDS
    figure = draw(make_attention(source=("▁a",) * most), "memory")
    figures.check_nothing_is_clipped(figure)
    first, second = figure.axes[2].get_xticklabels()[:2]
    assert not first.get_window_extent().overlaps(second.get_window_extent())
    with pytest.raises(
        ValueError, match=f"room for {most} subwords, .* has {most + 1} with its end"
    ):
        draw(make_attention(source=("▁a",) * (most + 1)), "memory")
