"""Figure 1 has the modules of the traced model, in their order and places."""

import functools
from typing import Any

import pytest
from matplotlib.patches import FancyBboxPatch

from tests import settings
from tests.plots import figures
from vaswani_jax.core import types
from vaswani_jax.plots import architecture
from vaswani_jax.plots.architecture import Architecture

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")

TREES = types.TreeIds(num_labels=2, word_starts=bytes([0b00011001, 0b00100000]))
MODELS: dict[str, tuple[types.VocabSize, dict[str, Any]]] = {
    "post": (11, {"model.num_layers": 2}),
    "pre": (
        11,
        {
            "model.layer_norm_position": "pre",
            "model.positional_encoding": "learned",
            "model.num_encoder_layers": 3,
            "model.num_decoder_layers": 1,
            "model.rematerialize": True,
        },
    ),
    "parser": (
        types.VocabSizes(source=12, target=13, trees=TREES),
        {**settings.TREEBANK, "model.deterministic_attention": True},
    ),
}
ATTENTION, FEED_FORWARD = "Multi-Head\nAttention", "Feed\nForward"


@functools.cache
def read(name: str) -> Architecture:
    vocab_size, overrides = MODELS[name]
    return architecture.read(settings.small_settings(**overrides).model, vocab_size)


def boxes_of(figure: Any, *, left: bool) -> list[str]:
    """Return the names of the boxes of one column, from the bottom."""
    [axes] = figure.axes
    middle = figure.get_size_inches()[0] / 2
    boxes = [
        patch
        for patch in axes.patches
        if isinstance(patch, FancyBboxPatch) and patch.get_label()
    ]
    column = [box for box in boxes if (box.get_x() < middle - 0.5) == left]
    return [box.get_label() for box in sorted(column, key=FancyBboxPatch.get_y)]


def texts_of(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_the_papers_model_is_drawn_as_in_the_paper() -> None:
    figure = architecture.draw(read("post"), title="runs/a")
    figures.check_nothing_is_clipped(figure)
    layer = [ATTENTION, "Add & Norm", FEED_FORWARD, "Add & Norm"]
    assert boxes_of(figure, left=True) == ["Input Embedding", *layer]
    decoder = [f"Masked {ATTENTION}", "Add & Norm", *layer]
    assert boxes_of(figure, left=False) == [
        "Output Embedding",
        *decoder,
        "Linear",
        "Softmax",
    ]
    texts = texts_of(figure)
    assert texts.count("2×") == 2
    assert texts.count("Positional\nEncoding\n(sinusoids)") == 2
    for text in (
        "[B, S, 8]",
        "[B, T, 8]",
        "memory [B, S, 8]",
        "[B, T, 11]",
        "8 → 10 → 8",
        "2 heads, d_k 4, d_v 6",
        "one table [11, 8] for both embeddings and the last Linear",
    ):
        assert text in texts


def test_normalisation_before_sub_layers_is_drawn_there() -> None:
    figure = architecture.draw(read("pre"), title="runs/a")
    figures.check_nothing_is_clipped(figure)
    layer = ["Norm", ATTENTION, "Norm", FEED_FORWARD]
    assert boxes_of(figure, left=True) == ["Input Embedding", *layer, "Norm"]
    decoder = ["Norm", f"Masked {ATTENTION}", *layer, "Norm"]
    assert boxes_of(figure, left=False)[1:-2] == decoder
    texts = texts_of(figure)
    assert texts.count("3×") == texts.count("1×") == 1
    assert texts.count("Positional\nEncoding\n(learned [32, 8])") == 2


def test_a_parser_has_two_tables_and_the_state_of_the_next_word() -> None:
    figure = architecture.draw(read("parser"), title="runs/" + "W" * 70)
    figures.check_nothing_is_clipped(figure)
    texts = texts_of(figure)
    assert "state of the next word\n(from the memory)" in texts
    assert "table [12, 8]" in texts and "table [13, 8]" in texts
    assert any(text.startswith("a table [12, 8] for the inputs; one") for text in texts)


def test_only_the_decoders_second_attention_reads_the_memory() -> None:
    for name in MODELS:
        model = read(name)
        [(_, encoder)] = model.encoder.layers
        [(_, decoder)] = model.decoder.layers
        assert [sub_layer.reads_memory for sub_layer in encoder] == [False, False]
        assert [sub_layer.reads_memory for sub_layer in decoder] == [False, True, False]
        assert decoder[1].path == ("decoder", "layers_0", "memory_attention")


def test_parameters_are_counted() -> None:
    vocab_size, overrides = MODELS["post"]
    assert isinstance(vocab_size, int)
    model = settings.small_settings(**overrides).model
    params = settings.random_params(model, vocab_size=vocab_size, seed=0)
    sizes = [leaf.size for leaf in settings.jax.tree.leaves(params)]
    assert read("post").num_params == sum(sizes)
    figure = architecture.draw(read("post"), title="runs/a")
    assert f"runs/a: {sum(sizes):,} parameters" in texts_of(figure)
