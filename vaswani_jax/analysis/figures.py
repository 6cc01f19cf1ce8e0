"""The paper's curves, drawn from the code: schedule, positions, costs of layers."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import matplotlib

from vaswani_jax.analysis import paper
from vaswani_jax.model import positional_encoding
from vaswani_jax.training import schedule

matplotlib.use("agg")  # Files alone: there may be no screen.

from matplotlib import pyplot


def learning_rates(path: pathlib.Path) -> None:
    """Equation 3 over 100,000 updates, for base, big and half the width of base."""
    figure, axes = pyplot.subplots(figsize=(7, 4))
    steps = jnp.arange(0, 100_000, 50)
    for d_model in (256, 512, 1024):
        rate = schedule.warmup_inverse_sqrt(
            d_model=d_model, warmup_steps=paper.WARMUP_STEPS, scale=1.0
        )
        axes.plot(steps + 1, rate(steps), label=f"$d_{{model}}$ = {d_model}")
    axes.axvline(paper.WARMUP_STEPS, color="0.7", linewidth=1)
    axes.set(xlabel="update", ylabel="learning rate", ylim=(0, None))
    axes.set_title("Section 5.3: warm-up over 4,000 updates, then its inverse root")
    _save(figure, axes, path)


def positions(path: pathlib.Path) -> None:
    """Section 3.5: the sinusoids of 100 positions at d_model = 512."""
    figure, axes = pyplot.subplots(figsize=(7, 4))
    values = positional_encoding.sinusoids(jnp.arange(100), d_model=512)
    image = axes.imshow(values, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    figure.colorbar(image)
    axes.set(xlabel="dimension", ylabel="position")
    axes.set_title("Section 3.5: PE(pos, i), sine and cosine interleaved")
    _save(figure, axes, path, legend=False)


def layers(
    path: pathlib.Path,
    *,
    lengths: Sequence[int],
    operations: Mapping[str, Sequence[float]],
    seconds: Mapping[str, Sequence[float]],
    d_model: int,
) -> None:
    """Table 1: operations by formula beside seconds by the clock, over n."""
    figure, both = pyplot.subplots(1, 2, figsize=(11, 4.5))
    titles = ("operations, by the formula", "seconds, measured")
    for axes, values, title in zip(both, (operations, seconds), titles, strict=True):
        for name, curve in values.items():
            axes.plot(lengths, curve, marker="o", label=name)
        axes.axvline(d_model, color="0.7", linewidth=1, label="n = d")
        axes.set(xlabel="length n", xscale="log", yscale="log")
        axes.set_title(f"Table 1: {title}, d = {d_model}")
    both[0].legend()
    _save(figure, both[1], path)


def _save(figure: Any, axes: Any, path: pathlib.Path, *, legend: bool = True) -> None:
    if legend:
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
