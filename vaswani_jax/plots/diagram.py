"""Draw boxes, arrows and frames of figures 1 and 2 on a canvas measured in inches."""

import textwrap
from collections.abc import Sequence
from typing import Any

from vaswani_jax.plots import canvas

Point = tuple[float, float]
Size = tuple[float, float]
# The paper's colours, by what a box is.
FILLS = {
    "embedding": "#F9DCDC",
    "attention": "#FBDDB8",
    "feed_forward": "#BFE3F2",
    "norm": "#F2F3C0",
    "linear": "#DCDDF2",
    "softmax": "#CDE7D5",
    "scale": "#F9DCDC",
    "mask": "#F9DCDC",
    "matmul": "#DCC9E8",
    "concat": "#F2F3C0",
}
FRAME = "#F2F2F2"
SHAPE = "#1F4E9E"  # of text that is a shape
LABEL_POINTS, DETAIL_POINTS, TITLE_POINTS = 9, 7, 10
LINE_HEIGHT, DETAIL_HEIGHT = 0.155, 0.13
PLUS_RADIUS = 0.09
WAVE_RADIUS = 0.14
COPY_OFFSET = 0.06
TITLE_HEIGHT, TITLE_CHARACTER = 0.2, 0.16  # of a line; of its widest letters


class Canvas:
    """A figure in inches from its lower left corner.

    Attributes:
        figure: What matplotlib saves.
    """

    def __init__(self, width: float, height: float) -> None:
        """Make an empty figure of a width and a height in inches."""
        self._axes = canvas.new_axes((0.0, width), (0.0, height))
        self.figure: Any = self._axes.figure

    @classmethod
    def with_title(cls, width: float, height: float, *, title: str) -> "Canvas":
        """Make a figure with a title above what has a width and a height."""
        lines = textwrap.wrap(title, int(width / TITLE_CHARACTER))
        top = height + TITLE_HEIGHT * (len(lines) + 0.5)
        result = cls(width, top)
        middle = (width / 2, (height + top) / 2)
        result.write(middle, "\n".join(lines), size=TITLE_POINTS, weight="bold")
        return result

    def write(
        self,
        at: Point,
        text: str,
        *,
        size: int = 8,
        align: str = "center",
        colour: str = "black",
        weight: str = "normal",
    ) -> None:
        """Write lines of text around a height."""
        self._axes.text(
            *(*at, text),
            ha=align,
            va="center",
            color=colour,
            size=size,
            weight=weight,
            family=canvas.font_families(text),
            parse_math=False,
            zorder=5,
        )

    def box(
        self,
        bottom: Point,
        size: Size,
        label: str,
        *,
        kind: str,
        detail: str = "",
        is_dashed: bool = False,
        copies: int = 1,
    ) -> None:
        """Draw a box with a name.

        Args:
            bottom: The middle of its lower side.
            size: Width and height.
            label: Its name.
            kind: A key of `FILLS`.
            detail: Small text below the name.
            is_dashed: Whether its border is dashed.
            copies: How many boxes lie behind one another.
        """
        from matplotlib.patches import FancyBboxPatch

        (x, y), (width, height) = bottom, size
        for copy in reversed(range(copies)):
            shift = COPY_OFFSET * copy
            self._axes.add_patch(
                FancyBboxPatch(
                    (x - width / 2 + shift, y + shift),
                    width,
                    height,
                    boxstyle="round,pad=0,rounding_size=0.06",
                    facecolor=FILLS[kind],
                    edgecolor="0.6" if copy else "black",
                    linewidth=0.9,
                    linestyle="--" if is_dashed else "-",
                    zorder=3,
                    label="" if copy else label,
                )
            )
        middle = y + height / 2
        if detail:
            lines = label.count("\n") + 1
            middle += DETAIL_HEIGHT / 2
            self.write(
                (x, middle - (lines * LINE_HEIGHT + DETAIL_HEIGHT) / 2),
                detail,
                size=DETAIL_POINTS,
                colour=SHAPE,
            )
        self.write((x, middle), label, size=LABEL_POINTS)

    def frame(self, lower_left: Point, upper_right: Point) -> None:
        """Draw the frame around what is repeated."""
        from matplotlib.patches import FancyBboxPatch

        (left, bottom), (right, top) = lower_left, upper_right
        self._axes.add_patch(
            FancyBboxPatch(
                (left, bottom),
                right - left,
                top - bottom,
                boxstyle="round,pad=0,rounding_size=0.12",
                facecolor=FRAME,
                edgecolor="0.4",
                linewidth=0.9,
                zorder=1,
            )
        )

    def line(self, points: Sequence[Point]) -> None:
        """Draw a line through points."""
        self._axes.plot(
            *zip(*points, strict=True),
            color="black",
            linewidth=0.9,
            solid_joinstyle="round",
            zorder=2,
        )

    def arrow(self, points: Sequence[Point]) -> None:
        """Draw a line through points, with an arrowhead at the last."""
        self.line(points)
        self._axes.annotate(
            "",
            xy=points[-1],
            xytext=points[-2],
            arrowprops={
                "arrowstyle": "-|>,head_width=0.16,head_length=0.3",
                "color": "black",
                "linewidth": 0.9,
                "shrinkA": 0,
                "shrinkB": 0,
            },
            zorder=4,
        )

    def plus(self, centre: Point) -> None:
        """Draw the sign of a sum."""
        from matplotlib.patches import Circle

        x, y = centre
        self._axes.add_patch(
            Circle(centre, PLUS_RADIUS, facecolor="white", edgecolor="black", zorder=3)
        )
        r = PLUS_RADIUS
        for xs, ys in (((x - r, x + r), (y, y)), ((x, x), (y - r, y + r))):
            self._axes.plot(xs, ys, color="black", linewidth=0.9, zorder=4)

    def circle(self, centre: Point, *, has_wave: bool) -> None:
        """Draw the sign of positions: a circle, with a wave for sinusoids."""
        import numpy as np
        from matplotlib.patches import Circle

        x, y = centre
        self._axes.add_patch(
            Circle(centre, WAVE_RADIUS, facecolor="white", edgecolor="black", zorder=3)
        )
        if not has_wave:
            return
        steps = np.linspace(-1, 1, 40)
        self._axes.plot(
            x + WAVE_RADIUS * steps,
            y + 0.6 * WAVE_RADIUS * np.sin(np.pi * steps),
            color="black",
            linewidth=0.9,
            zorder=4,
        )
