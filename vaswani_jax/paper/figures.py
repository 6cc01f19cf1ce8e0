"""The paper's curves, drawn from the code: schedule, positions, costs of layers."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np

from vaswani_jax.model import positional_encoding
from vaswani_jax.paper import printed, table1
from vaswani_jax.training import optimizer

matplotlib.use("agg")  # Files alone: there may be no screen.

from matplotlib import pyplot


def learning_rates(path: pathlib.Path) -> None:
    """Equation 3 over the big model's 300,000 updates, for three widths of table 3."""
    figure, axes = pyplot.subplots(figsize=(7, 4))
    steps = np.unique(np.geomspace(100, 300_000, 500).astype(int))
    steps = np.union1d(steps, printed.WARMUP_STEPS)
    for name, d_model in (("base", 512), ("big", 1024), ("row C4", 256)):
        rate = optimizer.warmup_inverse_sqrt(
            d_model=d_model, warmup_steps=printed.WARMUP_STEPS, scale=1.0
        )
        values = np.asarray(jax.vmap(rate)(jnp.asarray(steps - 1)))
        label = f"{name}, $d_{{model}}$ = {d_model}: at most {values.max():.2e}"
        axes.plot(steps, values, label=label)
    axes.axvline(
        printed.WARMUP_STEPS,
        color="0.6",
        linewidth=1,
        label=f"warmup_steps = {printed.WARMUP_STEPS:,}",
    )
    axes.set(xlabel="update", ylabel="learning rate", xscale="log", ylim=(0, 1.4e-3))
    axes.set_title("Section 5.3: linear warm-up, then the inverse square root")
    axes.legend(fontsize="small")
    _save(figure, path)


def positions(path: pathlib.Path) -> None:
    """Section 3.5: the sinusoids of 100 positions, narrow enough to be seen apart."""
    figure, axes = pyplot.subplots(figsize=(8, 5))
    values = positional_encoding.sinusoids(jnp.arange(100), d_model=64)
    image = axes.imshow(
        values, aspect="auto", cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest"
    )
    figure.colorbar(image, label="value")
    axes.set(xlabel="dimension (2i sine, 2i + 1 cosine)", ylabel="position")
    axes.set_title("Section 3.5: PE(pos, i) at $d_{model}$ = 64")
    _save(figure, path)


def layers(path: pathlib.Path, costs: table1.Costs) -> None:
    """Table 1: operations by formula beside seconds by the clock, over n."""
    figure, both = pyplot.subplots(1, 2, figsize=(12, 4.8))
    panels = (
        ("operations", "by the formula", costs.operations),
        ("seconds", f"measured, {costs.rows} sentence(s)", costs.seconds),
    )
    for axes, (quantity, how, values) in zip(both, panels, strict=True):
        for name, curve in values.items():
            axes.plot(costs.lengths, curve, marker="o", label=name)
        axes.axvline(costs.d, color="0.6", linewidth=1, label=f"n = d = {costs.d}")
        if where := costs.crossing(values):
            label = f"attention = recurrence: n = {where:,.0f}"
            axes.axvline(where, color="0.2", linewidth=1, linestyle="--", label=label)
        axes.set(xlabel="length n", ylabel=quantity, xscale="log", yscale="log")
        axes.set_title(f"Table 1: {quantity}, {how}")
        axes.legend(fontsize="small")
    _save(figure, path)


def _save(figure: Any, path: pathlib.Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
