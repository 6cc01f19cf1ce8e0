"""Draw what runs have logged: loss, scores and learning rate, over two axes of time."""

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

from vaswani_jax.plots import canvas
from vaswani_jax.training import metrics_log


@dataclasses.dataclass(frozen=True)
class Panel:
    """A quantity of the picture.

    Attributes:
        label: Its name and unit.
        metrics: The metrics that it draws, by the part that logs them.
        starts_at_zero: Whether the axis does.
    """

    label: str
    metrics: dict[str, str]
    starts_at_zero: bool


PANELS = (
    Panel(
        "loss (nats per token)",
        {"training": "train/loss", "validation": "valid/loss"},
        starts_at_zero=False,
    ),
    Panel("BLEU (validation)", {"validation": "valid/bleu"}, starts_at_zero=True),
    Panel("F1 (validation)", {"validation": "valid/f1"}, starts_at_zero=True),
    Panel("learning rate", {"training": "train/learning_rate"}, starts_at_zero=True),
)
# Okabe and Ito's colours, which the colour-blind can tell apart. The marks differ, too:
# in grey, and where colours repeat.
COLOURS = "#0072B2 #E69F00 #009E73 #CC79A7 #56B4E9 #D55E00 #000000".split()
MARKERS = "os^DvPX*"
MOST_MARKERS = 20
WIDTH_INCHES = 8.0
WIDTH_CHARACTERS = 80


@dataclasses.dataclass(frozen=True)
class LoggedRun:
    """The records of a run.

    Attributes:
        name: What the picture calls it.
        records: The metrics of each logged step, with `step` and the elapsed seconds.
    """

    name: str
    records: list[dict[str, Any]]

    def points(self, metric: str) -> list[tuple[int, float, float]]:
        """Return update, minutes and value wherever a metric was logged.

        A value that was not finite is NaN, a gap in the curve.
        """
        return [
            (
                record["step"],
                record[metrics_log.ELAPSED] / 60,
                math.nan if record[metric] is None else record[metric],
            )
            for record in self.records
            if metric in record
        ]

    def has(self, panel: Panel) -> bool:
        """Return whether a value of a panel was logged."""
        return any(self.points(metric) for metric in panel.metrics.values())


def read(name: str, workdir: pathlib.Path) -> LoggedRun:
    """Return what a run has logged.

    Args:
        name: What the user calls the run.
        workdir: Its directory.

    Raises:
        ValueError: No run has trained there, it has logged nothing yet, or its records
            are damaged.
    """
    if not (workdir / metrics_log.FILE).is_file():
        raise ValueError(
            f"--workdir={name} has no {metrics_log.FILE}: no run has trained there"
        )
    run = LoggedRun(name, metrics_log.read(workdir))
    if not any(run.has(panel) for panel in PANELS):
        raise ValueError(
            f"--workdir={name} has logged nothing yet: the first record comes after "
            "config.training.log_every_steps updates"
        )
    return run


def draw(runs: Sequence[LoggedRun]) -> Any:
    """Draw the curves of one run, or of several in the same panels.

    Returns:
        A figure: a row for each quantity that was logged, over updates and over
        minutes.
    """
    panels = [panel for panel in PANELS if any(run.has(panel) for run in runs)]
    names = [canvas.wrap(run.name, WIDTH_CHARACTERS) for run in runs]
    name_lines = sum(name.count("\n") + 1 for name in names)
    figure = canvas.new_figure(WIDTH_INCHES, 2.2 * len(panels) + 0.5 + 0.2 * name_lines)
    rows = figure.subplots(len(panels), 2, sharex="col", sharey="row", squeeze=False)
    for row, panel in zip(rows, panels, strict=True):
        for column, axes in enumerate(row):
            axes.grid(color="0.9")
            for number, run in enumerate(runs):
                _plot(axes, run, panel, column=column, number=number)
        row[0].set_ylabel(panel.label)
        row[0].ticklabel_format(axis="y", scilimits=(-2, 3), useMathText=True)
        if panel.starts_at_zero:
            row[0].set_ylim(0, 1.08 * (row[0].dataLim.y1 or 1))
    figure.align_ylabels(rows[:, 0])
    for axes, label in zip(rows[-1], ("updates", "minutes of training"), strict=True):
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(_few_ticks())
        axes.xaxis.set_major_formatter("{x:,.10g}")
    _name_runs(figure, names)
    _name_parts(rows[0][0], len(runs))
    return figure


def _plot(axes: Any, run: LoggedRun, panel: Panel, *, column: int, number: int) -> None:
    """Plot a run's curves over updates (column 0) or minutes (column 1)."""
    for part, metric in panel.metrics.items():
        points = run.points(metric)
        if points:
            axes.plot(
                [point[column] for point in points],
                [point[2] for point in points],
                label=f"{run.name}, {part}",
                markevery=math.ceil(len(points) / MOST_MARKERS),
                **_style(number, part=part),
            )


def _style(number: int, *, part: str) -> dict[str, Any]:
    is_validation = part == "validation"
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5 if is_validation else 3.5,
        "markerfacecolor": COLOURS[number % len(COLOURS)] if is_validation else "none",
        "linestyle": "-" if is_validation else "--",
        "linewidth": 1.8 if is_validation else 1,
    }


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4, steps=[1, 2, 4, 5, 10])


def _name_runs(figure: Any, names: Sequence[str]) -> None:
    """Write the name of one run above the panels, those of several in a legend."""
    if len(names) == 1:
        figure.suptitle(names[0], fontsize="medium", parse_math=False)
        return
    from matplotlib.lines import Line2D

    styles = [_style(number, part="validation") for number in range(len(names))]
    legend = figure.legend(
        [Line2D([], [], **style) for style in styles],
        [str(number) for number in range(len(names))],
        loc="outside upper left",
        frameon=False,
    )
    # A legend leaves out a name that begins with "_"; a text does not.
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)


def _name_parts(axes: Any, num_runs: int) -> None:
    """Write in a legend which curves are of training and which of validation."""
    from matplotlib.lines import Line2D

    handles = []
    for part in ("training", "validation"):
        style = _style(0, part=part)
        if num_runs > 1:
            style |= {"color": "0.3", "marker": ""}
        handles.append(Line2D([], [], label=part, **style))
    axes.legend(handles=handles, fontsize="small")
