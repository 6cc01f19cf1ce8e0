"""Draw the paper's curves from the code: schedule, positions, costs of layers."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import plurals
from vaswani_jax.model import positional_encoding
from vaswani_jax.paper import printed
from vaswani_jax.paper.table1 import Costs
from vaswani_jax.plots import canvas
from vaswani_jax.training import optimizer


def draw_learning_rates() -> Any:
    """Draw equation 3 over the big model's 300,000 updates, for three widths."""
    figure = canvas.new_figure(7.0, 4.0)
    axes = figure.subplots()
    steps = np.unique(np.geomspace(100, 300_000, 500).astype(int))
    steps = np.union1d(steps, printed.WARMUP_STEPS)
    for name, d_model in (("base", 512), ("big", 1024), ("row C4", 256)):
        rate = optimizer.warmup_inverse_sqrt(
            d_model=d_model, warmup_steps=printed.WARMUP_STEPS, scale=1.0
        )
        rates = np.asarray(jax.vmap(rate)(jnp.asarray(steps - 1)))
        label = f"{name}, $d_{{model}}$ = {d_model}: at most {rates.max():.2e}"
        axes.plot(steps, rates, label=label)
    axes.axvline(
        printed.WARMUP_STEPS,
        color="0.6",
        linewidth=1,
        label=f"warmup_steps = {printed.WARMUP_STEPS:,}",
    )
    axes.set(xlabel="update", ylabel="learning rate", xscale="log", ylim=(0, 1.4e-3))
    axes.set_title("Section 5.3: linear warm-up, then the inverse square root")
    axes.legend(fontsize="small")
    return figure


def draw_positions() -> Any:
    """Draw the sinusoids of 100 positions, narrow enough to tell them apart."""
    figure = canvas.new_figure(8.0, 5.0)
    axes = figure.subplots()
    sinusoids = positional_encoding.sinusoids(jnp.arange(100), d_model=64)
    image = axes.imshow(
        sinusoids, aspect="auto", cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest"
    )
    figure.colorbar(image, label="value")
    axes.set(xlabel="dimension (2i sine, 2i + 1 cosine)", ylabel="position")
    axes.set_title("Section 3.5: PE(pos, i) at $d_{model}$ = 64")
    return figure


def draw_table1(costs: Costs) -> Any:
    """Draw operations by formula beside seconds by the clock, over the length n."""
    figure = canvas.new_figure(12.0, 4.8)
    panels = (
        ("operations", "by the formula", costs.operations),
        (
            "seconds",
            f"measured, {plurals.format_count(costs.rows, 'sentence')}",
            costs.seconds,
        ),
    )
    for axes, (quantity, how, curves) in zip(
        figure.subplots(1, 2), panels, strict=True
    ):
        for name, curve in curves.items():
            axes.plot(costs.lengths, curve, marker="o", label=name)
        axes.axvline(costs.d, color="0.6", linewidth=1, label=f"n = d = {costs.d}")
        if crossing := costs.crossing(curves):
            label = f"attention = recurrence: n = {crossing:,.0f}"
            axes.axvline(
                crossing, color="0.2", linewidth=1, linestyle="--", label=label
            )
        axes.set(xlabel="length n", ylabel=quantity, xscale="log", yscale="log")
        axes.set_title(f"Table 1: {quantity}, {how}")
        axes.legend(fontsize="small")
    return figure
